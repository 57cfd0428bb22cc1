from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, strategies as st

from commonplace.stores import text


def found_by(question: str, memory: str) -> bool:
    hashes, _ = text.decode(text.terms(memory))
    return bool(set(text.query_terms(question)) & set(hashes.tolist()))


@pytest.mark.parametrize(
    ("question", "memory"),
    [
        ("running", "Alice runs every morning"),
        ("What are the deployments?", "deploy: deployment happens on Friday"),
        ("foo_bar", "see foo_bar.baz"),
        ("foo_bar.baz", "see FOO_BAR.BAZ"),
        ("baz", "see foo_bar.baz"),
        ("E1234", "it fails with error e1234"),
        ("1.2.3", "upgrade to v1.2.3"),
        ("v1.2.3", "upgrade to V1.2.3"),
        ("/etc/hosts", "edit /etc/hosts first"),
        ("hosts", "edit /etc/hosts first"),
        ("fooBar", "call foobar()"),
        ("foo bar", "call fooBar()"),
        ("LP-2217", "ticket lp-2217 is open"),
        ("2217", "ticket LP-2217 is open"),
        ("test-fast", "run `make test-fast`"),
        ("HTTP server", "class HTTPServer"),
        ("alice@example.com", "write to Alice@Example.com"),
        ("example", "write to alice@example.com"),
        ("email", "send an e-mail"),
        ("utf-8", "encoded as utf8"),
        ("1000", "it cost 1,000 crowns"),
        ("cafe", "the café on the corner"),
        ("STRASSE", "die Straße"),
        ("Alice", "Alice's bicycle"),
        ("avion", "l'avion de Bob"),
        ("C++", "written in c++"),
        ("京都", "東京都に住む"),
        ("手机", "新的iPhone手机壳"),
        ("서울", "서울에서 만나요"),
        ("สวัสดี", "เขาพูดว่าสวัสดีครับ"),
        ("हिन्दी", "मैं हिन्दी बोलता हूँ"),
        ("👍", "looks good 👍🏽"),
        ("🇩🇪", "moved to 🇩🇪 last year"),
        ("ﬁle", "the file"),
    ],
)
def test_a_question_finds_the_memory(question: str, memory: str) -> None:
    assert found_by(question, memory)


@pytest.mark.parametrize(
    ("question", "memory"),
    [
        ("cat", "concatenate"),
        ("What is the plan?", "what is it? the it is"),
        ("हिन्दी", "हानि"),
        ("京", "東"),
        ("🇩🇪", "🇫🇷"),
    ],
)
def test_a_question_does_not_find_the_memory(question: str, memory: str) -> None:
    assert not found_by(question, memory)


def test_a_question_of_stop_words_keeps_them() -> None:
    assert len(text.query_terms("to be or not to be")) == 4
    assert text.query_terms("who is Alice?") == text.query_terms("alice ALICE")


def test_terms_are_stable_hashes() -> None:
    hashes, tf = text.decode(text.terms("Alice met Bob; Bob waved"))
    expected = {
        int.from_bytes(blake2b(word, digest_size=8).digest(), "little"): n
        for word, n in [(b"alic", 1), (b"met", 1), (b"bob", 2), (b"wave", 1)]
    }
    assert dict(zip(hashes.tolist(), tf.tolist(), strict=True)) == expected


def test_frequencies_are_clamped() -> None:
    blob = text.terms("word " * 1000)
    assert text.decode(blob)[1].tolist() == [255]


@given(st.text(st.characters(), max_size=200))
def test_any_string_is_analysed(any_text: str) -> None:
    hashes, tf = text.decode(text.terms(any_text))
    assert len(hashes) == len(tf)
    assert (np.diff(hashes.astype(object)) > 0).all() if len(hashes) > 1 else True
    assert set(text.query_terms(any_text)) <= set(hashes.tolist())


SIZE = 500_000  # characters: seconds at most for what is linear, minutes for what reads the rest again at every unit


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", ["a\ud800\0", "a.", "aA", "東", "👍", "1,000", "a'", "\u0301\u0316", "-", "é", "_"])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    hostile = "a" + unit * (SIZE // len(unit))
    hashes, _ = text.decode(text.terms(hostile))
    assert set(text.query_terms(hostile)) <= set(hashes.tolist())


def test_code_and_impact() -> None:
    codes = text.code(np.array([1, 1, 9, 255], np.uint8), np.array([1, 20, 20, 10**6]))
    assert len(set(codes.tolist())) == 4
    table = text.impact_table(20.0)
    assert table.dtype == np.float32
    more_often = table[text.code(np.array([1, 2, 3, 8, 30], np.uint8), 20)]
    longer = table[text.code(np.array([2, 2, 2], np.uint8), np.array([5, 20, 80]))]
    assert (np.diff(more_often) > 0).all()
    assert (np.diff(longer) < 0).all()


def test_idf_is_positive_and_falls() -> None:
    values = [text.idf(100, n) for n in (1, 10, 50, 100)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > 0


@given(
    st.one_of(
        st.text(),
        st.lists(st.sampled_from(["run", "Läufe", "foo_bar.baz", "1,000", "東京", "c++", "I'll"])).map(" ".join),
    )
)
def test_distinct_terms_are_those_that_are_packed(any_text: str) -> None:
    assert text.distinct_terms(any_text) == set(text.decode(text.terms(any_text))[0].tolist())
