"""BERT's forward pass in float32, written from the formulas: the oracle of the conversion."""

from __future__ import annotations

import math

import numpy as np

from commonplace.embedders.convert import Shape, Weights

_erf = np.vectorize(math.erf, otypes=[np.float32])


def sentence_vector(weights: Weights, shape: Shape, ids: list[int]) -> np.ndarray:
    mean = last_states(weights, shape, ids).mean(axis=0)
    return mean / np.linalg.norm(mean)


def token_vectors(weights: Weights, shape: Shape, ids: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Of late interaction: a vector for each token, and its weight in a question."""
    states = last_states(weights, shape, ids)
    tokens = states @ weights["token_head.weight"].T
    logits = states @ weights["weight_head.weight"].T + weights["weight_head.bias"]
    return tokens / np.linalg.norm(tokens, axis=1, keepdims=True), 1 / (1 + np.exp(-logits))


def last_states(weights: Weights, shape: Shape, ids: list[int]) -> np.ndarray:
    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normalised(x, name):
        spread = np.sqrt(x.var(axis=-1, keepdims=True) + shape.epsilon)
        return (x - x.mean(axis=-1, keepdims=True)) / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def heads(x):
        return x.reshape(len(ids), shape.heads, -1).transpose(1, 0, 2)

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = normalised(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for index in range(shape.layers):
        layer = f"encoder.layer.{index}"
        q, k, v = (heads(linear(x, f"{layer}.attention.self.{part}")) for part in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(shape.width // shape.heads)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = (shares @ v).transpose(1, 0, 2).reshape(len(ids), shape.width)
        x = normalised(linear(mixed, f"{layer}.attention.output.dense") + x, f"{layer}.attention.output.LayerNorm")
        wide = linear(x, f"{layer}.intermediate.dense")
        wide = wide * 0.5 * (1 + _erf(wide / math.sqrt(2)))
        x = normalised(linear(wide, f"{layer}.output.dense") + x, f"{layer}.output.LayerNorm")
    return x
