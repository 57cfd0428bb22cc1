"""Whatever a third party's store says of itself, no operation fails for it, least of all after it was committed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from replica_house import AGENT, Flaky, House, house, run

from commonplace.engine import Forget, Query
from commonplace.stores.base import Candidate, Page
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Memory


class Odd(Flaky):
    """Sound at first; then its capabilities or its health are not what they should be."""

    def __init__(self, clock: FakeClock) -> None:
        self._sound: Any = frozenset()
        self.says: dict[str, Any] = {}
        super().__init__(clock)

    @property
    def capabilities(self) -> Any:
        return _given(self.says.get("capabilities", self._sound))

    @capabilities.setter
    def capabilities(self, given: Any) -> None:
        self._sound = given

    async def health(self) -> Any:
        return _given(self.says.get("health", {"status": "ok"}))


def _given(what: Any) -> Any:
    if isinstance(what, Exception):
        raise what
    return what


NONSENSE: dict[str, dict[str, Any]] = {
    "capabilities fail": {"capabilities": ConnectionError("lost")},
    "capabilities are None": {"capabilities": None},
    "capabilities are a text": {"capabilities": "semantic"},
    "capabilities are a number": {"capabilities": 7},
    "capabilities cannot be hashed": {"capabilities": [["semantic"]]},
    "health fails": {"health": ConnectionError("lost")},
    "health is None": {"health": None},
    "health is a text": {"health": "fine"},
    "health is a list": {"health": ["status"]},
    "its state is odd": {"health": {"status": ["down"]}},
}


async def _forget(h: House) -> None:
    (memory, *_) = await h.live()
    await h.engine.forget(WHO, Forget(AGENT, [memory.id], hard_delete=True))


OPERATIONS: dict[str, Callable[[House], Awaitable[Any]]] = {
    "remember": lambda h: h.remember("another"),
    "recall": lambda h: h.engine.recall(WHO, Query((AGENT,), "words")),
    "forget": _forget,
    "stores": lambda h: h.engine.stores.list(WHO),
    "doctor": lambda h: h.engine.stores.examine(),
    "status": lambda h: h.engine.upkeep.status(WHO),
    "health": lambda h: h.engine.health(),
    "retry": lambda h: h.outbox.run_due(),
    "resync": lambda h: h.engine.stores.resync(WHO, "copy"),
}


@pytest.mark.parametrize("nonsense", NONSENSE)
@run
async def test_what_a_store_says_of_itself_breaks_no_operation(nonsense: str) -> None:
    clock = FakeClock()
    copy = Odd(clock)
    async with house(clock=clock, stores=[copy]) as h:
        await h.remember("words")
        await h.remember("more words")
        copy.says = NONSENSE[nonsense]
        for operation in OPERATIONS.values():
            await operation(h)
        copy.says = {}
        clock.advance(600_000)
        await h.settled()
        await h.outbox.run_due()
        await h.settled()
        assert await h.waiting() == {}
        assert await h.equal()


@pytest.mark.parametrize("nonsense", [each for each in NONSENSE if each.startswith("capabilities")])
@run
async def test_a_store_whose_capabilities_cannot_be_read_is_not_open(nonsense: str) -> None:
    """Without them it would be taken for one that keeps nothing, and what it has be deleted."""
    clock = FakeClock()
    copy = Odd(clock)
    copy.says = NONSENSE[nonsense]
    async with house(clock=clock, stores=[copy]) as h:
        id = await h.remember("words")
        await h.outbox.join()
        assert "its capabilities cannot be read" in (await h.waiting())[id]["error"]
        assert "its capabilities cannot be read" in (await h.engine.stores.list(WHO))[1]["error"]
        copy.says = {}
        clock.advance(600_000)
        await h.outbox.run_due()
        assert await h.equal()


@pytest.mark.parametrize("nonsense", [each for each in NONSENSE if each.startswith("health")])
@run
async def test_a_health_that_cannot_be_read_is_said(nonsense: str) -> None:
    clock = FakeClock()
    copy = Odd(clock)
    async with house(clock=clock, stores=[copy]) as h:
        copy.says = NONSENSE[nonsense]
        shown = (await h.engine.stores.list(WHO))[1]
        assert (shown["status"], bool(shown["error"])) == ("degraded", True)


@run
async def test_capabilities_that_it_learns_of_by_its_health_are_taken_over() -> None:
    clock = FakeClock()
    copy = Odd(clock)
    async with house(clock=clock, stores=[copy]) as h:
        copy.says = {"capabilities": frozenset({"semantic"})}
        assert (await h.engine.stores.list(WHO))[1]["capabilities"] == ["semantic"]


_ROW = Memory("0199-a", "local", AGENT, "semantic", "words", created_at=1)
_ODD: Any = _ROW  # so that anything can be said of it
#: What a search, a listing and a list of agents may give instead of what they should.
GIVEN: dict[str, dict[str, Any]] = {
    "nothing": {"search": None, "scan": None, "agent_names": None},
    "a number": {"search": 7, "scan": 7, "agent_names": 7},
    "a text": {"search": "0199-a", "scan": "0199-a", "agent_names": AGENT},
    "a list of nothing": {"search": [None], "scan": Page([None], None), "agent_names": [None]},  # type: ignore[list-item]
    "a list of ids": {"search": ["0199-a"], "scan": ["0199-a"], "agent_names": [7]},
    "memories without more": {"search": [_ROW], "scan": [_ROW]},
    "no memory": {"search": [Candidate(None)], "scan": Page(None, None)},  # type: ignore[arg-type]
    "a number for an id": {"search": [Candidate(replace(_ODD, id=7))], "scan": Page([replace(_ODD, id=7)], None)},
    "no text": {"search": [Candidate(replace(_ODD, content=None))], "scan": Page([replace(_ODD, content=None)], None)},
    "a text for a score": {"search": [Candidate(_ROW, dense="high")]},  # type: ignore[arg-type]
    "a list for a score": {"search": [Candidate(_ROW, score=[1])]},  # type: ignore[arg-type]
    "a yes for a score": {"search": [Candidate(_ROW, keyword=True)]},
}


class Misled(Flaky):
    """Sound at first; then it gives what it was told to."""

    def __init__(self, clock: FakeClock) -> None:
        self.gives: dict[str, Any] = {}
        super().__init__(clock)

    async def search(self, search: Any) -> Any:
        return self.gives["search"] if "search" in self.gives else await super().search(search)

    async def scan(self, *what: Any, **how: Any) -> Any:
        return self.gives["scan"] if "scan" in self.gives else await super().scan(*what, **how)

    async def agent_names(self, tenant: str) -> Any:
        return self.gives["agent_names"] if "agent_names" in self.gives else await super().agent_names(tenant)

    async def tenants(self) -> Any:
        return self.gives["tenants"] if "tenants" in self.gives else await super().tenants()


@pytest.mark.parametrize("given", GIVEN)
@run
async def test_what_a_store_gives_instead_of_candidates_is_its_failure_alone(given: str) -> None:
    clock = FakeClock()
    copy = Misled(clock)
    async with house(clock=clock, stores=[copy]) as h:
        await h.remember("words")
        await h.settled()
        copy.gives = GIVEN[given]
        found = await h.engine.recall(WHO, Query((AGENT,), "words"))
        assert [hit.memory.content for hit in found.hits] == ["words"]
        assert "something that is no" in found.errors["copy"]


@pytest.mark.parametrize("verb", ["scan", "agent_names"])
@pytest.mark.parametrize("given", GIVEN)
@run
async def test_a_resync_of_what_gives_no_memories_is_refused_and_deletes_nothing(given: str, verb: str) -> None:
    if verb not in GIVEN[given]:
        return
    clock = FakeClock()
    copy = Misled(clock)
    async with house(clock=clock, stores=[copy]) as h:
        await h.remember("words")
        await h.settled()
        copy.gives = {verb: GIVEN[given][verb]}
        with pytest.raises(Unavailable):
            await h.engine.stores.resync(WHO, "copy")
        copy.gives = {}
        assert await h.equal()


#: What no memory of ours can have as its id, each with how an operator is told of it.
NO_IDS = {
    "half of a surrogate pair": ("\ud800", "\ufffd"),
    "a NUL": ("a\0b", "a\ufffdb"),
    "a line break": ("a\nb", "a\ufffdb"),
    "an escape": ("\x1b[2J", "\ufffd[2J"),
    "a huge one": ("a" * 3_000_000, "a" * 128 + "…"),
    "none": ("", ""),
}


@pytest.mark.parametrize("given", NO_IDS)
@run
async def test_an_id_that_is_none_of_ours_is_named_and_written_nowhere(given: str) -> None:
    clock = FakeClock()
    copy = Misled(clock)
    id, shown = NO_IDS[given]
    async with house(clock=clock, stores=[copy]) as h:
        held = await h.remember("words")
        await h.settled()
        (memory,) = await h.live()
        copy.gives = {
            "scan": Page([memory, replace(memory, id=id)], None),
            "search": [Candidate(memory, score=1.0), Candidate(replace(memory, id=id), score=9.0)],
        }
        done = await h.engine.stores.resync(WHO, "copy")
        assert [each["id"] for each in done["unreadable"]] == [shown]
        assert (done["equal"], done["sent"], done["deleted"]) == (False, 0, 0)
        assert await h.waiting() == {}
        found = await h.engine.recall(WHO, Query((AGENT,), "words"))
        assert ([hit.memory.id for hit in found.hits], found.errors) == ([held], {})


@pytest.mark.parametrize("name", ["\ud800", "a\0b", "a\nb", "", "a" * 257, "a" * 3_000_000])
@run
async def test_a_name_that_nobody_can_have_ends_no_resync(name: str, caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    copy = Misled(clock)
    async with house(clock=clock, stores=[copy]) as h:
        await h.remember("words")
        await h.settled()
        copy.gives = {"agent_names": [AGENT, name], "tenants": ["local", name]}
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["memories"]) == (True, 1)
        assert max(map(len, caplog.messages)) < 200
