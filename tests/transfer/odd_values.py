"""Documents in which one value is of another kind than it should be."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

ODD = [None, True, 0, -1, 1.5, 10**30, "", "x", [], [1], [[]], ["x"], {}, {"a": 1}]


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    keys = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        yield from places(document[key], (*path, key))


def altered(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = deepcopy(document)
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy
