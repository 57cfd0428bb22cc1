"""A user's own ONNX sentence encoder: `onnx:/path/model.onnx`, with its tokenizer.json in the same folder.

A graph that gives one vector per token is mean-pooled over the real tokens; one that gives one per text is
taken as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from commonplace.embedders.base import Vectors
from commonplace.embedders.onnx_encoder import OnnxEncoder
from commonplace.embedders.settings import target, whole_number
from commonplace.wire.errors import Unavailable, ValidationError

_MAX_TOKENS = 512


class OnnxPath:
    def __init__(self, model: Path, *, max_tokens: int, dimension: int | None) -> None:
        self._paths = model, model.parent / "tokenizer.json"
        # The vectors follow from the bytes and the cut, not from where the files lie.
        digest = hashlib.sha256()
        for path in self._paths:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        fingerprint = digest.hexdigest()[:16]
        self.name = f"onnx/{model.stem}-{fingerprint}/{max_tokens}"
        self._declared = dimension
        self._encoder = OnnxEncoder(self._files, max_tokens=max_tokens, source=self.name)

    @cached_property
    def dimension(self) -> int:
        return self._declared or self._encoder.width() or self._encoder.embed(["dimension"]).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return self._encoder.embed(texts)

    def unload(self) -> None:
        self._encoder.unload()

    def _files(self) -> tuple[Path, bytes]:
        model, tokenizer = self._paths
        try:
            return model, tokenizer.read_bytes()
        except OSError as error:
            raise Unavailable(f"{error.filename} cannot be read ({error.strerror})") from error


def open_embedder(spec: str) -> OnnxPath:
    path, values = target(spec, ["max_tokens", "dimension"], wanted="onnx:/path/to/model.onnx")
    model = Path(path.removeprefix("//")).expanduser()
    for file in (model, model.parent / "tokenizer.json"):
        if not file.is_file():
            raise ValidationError(f"embedder {spec!r}: there is no file {file}")
    return OnnxPath(
        model,
        max_tokens=whole_number(values, "max_tokens", spec) or _MAX_TOKENS,
        dimension=whole_number(values, "dimension", spec),
    )
