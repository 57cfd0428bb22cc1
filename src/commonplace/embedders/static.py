"""Static word vectors by model2vec: `static:FOLDER`. Very fast, coarser. Needs the `static` extra.

Short, but a file of its own: the registry finds an embedder by its module.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from commonplace.__about__ import install_command
from commonplace.embedders.base import ModelEmbedder
from commonplace.embedders.registry import parse_spec, shown_spec
from commonplace.wire.errors import Unavailable, ValidationError


class StaticEmbedder(ModelEmbedder):
    """A folder is read as it is; a name only with `?download=yes`, since the library would fetch it."""

    def __init__(self, model: str) -> None:
        self.name = f"static:{model}"
        self._source = model

    def _encode(self, texts: list[str]) -> Any:
        # No other processes: the library starts some for long lists, which a server must not do.
        return self._loaded_model().encode(texts, use_multiprocessing=False)

    def _load(self) -> Any:
        try:
            from model2vec import StaticModel
        except ImportError as error:
            raise Unavailable(f"{self.name} needs a package: {install_command('static')}") from error
        try:
            return StaticModel.from_pretrained(self._source)
        except (OSError, ValueError, KeyError) as error:
            raise Unavailable(f"{self.name} cannot be loaded") from error


def open_embedder(spec: str) -> StaticEmbedder:
    model, values = parse_spec(spec, ["download"], wanted="static:FOLDER")
    folder = Path(model).expanduser()
    if values.get("download") != "yes" and not folder.is_dir():
        raise ValidationError(
            f"embedder {shown_spec(spec)!r}: there is no folder {model}; add ?download=yes to fetch a model by name"
        )
    return StaticEmbedder(str(folder) if folder.is_dir() else model)
