"""Static word vectors by model2vec: `static:FOLDER`. Very fast, coarser. Needs the `static` extra."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from commonplace.embedders.base import Vectors, unit_rows
from commonplace.embedders.settings import target
from commonplace.wire.errors import Unavailable, ValidationError


class Static:
    """A folder is read as it is; a name only with `?download=yes`, since the library would fetch it."""

    def __init__(self, model: str) -> None:
        self.name = f"static:{model}"
        self._source = model
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
        # No other processes: the library starts some for long lists, which a server must not do.
        rows = self._model.encode(texts, use_multiprocessing=False)
        return unit_rows(rows, count=len(texts), source=self.name)

    def _load(self) -> Any:
        try:
            from model2vec import StaticModel
        except ImportError as error:
            raise Unavailable(f"{self.name} needs a package: pip install 'commonplace[static]'") from error
        try:
            return StaticModel.from_pretrained(self._source)
        except (OSError, ValueError, KeyError) as error:
            raise Unavailable(f"{self.name} cannot be loaded") from error


def open_embedder(spec: str) -> Static:
    model, values = target(spec, ["download"], wanted="static:FOLDER")
    if values.get("download") != "yes" and not Path(model).expanduser().is_dir():
        raise ValidationError(
            f"embedder {spec!r}: there is no folder {model}; add ?download=yes to fetch a model by name"
        )
    return Static(str(Path(model).expanduser()) if Path(model).expanduser().is_dir() else model)
