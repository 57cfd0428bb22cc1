"""Stores that a third party's package offers by entry points: a primary, anyone's MemoryStore, and mistakes."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from commonplace import Memory, plugins
from commonplace.cli import main
from commonplace.config import RoutingConfig
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.base import Primary, StoreSettings
from commonplace.stores.foreign import ForeignStore
from commonplace.stores.memory import InMemory
from commonplace.testing import FakeClock
from commonplace.wire.errors import Unavailable, ValidationError

PACKAGE = '''
from commonplace.stores.copies import PrimaryCopy
from commonplace.stores.memory import InMemory


class Paper:
    """The paper's five operations over a memory of its own."""

    capabilities = {"semantic", "episodic", "procedural", "emotional"}
    closed = []

    def __init__(self, url):
        from commonplace import Memory

        self._memory = Memory("theirs", stores=["sqlite://" + url.partition("://")[2]], embedder="hashing")

    async def remember(self, request):
        return await self._memory.remember(request)

    async def recall(self, request):
        return await self._memory.recall(request)

    async def forget(self, request):
        return await self._memory.forget(request)

    async def merge(self, request):
        return await self._memory.merge(request)

    async def expire(self, request):
        return await self._memory.expire(request)

    async def health(self):
        return {"status": "ok"}

    async def close(self):
        self.closed.append(self)
        await self._memory.close()


def open_primary(url, clock, settings):
    assert settings.index_mb
    return InMemory(clock)


given = []


def open_asking(url, clock, settings):
    given.append((url, settings))
    return InMemory(clock)


def open_paper(url, clock):
    return Paper(url)


class Blind(PrimaryCopy):
    async def search(self, search):
        return []


def open_blind(url, clock):
    return Blind(InMemory(clock))


def open_refusing(url, clock):
    raise ConnectionError(f"cannot log in by {url}")


def open_nothing(url, clock):
    return 7


def open_narrow(url):
    return Paper(url)
'''
SCHEMES = ("primary", "asking", "paper", "blind", "refusing", "nothing", "narrow")


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real installed distribution, as pip would leave it on the path."""
    (tmp_path / "their_stores.py").write_text(PACKAGE)
    info = tmp_path / "their_stores-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-stores\nVersion: 1.0\n")
    points = [f"{scheme} = their_stores:open_{scheme}" for scheme in SCHEMES] + ["missing = not_there:open_url"]
    (info / "entry_points.txt").write_text("\n".join(["[commonplace.stores]", *points, ""]))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_stores", raising=False)  # of the test before, whose folder is gone


def test_a_primary_is_given_the_settings() -> None:
    store = plugins.open_store("primary://x", FakeClock(), StoreSettings())
    assert isinstance(store, Primary)
    assert isinstance(store, InMemory)


def test_what_is_configured_reaches_a_replica(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no product that needs it is here to be tested with."""
    monkeypatch.setenv("COMMONPLACE_INDEX_MB", "7")
    urls = [f"sqlite://{tmp_path}/m.db", "asking://host/one?name=one&own=1&timeout=3", "asking://host/two?weight=2"]

    async def work() -> list[str]:
        async with Memory("agent", stores=urls, data=tmp_path / "data", embedder="hashing") as memory:
            return (await memory.remember("Alice keeps bees")).stores

    assert asyncio.run(work()) == ["sqlite", "one", "asking"]
    import their_stores

    (one, its), (two, theirs) = sorted(their_stores.given)
    assert (one, two) == ("asking://host/one?own=1", "asking://host/two")
    for settings in (its, theirs):
        assert (settings.index_mb, settings.folder) == (7, tmp_path / "data")
        assert settings.embed(["bees"]).shape == (1, HashingEmbedder().dimension)
    assert (its.timeout, theirs.timeout) == (3.0, RoutingConfig().timeout)


def test_anyones_memory_store_keeps_copies_and_is_closed(tmp_path: Path) -> None:
    async def work() -> Any:
        stores = [f"sqlite://{tmp_path}/m.db", f"paper://{tmp_path}/copies.db"]
        async with Memory("agent", stores=stores, embedder="hashing") as memory:
            done = await memory.remember("Alice keeps bees")
            found = await memory.recall("bees", explain=True)
            gone = await memory.forget(ids=[done.id], hard_delete=True)
            return done, found, gone

    done, found, gone = asyncio.run(work())
    assert done.stores == ["sqlite", "paper"]
    assert sorted(found.stores_queried) == ["paper", "sqlite"]
    assert {each.store: each.count for each in gone.stores} == {"sqlite": 1, "paper": 1}
    import their_stores

    assert len(their_stores.Paper.closed) == 1


def test_it_is_a_replica_by_name() -> None:
    store = plugins.open_replica("paper://:memory:", FakeClock())
    assert isinstance(store, ForeignStore)
    assert store.name == "paper"
    with pytest.raises(ValidationError, match="keeps copies and cannot be the first store"):
        plugins.open_store("paper://:memory:", FakeClock())


@pytest.mark.parametrize(
    ("scheme", "says"),
    [
        ("refusing", "the package that offers refusing:// failed: ConnectionError at "),
        ("nothing", "the package that offers nothing:// opened an int, which is no store"),
        ("missing", "the package that offers missing:// cannot be imported"),
        ("narrow", "the package that offers narrow:// does not take (url, clock) nor (url, clock, settings)"),
    ],
)
def test_a_mistake_of_the_package_is_said_to_be_that(
    scheme: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"{scheme}://alice:hunter22@x"
    for opened in (plugins.open_store, plugins.open_replica):
        with pytest.raises(Unavailable) as refused:
            opened(url, FakeClock())
        assert says in refused.value.message
        assert "hunter22" not in refused.value.message
    monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "none")
    assert main(["conformance", "--store", url]) == 2
    assert says in capsys.readouterr().err
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{tmp_path}/m.db {url}")
    assert main(["remember", "kept all the same"]) == (2 if scheme in ("missing", "narrow") else 0)
    said = capsys.readouterr()
    assert "bug in Commonplace" not in said.err
    assert "hunter22" not in said.err


def test_conformance_on_anyones_memory_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
    assert main(["conformance", "--store", f"paper://{tmp_path}/copies.db"]) == 0
    said = capsys.readouterr()
    assert said.out.count("\tpass\t") == 16
    assert "16 of 16 scenarios pass" in said.out + said.err


def test_conformance_on_a_store_that_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
    assert main(["conformance", "--store", "blind://x", "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["failed"] == sum(each["result"] == "fail" for each in found["scenarios"]) > 0
    assert found["passed"] + found["failed"] == 16
