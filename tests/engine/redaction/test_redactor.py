"""The redactor: texts, documents and records, replaced, refused or left alone as the operator has chosen."""

from __future__ import annotations

import json
import string
import threading
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st
from redaction_corpus.credentials import ALNUM, BY_FORM, some
from redaction_corpus.positives import leaked, positives

from commonplace.config import RedactionConfig
from commonplace.engine.redaction import Redactor, Secrets, scanner
from commonplace.engine.redaction.redactor import strings
from commonplace.engine.types import Draft
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import PayloadTooLarge, SecretLeakage, ValidationError
from commonplace.wire.record import MAX_CONTENT_CHARS, Memory

ON = Redactor()
REJECT = Redactor(RedactionConfig(mode="reject"))
OFF = Redactor(RedactionConfig(mode="off"))
RNG = Random(5)
KEY = BY_FORM["aws_access_key"](RNG)
TOKEN = BY_FORM["github"](RNG)
RANDOM = "q7" + some(RNG, ALNUM, 14)


def test_off_means_off() -> None:
    assert OFF.text(f"{KEY} {TOKEN}") == (f"{KEY} {TOKEN}", [])
    assert not OFF.active
    draft = Draft("a", "semantic", KEY)
    assert OFF.redact_record(draft)[0] is draft


def test_markers_name_the_family_in_either_form() -> None:
    assert ON.text(f"use {TOKEN}.") == ("use <REDACTED:github_token>.", ["github_token"])
    square = Redactor(RedactionConfig(marker="square"))
    assert square.text(f"use {TOKEN}.") == ("use [REDACTED:github_token].", ["github_token"])


def test_no_marker_holds_a_part_of_what_it_replaces() -> None:
    for each in positives(seed=9, each=2):
        clean, labels = ON.text(each.text)
        assert not any(leaked(each.secret, label) for label in labels), labels
        assert not leaked(each.secret, clean)


def test_every_string_of_a_document_is_searched_keys_too() -> None:
    document = {"a": [1, {TOKEN: "x", "deep": [f"see {KEY}"]}], "n": 1.5, "t": None, "b": True}
    clean, labels = ON.document(document)
    assert clean == {
        "a": [1, {"<REDACTED:github_token>": "x", "deep": ["see <REDACTED:aws_access_key>"]}],
        "n": 1.5, "t": None, "b": True,
    }  # fmt: skip
    assert sorted(labels) == ["aws_access_key", "github_token"]
    assert ON.document(clean) == (clean, [])


def test_two_keys_that_are_secrets_keep_both_their_values() -> None:
    clean, _ = ON.document({BY_FORM["github"](RNG): 1, BY_FORM["github"](RNG): 2})
    assert sorted(clean.values()) == [1, 2]
    assert ON.document(clean) == (clean, [])


