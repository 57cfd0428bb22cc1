"""The embedder with a memory on disk, so that a second run of a benchmark embeds nothing."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from commonplace.embedders.base import Embedder, Encoding, TokenEmbedder, Vectors

_BATCH = 64
_NO_TOKENS = np.zeros((0, 0), np.float32), np.zeros(0, np.float32), np.zeros(0, np.bool_)
_HALF = np.float16  # of token vectors: they are kept at 4 bits in the end


class RememberedEmbedder:
    """Gives what the embedder gave for the same text before; thread-safe as far as its callers take turns."""

    def __init__(self, embedder: Embedder, folder: Path | None = None, *, tokens: bool = True) -> None:
        self._embedder = embedder
        self._folder = folder
        self.tokens = tokens  # whether it gives the vectors of tokens, if the embedder has any
        self.name = embedder.name
        self.dimension = embedder.dimension
        self.reads_speakers: bool = getattr(embedder, "reads_speakers", False)
        self.embedded = 0
        self.seconds = 0.0
        folder = folder or Path(tempfile.gettempdir()) / "commonplace-bench"
        folder.mkdir(parents=True, exist_ok=True)
        # Another file of weights under the same name gives other vectors.
        mark = hashlib.blake2b(embedder.embed(["Which weights are these?"]).tobytes(), digest_size=4).hexdigest()
        file = folder / (re.sub(r"\W+", "-", self.name) + f"-{mark}.db")
        self._db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        columns = "key BLOB PRIMARY KEY, vector BLOB, tokens BLOB, weights BLOB, kept BLOB"
        self._db.execute(f"CREATE TABLE IF NOT EXISTS encodings({columns}) WITHOUT ROWID")

    def without_tokens(self) -> RememberedEmbedder:
        return RememberedEmbedder(self._embedder, self._folder, tokens=False)

    def embed(self, texts: Sequence[str]) -> Vectors:
        found = self.encode(texts)
        return np.array([each.vector for each in found], np.float32).reshape(len(texts), self.dimension)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        found: dict[bytes, Encoding] = {}
        for key in keys:
            for row in self._db.execute("SELECT vector, tokens, weights, kept FROM encodings WHERE key = ?", (key,)):
                found[key] = _encoding(*row)
        missing = [(key, text) for key, text in dict(zip(keys, texts, strict=True)).items() if key not in found]
        for start in range(0, len(missing), _BATCH):
            some = missing[start : start + _BATCH]
            began = time.perf_counter()
            made = self._encode([text for _, text in some])
            self.seconds += time.perf_counter() - began
            self.embedded += len(some)
            rows = [(key, *_cells(each)) for (key, _), each in zip(some, made, strict=True)]
            self._db.executemany("INSERT OR IGNORE INTO encodings VALUES(?, ?, ?, ?, ?)", rows)
            # As they are read back, so that a second run gives the same figures.
            found |= {key: _encoding(*cells) for key, *cells in rows}
        if not self.tokens:
            found = {key: Encoding(each.vector, *_NO_TOKENS) for key, each in found.items()}
        return [found[key] for key in keys]

    def latency(self, texts: Sequence[str]) -> float:
        """Median milliseconds for one text, nothing remembered."""
        times = []
        self._embedder.embed(texts[:1])  # loads the model
        for text in texts:
            began = time.perf_counter()
            self._embedder.embed([text])
            times.append((time.perf_counter() - began) * 1000)
        return statistics.median(times)

    def close(self) -> None:
        self._db.close()

    def _encode(self, texts: list[str]) -> list[Encoding]:
        if isinstance(self._embedder, TokenEmbedder):
            return self._embedder.encode(texts)
        return [Encoding(row, *_NO_TOKENS) for row in self._embedder.embed(texts)]


def _cells(encoded: Encoding) -> tuple[bytes, ...]:
    tokens = encoded.tokens.astype(_HALF).tobytes()
    return encoded.vector.tobytes(), tokens, encoded.weights.tobytes(), encoded.kept.tobytes()


def _encoding(vector: bytes, tokens: bytes, weights: bytes, kept: bytes) -> Encoding:
    each = np.frombuffer(weights, np.float32)
    rows = np.frombuffer(tokens, _HALF).astype(np.float32).reshape(len(each), -1 if len(each) else 0)
    return Encoding(np.frombuffer(vector, np.float32), rows, each, np.frombuffer(kept, np.bool_))
