"""BERT weights to an ONNX graph that gives pooled unit vectors: int8 weights, arithmetic in float32 or int8.

In float32 each weight has one float scale per output channel and is multiplied out when the model loads, so activations
never lose precision: the vectors keep a cosine above 0.999 to the original's. `int8_layers` says what int8 keeps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commonplace.embedders import onnx_writer as onnx
from commonplace.embedders.int8_layers import KEY, MIXED, NARROW, QUERY, VALUE, WIDE, Ranges, add_layer, inputs_of

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Shape:
    layers: int
    heads: int
    width: int
    epsilon: float


MINILM = Shape(layers=6, heads=12, width=384, epsilon=1e-12)


def read_safetensors(data: bytes) -> dict[str, NDArray[np.float32]]:
    """The float32 tensors of a safetensors file; anything else in it is not ours to use."""
    header_size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + header_size])
    body = memoryview(data)[8 + header_size :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }


def quantise(weight: NDArray[np.float32], axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """int8 values and the scales along `axis` that give the weight back; only exact or correctly rounded
    arithmetic, so every machine makes the same bytes."""
    scale = np.abs(weight).max(axis=axis, keepdims=True) / np.float32(127)
    scale[scale == 0] = 1
    return np.rint(weight / scale).astype(np.int8), scale.astype(np.float32)


class Graph:
    def __init__(self) -> None:
        self.nodes: list[bytes] = []
        self.tensors: dict[str, bytes] = {}
        self.probes: dict[str, int] = {}  # names of further outputs, and how wide they are

    def constant(self, name: str, array: NDArray[np.generic]) -> str:
        self.tensors.setdefault(name, onnx.tensor(name, array))
        return name

    def integers(self, *values: int) -> str:
        return self.constant("i_" + "_".join(map(str, values)), np.array(values, np.int64))

    def number(self, value: float) -> str:
        return self.constant(f"f_{value!r}", np.array(value, np.float32))

    def apply(self, op: str, *inputs: str, out: str = "", domain: str = "", **attributes: onnx.Attribute) -> str:
        out = out or f"{op}_{len(self.nodes)}"
        self.nodes.append(onnx.node(op, inputs, [out], attributes, domain))
        return out

    def weight(self, name: str, array: NDArray[np.float32], axis: int) -> str:
        values, scale = quantise(array, axis)
        as_float = self.apply("Cast", self.constant(f"{name}.int8", values), to=onnx.FLOAT)
        return self.apply("Mul", as_float, self.constant(f"{name}.scale", scale))

    def probe(self, x: str, name: str, width: int) -> None:
        if name not in self.probes:
            self.probes[name] = width
            self.apply("Identity", x, out=name)

    def normalise(self, x: str, name: str, weights: Weights, epsilon: float) -> str:
        gain = self.constant(f"{name}.weight", weights[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", weights[f"{name}.bias"])
        return self.apply("LayerNormalization", x, gain, bias, axis=-1, epsilon=epsilon)


def bert_to_onnx(
    weights: Weights, shape: Shape, *, late: bool = False, ranges: Ranges | None = None, probed: bool = False
) -> bytes:
    """`late` adds what late interaction needs: a vector for every token (`token_head`) and its weight in a question
    (`weight_head`). With `ranges` the layers multiply in int8; `probed`, without them, gives what they are measured
    from: the inputs of every product."""
    g = Graph()
    mask = g.apply("Cast", "attention_mask", to=onnx.FLOAT)
    layers = [f"encoder.layer.{index}" for index in range(shape.layers)]
    if ranges is None:
        absent = g.apply("Sub", g.number(1.0), g.apply("Unsqueeze", mask, g.integers(1, 2)))
        penalty = g.apply("Mul", absent, g.number(-1e9))
        x = g.normalise(_embeddings(g, weights), "embeddings.LayerNorm", weights, shape.epsilon)
        for layer in layers:
            x = _add_float_layer(g, weights, layer, x, penalty, shape, probed)
    else:
        present = g.apply("Cast", "attention_mask", to=onnx.INT32)
        x = g.normalise(_embeddings(g, weights), "embeddings.LayerNorm", weights, shape.epsilon)
        for layer in layers:
            x = add_layer(g, weights, ranges, layer, x, present, shape)

    # Normalising makes the length irrelevant, so the sum over real tokens stands for their mean.
    if ranges is None:
        present = g.apply("Unsqueeze", mask, g.integers(2))
        total = g.apply("ReduceSum", g.apply("Mul", x, present), g.integers(1), keepdims=0)
    else:  # as a product, which adds up a text's tokens in the same order whatever else is in the batch
        total = g.apply("MatMul", g.apply("Unsqueeze", mask, g.integers(1)), x)
        total = g.apply("Squeeze", total, g.integers(1))
    g.apply("LpNormalization", total, out="embedding", axis=-1, p=2)
    outputs = [onnx.value("embedding", onnx.FLOAT, ["batch", shape.width])]
    if late:
        tokens = g.apply("MatMul", x, g.weight("token_head", weights["token_head.weight"].T, axis=0))
        g.apply("LpNormalization", tokens, out="tokens", axis=-1, p=2)
        g.apply("Sigmoid", _linear(g, weights, x, "weight_head"), out="weights")
        outputs += [
            onnx.value("tokens", onnx.FLOAT, ["batch", "tokens", len(weights["token_head.weight"])]),
            onnx.value("weights", onnx.FLOAT, ["batch", "tokens", 1]),
        ]
    outputs += [onnx.value(name, onnx.FLOAT, ["batch", "tokens", width]) for name, width in g.probes.items()]
    return onnx.model(
        "sentence-embedding",
        nodes=g.nodes,
        tensors=g.tensors.values(),
        inputs=[onnx.value(name, onnx.INT64, ["batch", "tokens"]) for name in ("input_ids", "attention_mask")],
        outputs=outputs,
        domains=[onnx.MICROSOFT] if ranges is not None else [],
    )


def _linear(g: Graph, weights: Weights, x: str, name: str) -> str:
    weight = g.weight(name, weights[f"{name}.weight"].T, axis=0)
    return g.apply("Add", g.apply("MatMul", x, weight), g.constant(f"{name}.bias", weights[f"{name}.bias"]))


def _add_float_layer(g: Graph, weights: Weights, layer: str, x: str, penalty: str, shape: Shape, probed: bool) -> str:
    head_width = shape.width // shape.heads

    def linear(x: str, part: str) -> str:
        name = f"{layer}.{part}"
        if probed:
            g.probe(x, inputs_of(name), weights[f"{name}.weight"].shape[1])
        return _linear(g, weights, x, name)

    def heads(x: str, order: tuple[int, ...]) -> str:
        return g.apply("Transpose", g.apply("Reshape", x, g.integers(0, 0, shape.heads, head_width)), perm=order)

    query = heads(linear(x, QUERY), (0, 2, 1, 3))
    key = heads(linear(x, KEY), (0, 2, 3, 1))
    values = heads(linear(x, VALUE), (0, 2, 1, 3))
    scores = g.apply("Mul", g.apply("MatMul", query, key), g.number(1 / math.sqrt(head_width)))
    attention = g.apply("Softmax", g.apply("Add", scores, penalty), axis=-1)
    mixed = g.apply("Transpose", g.apply("MatMul", attention, values), perm=(0, 2, 1, 3))
    mixed = linear(g.apply("Reshape", mixed, g.integers(0, 0, shape.width)), MIXED)
    x = g.normalise(g.apply("Add", mixed, x), f"{layer}.attention.output.LayerNorm", weights, shape.epsilon)
    wide = g.apply("Gelu", linear(x, WIDE))
    return g.normalise(g.apply("Add", linear(wide, NARROW), x), f"{layer}.output.LayerNorm", weights, shape.epsilon)


def _embeddings(g: Graph, weights: Weights) -> str:
    # The vocabulary is half of the model: looking words up before multiplying by the scale keeps it int8 in
    # memory too, where a scaled table would be folded into 47 MB of floats.
    values, scale = quantise(weights["embeddings.word_embeddings.weight"], axis=1)
    rows = g.apply("Gather", g.constant("words.int8", values), "input_ids")
    row_scales = g.apply("Gather", g.constant("words.scale", scale), "input_ids")
    words = g.apply("Mul", g.apply("Cast", rows, to=onnx.FLOAT), row_scales)

    length = g.apply("Shape", "input_ids", start=1, end=2)
    table = g.weight("positions", weights["embeddings.position_embeddings.weight"], axis=1)
    positions = g.apply("Slice", table, g.integers(0), length, g.integers(0))
    first_type = g.constant("type_0", weights["embeddings.token_type_embeddings.weight"][0])
    return g.apply("Add", g.apply("Add", words, positions), first_type)
