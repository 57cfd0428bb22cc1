"""The trained encoder as the ONNX file that ships: int8 weights, float arithmetic, three outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.judge.network import published_names
from commonplace.embedders.convert import MINILM, bert_to_onnx

_HEADS = ("token_head.weight", "weight_head.weight", "weight_head.bias")


def export(weights: Path, out: Path, block: int | None = None) -> None:
    from safetensors.numpy import load_file

    given = {name: value.astype(np.float32) for name, value in load_file(weights).items()}
    named = {theirs: given[ours] for ours, theirs in published_names().items()}
    out.parent.mkdir(parents=True, exist_ok=True)
    heads = {name: given[name] for name in _HEADS}
    out.write_bytes(bert_to_onnx({**named, **heads}, MINILM, late=True, block=block))
