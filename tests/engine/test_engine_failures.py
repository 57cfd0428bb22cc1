"""A store that fails at any of its writes: the answer says what happened, and what happened is what it says."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tampering import DISK_ERRORS

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import BatchItem, Engine
from commonplace.engine.types import Draft, Expire, ExpireResult, Forget, ForgetResult, Merge, Receipt
from commonplace.stores.base import Reach
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Fault, Unavailable, internal_error

MANY = 5  # in chunks of two


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("memory.forget.CHUNK", "memory.expire.CHUNK", "memory.write._CHUNK", "graph.graph._CHUNK"):
        monkeypatch.setattr(f"commonplace.engine.{name}", 2)


@contextmanager
def failing(store: SqliteStore, number: int, fault: Callable[[], Exception]) -> Iterator[list[int]]:
    """The write of that number fails: a commit, or the removal of a copy made before a migration."""
    count = [0]
    finish, delete = store._writer._finish, store.delete_migration_backups

    def counted(then: Callable[[], Any], error: Callable[[], Exception]) -> Any:
        count[0] += 1
        if count[0] == number:
            raise error()
        return then()

    async def remove() -> None:
        await counted(delete, lambda: OSError(errno.EIO, "on purpose"))

    store._writer._finish = lambda *given: counted(lambda: finish(*given), fault)  # type: ignore[method-assign]
    store.delete_migration_backups = remove  # type: ignore[method-assign]
    yield count
    del store._writer._finish, store.delete_migration_backups


class StoredMemory:
    """A store with a few memories and statements, and what is there of them."""

    def __init__(self, engine: Engine, store: SqliteStore, ids: list[str]) -> None:
        self.engine, self.store, self.ids = engine, store, ids

    async def state(self) -> tuple[Any, ...]:
        every = Reach("local", ("agent",), statuses=("live", "archived", "deleted"))
        rows = {m.id: (m.status, m.demotion, m.merged_into) for m in (await self.store.scan(every)).memories}
        triples = [t.id for t in await self.store.triples("local", "agent")]
        return rows, triples, (await self.store.audit_head("local"))[0]


async def _open(path: Path) -> StoredMemory:
    store = SqliteStore(path, FakeClock())
    engine = await Engine.open(store, HashingEmbedder(), clock=FakeClock())
    drafts = [Draft("agent", "semantic", f"fact {i}", tags=["x"], privacy={"retain": 9}) for i in range(MANY)]
    done = await engine.remember_many(WHO, [BatchItem(draft) for draft in drafts])
    for i in range(MANY):
        await engine.graph.assert_fact(WHO, "agent", subject="Alice", predicate=f"p{i}", object="x")
    return StoredMemory(engine, store, [receipt.id for receipt in done if isinstance(receipt, Receipt)])


# operations: what is asked, and whether the answer tells what then is there


async def _forget(kept: StoredMemory, hard: bool) -> None:
    done = await kept.engine.forget(WHO, Forget("agent", filter={"tags": "x"}, hard_delete=hard))
    await _told(kept, done)


async def _told(kept: StoredMemory, done: ForgetResult | ExpireResult) -> None:
    rows, _, _ = await kept.state()
    gone = {id for id in kept.ids if id not in rows}
    assert set(done.ids) == gone, "they are kept under a promise, so forgetting erases"
    assert set(done.remaining) == set(kept.ids) - gone
    assert bool(done.remaining) <= (done.error is not None)
    assert "nothing was written" not in (done.error or "")


async def _expire(kept: StoredMemory, action: Any) -> None:
    done = await kept.engine.expire(WHO, Expire("agent", type="semantic", action=action))
    if action == "forget":
        return await _told(kept, done)
    rows, _, _ = await kept.state()
    changed = {id for id, (status, demotion, _) in rows.items() if status == "archived" or demotion != 1.0}
    assert (set(done.ids), set(done.remaining)) == (changed, set(kept.ids) - changed)
    assert bool(done.remaining) == (done.error is not None)


async def _merge(kept: StoredMemory) -> None:
    done = await kept.engine.merge(WHO, Merge("agent", kept.ids[0], kept.ids[1:], "merge_content"))
    rows, _, _ = await kept.state()
    assert {id for id, (_, _, into) in rows.items() if into == done.survivor.id} == set(kept.ids[1:])


async def _remember_batch(kept: StoredMemory) -> None:
    drafts = [Draft("agent", "semantic", f"new {i}") for i in range(MANY)]
    done = await kept.engine.remember_many(WHO, [BatchItem(draft) for draft in drafts])
    rows, _, _ = await kept.state()
    said = {receipt.id for receipt in done if isinstance(receipt, Receipt)}
    assert said == set(rows) - set(kept.ids)
    assert all(isinstance(outcome, (Receipt, Unavailable)) for outcome in done)


async def _graph_erase(kept: StoredMemory) -> None:
    _, before, _ = await kept.state()
    done = await kept.engine.graph.erase(WHO, "agent", "Alice")
    _, after, _ = await kept.state()
    assert set(done.ids) == set(before) - set(after)
    assert (set(done.remaining), bool(done.remaining) <= (done.error is not None)) == (set(after), True)
    assert "nothing was written" not in (done.error or "")


async def _delete(kept: StoredMemory) -> None:
    assert await kept.engine.delete(WHO, kept.ids[0])
    assert kept.ids[0] not in (await kept.state())[0]


OPERATIONS: dict[str, Callable[[StoredMemory], Awaitable[None]]] = {
    "forget": lambda kept: _forget(kept, False), "erase": lambda kept: _forget(kept, True),
    "expire": lambda kept: _expire(kept, "forget"), "archive": lambda kept: _expire(kept, "archive"),
    "demote": lambda kept: _expire(kept, "demote"), "merge": _merge, "remember_batch": _remember_batch,
    "graph erase": _graph_erase, "delete": _delete,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("fault", DISK_ERRORS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_answer_is_what_happened_whichever_write_fails(tmp_path: Path, operation: str, fault: str) -> None:
    async def attempt(number: int) -> bool:
        """Whether there was a write of that number."""
        kept = await _open(tmp_path / str(number) / "commonplace.db")
        before = await kept.state()
        try:
            with failing(kept.store, number, DISK_ERRORS[fault]) as count:
                await OPERATIONS[operation](kept)
        except Fault as refused:
            said = refused.message
        else:
            said = None
        if said is not None:
            assert "nothing was written" in said
            assert await kept.state() == before, "a refusal is of all of it"
        assert (await kept.engine.ledger.verify(WHO)).first_bad is None
        await kept.engine.close()
        return count[0] >= number

    async def sweep() -> int:
        number = 1
        while await attempt(number):
            number += 1
        return number - 1

    assert asyncio.run(sweep()) >= 1


def test_a_fault_nobody_foresaw_in_one_part_of_a_batch_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        kept = await _open(tmp_path / "commonplace.db")
        plain = kept.engine._core.make_entries

        async def broken(memories: Any, *more: Any) -> Any:
            if memories[0].content == "new 2":
                raise RuntimeError("on purpose")
            return await plain(memories, *more)

        monkeypatch.setattr(kept.engine._core, "make_entries", broken)
        done = await kept.engine.remember_many(
            WHO, [BatchItem(Draft("agent", "semantic", f"new {i}")) for i in range(MANY)]
        )
        assert [isinstance(outcome, Receipt) for outcome in done] == [True, True, False, False, True]
        assert {str(each) for each in done[2:4]} == {internal_error("this was not written").message}
        assert len((await kept.state())[0]) == MANY + 3
        await kept.engine.close()

    asyncio.run(scenario())
