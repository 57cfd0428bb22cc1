"""The models that ship in the package: where they lie, and whether they are whole. Loads nothing heavy."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.__about__ import DISTRIBUTION
from commonplace.wire.errors import Unavailable


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(slots=True, frozen=True)
class PackagedFile:
    path: Path
    sha256: str
    what: str  # as sentences name it

    def checked(self) -> Path:
        """Its path, if it holds the bytes it was published with; read once while it stays as it is."""
        try:
            found = self.path.stat()
            seen = self.path, found.st_size, found.st_mtime_ns, self.sha256
            if seen in _WHOLE:
                return self.path
            whole = sha256_of(self.path) == self.sha256
        except FileNotFoundError as error:
            raise self._fault(f"is missing from the package: install {DISTRIBUTION} again") from error
        except OSError as error:
            raise self._fault(f"cannot be read ({error.strerror})") from error
        if not whole:
            raise self._fault(f"is damaged: install {DISTRIBUTION} again")
        _WHOLE.add(seen)
        return self.path

    def _fault(self, sentence: str) -> Unavailable:
        return Unavailable(f"{self.what} {sentence}", path=str(self.path))


#: Files found whole in this process, with what tells that they are still the same.
_WHOLE: set[tuple[Path, int, int, str]] = set()

_HERE = Path(__file__).parent
ENCODER_NAME = "commonplace-encoder-1/int8w"
ENCODER_DIMENSION = 384
ENCODER = PackagedFile(
    _HERE / "encoder-int8.onnx", "08066ad07c97ac19c38c91007e06ba899451b60dea668874ca5cdc1208d5d7a2", "the encoder"
)
#: BERT's uncased vocabulary, which the encoder, the judge and all-MiniLM-L6-v2 share.
TOKENIZER = PackagedFile(
    _HERE / "tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "the tokenizer of the encoder and the judge",
)


def problems(*files: PackagedFile) -> list[str]:
    """What is wrong with these, a sentence each; empty when they are whole."""
    found = []
    for file in files:
        try:
            file.checked()
        except Unavailable as fault:
            found.append(f"{file.path}: {fault.message}")
    return found


def listing() -> dict[str, Any]:
    """The encoder, as `model_files.listing` tells of what is not in the package."""
    files = (ENCODER, TOKENIZER)
    wrong, present = problems(*files), [file.path for file in files if file.path.is_file()]
    return {
        "name": ENCODER_NAME,
        "spec": "encoder",
        "dimension": ENCODER_DIMENSION,
        "path": str(_HERE),
        "installed": bool(present),
        "ok": not wrong,
        "bytes": sum(path.stat().st_size for path in present),
        "problems": wrong,
        "source": "in the package",
    }
