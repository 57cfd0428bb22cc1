"""Tokens in the engine: who may make them, what is kept, what they open."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine import tokens
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
