"""The trained encoder as the ONNX file that ships: three outputs, and layers that multiply in int8 with steps measured
on a sample of the spaces it was trained on."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.encoder.examples import shown
from bench.judge.spaces import judge_spaces
from commonplace.embedders import onnx_reader, packaged_files
from commonplace.embedders.convert import MINILM, Shape, Weights, bert_to_onnx
from commonplace.embedders.encoder import MAX_TOKENS
from commonplace.embedders.int8_layers import KEY, MIXED, NARROW, QUERY, VALUE, WIDE
from commonplace.embedders.onnx_encoder import load_session, load_tokenizer

_HEADS = ("token_head.weight", "weight_head.weight", "weight_head.bias")
_TEXTS = 2000


def export(weights: Path, out: Path, *, exact: bool = False) -> None:
    """`weights`: what `train` wrote, or a file that was exported before. `exact` multiplies in float32."""
    given = weights_of(memoryview(weights.read_bytes())) if weights.suffix == ".onnx" else _trained(weights)
    ranges = None if exact else measured_ranges(given, sample())
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(bert_to_onnx(given, MINILM, late=True, ranges=ranges))


def sample() -> list[str]:
    texts = [
        text for space in judge_spaces() for text in (*map(shown, space.memories), *(q.text for q in space.questions))
    ]
    return random.Random(0).sample(texts, _TEXTS)


def measured_ranges(weights: Weights, texts: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """The largest absolute value of each input of each product, in float arithmetic."""
    session = load_session(bert_to_onnx(weights, MINILM, probed=True), "the encoder", threads=2)
    tokenizer = load_tokenizer(packaged_files.TOKENIZER.checked().read_bytes(), MAX_TOKENS, "its tokenizer")
    names = [output.name for output in session.get_outputs() if output.name != "embedding"]
    ranges: dict[str, NDArray[np.float32]] = {}
    for text in texts:
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        found = session.run(names, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        for name, values in zip(names, found, strict=True):
            largest = np.abs(values[0]).max(axis=0)
            ranges[name] = np.maximum(ranges.get(name, largest), largest)
    return ranges


def weights_of(model: memoryview, shape: Shape = MINILM) -> dict[str, NDArray[np.float32]]:
    """The weights that a file with layers in int8 stands for."""
    tensors = onnx_reader.tensors(model)

    def scaled(name: str) -> NDArray[np.float32]:
        return (tensors[f"{name}.int8"] * tensors[f"{name}.scale"]).astype(np.float32)

    found = {name: array for name, array in tensors.items() if ".LayerNorm." in name}
    found["embeddings.word_embeddings.weight"] = scaled("words")
    found["embeddings.position_embeddings.weight"] = scaled("positions")
    found["embeddings.token_type_embeddings.weight"] = tensors["type_0"][None]
    found["token_head.weight"], found["weight_head.weight"] = scaled("token_head").T, scaled("weight_head").T
    found["weight_head.bias"] = tensors["weight_head.bias"]
    for layer in (f"encoder.layer.{index}" for index in range(shape.layers)):
        for part in (QUERY, KEY, VALUE, MIXED, WIDE, NARROW):
            name = f"{layer}.{part}"
            # What is mixed has no steps: those of the values are in the values, and in the product that follows.
            steps = f"{layer}.attention.self" if part in (QUERY, KEY, VALUE) else name
            inverse = tensors.get(f"{steps}.inverse_steps", np.float32(1))
            found[f"{name}.weight"] = tensors[f"{name}.int8"].T * tensors[f"{name}.scale"][:, None] * inverse
            found[f"{name}.bias"] = tensors[f"{name}.bias"]
    return found


def _trained(path: Path) -> dict[str, NDArray[np.float32]]:
    from safetensors.numpy import load_file

    from bench.judge.network import published_names  # with torch

    given = {name: value.astype(np.float32) for name, value in load_file(path).items()}
    return {theirs: given[ours] for ours, theirs in published_names().items()} | {name: given[name] for name in _HEADS}
