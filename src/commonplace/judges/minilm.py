"""The judge that ships: a small cross-encoder that reads a question and a memory together, on the CPU.

The model is a file of this package, and so is its tokenizer, which is the encoder's.
"""

from __future__ import annotations

import functools
import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from commonplace.embedders import onnx_encoder, packaged_files
from commonplace.embedders.packaged_files import PackagedFile
from commonplace.stores.worker_threads import usable_cores

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

NAME = "commonplace-judge-3/int8"
MODEL = Path(__file__).with_name("judge-int8.onnx")
SHA256 = "ecea442b628d876e7fe1f53e360cc51dc0d4b23448dee10160b6c7bd446062a5"
FILE = PackagedFile(MODEL, SHA256, "the judge")

MAX_TOKENS = 192  # of the pair; it was trained on 160
_MAX_CHARS = MAX_TOKENS * onnx_encoder.CHARACTERS_PER_TOKEN
_REMEMBERED = 4096


class MiniLMJudge:
    name = NAME
    #: Each pair costs for itself, so that a few at a time cost no more than all at once.
    reads_pairs = True
    note: str | None = None

    def __init__(self, model: Path = MODEL, *, sha256: str = SHA256, remembered: int = _REMEMBERED) -> None:
        self._model = replace(FILE, path=model, sha256=sha256)
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
        asked, *given = [onnx_encoder.readable(text, _MAX_CHARS) for text in (question, *texts)]
        pairs = [tokenizer.encode(asked, text) for text in given]

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
                model = self._model.checked()
                tokenizer = packaged_files.TOKENIZER.checked().read_bytes()
                session = onnx_encoder.load_session(model, "the judge", threads=1)
                reader = onnx_encoder.load_tokenizer(tokenizer, MAX_TOKENS, "the judge's tokenizer")
                loaded = self._loaded = session, reader
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
    return ThreadPoolExecutor(min(onnx_encoder.MAX_THREADS, usable_cores()), thread_name_prefix="judge-reader")
