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

from commonplace.embedders.base import Embedder, Vectors

_BATCH = 64


class RememberedEmbedder:
    """Gives what the embedder gave for the same text before; thread-safe as far as its callers take turns."""

    def __init__(self, embedder: Embedder, folder: Path | None = None) -> None:
        self._embedder = embedder
        self.name = embedder.name
        self.dimension = embedder.dimension
        self.embedded = 0
        self.seconds = 0.0
        folder = folder or Path(tempfile.gettempdir()) / "commonplace-bench"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / (re.sub(r"\W+", "-", self.name) + ".db")
        self._db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._db.execute("CREATE TABLE IF NOT EXISTS vectors(key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def embed(self, texts: Sequence[str]) -> Vectors:
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        found: dict[bytes, bytes] = {}
        for key in keys:
            for (vector,) in self._db.execute("SELECT vector FROM vectors WHERE key = ?", (key,)):
                found[key] = vector
        missing = [(key, text) for key, text in dict(zip(keys, texts, strict=True)).items() if key not in found]
        for start in range(0, len(missing), _BATCH):
            some = missing[start : start + _BATCH]
            began = time.perf_counter()
            rows = self._embedder.embed([text for _, text in some])
            self.seconds += time.perf_counter() - began
            self.embedded += len(some)
            fresh = [(key, row.tobytes()) for (key, _), row in zip(some, rows, strict=True)]
            self._db.executemany("INSERT OR IGNORE INTO vectors VALUES(?, ?)", fresh)
            found.update(fresh)
        return np.array([np.frombuffer(found[key], np.float32) for key in keys]).reshape(len(keys), self.dimension)

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
