"""A store with something of everything in it, for what moves stores."""

from __future__ import annotations

from commonplace.engine import Draft
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.record import Principal


async def fill_store(subject: Subject) -> None:
    """Versions, an alias, erasures in the middle and at the end, a merge, a review, a statement, tenants, recalls."""
    engine, clock = subject.engine, subject.clock
    first = await subject.remember("Alice is allergic to peanuts", aliases=["a1"], importance=1, user_id="alice")
    clock.advance(5)
    gone = await subject.remember("soon erased")
    clock.advance(5)
    await subject.update(first, content="Alice is allergic to peanuts and cashews")
    await subject.forget(gone, hard_delete=True)
    clock.advance(7)
    canonical = await subject.remember("Alice lives in Bergen")
    await subject.merge(canonical, await subject.remember("Alice's home is Bergen"))
    await subject.forget(await subject.remember("forgotten"))
    await subject.remember("of Bob", agent="bob")
    await engine.remember(WHO, Draft("agent", "semantic", "to be reviewed"), approval={"content": "x"})
    await engine.graph.assert_fact(WHO, "mute", subject="Oslo", predicate="is_in", object="Norway")
    await engine.palaces.set_identity(WHO, "agent", "I help Alice.")
    await engine.remember(Principal("eve", tenant="other"), Draft("agent", "semantic", "another tenant's"))
    for _ in range(3):
        await subject.recall("peanuts")
    await engine.flush()
    clock.advance(60_000)
    await subject.forget(await subject.remember("erased at the end"), hard_delete=True)
