"""Layers of BERT that multiply in int8, with steps that are fixed when the model is made.

Every input of a product has a step of its own, from the largest value it had in a sample of texts (`ranges`); the
weights it meets are multiplied by that step before they are rounded. So no row's rounding depends on another row, as it
would with a step taken from the batch, and run time pays for one multiplication. A few inputs are twenty times as large
as the others: one step for all of them would leave vectors a cosine of .96 to float arithmetic, this leaves .999.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.embedders import onnx_writer as onnx

if TYPE_CHECKING:
    from commonplace.embedders.convert import Graph, Shape, Weights

#: By product, the largest absolute value of each of its inputs.
Ranges = Mapping[str, NDArray[np.float32]]

_MARGIN = 1.05  # for texts that were not in the sample
_LEAST = 0.05  # of the median range: an input that was never used may be yet
# Between steps that suit the inputs (1) and steps that suit the weights they meet (0), as SmoothQuant balances them.
_BALANCE = 0.85
_ZERO = 128
# Gelu gives nothing below -.17, so most of the numbers are left to what is above.
_GELU_ZERO, _GELU_LEAST = 20, 0.17
QUERY, KEY, VALUE = (f"attention.self.{part}" for part in ("query", "key", "value"))
MIXED, WIDE, NARROW = "attention.output.dense", "intermediate.dense", "output.dense"


def inputs_of(name: str) -> str:
    """Under which name the ranges of a product's inputs are: query, key and value have the same ones."""
    return name.replace(KEY, QUERY).replace(VALUE, QUERY)


def add_layer(g: Graph, weights: Weights, ranges: Ranges, layer: str, x: str, mask: str, shape: Shape) -> str:
    def given(part: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return weights[f"{layer}.{part}.weight"], weights[f"{layer}.{part}.bias"]

    def steps(part: str, weight: NDArray[np.float32], zero: int = _ZERO) -> NDArray[np.float32]:
        return _steps(ranges[f"{layer}.{part}"], weight, zero)

    mixed, mixed_bias = given(MIXED)
    mixed_steps = steps(MIXED, mixed)
    (query, query_bias), (key, key_bias), (value, value_bias) = map(given, (QUERY, KEY, VALUE))
    # What is mixed is linear in the values: theirs are the steps of the next product, which then multiplies nothing.
    value, value_bias = value / mixed_steps[:, None], value_bias / mixed_steps
    together = np.concatenate([part / np.abs(part).max(axis=1, keepdims=True) for part in (query, key, value)])
    read_steps = steps(QUERY, together)
    rounded = _rounded(g, x, f"{layer}.attention.self", read_steps)
    parts = [
        _product(g, rounded, f"{layer}.{part}", weight * read_steps, bias)
        for part, weight, bias in ((QUERY, query, query_bias), (KEY, key, key_bias), (VALUE, value, value_bias))
    ]
    seen = g.apply("MultiHeadAttention", *parts, "", mask, domain=onnx.MICROSOFT, num_heads=shape.heads)
    out = _product(g, _rounded(g, seen, f"{layer}.{MIXED}", None), f"{layer}.{MIXED}", mixed * mixed_steps, mixed_bias)
    x = g.normalise(g.apply("Add", out, x), f"{layer}.attention.output.LayerNorm", weights, shape.epsilon)

    wide, wide_bias = given(WIDE)
    wide_steps = steps(WIDE, wide)
    inner = _product(g, _rounded(g, x, f"{layer}.{WIDE}", wide_steps), f"{layer}.{WIDE}", wide * wide_steps, wide_bias)
    narrow, narrow_bias = given(NARROW)
    narrow_steps = steps(NARROW, narrow, _GELU_ZERO)
    rounded = _rounded(g, g.apply("Gelu", inner), f"{layer}.{NARROW}", narrow_steps, _GELU_ZERO)
    out = _product(g, rounded, f"{layer}.{NARROW}", narrow * narrow_steps, narrow_bias, _GELU_ZERO)
    return g.normalise(g.apply("Add", out, x), f"{layer}.output.LayerNorm", weights, shape.epsilon)


def _steps(largest: NDArray[np.float32], weight: NDArray[np.float32], zero: int) -> NDArray[np.float32]:
    largest = np.maximum(largest * _MARGIN, np.median(largest) * _LEAST)
    spread = largest**_BALANCE / np.maximum(np.abs(weight).max(axis=0), 1e-6) ** (1 - _BALANCE)
    reach = spread * (largest / spread).max()  # the largest value that each step has a number for
    steps = np.maximum(reach / (255 - zero), _GELU_LEAST / zero) if zero == _GELU_ZERO else reach / (zero - 1)
    return np.asarray(steps, np.float32)


def _rounded(g: Graph, x: str, name: str, steps: NDArray[np.float32] | None, zero: int = _ZERO) -> str:
    """`x` in uint8. Two operators: one with a step for each input does the same ten times slower."""
    if steps is not None:
        x = g.apply("Mul", x, g.constant(f"{name}.inverse_steps", 1 / steps))
    return g.apply("QuantizeLinear", x, g.number(1.0), _zero(g, zero))


def _product(
    g: Graph, x: str, name: str, weight: NDArray[np.float32], bias: NDArray[np.float32], zero: int = _ZERO
) -> str:
    scale = np.maximum(np.abs(weight).max(axis=1), 1e-30) / np.float32(127)
    values = np.rint(weight / scale[:, None]).astype(np.int8).T
    return g.apply(
        "MatMulIntegerToFloat",
        x,
        g.constant(f"{name}.int8", values),
        g.number(1.0),
        g.constant(f"{name}.scale", scale.astype(np.float32)),
        _zero(g, zero),
        g.constant(f"{name}.zero", np.zeros(len(scale), np.int8)),
        g.constant(f"{name}.bias", bias.astype(np.float32)),
        domain=onnx.MICROSOFT,
    )


def _zero(g: Graph, zero: int) -> str:
    return g.constant(f"zero_{zero}", np.array(zero, np.uint8))
