"""A user's own ONNX sentence encoder: `onnx:/path/model.onnx`, with its tokenizer.json in the same folder.

Short, but a file of its own: the registry finds an embedder by its module.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from commonplace.embedders.onnx_encoder import OnnxEmbedder
from commonplace.embedders.packaged_files import sha256_of
from commonplace.embedders.registry import parse_spec, parse_whole, shown_spec
from commonplace.wire.errors import Unavailable, ValidationError

_MAX_TOKENS = 512


class OnnxFileEmbedder(OnnxEmbedder):
    """Its name follows from the bytes of the files and the cut, as the vectors do, and not from where the files lie."""

    def __init__(self, model: Path, *, max_tokens: int, dimension: int | None) -> None:
        self._paths = model, model.parent / "tokenizer.json"
        digest = hashlib.sha256(b"".join(bytes.fromhex(sha256_of(path)) for path in self._paths)).hexdigest()
        name = f"onnx/{model.stem}-{digest[:16]}/{max_tokens}"
        super().__init__(name, self._read_files, max_tokens=max_tokens, dimension=dimension)

    def _read_files(self) -> tuple[Path, bytes]:
        model, tokenizer = self._paths
        try:
            return model, tokenizer.read_bytes()
        except OSError as error:
            raise Unavailable(f"{error.filename} cannot be read ({error.strerror})") from error


def open_embedder(spec: str) -> OnnxFileEmbedder:
    path, values = parse_spec(spec, ["max_tokens", "dimension"], wanted="onnx:/path/to/model.onnx")
    model = Path(path.removeprefix("//")).expanduser()
    for file in (model, model.parent / "tokenizer.json"):
        if not file.is_file():
            raise ValidationError(f"embedder {shown_spec(spec)!r}: there is no file {file}")
    max_tokens = parse_whole(values, "max_tokens", spec) or _MAX_TOKENS
    return OnnxFileEmbedder(model, max_tokens=max_tokens, dimension=parse_whole(values, "dimension", spec))
