"""Rules: what looks like a secret, a password, a placeholder or a name of code, by table; and where a rule finds it."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.redaction.rule import (
    LeadIndex,
    Rule,
    is_assigned,
    is_basic_login,
    is_mixed_token,
    is_passphrase,
    is_password,
    is_placeholder,
    is_quoted_password,
    is_random,
    is_term,
    is_token,
    is_url_password,
    is_wordy,
    lower,
)


@pytest.mark.parametrize("value", [
    "password", "PASSWORD", "<token>", "your_api_key", "YOUR-KEY", "xxxxxxxx", "sk-XXXX", "********", "...", "…",
    "changeme", "REDACTED", "insert_key", "replace_me", "key-here", "my_secret_token", "$PASSWORD", "", "''",
    "•••••", "user_credentials", "none", "null", "todo",
])  # fmt: skip
def test_what_stands_where_a_secret_would(value: str) -> None:
    assert is_placeholder(value)


@pytest.mark.parametrize("value", ["monkey", "donkey7", "turkey", "hunter2", "compass", "q7W2xB9", "swordfish", "x9"])
def test_what_is_no_placeholder(value: str) -> None:
    assert not is_placeholder(value)


@pytest.mark.parametrize(("value", "token", "mixed"), [
    ("sk-q7W2xB9Lm4", True, True), ("sk-your-key-here", False, False), ("sk-xxxxxxxx", False, False),
    ("sk-learn-models", True, False), ("SK_live", True, False), ("x" * 201 + "...", True, True),
])  # fmt: skip
def test_a_form_with_a_prefix_is_a_token_unless_it_is_spelled(value: str, token: bool, mixed: bool) -> None:
    assert (is_token(value), is_mixed_token(value)) == (token, mixed)


@pytest.mark.parametrize(("value", "wordy"), [
    ("alpha-beta-2", True), ("api.v2/users", True), ("word", True), ("q7W2xB9", False), ("a1b2c3", False),
])  # fmt: skip
def test_words_joined_together_are_wordy(value: str, wordy: bool) -> None:
    assert is_wordy(value) is wordy


@pytest.mark.parametrize(
    "value", ["q7W2xB9Lm4Zt", "3f9a1c7e5b2d8f60", "aB3$dE5^gH7*", "QwErTyUiOpAsDfGhJk", "x" * 3 + "q7W2xB9Lm4Zt" * 20]
)
def test_what_nobody_spelled(value: str) -> None:
    assert is_random(value)


@pytest.mark.parametrize("value", [
    "short1", "alpha-beta-gamma", "PKCS7PrivateKeyTypes", "getUserTokenById", "aaaaaaaa1", "12345678", "$SECRET_TOKEN",
    "${API_KEY}x1", "prefix-${TOKEN}-9", "{{ token }}", "<your-token>", "camelCaseName", "correcthorsebattery",
])  # fmt: skip
def test_what_somebody_spelled(value: str) -> None:
    assert not is_random(value)


@pytest.mark.parametrize(
    "value", ["hunter2", "S3cret!", "swordfish42", "pa$$word1", "correct-horse-battery-staple", "123456"]
)
def test_what_is_a_password_even_without_quotes(value: str) -> None:
    assert is_password(value) is ("passw" not in value.lower())


@pytest.mark.parametrize("value", [
    "short", "required", "secret", "2024-05-17", "12:30", "3.14", "SHA-256", "base64-encoded", "config.db.password",
    "f(x)", "https://host/path1", "$PASSWORD", "<password>", "at least8 chars", "8-character", "password1", "plain",
])  # fmt: skip
def test_what_is_no_password_without_quotes(value: str) -> None:
    assert not is_password(value)


@pytest.mark.parametrize(("value", "password"), [
    ("swordfish", True), ("hunter2", True), ("a1b2", True), ("Password", False), ("Username", False), ("abc", False),
    ("abcd", False), ("two words", False), ("${X}abc1", False), ("call(me)", False), ("пароль", False), ("", False),
])  # fmt: skip
def test_in_quotes_even_a_plain_word_is_meant(value: str, password: bool) -> None:
    assert is_quoted_password(value) is password


@pytest.mark.parametrize(("value", "term"), [
    ("SHA-256", True), ("utf8", True), ("v2", True), ("12-character", True), ("f(x)", True), ("a[0]", True),
    ("self.password", True), ("config.db.secret", True), ("config.db1", False), ("hunter2", False), ("q7W2", False),
])  # fmt: skip
def test_a_name_of_code_or_of_the_trade(value: str, term: bool) -> None:
    assert is_term(value) is term


@pytest.mark.parametrize(("value", "assigned"), [
    ("abcd", True), ("abc", False), ("changeme", False), ("$OTHER", False), ("{{vault}}", False), ("two words", True),
])  # fmt: skip
def test_on_a_line_of_settings_whatever_it_is(value: str, assigned: bool) -> None:
    assert is_assigned(value) is assigned


@pytest.mark.parametrize(("value", "phrase"), [
    ("correct horse battery", True), ("two words", False), ("a b c", False), ("Correct horse battery", False),
    ("your secret phrase here", False),
])  # fmt: skip
def test_a_passphrase_is_three_words_in_lower_case(value: str, phrase: bool) -> None:
    assert is_passphrase(value) is phrase


@pytest.mark.parametrize(
    ("value", "password"), [("q", True), ("hunter2", True), ("pass", False), ("$PASS", False), ("<pw>", False)]
)
def test_between_colon_and_at_sign_almost_anything_is_one(value: str, password: bool) -> None:
    assert is_url_password(value) is password


@pytest.mark.parametrize(("login", "found"), [
    (b"alice:S3cret99", True), (b"alice:", False), (b":S3cret99", False), (b"no colon", False), (b"a:$PASS", False),
    (b"\xff\xfe:x", False), (b"a:\x00\x01\x02\x03", False),
])  # fmt: skip
def test_base64_of_a_login(login: bytes, found: bool) -> None:
    assert is_basic_login(base64.b64encode(login).decode()) is found
    assert is_basic_login(base64.b64encode(login).decode().rstrip("=")) is found


@pytest.mark.parametrize("value", ["!", "not base64", ""])
def test_what_is_no_base64_is_no_login(value: str) -> None:
    assert not is_basic_login(value)


# where a rule finds it


def spans(rule: Rule, text: str) -> list[str]:
    return [text[start:end] for start, end in rule.spans(text, LeadIndex(lower(text)))]


def test_without_a_group_all_of_the_match_is_the_secret() -> None:
    assert spans(Rule("x", ("ab",), r"ab\d+"), "ab1 cd ab23") == ["ab1", "ab23"]
    assert spans(Rule("x", ("ab",), r"ab(?P<text>\d+)"), "ab1 cd ab23") == ["1", "23"]
    assert spans(Rule("x", ("ab",), r"ab\d+", lambda value: value != "ab1"), "ab1 cd ab23") == ["ab23"]


def test_behind_a_lead_the_pattern_starts_where_it_ends() -> None:
    rule = Rule("x", ("pin",), r"=(?P<text>\w+)", lead="pin")
    assert spans(rule, "PIN=ab, pin=cd, pan=ef, pin =gh") == ["ab", "cd"]


def test_what_a_match_has_taken_is_no_lead() -> None:
    rule = Rule("x", ("pin",), r"=(?P<text>\S+)", lead="pin")
    assert spans(rule, "pin=pin=ab") == ["pin=ab"]


@pytest.mark.parametrize(("group", "found"), [("word", "ab"), ("random", "ab"), ("text", "ab.),")])
def test_signs_at_the_end_belong_to_the_sentence(group: str, found: str) -> None:
    assert spans(Rule("x", ("pin",), rf"=(?P<{group}>\S+)", lead="pin"), "pin=ab.), and") == [found]


def test_a_lead_is_looked_for_once() -> None:
    index = LeadIndex("pin pan pin")
    assert index.ends("pin") == [3, 11]
    assert index.ends("pin") is index.ends("pin")
    assert index.ends("none") == []


@given(st.text())
def test_lower_case_keeps_every_character_in_its_place(text: str) -> None:
    lowered = lower(text)
    assert len(lowered) == len(text)
    assert all(low in (c, c.lower()) for low, c in zip(lowered, text, strict=True))


def test_letters_that_grow_stay_as_they_are() -> None:
    assert lower("İSTANBUL") == "İstanbul"


def test_what_is_not_ascii_is_no_basic_login() -> None:
    assert is_basic_login("\x80") is False
