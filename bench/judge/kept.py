"""An embedder that keeps its vectors in a file: embedding every space takes minutes, fitting is done more than once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from commonplace.embedders.base import Embedder, Vectors


class KeptVectors:
    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self.name, self.dimension = embedder.name, embedder.dimension
        self._embedder = embedder
        self._path = folder / f"vectors-{hashlib.sha256(embedder.name.encode()).hexdigest()[:12]}.npz"
        self._known: dict[bytes, Vectors] = {}
        self._fresh = False
        if self._path.exists():
            with np.load(self._path) as kept:
                self._known = dict(zip(map(bytes, kept["keys"]), kept["vectors"], strict=True))

    def embed(self, texts: Sequence[str]) -> Vectors:
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if missing:
            self._known.update(zip(missing, self._embedder.embed(list(missing.values())), strict=True))
            self._fresh = True
        return np.array([self._known[key] for key in keys], np.float32).reshape(len(keys), self.dimension)

    def save(self) -> None:
        if self._fresh:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            keys = np.array([list(key) for key in self._known], np.uint8)
            np.savez(self._path, keys=keys, vectors=np.stack(list(self._known.values())))
            self._fresh = False
