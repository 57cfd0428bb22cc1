"""Sessions: what their cookie opens, and for how long."""

from __future__ import annotations

from commonplace.serve.page_sessions import IDLE_MS, LIFE_MS, MAX_OF_PERSON, MAX_SESSIONS, Sessions
from commonplace.testing.subject import FakeClock
from commonplace.wire.record import Principal

ALICE, BOB = Principal("alice"), Principal("bob")


def test_a_session_ends_when_idle_and_when_old(clock: FakeClock) -> None:
    sessions = Sessions(clock)
    id = sessions.log_in("token", ALICE)
    clock.advance(IDLE_MS)
    assert sessions.token(id) == "token"
    clock.advance(IDLE_MS + 1)
    assert sessions.token(id) is None
    id, began = sessions.log_in("token", ALICE), clock()
    while clock() - began <= LIFE_MS:
        assert sessions.token(id) == "token"
        clock.advance(IDLE_MS // 2)
    assert sessions.token(id) is None


def test_the_least_used_sessions_make_room(clock: FakeClock) -> None:
    sessions = Sessions(clock)
    first, second = sessions.log_in("first", ALICE), sessions.log_in("second", BOB)
    for n in range(MAX_SESSIONS - 1):
        assert sessions.token(first) == "first"
        sessions.log_in(f"more {n}", Principal(f"more {n}"))
    assert (sessions.token(first), sessions.token(second)) == ("first", None)


def test_one_person_makes_room_for_themselves_alone(clock: FakeClock) -> None:
    sessions = Sessions(clock)
    other = sessions.log_in("other", ALICE)
    mine = [sessions.log_in("mine", BOB) for _ in range(MAX_OF_PERSON)]
    assert sessions.token(mine[0]) == "mine"  # used, and so no longer the oldest
    for _ in range(2):
        mine.append(sessions.log_in("mine", BOB))
    assert sessions.token(other) == "other"
    gone = [n for n, id in enumerate(mine) if sessions.token(id) is None]
    assert gone == [1, 2]
    namesake = sessions.log_in("namesake", Principal("bob", "acme"))
    for n in range(MAX_SESSIONS):
        sessions.log_in(f"mine, anew {n}", BOB)  # as an issuer gives out as many as are asked for
    assert (sessions.token(other), sessions.token(namesake)) == ("other", "namesake")


def test_a_form_is_of_one_session_and_one_server(clock: FakeClock) -> None:
    sessions = Sessions(clock)
    id = sessions.fresh()
    assert sessions.is_csrf(id, sessions.csrf(id))
    for wrong in ("", "x", sessions.csrf(sessions.fresh()), Sessions(clock).csrf(id), "\ud800"):
        assert not sessions.is_csrf(id, wrong)


def test_only_ids_of_ours_are_taken(clock: FakeClock) -> None:
    sessions = Sessions(clock)
    assert sessions.known(sessions.fresh())
    for wrong in (None, "", "x", "a" * 42, "a" * 44, "é" * 43, "a" * 42 + "\n"):
        assert sessions.known(wrong) is None


def test_who_logs_out_is_forgotten(clock: FakeClock) -> None:
    sessions = Sessions(clock)
    id = sessions.log_in("token", ALICE)
    sessions.log_out(id)
    sessions.log_out(id)
    assert sessions.token(id) is None
