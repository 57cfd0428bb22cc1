"""Tokens in the engine: who may make them, what is kept, what they open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from commonplace.engine import tokens
from commonplace.stores.contract.subject import FakeClock, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound, Unauthenticated, ValidationError
from commonplace.wire.record import Principal

Over = tuple[Subject, Callable[[Any], Any]]


def test_a_token_opens_what_it_was_made_for(over: Over, clock: FakeClock) -> None:
    subject, run = over
    core = subject.engine.core
    made, secret = run(
        tokens.create(core, Principal(), tenant="acme", role="reviewer", agents=["ada", "team-*"], name="alice")
    )
    known = run(tokens.load(core))
    who = tokens.authenticate(known, secret, core.clock())
    assert who == Principal("alice", "acme", "reviewer", ("ada", "team-*"))
    assert (who.may_use("team-7"), who.may_use("bea")) == (True, False)
    assert secret not in repr(known)
    renewed, newer = run(tokens.rotate(core, Principal(), made.id))
    known = run(tokens.load(core))
    assert (renewed.id, tokens.authenticate(known, newer, core.clock())) == (made.id, who)
    with pytest.raises(Unauthenticated):
        tokens.authenticate(known, secret, core.clock())
    run(tokens.revoke(core, Principal(), made.id))
    known = run(tokens.load(core))
    with pytest.raises(Unauthenticated):
        tokens.authenticate(known, newer, core.clock())
    assert list(known) == [made.id], "what was revoked is remembered"
    for again in (tokens.revoke, tokens.rotate):
        with pytest.raises(Conflict):
            run(again(core, Principal(), made.id))
    run(tokens.remove(core, Principal(), made.id))
    assert run(tokens.load(core)) == {}


def test_an_expired_token_opens_nothing(over: Over) -> None:
    subject, run = over
    core = subject.engine.core
    ends = core.clock() + 1000
    _, secret = run(tokens.create(core, Principal(), expires_at=ends))
    known = run(tokens.load(core))
    assert tokens.authenticate(known, secret, ends - 1)
    with pytest.raises(Unauthenticated):
        tokens.authenticate(known, secret, ends)


@pytest.mark.parametrize("who", [
    Principal("a", "local", "reviewer"), Principal("a", "acme", "admin"), Principal("a", "local", "admin", ("ada",)),
])  # fmt: skip
def test_only_the_operator_looks_after_tokens(over: Over, who: Principal) -> None:
    subject, run = over
    for work in (tokens.create(subject.engine.core, who), tokens.revoke(subject.engine.core, who, "x")):
        with pytest.raises(Forbidden):
            run(work)


@pytest.mark.parametrize("fields", [
    {"role": "king"}, {"agents": []}, {"agents": [""]}, {"tenant": ""}, {"name": "x" * 257}, {"expires_at": 1},
    {"agents": ["a\nb"]},
])  # fmt: skip
def test_a_token_that_makes_no_sense_is_not_made(over: Over, fields: dict[str, Any]) -> None:
    subject, run = over
    with pytest.raises(ValidationError):
        run(tokens.create(subject.engine.core, Principal(), **fields))
    assert run(tokens.load(subject.engine.core)) == {}


def test_a_token_that_works_is_not_removed(over: Over) -> None:
    subject, run = over
    made, _ = run(tokens.create(subject.engine.core, Principal()))
    with pytest.raises(Conflict):
        run(tokens.remove(subject.engine.core, Principal(), made.id))
    with pytest.raises(NotFound):
        run(tokens.remove(subject.engine.core, Principal(), "none"))


@pytest.mark.parametrize("presented", ["", "cp", "cp_", "cp__", "x_y_z", "cp_é_é", "\ud800"])
def test_nonsense_is_refused(presented: str) -> None:
    with pytest.raises(Unauthenticated):
        tokens.authenticate({}, presented, 0)
