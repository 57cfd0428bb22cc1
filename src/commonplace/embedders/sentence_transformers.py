"""Any sentence-transformers model: `sentence-transformers:NAME-OR-FOLDER`. Needs that extra installed.

Short, but a file of its own: the registry finds an embedder by its module.
"""

from __future__ import annotations

from typing import Any

from commonplace.__about__ import install_command
from commonplace.embedders.base import ModelEmbedder
from commonplace.embedders.registry import parse_spec
from commonplace.wire.errors import Unavailable


class SentenceTransformersEmbedder(ModelEmbedder):
    """Reads what is on this machine; `?download=yes` lets the library fetch the model at first use."""

    def __init__(self, model: str, *, download: bool) -> None:
        self.name = f"sentence-transformers:{model}"
        self._source = model
        self._download = download

    def _encode(self, texts: list[str]) -> Any:
        return self._loaded_model().encode(texts, show_progress_bar=False, convert_to_numpy=True)

    def _load(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise Unavailable(f"{self.name} needs a package: {install_command('sentence-transformers')}") from error
        try:
            return SentenceTransformer(self._source, local_files_only=not self._download)
        except (OSError, ValueError) as error:
            hint = "" if self._download else "; add ?download=yes to fetch it"
            raise Unavailable(f"{self.name} cannot be loaded{hint}") from error


def open_embedder(spec: str) -> SentenceTransformersEmbedder:
    model, values = parse_spec(spec, ["download"], wanted="sentence-transformers:NAME-OR-FOLDER")
    return SentenceTransformersEmbedder(model, download=values.get("download") == "yes")
