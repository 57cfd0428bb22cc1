from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from commonplace import plugins, sdk
from commonplace.remote import SyncRemoteMemory
from commonplace.sdk import Memory, SyncMemory
from commonplace.wire.errors import ValidationError


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite-vec"])
def test_the_same_store_named_twice_is_refused(tmp_path: Path, scheme: str) -> None:
    async def work() -> None:
        stores = [f"sqlite://{tmp_path}/one.db", f"{scheme}://{tmp_path}/one.db"]
        with pytest.raises(ValidationError, match="name the same store"):
            await Memory("assistant", stores=stores, embedder="none", data=tmp_path).remember("Alice likes tea")
        assert not (tmp_path / "one.db").exists()

    asyncio.run(work())


@pytest.mark.parametrize("named", [[""], ["sqlite://{0}/one.db", " "]])
def test_a_store_that_is_named_by_nothing_is_refused(tmp_path: Path, named: list[str]) -> None:
    with pytest.raises(ValidationError, match="one of the stores is named by an empty text"):
        Memory("assistant", stores=[url.format(tmp_path) for url in named], embedder="none", data=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_resync_leaves_what_a_store_had_of_its_own(tmp_path: Path) -> None:
    async def work() -> None:
        own = f"sqlite://{tmp_path}/own.db"
        async with Memory("assistant", stores=[own], embedder="none", data=tmp_path) as memory:
            precious = await memory.remember("Bob's own memory")
        stores = [f"sqlite://{tmp_path}/one.db", f"{own}?name=two"]
        async with Memory("assistant", stores=stores, embedder="none", data=tmp_path) as memory:
            await memory.remember("Alice likes tea")
            with pytest.raises(Exception, match="ledger of its own"):
                await memory.resync("two")
        async with Memory("assistant", stores=[own], embedder="none", data=tmp_path) as memory:
            assert (await memory.get(precious.id))["content"] == "Bob's own memory"

    asyncio.run(work())


def test_a_store_that_never_opens_is_waited_for_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sdk._OPENING_SECONDS == 30
    monkeypatch.setattr(sdk, "_OPENING_SECONDS", 0.01)
    ends = threading.Event()
    monkeypatch.setattr(plugins, "open_replica", lambda *_: ends.wait())

    async def work() -> None:
        stores = [f"sqlite://{tmp_path}/one.db", f"sqlite://{tmp_path}/two.db?name=two&timeout=0.05"]
        async with Memory("assistant", stores=stores, embedder="none", data=tmp_path) as memory:
            await memory.remember("Alice likes tea")
            found = await memory.recall("tea")
            assert [hit.content for hit in found] == ["Alice likes tea"]
            assert [(e.store, e.error) for e in found.errors or ()] == [("two", "it is still starting after 0.05 s")]

    try:
        asyncio.run(work())
    finally:
        ends.set()


def test_an_object_has_the_timeout_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "commonplace.toml").write_text("[routing]\ntimeout = 7\n", "utf-8")

    async def work() -> None:
        theirs = Memory("theirs", stores=["memory://"], embedder="none", data=tmp_path / "theirs")
        stores = [f"sqlite://{tmp_path}/one.db", theirs]
        async with theirs, Memory("assistant", stores=stores, embedder="none", data=tmp_path) as memory:
            assert [each.get("timeout") for each in await memory.stores()] == [None, 7]

    asyncio.run(work())


class Half:
    """A part of a `MemoryStore`."""

    async def remember(self, request: Any, /) -> Any: ...

    def recall(self, request: Any, /) -> Any: ...


def test_what_cannot_be_attached_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    def refusal(*others: Any) -> str:
        with pytest.raises(ValidationError) as refused:
            Memory("assistant", stores=[f"sqlite://{tmp_path}/one.db", *others], embedder="none", data=tmp_path)
        return str(refused.value.message)

    lacks = "Half is no MemoryStore: it lacks forget, merge, expire, health, capabilities and its recall is not async"
    assert refusal(Half()) == lacks
    assert refusal(None).startswith("NoneType is no MemoryStore: it lacks remember, recall, forget, merge, expire")
    assert refusal(Memory) == "Memory is a class: attach an object of it, such as Memory(…)"
    with SyncMemory("other", data=tmp_path / "other", embedder="none") as sync:
        assert refusal(sync).endswith("not async; attach a Memory in its place")
    with SyncRemoteMemory("http://127.0.0.1:9") as remote:
        assert refusal(remote).endswith("not async; attach a RemoteMemory in its place")


@pytest.mark.parametrize("copies", [[], ["sqlite://{0}/two.db"]], ids=["alone", "with a copy"])
@pytest.mark.parametrize("scheme", ["sqlite", "sqlite-vec"])
def test_a_first_store_of_a_user_without_a_home_folder_is_refused(
    tmp_path: Path, scheme: str, copies: list[str]
) -> None:
    async def work() -> None:
        stores = [f"{scheme}://~nobody-here/one.db", *(url.format(tmp_path) for url in copies)]
        with pytest.raises(ValidationError, match="there is no home folder of that user"):
            await Memory("assistant", stores=stores, embedder="none", data=tmp_path).remember("Alice likes tea")
        assert list(tmp_path.iterdir()) == []

    asyncio.run(work())


@pytest.mark.parametrize("place", ["first", "copy"])
@pytest.mark.parametrize("scheme", ["sqlite", "sqlite-vec"])
@pytest.mark.parametrize("half", [0xDCE9, 0xD800], ids=["a byte of a name", "half of a pair"])
def test_a_store_whose_url_is_no_text_is_refused(tmp_path: Path, half: int, scheme: str, place: str) -> None:
    """No copy could ever be made there."""

    async def work() -> None:
        named = [f"sqlite://{tmp_path}/one.db", f"{scheme}://{tmp_path}/caf{chr(half)}.db"]
        stores = named[::-1] if place == "first" else named
        with pytest.raises(ValidationError, match=r"the URL of the sqlite(-vec)?:// store is not UTF-8 text"):
            await Memory("assistant", stores=stores, embedder="none", data=tmp_path).remember("Alice likes tea")
        assert list(tmp_path.iterdir()) == []

    asyncio.run(work())


def test_another_text_in_an_object_is_told_with_what_makes_it_equal(tmp_path: Path) -> None:
    """No command can attach an object of a program."""

    async def work() -> None:
        settings: dict[str, Any] = {"embedder": "none", "data": tmp_path}
        theirs = Memory("assistant", stores=[f"sqlite://{tmp_path}/theirs.db"], **settings)
        async with theirs, Memory("assistant", stores=[f"sqlite://{tmp_path}/one.db", theirs], **settings) as memory:
            assert (await memory.remember("Alice drinks tea")).stores == ["sqlite", "memory"]
            (copied,) = (await theirs.list())["memories"]
            await theirs.update(copied["id"], content="Alice drinks milk")
            (told,) = (await memory.recall("Alice")).errors or ()
            assert told.error.endswith("; `await memory.resync('memory')` puts it right")

    asyncio.run(work())
