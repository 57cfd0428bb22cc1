from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import apsw
import pytest

from commonplace import Memory, RemoteMemory, SyncMemory, SyncRemoteMemory
from commonplace.embedders.hashing import open_embedder
from commonplace.interface import MemoryInterface
from commonplace.testing.subject import START, FakeClock
from commonplace.wire.errors import NotFound, RateLimited, Unavailable, ValidationError
from commonplace.wire.models import RememberResponse
from commonplace.wire.record import Principal

DAY = 86_400_000


def test_sync_memory_does_what_memory_does(tmp_path: Path) -> None:
    ours = {n for n, m in inspect.getmembers(Memory, inspect.iscoroutinefunction) if not n.startswith("_")}
    assert ours <= {n for n in dir(SyncMemory) if not n.startswith("_")}
    with SyncMemory("assistant", data=tmp_path, embedder=open_embedder("hashing")) as memory:
        kept = memory.remember("Alice is allergic to peanuts", user_id="alice")
        assert memory.recall("what is Alice allergic to?").results[0].id == kept.id
        assert memory.get(kept.id)["content"] == "Alice is allergic to peanuts"
        with pytest.raises(ValidationError):
            memory.remember("")


def test_the_hits_are_what_a_recall_iterates_over(tmp_path: Path) -> None:
    with SyncMemory("assistant", data=tmp_path, embedder=open_embedder("hashing")) as memory:
        nothing = memory.recall("tea")
        assert (list(nothing), len(nothing), bool(nothing)) == ([], 0, False)
        for text in ("Alice drinks green tea", "Bob drinks black tea"):
            memory.remember(text)
        found = memory.recall("who drinks green tea?")
        assert [hit.content for hit in found] == [hit.content for hit in found.results]
        assert len(found) == 2


AN_INSTANT = datetime(2026, 3, 1, 12, 30, 0, 250_000, tzinfo=timezone(timedelta(hours=2)))
MS = 1_772_361_000_250


def test_a_datetime_is_taken_wherever_a_time_is(tmp_path: Path) -> None:
    with SyncMemory("assistant", data=tmp_path, embedder="none", clock=lambda: MS) as memory:
        fields = {"metadata": {"event_time": AN_INSTANT, "seen": [AN_INSTANT]}, "expires_at": AN_INSTANT + timedelta(1)}
        kept = memory.remember("Alice drinks tea", **fields)
        (batched,) = memory.remember_batch([{"content": "Bob drinks tea", **fields}])
        assert isinstance(batched, RememberResponse)
        for id in (kept.id, batched.id):
            shown = memory.get(id, as_of=AN_INSTANT)
            assert (shown["metadata"], shown["expires_at"]) == ({"event_time": MS, "seen": [MS]}, MS + DAY)
        assert memory.update(kept.id, expires_at=AN_INSTANT + timedelta(2))["expires_at"] == MS + 2 * DAY
        assert len(memory.recall("tea", filter={"event_time": {"$gte": AN_INSTANT}}, as_of=AN_INSTANT)) == 2
        assert len(memory.list(filter={"event_time": {"$in": (AN_INSTANT,)}}, as_of=AN_INSTANT)["memories"]) == 2
        assert memory.graph_assert("Alice", "drinks", "tea", valid_from=AN_INSTANT)["valid_from"] == MS
        assert len(memory.graph_query("Alice", as_of=AN_INSTANT)["triples"]) == 1
        assert memory.graph_path("Alice", "tea", as_of=AN_INSTANT)["triples"]
        assert memory.audit(since=AN_INSTANT, until=AN_INSTANT)["entries"]
        local = AN_INSTANT.astimezone().replace(tzinfo=None)
        assert memory.update(kept.id, expires_at=local + timedelta(3))["expires_at"] == MS + 3 * DAY


def test_an_event_out_of_all_time_is_refused(tmp_path: Path) -> None:
    far = {"event_time": 99_999_999_999_999_999}
    with SyncMemory("assistant", data=tmp_path, embedder="none") as memory:
        kept = memory.remember("Alice drinks tea")
        for write in (
            lambda: memory.remember("Bob drinks tea", metadata=far),
            lambda: memory.update(kept.id, metadata=far),
        ):
            with pytest.raises(ValidationError, match="event_time must be milliseconds since 1970"):
                write()
        assert [each["content"] for each in memory.list()["memories"]] == ["Alice drinks tea"]


def test_after_close_it_says_so(tmp_path: Path) -> None:
    here = SyncMemory("assistant", data=tmp_path, embedder="none")
    there = SyncRemoteMemory("http://127.0.0.1:9")
    for memory in (here, there):
        memory.close()
        memory.close()
        with pytest.raises(Unavailable, match=f"this {type(memory).__name__} is closed; make another one"):
            memory.recall("tea")

    async def remote() -> None:
        memory = RemoteMemory("http://127.0.0.1:9")
        await memory.close()
        with pytest.raises(Unavailable, match=r"the connections to 127\.0\.0\.1 are closed; open them anew"):
            await memory.recall("tea")

    asyncio.run(remote())


