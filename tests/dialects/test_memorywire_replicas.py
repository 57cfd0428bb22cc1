"""What memorywire's answers say of stores beside the primary."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from replica_house import AGENT, House, house, run

from commonplace.dialects.memorywire.operations import Memorywire
from commonplace.engine import Forget
from commonplace.testing.subject import WHO
from commonplace.wire.models import (
    ExpirePolicy,
    ExpireRequest,
    FireRequest,
    ForgetRequest,
    MergeRequest,
    RecallRequest,
    ResetRequest,
    UpdateRequest,
)
from commonplace.wire.validate import check


@run
async def test_forget_merge_and_expire_name_what_each_store_did_and_why_not() -> None:
    async with house(copies=2) as h:
        one, two, three = [await h.remember(text) for text in ("tea", "green tea", "coffee")]
        h.copies[1].down = "out of order"
        wire = Memorywire(h.engine, WHO)
        merged = await wire.merge(MergeRequest(agent_id=AGENT, canonical=one, duplicates=[two]))
        assert merged.stores == [h.primary.name, "copy"]
        assert [(each.store, "out of order" in each.error) for each in merged.errors or ()] == [("copy1", True)]
        gone = await wire.forget(ForgetRequest(agent_id=AGENT, ids=[three]))
        assert [(each.store, each.count) for each in gone.stores] == [(h.primary.name, 1), ("copy", 1), ("copy1", 0)]
        assert "out of order" in (gone.stores[2].error or "")
        rest = await wire.expire(ExpireRequest(agent_id=AGENT, policy=ExpirePolicy(type="semantic"), action="archive"))
        assert (rest.matched_count, rest.stores) == (1, [h.primary.name, "copy"])
        assert [each.store for each in rest.errors or ()] == ["copy1"]


@run
async def test_a_recall_may_ask_for_what_several_stores_have_found() -> None:
    async with house() as h:
        both, one = [await h.remember(text) for text in ("tea for two", "tea for one")]
        await h.outbox.join()
        await h.copies[0].delete("local", [one])  # lost there, and not for us to know of
        wire = Memorywire(h.engine, WHO)
        for asked, ids in (({}, {both, one}), ({"quorum_k": 1}, {both, one}), ({"quorum_k": 2}, {both})):
            found = await wire.recall(RecallRequest(agent_id=AGENT, query="tea", **asked))
            assert {hit.id for hit in found.results} == ids


STEP = {"trigger": "boil", "source": "cold", "dest": "hot"}
TEA = json.dumps({"name": "tea", "initial": "cold", "states": ["cold", "hot"], "transitions": [STEP]})


class Before:
    """What there is when a store fails, as the operations below need it."""

    def __init__(self, h: House, wire: Memorywire) -> None:
        self.house, self.wire = h, wire

    async def prepare(self) -> None:
        self.one, self.gone = await self.house.remember("tea"), await self.house.remember("coffee")
        await self.house.engine.forget(WHO, Forget(AGENT, [self.gone]))
        self.bad = await self.house.remember("poison", source="https://evil.example")
        self.procedure = await self.house.remember(TEA, type="procedural")
        staged = await self.wire.forget(ForgetRequest(agent_id=AGENT, ids=[self.one], approval_required=True))
        self.review = str(staged.review_id)


#: Every other operation that changes memories, and where its answer names stores.
CHANGES: dict[str, tuple[Callable[[Before], Coroutine[Any, Any, Any]], str]] = {
    "update": (lambda b: b.wire.update(b.one, UpdateRequest(agent_id=AGENT, content="green tea")), "errors"),
    "undo": (lambda b: b.wire.undo(ids=[b.gone]), "stores"),
    "recover": (lambda b: b.wire.recover(source="https://evil.example"), "errors"),
    "decide": (lambda b: b.wire.decide(b.review, True, "Alice"), "errors"),
    "procedure_fire": (lambda b: b.wire.procedure_fire(b.procedure, FireRequest(trigger="boil")), "errors"),
    "procedure_reset": (lambda b: b.wire.procedure_reset(b.procedure, ResetRequest()), "errors"),
}
SCHEMAS = {"procedure_fire": "procedure", "procedure_reset": "procedure"}


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("operation", CHANGES)
@run
async def test_every_operation_that_changes_a_memory_names_a_store_that_has_not_done_it(
    operation: str, down: bool
) -> None:
    async with house(copies=2) as h:
        before = Before(h, Memorywire(h.engine, WHO))
        await before.prepare()
        if operation == "procedure_reset":
            await before.wire.procedure_fire(before.procedure, FireRequest(trigger="boil"))
        await h.outbox.join()
        h.copies[1].down = "out of order" if down else None
        change, field = CHANGES[operation]
        answer = await change(before)
        document = answer if isinstance(answer, dict) else answer.model_dump(exclude_none=True)
        document = {**document.get("decision", {}), **document}  # as its route has it
        check(f"memorywire/operations/{SCHEMAS.get(operation, operation)}.response", document)
        told = [(each["store"], "out of order" in each["error"]) for each in document.get(field, ())]
        assert told == ([("copy1", True)] if down else [])


@pytest.mark.parametrize("down", [False, True])
@run
async def test_each_of_many_decisions_names_a_store_that_has_not_done_it(down: bool) -> None:
    async with house(copies=2) as h:
        wire = Memorywire(h.engine, WHO)
        one, two = await h.remember("tea"), await h.remember("coffee")
        asked = [ForgetRequest(agent_id=AGENT, ids=[id], approval_required=True) for id in (one, two)]
        first, second = [str((await wire.forget(each)).review_id) for each in asked]
        await wire.decide(second, False, "Alice")
        await h.outbox.join()
        h.copies[1].down = "out of order" if down else None
        results = await wire.decide_many([first, second, first], True, "Alice")
        check("memorywire/operations/decide.many.response", {"results": results})
        told = [[(each["store"], "out of order" in each["error"]) for each in r.get("errors", ())] for r in results]
        named = [("copy1", True)] if down else []
        assert told == [named, [], named]
        assert [("status" in each, "error" in each) for each in results] == [
            (True, False),
            (False, True),
            (True, False),
        ]
