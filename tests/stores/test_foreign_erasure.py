"""What another memory does to its copies itself must not keep them from being erased: no byte of the text stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from memory_pair import TEXT, files_with, pair
from replica_house import run

from commonplace.testing.subject import DAY_MS, WHO


@pytest.mark.parametrize("jobs", [True, False])
@run
async def test_a_copy_whose_time_was_over_is_erased_with_the_memory(tmp_path: Path, jobs: bool) -> None:
    async with pair(tmp_path) as p:
        made = await p.ours.remember(TEXT, expires_at=p.clock() + DAY_MS)
        assert await p.copies() == [TEXT]
        p.clock.advance(2 * DAY_MS)
        for memory in (p.ours, p.theirs) if jobs else ():
            await (await memory.engine()).lifecycle.run(WHO, "expire")
        await p.ours.forget(ids=[made.id], hard_delete=True)
    assert files_with(tmp_path, TEXT) == []


@run
async def test_what_was_promised_to_be_erased_is_erased_there_too(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        await p.ours.remember(TEXT, privacy_intent={"retain": 1})
        p.clock.advance(2 * DAY_MS)
        assert (await (await p.ours.engine()).lifecycle.run(WHO, "retain")).counts["erased"] == 1
    assert files_with(tmp_path, TEXT) == []


@pytest.mark.parametrize("how", ["archive", "forget", "merge"])
@run
async def test_what_the_other_put_away_itself_is_erased(tmp_path: Path, how: str) -> None:
    async with pair(tmp_path) as p:
        made = await p.ours.remember(TEXT, confidence=0.1)
        if how == "merge":
            own = await p.theirs.remember("the safe is in the hall")
            theirs = [m["id"] for m in (await p.theirs.list())["memories"] if m["content"] == TEXT]
            await p.theirs.merge(own.id, theirs)
        else:
            await p.theirs.expire(policy={"confidence_below": 0.5}, action=how)
        await p.ours.forget(ids=[made.id], hard_delete=True)
        assert await p.copies() == (["the safe is in the hall"] if how == "merge" else [])
    assert files_with(tmp_path, TEXT) == []


@run
async def test_an_older_text_that_the_other_forgot_goes_when_the_memory_changes(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        made = await p.ours.remember(TEXT)
        await p.theirs.forget(filter={"commonplace_id": made.id})
        await p.ours.update(made.id, content="there is a code for the safe")
        assert await p.copies() == ["there is a code for the safe"]
    assert files_with(tmp_path / "theirs", TEXT) == []


@run
async def test_what_another_agent_or_tenant_has_under_that_id_stays(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        made = await p.ours.remember(TEXT)
        foreign = {"commonplace_id": made.id, "commonplace_tenant": "another"}
        await p.theirs.remember("of another tenant", metadata=foreign)
        await p.ours.forget(ids=[made.id], hard_delete=True)
        assert await p.copies() == ["of another tenant"]
