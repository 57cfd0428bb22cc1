"""The trained network as the ONNX file that ships: int8 weights, activations quantised as they come."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from bench.judge.network import CrossEncoder

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OPSET = 17


def export(model: CrossEncoder, path: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = model.cpu().eval()
    example = tuple(torch.ones((2, 8), dtype=torch.int64) for _ in INPUTS)
    axes = {name: {0: "pairs", 1: "tokens"} for name in INPUTS} | {"logit": {0: "pairs"}}
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "float.onnx"
        torch.onnx.export(
            model,
            example,
            str(whole),
            input_names=list(INPUTS),
            output_names=["logit"],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        quantize_dynamic(whole, path, per_channel=True, weight_type=QuantType.QInt8)
