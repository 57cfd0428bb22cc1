"""Just enough of the ONNX file format to read the numbers out of a published model.

A tensor is a view of the bytes it is given: of a mapped file only what is looked at is read from the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES = {1: "<f4", 2: "u1", 3: "i1", 6: "<i4", 7: "<i8", 9: "?"}
# Where numbers stand that are not kept as raw bytes: (field, of which types).
_PACKED = {4: (1,), 5: (2, 3, 6, 9), 7: (7,)}

_GRAPH, _NODES, _INITIALIZERS = 7, 1, 5


def tensors(model: memoryview) -> dict[str, NDArray[Any]]:
    """The constants of the model's graph, by name."""
    return dict(_tensor(raw) for raw in _each(_graph(model), _INITIALIZERS))


def attribute(model: memoryview, operation: str, name: str) -> bytes:
    """The bytes that the first node of that operation has under this name."""
    for node in _each(_graph(model), _NODES):
        if b"".join(_each(node, 4)).decode() == operation:
            for given in _each(node, 5):
                if b"".join(_each(given, 1)).decode() == name:
                    return b"".join(_each(given, 4))
    raise ValueError(f"no {operation} has {name}")


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """A protobuf message, field by field: its number, and an integer or bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if key & 7 == 2:
            size, at = _varint(message, at)
        else:
            size = {1: 8, 5: 4}[key & 7]
        if at + size > len(message):
            raise ValueError("the message ends in the middle of a field")
        yield key >> 3, message[at : at + size]
        at += size


def _graph(model: memoryview) -> memoryview:
    return next(_each(model, _GRAPH))


def _each(message: memoryview, number: int) -> Iterator[memoryview]:
    return (value for found, value in fields(message) if found == number and isinstance(value, memoryview))


def _tensor(message: memoryview) -> tuple[str, NDArray[Any]]:
    shape: list[int] = []
    numbers: list[int | float] = []
    name, type_, raw = "", 0, None
    for number, value in fields(message):
        if number == 1:
            shape += [value] if isinstance(value, int) else _varints(value)
        elif number == 2 and isinstance(value, int):
            type_ = value
        elif number == 8 and isinstance(value, memoryview):
            name = bytes(value).decode()
        elif number == 9:
            raw = value
        elif number == 4 and isinstance(value, memoryview):
            numbers += np.frombuffer(value, "<f4").tolist()
        elif number in _PACKED:
            numbers += [value] if isinstance(value, int) else _varints(value)
    kind = np.dtype(_TYPES[type_])
    flat = np.frombuffer(raw, kind) if isinstance(raw, memoryview) else np.array(numbers, kind)
    return name, flat.reshape(shape)


def _varints(data: memoryview) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value - (1 << 64) if value >> 63 else value)
    return found


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
