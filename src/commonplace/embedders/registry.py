"""From what a user wrote to an embedder: built-in names first, then what installed packages offer.

A spec is a name, alone or followed by ":" or "?" and what that embedder wants to know: `name:target?key=value&…`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from commonplace.wire.errors import Fault, Unavailable, ValidationError
from commonplace.wire.shown_urls import shown_parameter_name, shown_url

if TYPE_CHECKING:
    from commonplace.embedders.base import Embedder

DEFAULT = "encoder"
ENTRY_POINTS = "commonplace.embedders"

#: The module of each.
BUILT_IN = {
    "encoder": "encoder",
    "minilm": "minilm",
    "hashing": "hashing",
    "openai": "openai",
    "sentence-transformers": "sentence_transformers",
    "static": "static",
    "onnx": "onnx_file",
    "callable": "callable",
    "multilingual": "multilingual",
}

#: What any of them wants to know: the values of all else are not shown.
_SETTINGS = ("dimension", "download", "key", "max_tokens", "model", "shorten", "tls")

# The names that stores record are specs too, so that a store can be opened with the embedder that made it.
_RECORDED = (
    (re.compile(r"commonplace-encoder-1/int8w\Z"), "encoder"),
    (re.compile(r"all-MiniLM-L6-v2/int8w\Z"), "minilm"),
    (re.compile(r"hashing-\d+\Z"), "hashing"),
    (re.compile(r"use-multilingual-v3/int8w\Z"), "multilingual"),
)


def open_embedder(spec: str) -> Embedder | None:
    """The embedder, which loads its model only when it is first used; None for "none" (keywords only)."""
    if spec == "none":
        return None
    name = _name(spec)
    if name in BUILT_IN:
        opened: Embedder = import_module(f"commonplace.embedders.{BUILT_IN[name]}").open_embedder(spec)
        return opened
    return _installed(name)(spec)


def open_recorded(name: str) -> Embedder | None:
    """The embedder that made a store's vectors; None where it cannot be opened, such as a model that is not here."""
    from commonplace.embedders.base import LocalModel

    try:
        found = open_embedder(name)
    except Fault:
        return None
    return None if isinstance(found, LocalModel) and not found.installed else found


def _name(spec: str) -> str:
    for pattern, name in _RECORDED:
        if pattern.match(spec):
            return name
    return re.split(r"[:?]", spec, maxsplit=1)[0]


def _installed(name: str) -> Callable[[str], Embedder]:
    # Only for names that are not ours: reading every installed package's metadata takes longer than a recall.
    from importlib.metadata import entry_points

    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in offered:
        known = ", ".join(sorted({*BUILT_IN, *offered, "none"}))
        raise ValidationError(f"there is no embedder {name!r}; there are: {known}", field="embedder")
    try:
        found: Callable[[str], Embedder] = offered[name].load()
    except Exception as error:
        raise Unavailable(f"the package that offers embedder {name!r} cannot be imported: {error}") from error
    return found


def shown_spec(spec: str) -> str:
    return shown_url(spec, _SETTINGS)


def parse_settings(query: str, allowed: Iterable[str], spec: str) -> dict[str, str]:
    """The keys and values, every key one of `allowed` and given once."""
    pairs = parse_qsl(query, keep_blank_values=True)
    allowed = sorted(allowed)
    for key, _ in pairs:
        if key not in allowed:
            unknown, known = shown_parameter_name(key, spec), ", ".join(allowed)
            raise ValidationError(f"embedder {shown_spec(spec)!r}: unknown setting {unknown}; there are: {known}")
    if len(dict(pairs)) != len(pairs):
        raise ValidationError(f"embedder {shown_spec(spec)!r}: a setting is given twice")
    return dict(pairs)


def parse_spec(spec: str, allowed: Iterable[str], *, wanted: str) -> tuple[str, dict[str, str]]:
    """`name:target?key=value` as its target and settings."""
    _, _, rest = spec.partition(":")
    found, _, query = rest.partition("?")
    if not found:
        raise ValidationError(f"embedder {shown_spec(spec)!r}: say which, as {wanted}")
    if "://" in found and "@" in found:  # it becomes a name that is shown and kept
        raise ValidationError(f"embedder {shown_spec(spec)!r}: a model's name has no user or password in it")
    return found, parse_settings(query, allowed, spec)


def parse_whole(values: dict[str, str], key: str, spec: str) -> int | None:
    text = values.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1_000_000):
        raise ValidationError(f"embedder {shown_spec(spec)!r}: {key} must be a whole number above 0")
    return int(text)
