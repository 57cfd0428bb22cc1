from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from commonplace.embedders import packaged_files
from commonplace.embedders.base import Embedder, TokenEmbedder, Unloadable
from commonplace.embedders.encoder import NAME, Encoder, open_embedder
from commonplace.embedders.function_words import FUNCTION_WORDS
from commonplace.embedders.onnx_encoder import batches
from commonplace.stores.token_vectors import QuestionTokens, late_scores, quantise
from commonplace.wire.errors import Unavailable, ValidationError

TEXTS = ["Alice drinks tea", "", "word " * 400, "Bob", "a" * 30_000, "lone \ud800 surrogate", "\x00\n\t", "会議", "x"]
TEXTS += ["😀🎉", "one sentence of many. " * 1500]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder()


def test_every_text_has_a_unit_vector(encoder: Encoder) -> None:
    assert isinstance(encoder, Embedder)
    assert isinstance(encoder, TokenEmbedder)
    assert isinstance(encoder, Unloadable)
    vectors = encoder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert encoder.embed([]).shape == (0, 384)
    assert encoder.encode([]) == []


def test_one_pass_gives_the_same_vector_and_those_of_the_tokens(encoder: Encoder) -> None:
    encoded = encoder.encode(TEXTS)
    np.testing.assert_array_equal([each.vector for each in encoded], encoder.embed(TEXTS))
    for each in encoded:
        count = len(each.tokens)
        assert 2 <= count <= 192
        assert (each.tokens.shape[1], each.tokens.dtype) == (encoder.token_dimension, np.float32)
        np.testing.assert_allclose(np.linalg.norm(each.tokens, axis=1), 1, atol=1e-5)
        assert each.weights.shape == each.kept.shape == (count,)
        assert (each.weights > 0).all()
        assert all(array.base is None for array in each), "whoever keeps one keeps no other"


@given(text=st.text(max_size=300))
def test_whatever_is_written_something_of_it_is_kept(encoder: Encoder, text: str) -> None:
    (each,) = encoder.encode([text])
    assert each.kept.any()
    assert np.isfinite(each.tokens).all()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The tea, please!", ["tea", "please"]),
        ("Alice (2024-01-02): Bob has a dog.", ["alice", "202", "##4", "01", "02", "bob", "has", "dog"]),
        ("Das Radio und der Film", ["radio", "film"]),
        ("They die in Los Angeles", ["they", "die", "in", "los", "angeles"]),
        ("the", []),
        ("?!", []),
    ],
)
def test_punctuation_and_articles_of_a_memory_are_not_kept(encoder: Encoder, text: str, kept: list[str]) -> None:
    (each,) = encoder.encode([text])
    tokens = encoder._load()[1].encode(text).tokens
    assert [token for token, keep in zip(tokens, each.kept, strict=True) if keep] == ["[CLS]", *kept, "[SEP]"]


def test_the_articles_are_words_of_the_vocabulary(encoder: Encoder) -> None:
    tokenizer = encoder._load()[1]
    assert [word for word in sorted(FUNCTION_WORDS) if tokenizer.token_to_id(word) is None] == []


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("What does Alice drink?", "Alice drinks green tea every morning", "Alice walks to the office every morning"),
        ("Where does Bob live?", "Bob: I moved to Lyon in spring", "Bob: I sold my old bicycle in spring"),
    ],
)
def test_late_interaction_finds_what_answers(encoder: Encoder, question: str, answer: str, other: str) -> None:
    asked, *told = encoder.encode([question, answer, other])
    codes = [quantise(each.tokens[each.kept]) for each in told]
    scores = late_scores(QuestionTokens.of(asked.tokens, asked.weights), np.concatenate(codes), list(map(len, codes)))
    assert scores[0] > scores[1] + 0.05


@pytest.mark.parametrize(
    ("text", "paraphrase", "unrelated"),
    [
        ("How do I reset my password?", "I forgot my login and need a new one", "The soup needs more salt"),
        ("Alice moved to Berlin last year", "Since last year Alice lives in Berlin", "Bob repaired the bicycle"),
        ("The build fails on Windows", "Compilation is broken on Microsoft's OS", "Dinner is at eight"),
    ],
)
def test_a_paraphrase_is_nearer_than_another_subject(
    encoder: Encoder, text: str, paraphrase: str, unrelated: str
) -> None:
    query, near, far = encoder.embed([text, paraphrase, unrelated])
    assert query @ near > query @ far + 0.2


def test_the_same_text_alone_gives_the_same_bytes_even_after_unloading(encoder: Encoder) -> None:
    first = encoder.embed([TEXTS[0]]).tobytes()
    assert encoder.embed([TEXTS[0]]).tobytes() == first
    encoder.unload()
    assert encoder.embed([TEXTS[0]]).tobytes() == first


def test_neither_vector_nor_tokens_depend_on_the_batch(encoder: Encoder) -> None:
    # Of every length, so that many share a batch with others that are nearly as long.
    like = [
        "Alice",
        "told",
        "Bob",
        "on",
        "Monday",
        "that",
        "the",
        "new",
        "tent",
        "near",
        "the",
        "lake",
        "leaks",
        "when",
        "it",
        "rains,",
        "so",
        "they",
        "went",
        "home",
        "early",
    ]
    texts = TEXTS + [" ".join((like * 3)[:count]) for count in range(1, 60)]
    for together, text in zip(encoder.encode(texts), texts, strict=True):
        (alone,) = encoder.encode([text])
        for one, other in zip(together, alone, strict=True):
            np.testing.assert_array_equal(one, other)


