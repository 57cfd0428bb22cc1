"""What a caller may carry away; tests/transfer shows it in files."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine import Draft
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Forbidden
from commonplace.wire.record import Memory, Principal


async def histories(subject: Subject, who: Principal = WHO, agent: str = "agent", **scope: Any) -> list[list[Memory]]:
    return [versions async for versions in subject.engine.exports.memories(who, agent, **scope)]


def test_each_memory_with_all_its_versions_in_the_order_they_were_written(subject: Subject, run: Any) -> None:
    first = run(subject.remember("one"))
    subject.clock.advance(10)
    run(subject.remember("two"))
    run(subject.update(first, content="one again"))
    found = run(histories(subject))
    assert [[version.content for version in versions] for versions in found] == [["one", "one again"], ["two"]]


def test_more_than_a_page(subject: Subject, run: Any) -> None:
    run(subject.remember_all([Draft("agent", "semantic", f"number {i}") for i in range(250)]))
    assert len(run(histories(subject))) == 250
    assert run(subject.engine.exports.count(WHO, "agent")) == 250


def test_it_is_what_there_was_at_one_instant_without_what_was_forgotten_since(subject: Subject, run: Any) -> None:
    """A merge meanwhile must not take a text out of both: the survivor was read before it, and the other after."""
    first = run(subject.remember("the first"))
    run(subject.remember_all([Draft("agent", "semantic", f"number {i}") for i in range(400)]))
    subject.clock.advance(10)
    changed, other, gone, erased = (
        run(subject.remember(f"{each} words")) for each in ("old", "merged", "gone", "erased")
    )

    async def export() -> list[str]:
        exporting = subject.engine.exports.memories(WHO, "agent")
        read = [await anext(exporting)]
        await subject.merge(first, other, strategy="merge_content")
        await subject.update(changed, content="new words")
        await subject.remember("later words")
        await subject.forget(gone)
        await subject.forget(erased, hard_delete=True)
        read += [each async for each in exporting]
        return [version.content for versions in read for version in versions if "number" not in version.content]

    assert run(export()) == ["the first", "old words", "merged words"]


def test_another_tenant_sees_nothing(subject: Subject, run: Any) -> None:
    run(subject.remember("ours"))
    stranger = Principal("eve", tenant="other")
    assert run(subject.engine.exports.agents(stranger)) == []
    assert run(histories(subject, stranger)) == []


def test_an_agent_that_may_not_be_used(subject: Subject, run: Any) -> None:
    run(subject.remember("ours"))
    eve = Principal("eve", agents=("other",))
    with pytest.raises(Forbidden):
        run(histories(subject, eve))
    with pytest.raises(Forbidden):
        run(subject.engine.exports.statements(eve, "agent"))
    with pytest.raises(Forbidden):
        run(subject.engine.exports.count(eve, "agent"))


def test_an_agent_of_statements_alone_is_found(subject: Subject, run: Any) -> None:
    run(subject.engine.graph.assert_fact(WHO, "mute", subject="a", predicate="b", object="c"))
    assert run(subject.engine.exports.agents(WHO)) == ["mute"]
    assert [t.object for t in run(subject.engine.exports.statements(WHO, "mute"))] == ["c"]


def test_a_palace_is_carried_where_something_was_said_of_it(subject: Subject, run: Any) -> None:
    run(subject.remember("an agent with a memory is a palace, of which nothing is said"))
    assert run(subject.engine.exports.palace(WHO, "agent")) is None
    run(subject.engine.palaces.set_identity(WHO, "agent", "I am"))
    assert run(subject.engine.exports.palace(WHO, "agent")).identity == "I am"
    assert run(subject.engine.exports.palace(WHO, "nobody")) is None
