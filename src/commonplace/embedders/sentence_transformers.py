"""Any sentence-transformers model: `sentence-transformers:NAME-OR-FOLDER`. Needs that extra installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from commonplace.embedders.base import Vectors, unit_rows
from commonplace.embedders.settings import target
from commonplace.wire.errors import Unavailable


class SentenceTransformers:
    """Reads what is on this machine; `?download=yes` lets the library fetch the model at first use."""

    def __init__(self, model: str, *, download: bool) -> None:
        self.name = f"sentence-transformers:{model}"
        self._source = model
        self._download = download
        self._model: Any = None

    @cached_property
    def dimension(self) -> int:
        return int(self._encode(["dimension"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return self._encode(list(texts))

    def unload(self) -> None:
        self._model = None

    def _encode(self, texts: list[str]) -> Vectors:
        if self._model is None:
            self._model = self._load()
        rows = self._model.encode(texts, show_progress_bar=False, convert_to_numpy=True)
        return unit_rows(rows, count=len(texts), source=self.name)

    def _load(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise Unavailable(
                f"{self.name} needs a package: pip install 'commonplace[sentence-transformers]'"
            ) from error
        try:
            return SentenceTransformer(self._source, local_files_only=not self._download)
        except (OSError, ValueError) as error:
            hint = "" if self._download else "; add ?download=yes to fetch it"
            raise Unavailable(f"{self.name} cannot be loaded{hint}") from error


def open_embedder(spec: str) -> SentenceTransformers:
    model, values = target(spec, ["download"], wanted="sentence-transformers:NAME-OR-FOLDER")
    return SentenceTransformers(model, download=values.get("download") == "yes")