def methods(kind: type) -> dict[str, Any]:
    found = inspect.getmembers(kind, inspect.isfunction)
    own = ("close", "run", "submit")
    return {name: method for name, method in found if not name.startswith("_") and name not in own}


@pytest.mark.parametrize("name", sorted(methods(MemoryInterface)))
def test_the_four_classes_have_the_same_methods_with_typed_and_documented_parameters(name: str) -> None:
    wanted = inspect.signature(getattr(MemoryInterface, name))
    for kind in (Memory, SyncMemory, RemoteMemory, SyncRemoteMemory):
        method = getattr(kind, name)
        assert inspect.signature(method) == wanted, kind
        assert inspect.getdoc(method) == inspect.getdoc(getattr(MemoryInterface, name)), kind
    for parameter in list(wanted.parameters.values())[1:]:
        assert parameter.kind is not parameter.VAR_KEYWORD
        assert parameter.annotation is not parameter.empty


def test_they_have_nothing_else() -> None:
    names = set(methods(MemoryInterface))
    assert set(methods(RemoteMemory)) == set(methods(SyncRemoteMemory)) == names
    assert set(methods(Memory)) == set(methods(SyncMemory)) == names | {"engine"}


@pytest.mark.parametrize("name", sorted(name for name in methods(MemoryInterface) if not name.startswith("would_")))
def test_its_example_is_true(name: str, tmp_path: Path) -> None:
    """As it stands in the documentation, at a prompt that takes `await`: `python -m asyncio`."""
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(getattr(MemoryInterface, name)) or "")
    assert examples

    async def show() -> None:
        async with Memory("assistant", data=tmp_path / "data", embedder=open_embedder("hashing")) as memory:
            kept = await memory.remember("Alice is allergic to peanuts", user_id="alice")
            names = {"memory": memory, "kept": kept, "folder": tmp_path}
            for example in examples:
                code = compile(example.source, name, "single", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    waiting = eval(code, names)
                    if inspect.isawaitable(waiting):
                        await waiting
                assert printed.getvalue() == example.want, example.source

    asyncio.run(show())


def test_an_unknown_keyword_is_refused_as_everywhere_in_python(tmp_path: Path) -> None:
    with SyncMemory(data=tmp_path, embedder="none") as memory, pytest.raises(TypeError, match="usr_id"):
        memory.remember("tea", usr_id="alice")  # type: ignore[call-arg]


def test_sync_memory_is_shared_between_threads(tmp_path: Path) -> None:
    with SyncMemory("assistant", data=tmp_path, embedder="none") as memory:
        workers = [
            threading.Thread(target=lambda n=n: [memory.remember(f"thread {n} note {i}") for i in range(10)])
            for n in range(6)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len({m["content"] for m in memory.list(limit=100)["memories"]}) == 60


def test_an_open_memory_can_be_closed_twice_and_used_again(tmp_path: Path) -> None:
    async def use() -> None:
        memory = Memory("assistant", data=tmp_path, embedder="none")
        await memory.remember("before")
        await memory.close()
        await memory.close()
        assert [m["content"] for m in (await memory.list())["memories"]] == ["before"]
        await memory.close()

    asyncio.run(use())


def test_a_query_is_never_written_down(tmp_path: Path) -> None:
    async def ask() -> Any:
        async with Memory("assistant", data=tmp_path, embedder=open_embedder("hashing")) as memory:
            await memory.remember("Bob keeps bees")
            await memory.recall("zanzibarian whereabouts of the beekeeper")
            await memory.flush()
            return await memory.audit(operation="recall")

    (entry,) = asyncio.run(ask())["entries"]
    assert entry["payload"][0]["results"] >= 0
    assert len(entry["payload"][0]["query_hash"]) == 64
    files = [f for f in tmp_path.rglob("*") if f.is_file()]
    assert files
    assert not any(b"zanzibarian" in f.read_bytes() for f in files)


def test_a_retention_promise_ends_in_erasure(tmp_path: Path) -> None:
    now = [1_800_000_000_000]

    async def use() -> None:
        memory = Memory("assistant", data=tmp_path, embedder="none", clock=lambda: now[0])
        kept = await memory.remember("the marmalade code is 4711", privacy_intent={"retain": 2})
        assert (await memory.get(kept.id))["expires_at"] == now[0] + 2 * DAY
        now[0] += 2 * DAY
        with pytest.raises(NotFound):
            await memory.get(kept.id)
        await memory.compact()
        await memory.close()

    asyncio.run(use())
    assert not any(b"marmalade" in f.read_bytes() for f in tmp_path.rglob("*") if f.is_file())


def test_the_store_keeps_the_embedder_that_made_its_vectors(tmp_path: Path) -> None:
    with SyncMemory(data=tmp_path, embedder="hashing-64") as memory:
        memory.remember("Alice plays the cello")
    with SyncMemory(data=tmp_path, embedder="hashing-128") as memory:
        assert memory.recall("cello").results
        assert "hashing-64" in memory.status()["note"]
        assert "reindex" in memory.status()["note"]
        assert memory.reindex()["reindexed"] == 1
        assert memory.status()["embedder"]["name"] == "hashing-128"
        assert memory.recall("who plays the cello?").results[0].content == "Alice plays the cello"


def test_recall_goes_on_while_reindexing_and_reindex_resumes(tmp_path: Path) -> None:
    class FailingEmbedder:
        """Stops after a while, as a killed process would."""

        name, dimension, left = "hashing-128", 128, 3

        def embed(self, texts: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise RuntimeError("killed")
            inner = open_embedder("hashing-128")
            assert inner is not None
            return inner.embed(texts)

    async def use() -> None:
        async with Memory(data=tmp_path, embedder=open_embedder("hashing-64")) as memory:
            await memory.remember_batch([f"note {i} about the garden" for i in range(300)])
            with pytest.raises(Unavailable, match="failed"):
                await memory.reindex(FailingEmbedder())
            assert (await memory.recall("note 7 about the garden", k=1)).results[0].content == "note 7 about the garden"
            seen: list[tuple[int, int]] = []
            outcome = await memory.reindex("hashing-128", progress=lambda done, total: seen.append((done, total)))
            assert outcome["resumed"]
            assert 0 < outcome["reindexed"] < 300
            assert seen[-1][0] == seen[-1][1]
            assert (await memory.status())["without_vectors"] == 0
            assert (await memory.recall("note 7 about the garden", k=1)).results[0].content == "note 7 about the garden"

    asyncio.run(use())


def test_the_doctor_notices_a_text_changed_behind_our_back(tmp_path: Path) -> None:
    with SyncMemory(data=tmp_path, embedder="none") as memory:
        kept = memory.remember("Bob owes Alice ten francs")
    db = apsw.Connection(str(tmp_path / "commonplace.db"))
    db.execute("UPDATE memories SET content = 'Bob owes Alice a thousand francs'")
    db.close()
    with SyncMemory(data=tmp_path, embedder="none") as memory:
        found = {f["check"]: f for f in memory.doctor()}
        assert not found["contents"]["ok"]
        assert kept.id in found["contents"]["detail"]


@pytest.mark.parametrize("kind", [Memory, SyncMemory, RemoteMemory])
@pytest.mark.parametrize("what", ["forget", "merge", "expire", "graph_erase"])
def test_previews_answer_to_their_first_names_too(kind: type, what: str) -> None:
    assert getattr(kind, f"would_{what}").__doc__ == getattr(kind, f"preview_{what}").__doc__


def test_the_budget_of_recalls_holds_without_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_RECALL_BUDGET", "1")
    with SyncMemory("assistant", data=tmp_path, embedder="none") as memory:
        memory.recall("tea")
        with pytest.raises(RateLimited, match="has used up its 1 recalls a minute"):
            memory.recall("tea")


def test_a_session_is_a_window_that_outlives_the_process_and_is_consolidated(tmp_path: Path) -> None:
    clock = FakeClock(START)

    async def opened() -> Memory:
        return Memory("assistant", data=tmp_path, embedder=open_embedder("hashing"), clock=clock)

    async def story() -> None:
        async with await opened() as memory:
            session = memory.session(user_id="alice")
            kept = await session.remember("Alice is allergic to peanuts", keep=True, metadata={"place": "kitchen"})
            await memory.session(user_id="bob").remember("Bob keeps bees")
            found = await session.recall("peanuts")
            assert [hit.id for hit in found.results] == [kept.id], "at once, and of this person only"
        async with await opened() as memory:  # as after a crash: what was acknowledged is there
            session = memory.session(session.session_id, user_id="alice")
            (note,) = (await session.window())["memories"]
            assert (note["id"], note["type"], note["metadata"]["place"]) == (kept.id, "episodic", "kitchen")
            clock.advance(600_000)
            engine = await memory.engine()
            assert (await engine.lifecycle.run(Principal(), "consolidate")).counts["promoted"] == 1
            assert (await session.window())["memories"] == []
            (promoted,) = (await session.recall("peanuts")).results
            assert (promoted.type, promoted.content) == ("semantic", "Alice is allergic to peanuts")

    asyncio.run(story())


def test_a_session_of_a_memory_that_waits_waits_too(tmp_path: Path) -> None:
    with SyncMemory("assistant", data=tmp_path, embedder="hashing") as memory:
        session = memory.session("s1")
        session.remember("tea")
        assert [note["content"] for note in session.window()["memories"]] == ["tea"]
        assert session.session_id == "s1"
