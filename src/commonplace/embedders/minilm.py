"""all-MiniLM-L6-v2 with int8 weights, from files on this machine: the default of earlier versions.

Apart from `model_files`, which commands read without loading numpy.
"""

from __future__ import annotations

from commonplace.embedders import model_files
from commonplace.embedders.onnx_encoder import OnnxEmbedder
from commonplace.embedders.registry import shown_spec
from commonplace.wire.errors import ValidationError

NAME = model_files.NAME


class MiniLM(OnnxEmbedder):
    def __init__(self) -> None:
        checked, cut = model_files.checked, model_files.MAX_TOKENS
        super().__init__(NAME, checked, max_tokens=cut, dimension=model_files.DIMENSION)

    @property
    def installed(self) -> bool:
        return all((model_files.model_dir() / name).is_file() for name in model_files.FILES)

    def problems(self) -> list[str]:
        return model_files.verify()


def open_embedder(spec: str = "minilm") -> MiniLM:
    if spec not in ("minilm", NAME):
        raise ValidationError(f"embedder {shown_spec(spec)!r}: minilm takes no settings")
    return MiniLM()
