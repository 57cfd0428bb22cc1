"""Runs models in ONNX with their tokenizer.json: on the CPU, offline, loaded at first use."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commonplace.embedders.base import BaseEmbedder, Vectors
from commonplace.stores.worker_threads import usable_cores
from commonplace.wire.errors import Unavailable

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

# Past this the matrices are large enough already (at 8,192 tokens a batch was a third slower), and it bounds
# what onnxruntime's arena holds on to. The arena stays on: without it the process was some 80 MB larger.
_BATCH_TOKENS = 1024
_PADDED = 1.2  # at most a fifth more tokens than the texts have
MAX_THREADS = 4
# A token is rarely more than a few characters. Reading only so many keeps a huge text from being tokenised
# to the end just to be cut.
CHARACTERS_PER_TOKEN = 64


def batches(lengths: Sequence[int], padded_by: float = _PADDED) -> list[list[int]]:
    """Indexes in batches of like length: padding costs as much as text does."""
    grouped: list[list[int]] = []
    real = 0
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        length = lengths[index]
        current = grouped[-1] if grouped else []
        padded = (len(current) + 1) * length
        if current and padded <= min(_BATCH_TOKENS, padded_by * (real + length)):
            current.append(index)
            real += length
        else:
            grouped.append([index])
            real = length
    return grouped


#: The model, best as a path to spare memory, and the tokenizer.
ModelFiles = Callable[[], tuple[Path | bytes, bytes]]


class OnnxEmbedder(BaseEmbedder):
    """A sentence encoder; a graph that gives one vector per token is mean-pooled over the real tokens.

    `files` is asked at each load.
    """

    #: Texts embedded at once, a thread each: as fast as all threads on one text, and a question waits for none of them.
    concurrent = max(2, min(MAX_THREADS, usable_cores()))
    #: Where it is set, every text is padded to a multiple of it, and only equal lengths share a batch.
    _pad_to: int | None = None

    def __init__(self, name: str, files: ModelFiles, *, max_tokens: int, dimension: int | None = None) -> None:
        self.name = name
        self._files = files
        self._max_tokens = max_tokens
        self._declared = dimension
        self._loaded: tuple[onnxruntime.InferenceSession, tokenizers.Tokenizer] | None = None
        self._loading = threading.Lock()

    @cached_property
    def dimension(self) -> int:
        if self._declared:
            return self._declared
        last = self._load()[0].get_outputs()[0].shape[-1]
        return last if isinstance(last, int) else self._embed(["dimension"]).shape[1]

    def unload(self) -> None:
        self._loaded = None
        return_freed_memory()

    def _encode(self, texts: list[str]) -> list[Vectors]:
        ids, rows = self._pass(texts, None)
        return [_mean(row[0], len(own)) if row[0].ndim == 2 else row[0] for own, row in zip(ids, rows, strict=True)]

    def _pass(self, texts: list[str], wanted: list[str] | None) -> tuple[list[list[int]], list[list[NDArray[Any]]]]:
        """The token ids of each text and its row of each output, which may have more tokens than the text."""
        session, tokenizer = self._load()
        limit = self._max_tokens * CHARACTERS_PER_TOKEN
        ids = [found.ids for found in tokenizer.encode_batch([readable(text, limit) for text in texts])]
        rows: list[list[NDArray[Any]]] = [[]] * len(texts)
        lengths = [self._padded(len(own)) for own in ids]
        for batch in batches(lengths, 1.0 if self._pad_to else _PADDED):
            outputs = self._run(session, [ids[i] for i in batch], wanted)
            for place, i in enumerate(batch):
                rows[i] = [output[place] for output in outputs]
        return ids, rows

    def _run(
        self, session: onnxruntime.InferenceSession, tokens: list[list[int]], wanted: list[str] | None
    ) -> list[NDArray[Any]]:
        ids = np.zeros((len(tokens), self._padded(max(map(len, tokens)))), np.int64)
        mask = np.zeros_like(ids)
        for row, own in enumerate(tokens):
            ids[row, : len(own)] = own
            mask[row, : len(own)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        taken = {entry.name for entry in session.get_inputs()}
        outputs: list[NDArray[Any]] = session.run(wanted, {name: feeds[name] for name in feeds if name in taken})
        return outputs

    def _padded(self, length: int) -> int:
        return length if self._pad_to is None else -(-length // self._pad_to) * self._pad_to

    def _load(self) -> tuple[onnxruntime.InferenceSession, tokenizers.Tokenizer]:
        with self._loading:  # or two threads would have a model each
            if self._loaded is None:
                model, data = self._files()
                session = load_session(model, self.name, threads=1)
                tokenizer = load_tokenizer(data, self._max_tokens, f"the tokenizer of {self.name}")
                self._loaded = self._checked(session, tokenizer, model), tokenizer
                return_freed_memory()
            return self._loaded

    def _checked(
        self, session: onnxruntime.InferenceSession, tokenizer: tokenizers.Tokenizer, model: Path | bytes
    ) -> onnxruntime.InferenceSession:
        """The one to use on this machine."""
        return session


def load_session(
    model: Path | bytes, what: str, *, threads: int, wide_sums: bool = False
) -> onnxruntime.InferenceSession:
    """`wide_sums`: products of 8 bits are never added up in 16, where large ones would be cut off."""
    # Telemetry begins at the import, so it is turned off before; this is the one place that imports it.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that spin while they wait take the core the next one needs: twice as slow on a busy machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if wide_sums:
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises classes of its own without a common base
        raise Unavailable(f"{what} cannot be loaded by onnxruntime: {error}") from error


def load_tokenizer(data: bytes, max_tokens: int, what: str) -> tokenizers.Tokenizer:
    # Its own threads gain nothing on a batch this size, and warn on stderr whenever the process forks.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_buffer(data)
    except Exception as error:  # the library raises bare Exception
        raise Unavailable(f"{what} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)  # of a pair, the longer of the two gives way first
    return tokenizer


def readable(text: str, limit: int) -> str:
    """A lone surrogate, which JSON allows and the tokenizer does not, becomes a question mark."""
    return text[:limit].encode("utf-8", "replace").decode()


def return_freed_memory() -> None:
    """glibc keeps what is freed: 50 MB after loading, and after unloading nearly the whole model."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim:
            trim(0)


def _mean(states: NDArray[Any], count: int) -> Vectors:
    total: Vectors = states[:count].sum(axis=0) / max(count, 1)
    return total