@pytest.mark.timeout(60)
@pytest.mark.parametrize("count", [4_000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_many_keys_that_are_secrets_are_each_named_once(count: int) -> None:
    """Trying every number from two on for each of them would take many minutes for the larger document."""
    rng = Random(4)
    document = {BY_FORM["aws_access_key"](rng): i for i in range(count)}
    clean, _ = ON.document(document)
    assert len(clean) == count
    assert sorted(clean.values()) == sorted(document.values())


def test_a_value_is_a_secret_by_the_name_it_goes_by() -> None:
    clean, labels = ON.document(
        {"password": "swordfish", "db": {"api_key": "q7w8e9r0t1y2", "user": "alice"}, "token": "none"}
    )
    assert clean == {
        "password": "<REDACTED:password>", "db": {"api_key": "<REDACTED:secret>", "user": "alice"}, "token": "none",
    }  # fmt: skip
    assert labels == ["password", "secret"]
    assert ON.document(clean) == (clean, [])
    assert ON.document({"password": "required", "token_count": "4096"})[1] == []


def test_whether_anything_would_change_can_be_asked() -> None:
    assert ON.holds_secret({"claim": {"content": f"key {KEY}"}})
    assert ON.holds_secret(f"key {KEY}")
    assert not ON.holds_secret({"claim": {"content": "nothing here"}, "hash": "sha256:" + "0f" * 32})
    assert ON.holds_secret({"x": "my own secret words"}, Secrets.of({"w": "my own secret words"}))
    assert not OFF.holds_secret(KEY)


def draft(**fields: object) -> Draft:
    return Draft("agent", "semantic", fields.pop("content", "plain"), **fields)  # type: ignore[arg-type]


def test_every_field_that_is_shown_is_searched() -> None:
    given = draft(
        content=f"key {KEY}", title=TOKEN, entity_name=TOKEN, tags=["a", TOKEN], metadata={"k": {"deep": [TOKEN]}},
        source=TOKEN, speaker=TOKEN, provenance={"why": TOKEN}, embedding=[0.1],
    )  # fmt: skip
    clean, labels = ON.redact_record(given)
    assert TOKEN not in repr(clean)
    assert KEY not in repr(clean)
    assert labels == ["aws_access_key", "github_token"]
    assert clean.embedding is None
    assert ON.redact_record(clean) == (clean, [])


def test_an_embedding_stays_with_a_text_that_stays() -> None:
    given = draft(content="Alice plays the violin", embedding=[0.5])
    assert ON.redact_record(given)[0] is given


@pytest.mark.parametrize("field", ["agent_id", "user_id", "project", "session_id", "kind"])
def test_a_name_that_holds_a_secret_is_refused(field: str) -> None:
    for redactor in (ON, REJECT):
        named = draft()
        setattr(named, field, f"x-{TOKEN}")
        with pytest.raises(SecretLeakage) as refused:
            redactor.redact_record(named)
        assert refused.value.details == {"labels": ["github_token"], "fields": [field]}
        assert TOKEN not in refused.value.message


def test_ordinary_names_are_no_secrets() -> None:
    for name in (
        "4111111111111111",
        "password",
        "token:1",
        "user:alice",
        "https://alice@git.example.com/app.git",
        "0198c1f2-7b3e-7d10-9a55",
    ):
        assert ON.redact_record(draft(user_id=name, session_id=name))[0].user_id == name


def test_reject_names_labels_and_fields_and_never_the_secret() -> None:
    with pytest.raises(SecretLeakage) as refused:
        REJECT.redact_record(draft(content=f"a {KEY}", tags=[TOKEN]))
    assert refused.value.code == "secret_leakage"
    assert refused.value.details == {"labels": ["aws_access_key", "github_token"], "fields": ["content", "tags"]}
    said = json.dumps(refused.value.to_wire())
    assert KEY not in said
    assert TOKEN not in said
    assert REJECT.redact_record(draft(content="nothing to see"))[1] == []


def draft_with_key(draft: Draft | None = None, **fields: Any) -> Draft:
    return replace(draft or Draft("agent", "semantic", f"the key is {KEY}"), **fields)


def test_a_large_document_is_searched_beside_the_event_loop(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    clean = scanner.redact

    def watched(*arguments: Any) -> Any:
        threads.append(threading.current_thread())
        return clean(*arguments)

    monkeypatch.setattr(scanner, "redact", watched)
    large = {"log": ["token=" * 100] * 40, "key": KEY}
    assert run(subject.engine.remember(WHO, draft_with_key(content="x", metadata=large))).redacted == ["aws_access_key"]
    beside = set(threads)
    threads.clear()
    run(subject.engine.remember(WHO, draft_with_key()))
    assert beside.isdisjoint(threads), "small ones are searched at once, large ones by another thread"


@pytest.mark.parametrize(("document", "found"), [
    ("a", ["a"]), ({}, []), (None, []), (7, []), ({"a": "b"}, ["a", "b"]),
    (["a", ["b", {"c": ["d"]}]], ["a", "b", "c", "d"]), (("a", "b"), ["a", "b"]), ({"a": None, "b": 1.5}, ["a", "b"]),
])  # fmt: skip
def test_every_string_of_a_document(document: Any, found: list[str]) -> None:
    assert sorted(strings(document)) == found


def test_a_document_without_secrets_is_the_very_same() -> None:
    document = {"a": ["plain", {"b": 1}], "c": None}
    assert ON.document(document)[0] is document
    assert OFF.document({"a": TOKEN})[0] == {"a": TOKEN}


def test_a_refusal_names_the_field_and_the_label() -> None:
    assert ON.redact_text(f"use {TOKEN}", "reason") == "use <REDACTED:github_token>"
    assert ON.redact_document([TOKEN], "tags") == ["<REDACTED:github_token>"]
    for attempt in (lambda: REJECT.redact_text(TOKEN, "reason"), lambda: REJECT.redact_document([TOKEN], "reason")):
        with pytest.raises(
            SecretLeakage, match="reason must not hold a secret, and found was: github_token"
        ) as refused:
            attempt()
        assert refused.value.details == {"labels": ["github_token"], "fields": ["reason"]}
    assert REJECT.redact_text("plain", "reason") == "plain"


def test_a_name_is_checked_against_secrets_that_have_a_form_or_are_known() -> None:
    own = Secrets.of({"own": "my own words"})
    ON.check_name("password: hunter22", "id")
    ON.check_name("of my own words", "id")
    with pytest.raises(SecretLeakage, match="id holds a secret \\(own\\), and a name cannot be replaced"):
        ON.check_name("of my own words", "id", own)
    OFF.check_name(TOKEN, "id")


def test_a_name_that_was_there_before_is_left_alone() -> None:
    before = Memory("m", "t", "a", "semantic", "old", user_id=f"x-{TOKEN}", aliases=[TOKEN])
    kept, labels = ON.redact_record(replace(before, content=f"new {KEY}"), before=before)
    assert (kept.content, kept.user_id, labels) == ("new <REDACTED:aws_access_key>", f"x-{TOKEN}", ["aws_access_key"])
    with pytest.raises(SecretLeakage):
        ON.redact_record(replace(before, session_id=TOKEN), before=before)


def test_what_is_too_long_is_refused_before_it_is_searched() -> None:
    with pytest.raises(PayloadTooLarge):
        ON.redact_record(draft(content="x" * (MAX_CONTENT_CHARS + 1)))
    assert OFF.redact_record(draft(content="x" * (MAX_CONTENT_CHARS + 1)))[1] == []


@pytest.mark.parametrize("field", ["aliases", "supersedes"])
def test_a_list_of_names_is_checked_one_by_one(field: str) -> None:
    with pytest.raises(SecretLeakage) as refused:
        ON.redact_record(draft(**{field: ["plain", TOKEN]}))
    assert refused.value.details["fields"] == [field]


def test_a_name_in_privacy_is_checked_too() -> None:
    with pytest.raises(SecretLeakage):
        ON.redact_record(draft(privacy={"share_with": [TOKEN]}))


def test_variables_that_are_not_set_are_warned_of_where_redaction_is_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    Redactor(RedactionConfig(mode="off", secrets_env=("NOT_SET",)))
    assert caplog.messages == []
    Redactor(RedactionConfig(secrets_env=("NOT_SET",)))
    assert caplog.messages == ["secrets_env names NOT_SET, not set here: nothing is looked for there"]


fields = st.sampled_from(["password", "auth", "cookie", "mnemonic", "token", "api_key", "note", TOKEN])
values = st.text(string.ascii_letters + string.digits + " =:;-", max_size=20) | st.sampled_from(
    [TOKEN, KEY, "hunter22", "password: hunter22", "sid=q7W2xB9Lm4Ztq7W2xB9Lm4Zt", "none"]
)
documents = st.recursive(
    values | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields | values, inner, max_size=3),
    max_leaves=6,
)


@given(documents)
def test_redacting_a_document_twice_is_redacting_it_once(document: Any) -> None:
    clean, labels = ON.document(document)
    assert not any(secret in text for text in strings(clean) for secret in (TOKEN, KEY))
    assert ON.document(clean) == (clean, [])
    assert bool(labels) == (clean != document)


@pytest.mark.parametrize(
    "document",
    [
        {"db": {"password": "hunter22x"}},
        {"list": [{"deep": [{"api_key": RANDOM}]}, {"password": "hunter22x"}]},
        {"password": ["hunter22x", {"more": "plain"}]},
        {"password": {"value": "hunter22x", "type": "string"}},
        {"env": [{"name": "DB_PASSWORD", "value": "hunter22x"}]},
        {"env": [{"key": "api_token", "value": RANDOM}]},
        {"password": 837261945},
        {"password": "<REDACTED:password>hunter22x"},
        {"password": "<REDACTED:hunter22x>"},
    ],
)  # fmt: skip
def test_a_value_counts_by_its_key_at_any_depth(document: Any) -> None:
    clean, labels = Redactor().document(document)
    assert labels
    assert not any(value in repr(clean) for value in ("hunter22", RANDOM, "837261945"))
    assert Redactor().document(clean) == (clean, [])


@pytest.mark.parametrize(
    "document",
    [
        {"password": {"type": "string", "minLength": 8}}, {"password": True}, {"password": None}, {"password": 12},
        {"password": []}, {"name": "Bob", "value": "hunter22x"}, {"key": "colour", "value": "blue42"},
        {"passwords_seen": 837261945}, {"tokens": 123456789}, {"name": "password", "value": "required"},
    ],
)  # fmt: skip
def test_what_is_no_value_stays_whatever_its_key(document: Any) -> None:
    assert Redactor().document(document) == (document, [])


def test_of_a_refusal_no_more_is_searched_than_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request may hold megabytes that nothing has looked at, and its refusal repeats them."""
    searched: list[int] = []
    for name in ("redact", "suspicious"):
        plain = getattr(scanner, name)

        def watched(text: str, *more: Any, plain: Any = plain) -> Any:
            searched.append(len(text))
            return plain(text, *more)

        monkeypatch.setattr(scanner, name, watched)
    long = "token= " * 200_000
    many = f"{TOKEN} " * (19_980 // (len(TOKEN) + 1) + 1)
    for cut in (long, "x" * 19_990 + TOKEN + long, "x" * 9_990 + TOKEN + long, many + long):
        fault = ValidationError(f"unknown field {cut!r}", field=cut)
        ON.redact_fault(fault, None)
        assert len(json.dumps(fault.to_wire())) < 35_000
        assert fault.message.startswith("unknown field ")
        assert TOKEN[:12] not in json.dumps(fault.to_wire())
    assert max(searched) <= 50_000
    short = ValidationError(f"unknown field {TOKEN}")
    ON.redact_fault(short, None)
    assert short.message == "unknown field <REDACTED:github_token>"
