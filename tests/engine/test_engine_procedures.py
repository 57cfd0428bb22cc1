"""Procedures by every way into the engine: what names code to run is refused, what is prose is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hostile_procedures import changed, with_transition

from commonplace.engine.governance.reviews import Decision
from commonplace.engine.types import BatchItem, Draft, Merge, Update
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Fault, ValidationError

HOSTILE = with_transition(before="os.system")
PROSE = "First open the lid, then {carefully} pour."
DRAFT = Draft("agent", "procedural", "how it was done before", kind="procedural")


async def _remember(subject: Subject, content: str) -> Any:
    return await subject.engine.remember(WHO, replace(DRAFT, content=content))


async def _remember_with_approval(subject: Subject, content: str) -> Any:
    return await subject.engine.remember(WHO, replace(DRAFT, content=content), approval={"content": content})


async def _remember_many(subject: Subject, content: str) -> Any:
    (outcome,) = await subject.engine.remember_many(WHO, [BatchItem(replace(DRAFT, content=content))])
    if isinstance(outcome, Fault):
        raise outcome


async def _store_under_an_id(subject: Subject, content: str) -> Any:
    return await subject.engine.upsert(WHO, replace(DRAFT, content=content), "new", "agent")


async def _replace(subject: Subject, content: str) -> Any:
    await subject.engine.upsert(WHO, DRAFT, "old", "agent")
    return await subject.engine.upsert(WHO, replace(DRAFT, content=content), "old", "agent")


async def _update(subject: Subject, content: str) -> Any:
    kept = await subject.engine.remember(WHO, DRAFT)
    return await subject.engine.update(WHO, Update("agent", kept.id, content=content))


async def _update_with_approval(subject: Subject, content: str) -> Any:
    kept = await subject.engine.remember(WHO, DRAFT)
    return await subject.engine.update(WHO, Update("agent", kept.id, content=content, approval_required=True))


async def _update_by_a_function(subject: Subject, content: str) -> Any:
    kept = await subject.engine.remember(WHO, DRAFT)
    return await subject.engine.update_with(WHO, "agent", kept.id, lambda memory: replace(memory, content=content))


async def _approve_as_edited(subject: Subject, content: str) -> Any:
    staged = await subject.engine.remember(WHO, DRAFT, approval={"content": DRAFT.content})
    assert staged.review_id is not None
    decision = Decision(True, edited=replace(DRAFT, content=content), edited_request={"content": content})
    return await subject.engine.reviews.decide(WHO, staged.review_id, decision)


WAYS = [
    _remember, _remember_with_approval, _remember_many, _store_under_an_id, _replace, _update, _update_with_approval,
    _update_by_a_function, _approve_as_edited,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_refuses_what_names_code(subject: Subject, run: Any, way: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        run(way(subject, HOSTILE))
    assert refused.value.details["field"] == "content.transitions[0].before"
    assert [memory.content for memory in run(subject.list())] in ([], [DRAFT.content])


@pytest.mark.parametrize("content", [PROSE, changed()])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_takes_prose_and_machines(subject: Subject, run: Any, way: Any, content: str) -> None:
    run(way(subject, content))


def test_what_was_kept_by_earlier_rules_can_still_be_tagged_merged_and_mended(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unnamed = '{"states": ["in progress"]}'
    with monkeypatch.context() as earlier:
        earlier.setattr("commonplace.engine.procedures.machine.check", lambda content: None)
        first, second = (run(subject.remember(unnamed, type="procedural")) for _ in range(2))
    run(subject.engine.update(WHO, Update("agent", first, tags=["old"])))
    run(subject.engine.merge(WHO, Merge("agent", first, [second])))
    assert run(subject.get(first)).tags == ["old"]
    with pytest.raises(ValidationError, match=r"content\.name is required"):
        run(subject.engine.update(WHO, Update("agent", first, content='{"states": ["idle"]}')))
    run(subject.engine.update(WHO, Update("agent", first, content=changed())))
