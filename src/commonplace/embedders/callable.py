"""A Python function as an embedder: `callable:package.module:function`, called with a list of texts.

Short, but a file of its own: the registry finds an embedder by its module.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from commonplace.embedders.base import BaseEmbedder
from commonplace.embedders.registry import parse_spec, parse_whole, shown_spec
from commonplace.wire.errors import ValidationError

_WANTED = "callable:package.module:function"


class FunctionEmbedder(BaseEmbedder):
    """A `dimension` attribute of the function spares the call that asks for it."""

    def __init__(self, function: Callable[[list[str]], Any], name: str, dimension: int | None) -> None:
        self.name = name
        self._function = function
        self._declared = dimension

    def _encode(self, texts: list[str]) -> Any:
        return self._function(texts)


def open_embedder(spec: str) -> FunctionEmbedder:
    path, values = parse_spec(spec, ["dimension"], wanted=_WANTED)
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise ValidationError(f"embedder {shown_spec(spec)!r}: write it as {_WANTED}")
    try:
        function = import_module(module)
        for part in attribute.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        raise ValidationError(f"embedder {shown_spec(spec)!r}: {error}") from None
    if not callable(function):
        raise ValidationError(f"embedder {shown_spec(spec)!r}: {path} cannot be called")
    dimension = parse_whole(values, "dimension", spec) or getattr(function, "dimension", None)
    return FunctionEmbedder(function, f"callable:{path}", dimension)
