"""Another memory whose policies let what it is given wait for approval: asked once, and taken back with the memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_pair import AGENT, TEXT, Pair, files_with, pair
from replica_house import run

from commonplace.engine import BatchItem, Draft
from commonplace.testing.subject import DAY_MS, WHO

REVIEWED = [{"name": "careful", "action": "review", "when": {"operation": ["remember"]}}]
HOUR_MS = 3_600_000


async def _reviews(p: Pair) -> list[Any]:
    return list(await (await p.theirs.engine()).reviews.list(WHO))


async def _set_policies(p: Pair, rules: list[dict[str, Any]]) -> None:
    await (await p.theirs.engine()).policies.replace(WHO, rules)


async def _run_due(p: Pair) -> None:
    outbox = (await p.ours.engine())._core.outbox
    await outbox.join()  # what is still being noted is in hand, and so not due
    p.clock.advance(HOUR_MS)
    await outbox.run_due()
    await outbox.join()


async def _waiting(p: Pair) -> int:
    return int((await (await p.ours.engine()).stores.list(WHO))[1]["waiting"])


@run
async def test_what_waits_for_approval_there_is_staged_once(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        await _set_policies(p, REVIEWED)
        made = await p.ours.remember(TEXT)
        assert "approval" in made.errors[0].error
        for _ in range(5):
            await _run_due(p)
        (review,) = await _reviews(p)
        assert await _waiting(p) == 1
        await p.theirs.decide_many([review["id"]], approved=True)
        await _run_due(p)
        assert await p.copies() == [TEXT]
        assert await _waiting(p) == 0


@run
async def test_one_that_waits_there_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        await _set_policies(p, [{"name": "r", "action": "review", "when": {"content": "ZEBRA"}}])
        for text in (TEXT, "the second", "the third"):
            await p.ours.remember(text)
        for _ in range(3):
            await _run_due(p)
        assert sorted(await p.copies()) == ["the second", "the third"]
        assert len(await _reviews(p)) == 1


@run
async def test_one_that_waits_there_is_not_taken_for_delivered_with_the_others_of_its_batch(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        await _set_policies(p, [{"name": "r", "action": "review", "when": {"content": "ZEBRA"}}])
        texts = ("the first", TEXT, "the third")
        items = [BatchItem(Draft(AGENT, "semantic", text)) for text in texts]
        await (await p.ours.engine()).remember_many(WHO, items)
        await _run_due(p)
        assert sorted(await p.copies()) == ["the first", "the third"]
        assert await _waiting(p) > 0
        await p.theirs.decide_many([review["id"] for review in await _reviews(p)], approved=True)
        await _run_due(p)
        assert sorted(await p.copies()) == [TEXT, "the first", "the third"]
        assert await _waiting(p) == 0


@run
async def test_erasing_takes_back_what_waits_for_approval_there(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        await _set_policies(p, REVIEWED)
        made = await p.ours.remember(TEXT)
        await p.ours.forget(ids=[made.id], hard_delete=True)
        await _run_due(p)
        assert await _reviews(p) == []
        assert await _waiting(p) == 0
    assert files_with(tmp_path, TEXT) == []


@run
async def test_an_older_text_no_longer_waits_when_a_newer_one_does(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        made = await p.ours.remember("as it was when it was copied")
        await _set_policies(p, REVIEWED)
        await p.ours.update(made.id, content=TEXT)
        await p.ours.update(made.id, content="there is a code for the safe")
        await _run_due(p)
        (review,) = await _reviews(p)
        assert review["request"]["content"] == "there is a code for the safe"
        assert await p.copies() == ["as it was when it was copied"]  # until there is another
        await p.theirs.decide_many([review["id"]], approved=True)
        await _run_due(p)
        assert await p.copies() == ["there is a code for the safe"]
    assert files_with(tmp_path / "theirs", TEXT) == []


@run
async def test_it_arrives_when_the_policy_is_lifted(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        await _set_policies(p, REVIEWED)
        await p.ours.remember(TEXT)
        await _set_policies(p, [])
        await _run_due(p)
        assert await p.copies() == [TEXT]
        assert await _reviews(p) == []
        assert await _waiting(p) == 0


@run
async def test_a_copy_that_the_other_forgot_or_erased_is_there_again_after_a_resync(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        made = await p.ours.remember(TEXT)
        stores = (await p.ours.engine()).stores
        for hard in (False, True, False, True, True, True):
            await p.theirs.forget(filter={"commonplace_id": made.id}, hard_delete=hard)
            assert await p.copies() == []
            assert (await stores.resync(WHO, "memory"))["equal"]
            assert await p.copies() == [TEXT]
            p.clock.advance(DAY_MS // 24)
