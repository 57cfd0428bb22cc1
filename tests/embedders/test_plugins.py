from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from commonplace.embedders import model_files
from commonplace.embedders.base import Embedder, unit_rows
from commonplace.embedders.minilm import MiniLM
from commonplace.embedders.registry import open_embedder
from commonplace.wire.errors import Unavailable, ValidationError


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_vectors.py").write_text(
        "def lengths(texts): return [[len(text), 3, 4] for text in texts]\n"
        "def wordy(texts): return ['no numbers' for _ in texts]\n"
        "def short(texts): return [[1.0, 0.0]]\n"
        "def infinite(texts): return [[float('inf'), 1.0] for _ in texts]\n"
        "class Group:\n"
        "    @staticmethod\n"
        "    def zeros(texts): return [[0.0, 0.0] for _ in texts]\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("functions")
def test_a_function_is_an_embedder() -> None:
    embedder = open_embedder("callable:their_vectors:lengths")
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.dimension) == ("callable:their_vectors:lengths", 3)
    np.testing.assert_allclose(embedder.embed(["", "x" * 12]), [[0, 0.6, 0.8], [12 / 13, 3 / 13, 4 / 13]], atol=1e-6)
    assert embedder.embed([]).shape == (0, 3)


@pytest.mark.usefixtures("functions")
def test_a_vector_of_zeros_still_gets_a_length() -> None:
    embedder = open_embedder("callable:their_vectors:Group.zeros?dimension=2")
    assert embedder is not None
    np.testing.assert_array_equal(embedder.embed(["tea"]), [[1, 0]])


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("wordy", "vectors of numbers"),
        ("short", r"shape \[1, 2\] for 2 texts"),
        ("infinite", "not finite"),
        ("lengths?dimension=5", "3 dimensions, not 5"),
    ],
)
def test_a_function_that_answers_wrongly_is_named(function: str, message: str) -> None:
    embedder = open_embedder(f"callable:their_vectors:{function}")
    assert embedder is not None
    with pytest.raises(Unavailable, match=message):
        embedder.embed(["tea", "coffee"])


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize(
    "spec",
    [
        "callable",
        "callable:",
        "callable:their_vectors",
        "callable:no_such_module:f",
        "callable:their_vectors:missing",
        "callable:their_vectors:number",
        "callable:their_vectors:lengths?size=3",
        "callable:their_vectors:lengths?dimension=many",
    ],
)
def test_a_function_that_is_not_there(spec: str) -> None:
    with pytest.raises(ValidationError):
        open_embedder(spec)


def test_very_large_and_very_small_numbers_keep_their_direction() -> None:
    rows = unit_rows([[3e30, 4e30], [3e-30, 4e-30]], count=2, source="x")
    np.testing.assert_allclose(rows, [[0.6, 0.8]] * 2, atol=1e-5)


def test_a_users_own_onnx_file(minilm: MiniLM) -> None:
    path = model_files.model_dir() / "model.onnx"
    embedder = open_embedder(f"onnx:{path}?max_tokens=256")
    assert isinstance(embedder, Embedder)
    assert embedder.dimension == 384
    texts = ["tea", "a longer text about tea"]
    assert embedder.embed(texts).tobytes() == minilm.embed(texts).tobytes()
    assert embedder.name.startswith("onnx/model-")
    assert embedder.name != open_embedder(f"onnx:{path}").name, "cutting elsewhere gives other vectors"


def test_a_graph_with_a_vector_per_token_is_pooled(tmp_path: Path) -> None:
    from commonplace.embedders import onnx_writer as onnx

    words = ["[UNK]", "tea", "coffee", "salt"]
    table = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 5]], np.float32)
    graph = onnx.model(
        "table",
        nodes=[onnx.node("Gather", ["table", "input_ids"], ["states"], {})],
        tensors=[onnx.tensor("table", table)],
        inputs=[onnx.value("input_ids", onnx.INT64, ["batch", "tokens"])],
        outputs=[onnx.value("states", onnx.FLOAT, ["batch", "tokens", "width"])],
    )
    (tmp_path / "model.onnx").write_bytes(graph)
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    embedder = open_embedder(f"onnx:{tmp_path / 'model.onnx'}")
    assert embedder is not None
    half = np.sqrt(0.5)
    np.testing.assert_allclose(
        embedder.embed(["tea coffee", "tea", "salt salt salt"]), [[half, half, 0], [1, 0, 0], [0, 0, 1]], atol=1e-6
    )
    assert embedder.dimension == 3
    assert embedder.embed([""]).shape == (1, 3)


def test_onnx_files_that_are_missing_or_broken(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    with pytest.raises(ValidationError, match=r"no file .*model\.onnx"):
        open_embedder(f"onnx:{model}")
    model.write_bytes(b"no graph")
    with pytest.raises(ValidationError, match=r"no file .*tokenizer\.json"):
        open_embedder(f"onnx:{model}")
    (tmp_path / "tokenizer.json").write_text("{}")
    embedder = open_embedder(f"onnx:{model}")
    assert embedder is not None
    with pytest.raises(Unavailable, match="cannot be loaded"):
        embedder.embed(["tea"])


@pytest.mark.parametrize(
    ("spec", "module", "extra"),
    [
        ("sentence-transformers:some/model", "sentence_transformers", "sentence-transformers"),
        ("static:some/model?download=yes", "model2vec", "static"),
    ],
)
def test_a_missing_extra_is_named(spec: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # importing it fails as where it is not installed
    embedder = open_embedder(spec)
    assert embedder is not None
    with pytest.raises(Unavailable, match=rf"commonplace-memory\[{extra}\]"):
        embedder.embed(["tea"])


def test_static_models_are_not_fetched_unasked() -> None:
    with pytest.raises(ValidationError, match="download=yes"):
        open_embedder("static:some/model")


def test_static_word_vectors(tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "tea": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    model = model2vec.StaticModel(np.array([[0, 1], [3, 4]], np.float32), tokenizer)
    model.save_pretrained(tmp_path)
    embedder = open_embedder(f"static:{tmp_path}")
    assert isinstance(embedder, Embedder)
    np.testing.assert_allclose(embedder.embed(["tea", "tea tea"]), [[0.6, 0.8]] * 2, atol=1e-5)
    assert embedder.dimension == 2
    assert embedder.embed([""]).shape == (1, 2)
