"""Messages of a session come in the order in which they were written, whatever had to wait for a person."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from adapter_cases import STAGES

from commonplace import SyncMemory
from commonplace.integrations.access import MemoryAccess, PendingReview
from commonplace.integrations.conversation import Conversation, Message
from commonplace.wire.canonical import mint_id, minted_at
from commonplace.wire.errors import Fault
from commonplace.wire.times import DAY_MS


class Session:
    """A conversation of lines, to be told and read without a framework."""

    def __init__(self, memory: SyncMemory) -> None:
        self.memory = memory
        self.access = MemoryAccess(memory, lambda refusal: RuntimeError(str(refusal)))
        self.conversation = Conversation(self.access, "lines", "monday")

    def say(self, *lines: str) -> None:
        self.memory.run(self.conversation.add([Message(line, "alice", {"line": line}) for line in lines]))

    def replace(self, *lines: str) -> None:
        self.memory.run(self.conversation.replace([Message(line, "alice", {"line": line}) for line in lines]))

    def stage(self, *lines: str) -> None:
        with pytest.raises(PendingReview):
            self.say(*lines)

    def approve(self) -> None:
        for review in self.memory.reviews():
            self.memory.approve(review["id"], reviewer="bob")

    def read(self, limit: int | None = None) -> list[str]:
        return [document["line"] for document in self.memory.run(self.conversation.messages(limit))]

    def pop(self) -> str | None:
        popped = self.memory.run(self.conversation.pop())
        return None if popped is None else str(popped["line"])


def test_a_message_that_waited_stands_where_it_was_written(governed: SyncMemory) -> None:
    session = Session(governed)
    session.say("hello")
    session.stage(f"my {STAGES} is 90")
    session.say("so much?", "yes")
    session.approve()
    told = ["hello", f"my {STAGES} is 90", "so much?", "yes"]
    assert session.read() == told
    for limit in range(6):
        assert session.read(limit) == told[len(told) - min(limit, len(told)) :], limit
    governed.set_policies([])  # which would have the forgetting reviewed, too
    assert [session.pop() for _ in range(5)] == [*reversed(told), None]


def test_messages_that_were_given_at_once_keep_their_order(governed: SyncMemory) -> None:
    session = Session(governed)
    told = ["one", f"two of {STAGES}", "three", f"four of {STAGES}", "five"]
    session.stage(*told)
    assert session.read() == ["one", "three", "five"]
    session.approve()
    assert session.read() == told
    assert session.read(3) == told[2:]


@pytest.mark.parametrize("ahead", [0, 365 * DAY_MS])
def test_several_that_waited_and_were_approved_the_other_way_round(
    governed: SyncMemory, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    """Also where ids are minted ahead of the clock, as they are after it was set back."""
    monkeypatch.setattr(mint_id.__self__, "_last_ms", minted_at(mint_id(0)) + ahead)
    session = Session(governed)
    told = [f"{STAGES} {number}" for number in range(20)]
    for line in told:
        session.stage(line)
    session.say("done")
    for review in sorted(governed.reviews(), key=lambda review: str(review["id"]), reverse=True):
        governed.approve(review["id"], reviewer="bob")
    assert session.read() == [*told, "done"]
    assert session.read(1) == ["done"]
    assert session.read(2) == [told[-1], "done"]


def test_the_latest_of_a_long_session_take_a_page_or_two(memory: SyncMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(memory)
    for number in range(60):
        session.say(f"line {number}")
    asked: list[int] = []
    kind = type(session.access.memory)
    plain = kind.list

    async def counted(self: Any, *args: Any, **named: Any) -> Any:
        asked.append(named["limit"])
        return await plain(self, *args, **named)

    monkeypatch.setattr(kind, "list", counted)
    assert session.read(2) == ["line 58", "line 59"]
    assert len(asked) <= 2
    assert asked[0] < 60


def test_two_who_pop_at_once_get_each_another(memory: SyncMemory) -> None:
    session = Session(memory)
    session.say("one", "two", "three")

    async def both() -> list[Any]:
        return await asyncio.gather(session.conversation.pop(), session.conversation.pop())

    assert {document["line"] for document in memory.run(both())} == {"two", "three"}


@pytest.mark.parametrize("source", [None, "lines", "elsewhere"])
@pytest.mark.parametrize(
    "half",
    [
        {},
        {"message": None},
        {"message": "hello"},
        {"message": ["hello"]},
        {"message": {"line": "forged"}},
        {"message": {"line": "forged"}, "session": ["monday", "tuesday"]},
    ],
    ids=repr,
)
def test_what_is_no_message_of_its_own_is_passed_over(memory: SyncMemory, source: str | None, half: Any) -> None:
    """Anyone may write such metadata; one of them would break the conversation for good."""
    session = Session(memory)
    session.say("one")
    is_message = source == "lines" and half == {"message": {"line": "forged"}}  # as good as one
    other = memory.remember("not said", source=source, metadata={"lines": {"session": "monday", **half}})
    session.say("two", "three")
    told = ["one", *["forged"] * is_message, "two", "three"]
    assert session.read() == told
    assert [session.read(limit) for limit in (1, 2, 3)] == [told[-1:], told[-2:], told[-3:]]
    assert session.pop() == "three"
    memory.run(session.conversation.clear())
    assert session.read() == []
    assert session.pop() is None
    left = [each["id"] for each in memory.list()["memories"]]
    assert left == [other.id] * (source != "lines")


def test_the_latest_are_found_behind_many_that_are_no_messages(memory: SyncMemory) -> None:
    session = Session(memory)
    session.say("one", "two")
    memory.remember_batch(
        [
            {"content": f"not said {number}", "source": "lines", "metadata": {"lines": {"session": "monday"}}}
            for number in range(40)
        ]
    )
    assert session.read(1) == ["two"]
    assert session.pop() == "two"


def test_replaced_messages_may_be_the_same_or_none_and_touch_no_other_session(memory: SyncMemory) -> None:
    session = Session(memory)
    other = memory.remember("not said", metadata={"session_id": "monday"})
    session.replace("one", "one", "two")
    assert session.read() == ["one", "one", "two"]
    session.replace("two", "one")
    assert session.read() == ["two", "one"]
    session.replace()
    assert session.read() == []
    assert [each["id"] for each in memory.list()["memories"]] == [other.id]


def test_a_replacement_that_is_broken_off_takes_nothing_away(
    memory: SyncMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(memory)
    session.say("one", "two")
    kind = type(session.access.memory)

    async def end(*args: Any, **named: Any) -> Any:
        raise MemoryError  # which nobody is to catch

    for step in ("remember_batch", "forget"):
        with monkeypatch.context() as patched:
            patched.setattr(kind, step, end)
            with pytest.raises(MemoryError):
                session.replace("three")
        assert {"one", "two"} <= set(session.read()), step


def test_a_replacement_of_what_must_not_be_forgotten_is_taken_back(memory: SyncMemory) -> None:
    session = Session(memory)
    session.say("one", "two")
    memory.set_policies([{"name": "keep two", "action": "reject", "when": {"content": "two"}}])
    with pytest.raises(Fault, match="keep two"):
        session.replace("three")
    assert session.read() == ["one", "two"]


def test_a_replacement_whose_forgetting_waits_for_a_person_is_done_when_it_is_approved(memory: SyncMemory) -> None:
    """Taking back what is new would leave nothing once the forgetting of the old is approved."""
    session = Session(memory)
    session.say("one", "two")
    memory.set_policies([{"name": "ask about two", "action": "review", "when": {"content": "two"}}])
    with pytest.raises(PendingReview):
        session.replace("three")
    assert session.read() == ["one", "two", "three"]
    session.approve()
    assert session.read() == ["three"]
