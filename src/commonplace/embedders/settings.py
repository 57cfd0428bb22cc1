"""What stands after an embedder's name: a target, then `?key=value&…`."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl

from commonplace.wire.errors import ValidationError


def settings(query: str, allowed: Iterable[str], spec: str) -> dict[str, str]:
    """The keys and values, every key one of `allowed` and given once."""
    pairs = parse_qsl(query, keep_blank_values=True)
    allowed = sorted(allowed)
    for key, _ in pairs:
        if key not in allowed:
            raise ValidationError(f"embedder {spec!r}: unknown setting {key!r}; there are: {', '.join(allowed)}")
    if len(dict(pairs)) != len(pairs):
        raise ValidationError(f"embedder {spec!r}: a setting is given twice")
    return dict(pairs)


def target(spec: str, allowed: Iterable[str], *, wanted: str) -> tuple[str, dict[str, str]]:
    """`name:target?key=value` as its target and settings."""
    _, _, rest = spec.partition(":")
    found, _, query = rest.partition("?")
    if not found:
        raise ValidationError(f"embedder {spec!r}: say which, as {wanted}")
    return found, settings(query, allowed, spec)


def whole_number(values: dict[str, str], key: str, spec: str) -> int | None:
    text = values.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1_000_000):
        raise ValidationError(f"embedder {spec!r}: {key} must be a whole number above 0, not {text!r}")
    return int(text)
