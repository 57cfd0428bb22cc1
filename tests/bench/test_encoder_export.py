from __future__ import annotations

import numpy as np
import pytest

from bench.encoder.export import measured_ranges, sample, weights_of
from commonplace.embedders import packaged_files
from commonplace.embedders.convert import MINILM, bert_to_onnx
from commonplace.embedders.encoder import Encoder
from commonplace.embedders.onnx_encoder import load_session


@pytest.mark.slow
def test_what_ships_can_be_read_back_and_exported_again() -> None:
    """The weights of an exported file are those of the network, up to their rounding, whatever its steps were."""
    weights = weights_of(memoryview(packaged_files.ENCODER.path.read_bytes()))
    exported = bert_to_onnx(weights, MINILM, late=True, ranges=measured_ranges(weights, sample()[:40]))
    text = "Alice drinks green tea every morning."
    ids = np.array([Encoder()._load()[1].encode(text).ids])
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    (expected,) = Encoder().embed([text])
    for model in (exported, bert_to_onnx(weights, MINILM, late=True)):
        assert load_session(model, "exported", threads=1).run(["embedding"], feeds)[0][0] @ expected > 0.995
