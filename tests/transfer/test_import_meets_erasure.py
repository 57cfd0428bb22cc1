"""An erasure that is acknowledged while an import runs, before any call that the import makes of the store."""

from __future__ import annotations

import asyncio
import inspect
import json
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from transfer_scenarios import WHO, export_of, exported

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.stores.base import Primary, Reach
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import FakeClock, Subject, open_subject
from commonplace.transfer.import_file import import_export
from commonplace.transfer.import_source import Target, import_source

WORDS = "Bob is ill"
Act = Callable[[Subject], Awaitable[Any]]


class Before:
    """Has something done to a store before the call of it that has this number, whatever that call is."""

    def __init__(self, store: Any, number: int, act: Callable[[], Awaitable[Any]]) -> None:
        self.left, self._act = number, act
        for name, verb in inspect.getmembers(store, inspect.iscoroutinefunction):
            setattr(store, name, self._counting(verb))

    def _counting(self, verb: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def counting(*args: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == -1:  # and not again for the calls that the act makes itself
                await self._act()
            return await verb(*args, **options)

        return counting


async def of_a_memory(subject: Subject, folder: Path) -> tuple[Act, Act]:
    id = await subject.remember(WORDS)
    data = await exported(subject)
    return reads(data), lambda by: by.forget(id, hard_delete=True)


async def of_a_memory_that_is_restored(subject: Subject, folder: Path) -> tuple[Act, Act]:
    """It is erased once more after the command to bring back what was erased."""
    id = await subject.remember(WORDS)
    data = await exported(subject)
    return reads(data, restore_erased=True), lambda by: by.forget(id, hard_delete=True)


async def of_a_forgotten_memory(subject: Subject, folder: Path) -> tuple[Act, Act]:
    id = await subject.remember(WORDS)
    data = await exported(subject)
    return reads(data), lambda by: by.forget(id)


async def of_a_memory_with_a_later_version(subject: Subject, folder: Path) -> tuple[Act, Act]:
    id = await subject.remember("Bob is well")
    before = await exported(subject)
    await subject.update(id, content=WORDS)
    data = await exported(subject)
    await subject.forget(id, hard_delete=True)
    await import_export(subject.engine, WHO, BytesIO(before), restore_erased=True)
    return reads(data), lambda by: by.forget(id, hard_delete=True)


async def of_a_statement(subject: Subject, folder: Path) -> tuple[Act, Act]:
    await subject.engine.graph.assert_fact(WHO, "agent", subject="Bob", predicate="is", object="ill")
    data = await exported(subject)
    return reads(data), lambda by: by.engine.graph.erase(WHO, "agent", "Bob")


async def of_the_memory_of_a_statement(subject: Subject, folder: Path) -> tuple[Act, Act]:
    id = await subject.remember(WORDS)
    graph = subject.engine.graph
    await graph.assert_fact(WHO, "agent", subject="Bob", predicate="is", object="ill", provenance=id)
    data = await exported(subject)
    return reads(data), lambda by: by.forget(id, hard_delete=True)


async def of_the_memory_of_a_statement_made_elsewhere(subject: Subject, folder: Path) -> tuple[Act, Act]:
    """It was never here, so that only its memory is known to be erased."""
    id = await subject.remember(WORDS)
    said = {"subject": "Bob", "predicate": "is", "object": "ill", "valid_from": 1000, "memory_id": id}
    return reads(export_of({"record": "statement", "id": str(uuid.uuid4()), "agent_id": "agent", **said})), (
        lambda by: by.forget(id, hard_delete=True)
    )


async def of_a_foreign_memory(subject: Subject, folder: Path) -> tuple[Act, Act]:
    await foreign(folder, WORDS)(subject)
    (memory,) = await subject.list()
    return foreign(folder, WORDS), lambda by: by.forget(memory.id, hard_delete=True)


async def of_a_foreign_memory_that_changed(subject: Subject, folder: Path) -> tuple[Act, Act]:
    await foreign(folder, "Bob is well")(subject)
    (memory,) = await subject.list()
    return foreign(folder, WORDS), lambda by: by.forget(memory.id, hard_delete=True)


async def of_a_forgotten_foreign_memory(subject: Subject, folder: Path) -> tuple[Act, Act]:
    await foreign(folder, "Bob is well")(subject)
    (memory,) = await subject.list()
    return foreign(folder, WORDS), lambda by: by.forget(memory.id)


async def of_a_foreign_statement(subject: Subject, folder: Path) -> tuple[Act, Act]:
    path = folder / "facts.jsonl"
    said = {"type": "relation", "from": "Bob", "to": "ill", "relationType": "is"}
    people = [{"type": "entity", "name": name, "entityType": "x", "observations": []} for name in ("Bob", "ill")]
    path.write_text("".join(json.dumps(each) + "\n" for each in (*people, said)))

    async def read(by: Subject) -> Any:
        return await import_source(by.engine, WHO, path, "server_memory", Target("agent"))

    await read(subject)
    for memory in await subject.list():  # the relation is a memory, too
        await subject.forget(memory.id, hard_delete=True)
    return read, lambda by: by.engine.graph.erase(WHO, "agent", "Bob")


def reads(data: bytes, **options: Any) -> Act:
    return lambda by: import_export(by.engine, WHO, BytesIO(data), **options)


def foreign(folder: Path, words: str) -> Act:
    async def read(by: Subject) -> Any:
        path = folder / "mem0.json"
        path.write_text(json.dumps([{"id": "m-1", "memory": words}]))
        return await import_source(by.engine, WHO, path, "mem0", Target("agent"))

    return read


ERASURES = [
    of_a_memory, of_a_memory_that_is_restored, of_a_forgotten_memory, of_a_memory_with_a_later_version, of_a_statement,
    of_the_memory_of_a_statement, of_the_memory_of_a_statement_made_elsewhere, of_a_foreign_memory,
    of_a_foreign_memory_that_changed, of_a_forgotten_foreign_memory, of_a_foreign_statement,
]  # fmt: skip


async def is_here(store: Primary) -> bool:
    return bool(await store.count(Reach("local", ("agent",)))) or bool(await store.triples("local", "agent"))


@pytest.mark.parametrize("by_another", [False, True], ids=["by the importer", "by another engine"])
@pytest.mark.parametrize("erasure", ERASURES)
def test_what_is_erased_while_an_import_runs_stays_erased(erasure: Any, by_another: bool, tmp_path: Path) -> None:
    # What is erased before all of them was erased before the import: to bring that back is what restoring is for.
    number, came = int(erasure is of_a_memory_that_is_restored), False
    while not came:
        clock = FakeClock()
        with open_subject(InMemory(clock), clock) as (subject, run):
            read, erase = run(erasure(subject, tmp_path))
            eraser = subject
            if by_another:
                eraser = Subject(run(Engine.open(subject.store, HashingEmbedder(), clock=clock)), subject.store, clock)
            before = Before(subject.store, number, lambda erase=erase, eraser=eraser: erase(eraser))
            run(read(subject))
            came = before.left >= 0  # the import makes no more calls than that
            if not came:
                assert not run(is_here(subject.store)), f"before call {number}"
                assert run(subject.engine.ledger.verify(WHO)).problem is None
        number += 1
    assert number > 1


@pytest.mark.parametrize("erasure", [of_a_memory, of_a_statement, of_a_foreign_statement])
def test_so_it_is_where_another_process_erases(erasure: Any, tmp_path: Path, clock: FakeClock) -> None:
    """Another store on the same file, before the one transaction in which the import writes."""
    with open_subject(SqliteStore(tmp_path / "memory.db", clock), clock) as (subject, run):
        read, erase = run(erasure(subject, tmp_path))
        other = SqliteStore(tmp_path / "memory.db", clock)
        with open_subject(other, clock) as (eraser, wait):
            transact = subject.store.transact
            done: list[Any] = []

            async def erased_first(tenant: str, work: Any) -> Any:
                if not done:
                    done.append(await asyncio.to_thread(wait, erase(eraser)))
                return await transact(tenant, work)

            subject.store.transact = erased_first  # type: ignore[method-assign]
            run(read(subject))
        assert done
        assert not run(is_here(subject.store))