@given(st.lists(st.integers(1, 256), max_size=80))
def test_batches_hold_every_text_once_with_little_padding(lengths: list[int]) -> None:
    grouped = batches(lengths)
    assert sorted(index for batch in grouped for index in batch) == list(range(len(lengths)))
    for batch in grouped:
        own = [lengths[index] for index in batch]
        assert len(batch) * max(own) <= 1.2 * sum(own) + 1e-9
        assert len(batch) == 1 or len(batch) * max(own) <= 1024
    assert all(len({lengths[index] for index in batch}) == 1 for batch in batches(lengths, 1.0))


def test_order_is_kept_across_batches(encoder: Encoder) -> None:
    texts = [f"{'long ' * (n % 7)}number {n}" for n in range(70)]
    backwards = encoder.embed(texts[::-1])[::-1]
    np.testing.assert_allclose(encoder.embed(texts), backwards, atol=1e-5)


def test_words_past_the_limit_are_not_seen(encoder: Encoder) -> None:
    start = "tea " * 300
    first, second = encoder.embed([start, start + "the database is full"])
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_it_takes_no_settings_and_answers_to_the_name_that_stores_record() -> None:
    assert open_embedder("encoder").name == open_embedder(NAME).name == "commonplace-encoder-1/int8w"
    with pytest.raises(ValidationError, match="takes no settings"):
        open_embedder("encoder?threads=3")


def test_opening_loads_nothing_heavy() -> None:
    script = (
        "import sys; from commonplace.embedders.registry import open_embedder; open_embedder('encoder');"
        "print([m for m in ('onnxruntime', 'tokenizers', 'importlib.metadata') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_is_collected_about_the_machine(tmp_path: Path) -> None:
    """onnxruntime's telemetry keeps a queue under the home directory from its import on, unless told before."""
    code = "from commonplace.embedders.encoder import Encoder; Encoder().embed(['hello'])"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ORT_", "XDG_"))}
    subprocess.run([sys.executable, "-c", code], env=environment | {"HOME": str(tmp_path)}, check=True)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == []


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a bit": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "half": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
}


@pytest.mark.parametrize("file", ["ENCODER", "TOKENIZER"])
@pytest.mark.parametrize("damage", [*DAMAGES, "missing"])
def test_a_file_that_is_not_whole_is_refused_with_a_sentence(
    file: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = getattr(packaged_files, file)
    path = tmp_path / whole.path.name
    if damage in DAMAGES:
        path.write_bytes(DAMAGES[damage](whole.path.read_bytes()))
    monkeypatch.setattr(packaged_files, file, replace(whole, path=path))
    state = "is damaged" if damage in DAMAGES else "is missing from the package"
    with pytest.raises(Unavailable, match=f"{whole.what} {state}: install commonplace-memory again"):
        Encoder().embed(["tea"])


def test_a_file_is_read_for_its_hash_again_only_when_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"whole")
    file = packaged_files.PackagedFile(path, packaged_files.sha256_of(path), "the model")
    read: list[Path] = []
    sha256_of = packaged_files.sha256_of
    monkeypatch.setattr(packaged_files, "sha256_of", lambda path: read.append(path) or sha256_of(path))
    assert (file.checked(), file.checked(), len(read)) == (path, path, 1)
    path.write_bytes(b"other")
    os.utime(path, ns=(1, 1))
    with pytest.raises(Unavailable, match="the model is damaged"):
        file.checked()


def test_what_ships_is_whole_and_says_what_it_was_made_from() -> None:
    root = Path(__file__).parents[2]
    assert packaged_files.problems(packaged_files.ENCODER, packaged_files.TOKENIZER) == []
    assert '"NOTICE"' in (root / "pyproject.toml").read_text("utf-8")
    notice = (root / "NOTICE").read_text("utf-8")
    for file in (packaged_files.ENCODER, packaged_files.TOKENIZER):
        assert str(file.path.relative_to(root)) in notice


def test_where_sums_of_products_are_not_exact_the_encoder_adds_up_more_widely_with_the_same_result(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    careful = Encoder()
    monkeypatch.setattr("commonplace.embedders.encoder._COSINES", (0.5, 0.5, 0.5))
    vectors = careful.embed(TEXTS[:2])
    assert "adds up more widely" in caplog.text
    np.testing.assert_array_equal(vectors, encoder.embed(TEXTS[:2]))


def test_texts_of_like_length_are_read_together(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    run = Encoder._run

    def counted(self: Encoder, session: Any, tokens: list[list[int]], wanted: list[str] | None) -> Any:
        read.append(len(tokens))
        return run(self, session, tokens, wanted)

    monkeypatch.setattr(Encoder, "_run", counted)
    encoder.embed([f"Alice has {n} cats" for n in range(2, 9)] + ["a much longer text about nothing of any interest"])
    assert sorted(read) == [1, 7]
