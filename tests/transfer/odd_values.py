"""Documents in which one value is of another kind than it should be, is gone, or is one more than there should be."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

ODD = [None, True, 0, -1, 1.5, 10**30, "", "x", [], [1], [[]], ["x"], {}, {"a": 1}]

Place = tuple[Any, ...]


def places(document: Any, path: Place = ()) -> Iterator[Place]:
    yield path
    keys = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        yield from places(document[key], (*path, key))


def altered(document: Any, path: Place, value: Any) -> Any:
    if not path:
        return value
    copy = deepcopy(document)
    at = value_at(copy, path[:-1])
    at[path[-1]] = value
    return copy


def removed(document: Any, path: Place) -> Any:
    copy = deepcopy(document)
    del value_at(copy, path[:-1])[path[-1]]
    return copy


def value_at(document: Any, path: Place) -> Any:
    for key in path:
        document = document[key]
    return document
