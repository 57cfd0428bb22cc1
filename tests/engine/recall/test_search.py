"""Searching: in context, by parts, in any script, and behind what replaced it."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.types import Query
from commonplace.stores.base import Reach, Search
from commonplace.testing.subject import WHO, Subject


async def _recall(subject: Subject, text: str, **query: Any) -> list[str]:
    found = await subject.engine.recall(WHO, Query(("agent",), text, **query))
    return [hit.memory.content for hit in found.hits]


def test_a_turn_is_found_by_the_one_before_it(subject: Subject, run: Any) -> None:
    async def work() -> None:
        talk = ["Which restaurant is it tonight?", "The Georgian place by the canal.", "At half past seven.", "Fine."]
        for n, line in enumerate(talk):
            await subject.remember(line, session_id="s1", speaker=("Alice", "Bob")[n % 2])
        for n in range(30):
            await subject.remember(f"note number {n} on gardening")
        found = await _recall(subject, "Georgian restaurant", k=5)
        assert set(talk[:3]) <= set(found)

    run(work())


def test_long_memories_are_found_by_their_parts_and_returned_whole(subject: Subject, run: Any) -> None:
    async def work() -> None:
        filler = "The weather was mild and the harbour was quiet that day. " * 260
        long = f"{filler}The spare key hangs behind the green barometer. {filler}"
        assert 28_000 < len(long) < 32_768
        await subject.remember(long)
        for n in range(20):
            await subject.remember(f"short note {n} about the harbour")
        assert (await _recall(subject, "spare key behind the barometer", k=3))[0] == long

    run(work())


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("鍵はマットの下にあります", "鍵はどこ"),
        ("钥匙在垫子下面", "钥匙"),
        ("def parse_frame(buf): return struct.unpack('<I', buf)", "parse_frame"),
        ("panic at segment.rs:288: index out of bounds", "segment.rs:288"),
        ("the launch went well 🎉", "🎉"),
        ("to be or not to be", "to be or not to be"),
    ],
)
def test_scripts_code_and_signs(subject: Subject, run: Any, content: str, question: str) -> None:
    async def work() -> None:
        await subject.remember(content)
        for n in range(20):
            await subject.remember(f"plain note {n} on something else")
        assert (await _recall(subject, question))[0] == content

    run(work())


def test_a_replaced_memory_stands_behind_through_ids_and_aliases(subject: Subject, run: Any) -> None:
    async def work() -> None:
        old = await subject.remember("The staging database listens on port 5432")
        await subject.remember("Staging database: the port is 6543 now", supersedes=[old])
        found = await _recall(subject, "staging database port")
        assert found[:2] == ["Staging database: the port is 6543 now", "The staging database listens on port 5432"]
        await subject.engine.flush()

    run(work())


def test_erased_speakers_are_no_longer_known(subject: Subject, run: Any) -> None:
    async def work() -> None:
        id = await subject.remember("I painted a lake", speaker="Alice")
        await subject.remember("I painted a barn", speaker="Bob")
        assert (await subject.engine._core.primary.context("local", ["agent"])).speakers == {"Alice", "Bob"}
        await subject.engine._core.primary.delete("local", [id])
        assert (await subject.engine._core.primary.context("local", ["agent"])).speakers == {"Bob"}

    run(work())


def test_around_gives_runs_in_the_order_written(subject: Subject, run: Any) -> None:
    async def work() -> None:
        ids = [await subject.remember(f"turn {n}", session_id="s") for n in range(9)]
        alone = await subject.remember("no session")
        await subject.engine._core.primary.delete("local", [ids[4]])
        search = Search(Reach("local", ("agent",)), "turn")
        runs = await subject.engine._core.primary.neighbours_in_session(search, [ids[3], ids[5], ids[0], alone], 1)
        assert sorted([c.memory.content for c in r] for r in runs) == [
            ["turn 0", "turn 1"],
            ["turn 2", "turn 3", "turn 5", "turn 6"],
        ]
        assert all(c.matched == 1 for r in runs for c in r)

    run(work())
