"""Just enough of the ONNX file format to write a graph.

Written out here rather than taken from the `onnx` package: that is a compiled 9 MB wheel with dependencies of
its own, and protobuf libraries do not promise the same bytes twice, while this writer does, so the finished
model can be pinned by its hash.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

FLOAT, INT8, INT64 = 1, 3, 7
_TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.int8): INT8, np.dtype(np.int64): INT64}

Attribute = int | float | Sequence[int]


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers travel as their two's complement
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def tensor(name: str, array: NDArray[np.generic]) -> bytes:
    dims = b"".join(_int(1, size) for size in array.shape)
    raw = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return dims + _int(2, _TYPES[array.dtype]) + _bytes(8, name) + _bytes(9, raw)


def _attribute(name: str, value: Attribute) -> bytes:
    head = _bytes(1, name)
    if isinstance(value, float):
        return head + _varint(2 << 3 | 5) + struct.pack("<f", value) + _int(20, 1)
    if isinstance(value, int):
        return head + _int(3, value) + _int(20, 2)
    return head + b"".join(_int(8, item) for item in value) + _int(20, 7)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Mapping[str, Attribute]) -> bytes:
    return b"".join(
        [
            *(_bytes(1, name) for name in inputs),
            *(_bytes(2, name) for name in outputs),
            _bytes(3, outputs[0]),
            _bytes(4, op),
            *(_bytes(5, _attribute(name, value)) for name, value in attributes.items()),
        ]
    )


def value(name: str, element: int, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(_bytes(1, _int(1, d) if isinstance(d, int) else _bytes(2, d)) for d in shape)
    return _bytes(1, name) + _bytes(2, _bytes(1, _int(1, element) + _bytes(2, dims)))


def model(
    name: str,
    *,
    nodes: Sequence[bytes],
    tensors: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    opset: int,
    ir_version: int,
) -> bytes:
    graph = b"".join(
        [
            *(_bytes(1, item) for item in nodes),
            _bytes(2, name),
            *(_bytes(5, item) for item in tensors),
            *(_bytes(11, item) for item in inputs),
            *(_bytes(12, item) for item in outputs),
        ]
    )
    return _int(1, ir_version) + _bytes(2, "commonplace") + _bytes(7, graph) + _bytes(8, _int(2, opset))
