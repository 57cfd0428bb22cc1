"""Adapters × people × where the memory is: nobody is shown, and nobody loses, what is somebody else's."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from adapter_notes import OWN, QUESTIONS

from commonplace.blocking import BlockingMemory
from commonplace.integrations.access import MemoryAccess
from commonplace.integrations.conversation import Conversation
from commonplace.wire.errors import ValidationError

PEOPLE = ("alice", "bob", None)
NO_IDS = (False, 5, ["alice"], {"$exists": True}, "")


def _error(refusal: Exception) -> Exception:
    return RuntimeError(str(refusal))


@pytest.mark.parametrize("row", OWN)
def test_each_has_notes_of_their_own(memory: BlockingMemory, row: Any) -> None:
    notes = {person: row(memory, person) for person in PEOPLE}
    for person in PEOPLE:
        notes[person].write(f"{person} keeps bees")
    for person in PEOPLE:
        assert notes[person].read() == [f"{person} keeps bees"]
    for gone, person in enumerate(PEOPLE[::-1], 1):
        notes[person].clear()
        left = PEOPLE[: len(PEOPLE) - gone]
        assert [notes[each].read() for each in PEOPLE] == [[f"{each} keeps bees"] * (each in left) for each in PEOPLE]


@pytest.mark.parametrize("row", OWN)
def test_who_comes_first_is_not_taken_from(memory: BlockingMemory, row: Any) -> None:
    """Whoever writes to the same place later, or clears it with nothing in it, changes nothing for the others."""
    row(memory, "alice").write("alice keeps bees")
    for person in ("bob", None):
        assert row(memory, person).read() == []
        row(memory, person).clear()
    assert row(memory, "alice").read() == ["alice keeps bees"]


@pytest.mark.parametrize("row", QUESTIONS)
def test_a_question_for_a_person_is_about_that_person(memory: BlockingMemory, row: Any) -> None:
    for person in PEOPLE:
        memory.remember(f"{person} keeps bees", user_id=person)
    memory.remember("another agent's keeps bees", agent_id="other")
    for person in ("alice", "bob"):
        assert row(memory, person) == [f"{person} keeps bees"]
    assert sorted(row(memory, None)) == sorted(f"{person} keeps bees" for person in PEOPLE)


@pytest.mark.parametrize("row", [*OWN, *QUESTIONS])
@pytest.mark.parametrize("nobody", NO_IDS, ids=repr)
def test_who_is_no_person_is_refused(memory: BlockingMemory, row: Any, nobody: Any) -> None:
    """Not taken for everybody: `user.is_authenticated and user.id` is False of whoever is not logged in."""
    for person in PEOPLE:
        memory.remember(f"{person} keeps bees", user_id=person)
    with pytest.raises((ValidationError, ValueError), match=r"must be text, not|must not be empty|valid string"):
        row(memory, nobody).read()  # of a question, the row itself asks
    with pytest.raises((ValidationError, ValueError), match=r"must be text, not|must not be empty|valid string"):
        row(memory, nobody).write("nobody keeps bees")
    assert len(memory.list()["memories"]) == len(PEOPLE)


@pytest.mark.parametrize("nobody", NO_IDS, ids=repr)
def test_what_is_no_id_is_refused_without_a_framework(memory: BlockingMemory, nobody: Any) -> None:
    for field in ("agent_id", "user_id"):
        with pytest.raises(ValidationError, match=f"{field} must (be text, not|not be empty)"):
            MemoryAccess(memory, _error, **{field: nobody})
    with pytest.raises((ValidationError, ValueError), match=r"session_id must be text, not|a session needs an id"):
        Conversation(MemoryAccess(memory, _error), "lines", nobody)


@pytest.mark.skipif(find_spec("crewai") is None, reason="crewai is not installed: make test-integrations")
def test_an_id_of_another_persons_record_is_worth_nothing(memory: BlockingMemory) -> None:
    from commonplace.integrations.crewai import CommonplaceMemory

    kept = CommonplaceMemory(memory, user_id="alice").remember("alice keeps bees")
    assert kept is not None
    for person in ("bob", None):
        other = CommonplaceMemory(memory, user_id=person)
        with pytest.raises(ValueError, match="not found"):
            other.update(kept.id, content="nobody keeps bees")
        assert other.forget(record_ids=[kept.id]) == 0
    assert memory.get(kept.id)["content"] == "alice keeps bees"
