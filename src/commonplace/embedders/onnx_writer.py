"""Just enough of the ONNX file format to write a graph.

Written out here rather than taken from the `onnx` package: that is a compiled 9 MB wheel with dependencies of
its own, and protobuf libraries do not promise the same bytes twice, while this writer does, so the finished
model can be pinned by its hash.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

FLOAT, UINT8, INT8, INT32, INT64 = 1, 2, 3, 6, 7
_TYPES = {np.dtype(kind): number for kind, number in (("f4", FLOAT), ("u1", UINT8), ("i1", INT8), ("i8", INT64))}

#: The operators that onnxruntime adds to the standard ones.
MICROSOFT = "com.microsoft"

_OPSET = 20  # the first with Gelu; onnxruntime reads it since 1.17
_IR_VERSION = 9

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


def _each(field: int, values: Iterable[bytes | str]) -> bytes:
    return b"".join(_bytes(field, value) for value in values)


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


def node(
    op: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Mapping[str, Attribute], domain: str = ""
) -> bytes:
    described = _each(1, inputs) + _each(2, outputs) + _bytes(3, outputs[0]) + _bytes(4, op)
    described += _each(5, (_attribute(name, value) for name, value in attributes.items()))
    return described + (_bytes(7, domain) if domain else b"")


def value(name: str, element: int, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(_bytes(1, _int(1, d) if isinstance(d, int) else _bytes(2, d)) for d in shape)
    return _bytes(1, name) + _bytes(2, _bytes(1, _int(1, element) + _bytes(2, dims)))


def model(
    name: str,
    nodes: Iterable[bytes],
    tensors: Iterable[bytes],
    inputs: Iterable[bytes],
    outputs: Iterable[bytes],
    *,
    domains: Iterable[str] = (),
) -> bytes:
    graph = _each(1, nodes) + _bytes(2, name) + _each(5, tensors) + _each(11, inputs) + _each(12, outputs)
    operators = _bytes(8, _int(2, _OPSET)) + b"".join(_bytes(8, _bytes(1, each) + _int(2, 1)) for each in domains)
    return _int(1, _IR_VERSION) + _bytes(2, "commonplace") + _bytes(7, graph) + operators
