"""What another memory does to its copies itself must not keep them from being erased: no byte of the text stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from memory_pair import TEXT, files_with, pair
from replica_house import run
from transfer_scenarios import export_of

from commonplace.testing.subject import DAY_MS, WHO
from commonplace.transfer.import_file import import_export
from commonplace.wire.errors import Unavailable


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
async def test_a_copy_that_is_too_large_to_be_listed_is_erased(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        made = await p.ours.remember(TEXT)

        async def too_large(**asked: Any) -> Any:
            raise Unavailable("it answered with more than 4,194,304 bytes")

        replica: Any = (await p.ours.engine())._core.outbox.replicas.named(p.theirs.name)
        replica._store._list_page = too_large
        assert (await p.ours.forget(ids=[made.id], hard_delete=True)).stores[-1].error is None
        assert await p.copies() == []
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


@pytest.mark.parametrize("erased_again", [True, False])
@pytest.mark.parametrize("at_once", [True, False])
@run
async def test_an_id_that_comes_back_as_another_agents_leaves_no_copy_of_the_first(
    tmp_path: Path, at_once: bool, erased_again: bool
) -> None:
    """The erasure waits when a file brings the id back; the other memory deletes by agent."""
    async with pair(tmp_path) as p:
        made = await p.ours.remember(TEXT)
        engine = await p.ours.engine()
        outbox = engine._core.outbox
        p.theirs.is_away = True
        assert (await p.ours.forget(ids=[made.id], hard_delete=True)).stores[-1].error
        p.theirs.is_away = not at_once
        version = {"content": "back", "created_at": p.clock(), "updated_at": p.clock(), "type": "semantic"}
        back = {"record": "memory", "id": made.id, "agent_id": "bob", "versions": [version | {"kind": "semantic"}]}
        (tmp_path / "back.jsonl").write_bytes(export_of(back))
        report = await import_export(engine, WHO, tmp_path / "back.jsonl", restore_erased=True)
        assert report.written == {"memory": 1}
        if erased_again:
            await p.ours.forget(ids=[made.id], agent_id="bob", hard_delete=True)
        p.theirs.is_away = False
        for _ in range(2):  # what was not confirmed is told again when it can no longer arrive
            p.clock.advance(DAY_MS)
            await outbox.run_due()
            await outbox.join()
        assert await outbox.waiting("local", p.theirs.name) == []
        assert await p.copies() == []
        assert [m["content"] for m in (await p.theirs.list(agent_id="bob"))["memories"]] == (
            [] if erased_again else ["back"]
        )
    assert files_with(tmp_path / "theirs", TEXT) == []
