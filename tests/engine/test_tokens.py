"""Tokens in the engine: who may make them, what is kept, what they open."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from commonplace.engine import tokens
from commonplace.engine.tokens import Token
from commonplace.testing.subject import FakeClock, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound, Unauthenticated, ValidationError
from commonplace.wire.record import Principal


def test_a_token_opens_what_it_was_made_for(subject: Subject, run: Any, clock: FakeClock) -> None:
    engine = subject.engine
    made, secret = run(
        engine.tokens.create(Principal(), tenant="acme", role="reviewer", agents=["ada", "team-*"], name="alice")
    )
    known = run(engine.tokens.all())
    who = tokens.authenticate(known, secret, engine.clock())
    assert who == Principal("alice", "acme", "reviewer", ("ada", "team-*"))
    assert (who.may_use("team-7"), who.may_use("bea")) == (True, False)
    assert secret not in repr(known)
    renewed, newer = run(engine.tokens.rotate(Principal(), made.id))
    known = run(engine.tokens.all())
    assert (renewed.id, tokens.authenticate(known, newer, engine.clock())) == (made.id, who)
    with pytest.raises(Unauthenticated):
        tokens.authenticate(known, secret, engine.clock())
    run(engine.tokens.revoke(Principal(), made.id))
    known = run(engine.tokens.all())
    with pytest.raises(Unauthenticated):
        tokens.authenticate(known, newer, engine.clock())
    assert list(known) == [made.id], "what was revoked is remembered"
    for again in (engine.tokens.revoke, engine.tokens.rotate):
        with pytest.raises(Conflict):
            run(again(Principal(), made.id))
    run(engine.tokens.remove(Principal(), made.id))
    assert run(engine.tokens.all()) == {}


def test_an_expired_token_opens_nothing(subject: Subject, run: Any) -> None:
    engine = subject.engine
    ends = engine.clock() + 1000
    _, secret = run(engine.tokens.create(Principal(), expires_at=ends))
    known = run(engine.tokens.all())
    assert tokens.authenticate(known, secret, ends - 1)
    with pytest.raises(Unauthenticated):
        tokens.authenticate(known, secret, ends)


@pytest.mark.parametrize("who", [
    Principal("a", "local", "reviewer"), Principal("a", "acme", "admin"), Principal("a", "local", "admin", ("ada",)),
])  # fmt: skip
def test_only_the_operator_looks_after_tokens(subject: Subject, run: Any, who: Principal) -> None:
    for work in (subject.engine.tokens.create(who), subject.engine.tokens.revoke(who, "x")):
        with pytest.raises(Forbidden):
            run(work)


@pytest.mark.parametrize("fields", [
    {"role": "king"}, {"agents": []}, {"agents": [""]}, {"tenant": ""}, {"name": "x" * 257}, {"expires_at": 1},
    {"agents": ["a\nb"]},
])  # fmt: skip
def test_a_token_that_makes_no_sense_is_not_made(subject: Subject, run: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        run(subject.engine.tokens.create(Principal(), **fields))
    assert run(subject.engine.tokens.all()) == {}


def test_a_token_that_works_is_not_removed(subject: Subject, run: Any) -> None:
    made, _ = run(subject.engine.tokens.create(Principal()))
    with pytest.raises(Conflict):
        run(subject.engine.tokens.remove(Principal(), made.id))
    with pytest.raises(NotFound):
        run(subject.engine.tokens.remove(Principal(), "none"))


@pytest.mark.parametrize("presented", ["", "cp", "cp_", "cp__", "x_y_z", "cp_é_é", "\ud800"])
def test_nonsense_is_refused(presented: str) -> None:
    with pytest.raises(Unauthenticated):
        tokens.authenticate({}, presented, 0)


TOKEN = Token("id", "alice", "acme", "writer", ("ada",), 5, 100, "hash")


@pytest.mark.parametrize(("fields", "now", "status"), [
    ({}, 99, "live"), ({}, 100, "expired"), ({"expires_at": None}, 10**15, "live"), ({"revoked_at": 7}, 8, "revoked"),
    ({"revoked_at": 7}, 200, "revoked"),
])  # fmt: skip
def test_what_is_shown_of_a_token(fields: dict[str, Any], now: int, status: str) -> None:
    token = replace(TOKEN, **fields)
    shown = token.to_wire(now)
    assert shown == {
        "id": "id", "name": "alice", "tenant": "acme", "role": "writer", "agents": ["ada"], "created_at": 5,
        "expires_at": token.expires_at, "status": status,
    }  # fmt: skip
    assert token.usable(now) is (status == "live")
    assert token.principal() == Principal("alice", "acme", "writer", ("ada",))


@pytest.mark.parametrize("change", [
    lambda secret: secret[:-1], lambda secret: secret + "x", lambda secret: secret.replace("cp_", "xx_", 1),
    lambda secret: secret.replace("cp_", "cp__", 1), lambda secret: secret.upper(), lambda secret: f" {secret}",
])  # fmt: skip
def test_a_secret_that_differs_in_anything_is_refused(subject: Subject, run: Any, change: Any) -> None:
    _, secret = run(subject.engine.tokens.create(Principal()))
    known = run(subject.engine.tokens.all())
    assert tokens.authenticate(known, secret, subject.clock()) is not None
    with pytest.raises(Unauthenticated) as refused:
        tokens.authenticate(known, change(secret), subject.clock())
    assert refused.value.message == "this token is not known, has expired or was revoked"


def test_tokens_have_names_of_their_own_unless_given(subject: Subject, run: Any) -> None:
    made, _ = run(subject.engine.tokens.create(Principal()))
    assert (made.name, made.tenant, made.role, made.agents) == (f"token-{made.id}", "local", "writer", ("*",))


def test_the_ledger_tells_what_became_of_a_token_and_no_secret(subject: Subject, run: Any) -> None:
    made, secret = run(subject.engine.tokens.create(Principal(), role="reader", agents=["ada"]))
    _, renewed = run(subject.engine.tokens.rotate(Principal(), made.id))
    run(subject.engine.tokens.revoke(Principal(), made.id))
    run(subject.engine.tokens.remove(Principal(), made.id))
    entries = run(subject.store.audit(""))
    assert [entry.operation for entry in entries] == ["create_token", "rotate_token", "revoke_token", "remove_token"]
    told = [json.loads(entry.parts[0].payload) for entry in entries]
    rights = {"token": made.id, "tenant": "local", "role": "reader", "agents": ["ada"]}
    assert told == [rights, rights, rights, {"token": made.id}]
    secrets = [token.split("_", 2)[2] for token in (secret, renewed)]  # they may have a _ themselves
    assert not any(each in repr((entries, made)) for each in secrets)


def test_an_expired_token_can_be_removed(subject: Subject, run: Any) -> None:
    made, _ = run(subject.engine.tokens.create(Principal(), expires_at=subject.clock() + 1))
    subject.clock.advance(1)
    assert run(subject.engine.tokens.remove(Principal(), made.id)).id == made.id


@pytest.mark.parametrize("verb", ["rotate", "remove"])
def test_only_the_operator_changes_tokens(subject: Subject, run: Any, verb: str) -> None:
    made, _ = run(subject.engine.tokens.create(Principal()))
    with pytest.raises(Forbidden):
        run(getattr(subject.engine.tokens, verb)(Principal("a", "acme", "admin"), made.id))


def test_no_token_is_named_like_the_open_operator(subject: Subject, run: Any) -> None:
    with pytest.raises(ValidationError, match="is who asks where no token is needed"):
        run(subject.engine.tokens.create(Principal(), role="admin", name="local"))


def test_the_list_is_for_the_operator_and_says_no_hash(subject: Subject, run: Any, clock: FakeClock) -> None:
    engine = subject.engine
    first, _ = run(engine.tokens.create(Principal(), name="alice"))
    clock.advance(1)
    second, secret = run(engine.tokens.create(Principal(), name="bob"))
    found = run(engine.tokens.list(Principal()))
    assert [each["id"] for each in found] == [second.id, first.id]
    assert second.hash not in repr(found)
    assert secret not in repr(found)
    for who in (Principal("admin", tenant="acme"), Principal("rita", role="reviewer"), Principal("a", agents=("b",))):
        with pytest.raises(Forbidden):
            run(engine.tokens.list(who))
