"""A Python function as an embedder: `callable:package.module:function`, called with a list of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from commonplace.embedders.base import Vectors, unit_rows
from commonplace.embedders.settings import target, whole_number
from commonplace.wire.errors import Unavailable, ValidationError

_WANTED = "callable:package.module:function"


class FunctionEmbedder:
    """Any length of vector will do. A `dimension` attribute of the function spares the call that asks."""

    def __init__(self, function: Callable[[list[str]], Any], name: str, dimension: int | None) -> None:
        self.name = name
        self._function = function
        self._declared = dimension

    @cached_property
    def dimension(self) -> int:
        return self._declared or self._call(["dimension"]).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return self._call(list(texts))

    def _call(self, texts: list[str]) -> Vectors:
        vectors = unit_rows(self._function(texts), count=len(texts), source=self.name)
        if self._declared not in (None, vectors.shape[1]):
            raise Unavailable(f"{self.name} answered {vectors.shape[1]} dimensions, not {self._declared}")
        return vectors


def open_embedder(spec: str) -> FunctionEmbedder:
    path, values = target(spec, ["dimension"], wanted=_WANTED)
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise ValidationError(f"embedder {spec!r}: write it as {_WANTED}")
    try:
        function = import_module(module)
        for part in attribute.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        raise ValidationError(f"embedder {spec!r}: {error}") from error
    if not callable(function):
        raise ValidationError(f"embedder {spec!r}: {path} cannot be called")
    dimension = whole_number(values, "dimension", spec) or getattr(function, "dimension", None)
    return FunctionEmbedder(function, f"callable:{path}", dimension)
