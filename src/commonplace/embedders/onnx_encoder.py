"""Runs a sentence encoder in ONNX with its tokenizer.json: on the CPU, offline, loaded at first use."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commonplace.embedders.base import Vectors, unit_rows
from commonplace.wire.errors import Unavailable

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

# Past this the matrices are large enough already (at 8,192 tokens a batch was a third slower), and it bounds
# what onnxruntime's arena holds on to. The arena stays on: without it the process was some 80 MB larger.
_BATCH_TOKENS = 1024
_PADDED = 1.2  # at most a fifth more tokens than the texts have
_MAX_THREADS = 4
# A token is rarely more than a few characters. Reading only so many keeps a huge text from being tokenised
# to the end just to be cut.
_CHARACTERS_PER_TOKEN = 64


def usable_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def batches(lengths: Sequence[int]) -> list[list[int]]:
    """Indexes in batches of like length: padding costs as much as text does."""
    grouped: list[list[int]] = []
    real = 0
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        length = lengths[index]
        current = grouped[-1] if grouped else []
        padded = (len(current) + 1) * length
        if current and padded <= min(_BATCH_TOKENS, _PADDED * (real + length)):
            current.append(index)
            real += length
        else:
            grouped.append([index])
            real = length
    return grouped


class OnnxEncoder:
    """`files` is asked at each load: for the model, best as a path to spare memory, and the tokenizer."""

    def __init__(self, files: Callable[[], tuple[Path | bytes, bytes]], *, max_tokens: int, source: str) -> None:
        self._files = files
        self._max_tokens = max_tokens
        self._source = source
        self._loaded: tuple[onnxruntime.InferenceSession, tokenizers.Tokenizer] | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        session, tokenizer = self._load()
        readable = [_readable(text, self._max_tokens * _CHARACTERS_PER_TOKEN) for text in texts]
        encodings = tokenizer.encode_batch(readable)
        rows: list[Vectors | None] = [None] * len(texts)
        for batch in batches([len(encoding.ids) for encoding in encodings]):
            vectors = self._run(session, [encodings[i].ids for i in batch])
            for i, vector in zip(batch, vectors, strict=True):
                rows[i] = vector
        return unit_rows(rows, count=len(texts), source=self._source)

    def width(self) -> int | None:
        """The dimension the graph declares, if it declares one."""
        last = self._load()[0].get_outputs()[0].shape[-1]
        return last if isinstance(last, int) else None

    def unload(self) -> None:
        self._loaded = None
        _return_freed_memory()

    def _run(self, session: onnxruntime.InferenceSession, tokens: list[list[int]]) -> Vectors:
        ids = np.zeros((len(tokens), max(map(len, tokens))), np.int64)
        mask = np.zeros_like(ids)
        for row, own in enumerate(tokens):
            ids[row, : len(own)] = own
            mask[row, : len(own)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = {entry.name for entry in session.get_inputs()}
        output = session.run(None, {name: value for name, value in feeds.items() if name in wanted})[0]
        return _mean(output, mask) if output.ndim == 3 else output

    def _load(self) -> tuple[onnxruntime.InferenceSession, tokenizers.Tokenizer]:
        if self._loaded is None:
            model, tokenizer = self._files()
            session = _session(model, self._source)
            self._loaded = session, _tokenizer(tokenizer, self._max_tokens, self._source)
            _return_freed_memory()
        return self._loaded


def load_onnxruntime() -> Any:
    """The one place that imports it. Its telemetry begins at the import, so it is turned off before."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    return onnxruntime


def _session(model: Path | bytes, source: str) -> onnxruntime.InferenceSession:
    ort = load_onnxruntime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = min(_MAX_THREADS, usable_cores())
    options.inter_op_num_threads = 1
    # Threads that spin while they wait take the core the next one needs: twice as slow on a busy machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    readable = model if isinstance(model, bytes) else str(model)
    try:
        return ort.InferenceSession(readable, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises classes of its own without a common base
        raise Unavailable(f"{source} cannot be loaded by onnxruntime: {error}") from error


def _tokenizer(data: bytes, max_tokens: int, source: str) -> tokenizers.Tokenizer:
    # Its own threads gain nothing on a batch this size, and warn on stderr whenever the process forks.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_buffer(data)
    except Exception as error:  # the library raises bare Exception
        raise Unavailable(f"the tokenizer of {source} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _return_freed_memory() -> None:
    """glibc keeps what is freed: 50 MB after loading, and after unloading nearly the whole model."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim:
            trim(0)


def _readable(text: str, limit: int) -> str:
    text = text[:limit]
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON allows and the tokenizer does not
        return text.encode("utf-8", "replace").decode()
    return text


def _mean(states: NDArray[Any], mask: NDArray[np.int64]) -> Vectors:
    weights = mask[:, :, None].astype(np.float32)
    total: Vectors = (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    return total
