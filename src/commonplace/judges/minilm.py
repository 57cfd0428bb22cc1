"""The judge that ships: a small cross-encoder that reads a question and a memory together, on the CPU.

The model is a file of this package. Its tokenizer is the default embedder's, which `commonplace model build`
puts on the machine; without that there is no judge.
"""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from commonplace.embedders import model_files
from commonplace.embedders.onnx_encoder import load_onnxruntime, usable_cores
from commonplace.wire.errors import Unavailable

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

NAME = "commonplace-judge-2/int8"
MODEL = Path(__file__).with_name("judge-int8.onnx")
SHA256 = "b8aad82ac190c86a443e6aebfc5a05f22f4dab48fe6ebda67f6060ae1976fee1"

MAX_TOKENS = 192  # of the pair; it was trained on 160
_TOKENIZER = "tokenizer.json"
# A token is rarely more than a few characters: what is past this would be cut anyway.
_MAX_CHARS = MAX_TOKENS * 64
_MAX_THREADS = 4
_REMEMBERED = 4096


def tokenizer_path() -> Path:
    return model_files.model_dir() / _TOKENIZER


class MiniLMJudge:
    name = NAME
    note: str | None = None

    def __init__(self, model: Path = MODEL, *, remembered: int = _REMEMBERED) -> None:
        self._model = model
        self._loading = threading.Lock()
        self._loaded: tuple[onnxruntime.InferenceSession, tokenizers.Tokenizer] | None = None
        self._remembered = remembered
        self._verdicts: OrderedDict[bytes, float] = OrderedDict()
        self._guard = threading.Lock()
        # Keyed by a secret of this process, so that what is remembered says nothing about an erased memory.
        self._secret = secrets.token_bytes(32)

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        keys = [self._key(question, text) for text in texts]
        with self._guard:
            known = {key: self._verdicts[key] for key in keys if key in self._verdicts}
        unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        known |= zip(unknown, self._logits(question, list(unknown.values())), strict=True)
        with self._guard:
            for key in keys:
                self._verdicts[key] = known[key]
                self._verdicts.move_to_end(key)
            while len(self._verdicts) > self._remembered:
                self._verdicts.popitem(last=False)
        return [known[key] for key in keys]

    def unload(self) -> None:
        with self._guard:
            self._verdicts.clear()
        self._loaded = None  # whoever is judging at the moment holds what it needs

    def _logits(self, question: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        session, tokenizer = self._load()
        pairs = [tokenizer.encode(_readable(question), _readable(text)) for text in texts]

        def logit(pair: tokenizers.Encoding) -> float:
            # Alone, never padded with others: the int8 arithmetic scales activations over the whole batch, so a
            # neighbour moved a logit by up to 1.1.
            feeds = {
                "input_ids": np.array([pair.ids], np.int64),
                "attention_mask": np.array([pair.attention_mask], np.int64),
                "token_type_ids": np.array([pair.type_ids], np.int64),
            }
            return float(session.run(["logit"], feeds)[0][0])

        if len(pairs) == 1:
            return [logit(pairs[0])]
        # The longest first, so that no core is left with it at the end.
        order = sorted(range(len(pairs)), key=lambda n: -len(pairs[n].ids))
        found = dict(zip(order, _readers().map(logit, [pairs[n] for n in order]), strict=True))
        return [found[n] for n in range(len(pairs))]

    def _load(self) -> tuple[onnxruntime.InferenceSession, tokenizers.Tokenizer]:
        with self._loading:
            loaded = self._loaded
            if loaded is None:
                _check(self._model, SHA256, "the judge is damaged: install commonplace again")
                tokenizer = tokenizer_path()
                pinned = model_files.FILES[_TOKENIZER]
                _check(tokenizer, pinned, "the judge's tokenizer is damaged: run `commonplace model build`")
                loaded = self._loaded = _session(self._model), _tokenizer(tokenizer)
            return loaded

    def _key(self, question: str, text: str) -> bytes:
        digest = hashlib.blake2b(key=self._secret, digest_size=16)
        for part in (question, text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.digest()


@functools.cache
def _readers() -> ThreadPoolExecutor:
    """One thread a core: a pair is too small to share between cores, and pairs are independent."""
    return ThreadPoolExecutor(min(_MAX_THREADS, usable_cores()), thread_name_prefix="judge-reader")


def _check(path: Path, expected: str, otherwise: str) -> None:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Unavailable(f"the judge cannot read {path.name} ({error.strerror})", path=str(path)) from error
    if found != expected:
        raise Unavailable(otherwise, path=str(path))


def _session(model: Path) -> onnxruntime.InferenceSession:
    ort = load_onnxruntime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises classes of its own without a common base
        raise Unavailable(f"the judge cannot be loaded by onnxruntime: {error}") from error


def _tokenizer(path: Path) -> tokenizers.Tokenizer:
    # Its own threads gain nothing on one pair, and warn on stderr whenever the process forks.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_buffer(path.read_bytes())
    except Exception as error:  # the library raises bare Exception
        raise Unavailable(f"the judge's tokenizer cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)  # the longer of the two gives way first
    return tokenizer


def _readable(text: str) -> str:
    # A lone surrogate, which JSON allows and the tokenizer does not, becomes a question mark.
    return text[:_MAX_CHARS].encode("utf-8", "replace").decode()
