"""The default embedder: all-MiniLM-L6-v2 with int8 weights, from files on this machine; see `model_files`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from commonplace.embedders import model_files
from commonplace.embedders.base import Vectors
from commonplace.embedders.onnx_encoder import OnnxEncoder
from commonplace.wire.errors import ValidationError

NAME = "all-MiniLM-L6-v2/int8w"
DIMENSION = 384
MAX_TOKENS = 256  # what the model was trained to read; the rest of a longer text is not seen


class MiniLM:
    name = NAME
    dimension = DIMENSION

    def __init__(self) -> None:
        self._encoder = OnnxEncoder(model_files.checked, max_tokens=MAX_TOKENS, source=NAME)

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, DIMENSION), np.float32)
        return self._encoder.embed(texts)

    def unload(self) -> None:
        self._encoder.unload()


def open_embedder(spec: str = "minilm") -> MiniLM:
    if spec not in ("minilm", NAME):
        raise ValidationError(f"embedder {spec!r}: minilm takes no settings")
    return MiniLM()
