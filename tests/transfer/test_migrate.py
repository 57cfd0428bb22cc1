"""From one URL to another: what is said before, what is copied, and what is refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from commonplace import plugins
from commonplace.stores.copies import PrimaryCopy
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import FakeClock
from commonplace.transfer.fidelity import MEMORY_FIELDS
from commonplace.transfer.migrate import StoreMove, store_url
from commonplace.wire.errors import Fault, NotFound, ValidationError
from commonplace.wire.record import Memory


def test_a_folder_is_the_store_in_it(tmp_path: Path) -> None:
    assert store_url(str(tmp_path)) == f"sqlite://{tmp_path}/commonplace.db"
    assert store_url("memory://") == "memory://"


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no store at"):
        StoreMove(str(tmp_path / "nowhere"), str(tmp_path / "there"))
    assert list(tmp_path.iterdir()) == []


def test_both_ends_the_same(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="name the same store"):
        StoreMove(str(tmp_path), f"sqlite://{tmp_path}/commonplace.db")


@pytest.mark.parametrize("target", ["memory://", "sqlite://:memory:", "sqlite-vec://:memory:"])
def test_a_target_that_is_gone_with_the_command(empty_store: Path, target: str) -> None:
    with pytest.raises(ValidationError, match="is gone when the command ends"):
        StoreMove(str(empty_store), target)


@pytest.mark.parametrize("source", ["memory://", "sqlite://:memory:"])
def test_a_source_that_has_nothing(tmp_path: Path, source: str) -> None:
    with pytest.raises(NotFound, match="there is no store at"):
        StoreMove(source, str(tmp_path / "there"))


def test_a_scheme_that_nobody_offers(tmp_path: Path, empty_store: Path) -> None:
    async def work() -> None:
        move = StoreMove(str(empty_store), "abacus://x", clock=FakeClock())
        try:
            await move.report()
        finally:
            await move.close()

    with pytest.raises(Fault, match="there is no store for abacus://"):
        asyncio.run(work())


@pytest.mark.parametrize("scheme", sorted(plugins.COPY_SCHEMES))
def test_a_store_that_keeps_copies_is_neither_end(tmp_path: Path, empty_store: Path, scheme: str) -> None:
    url = f"{scheme}://somewhere"
    with pytest.raises(ValidationError) as to:
        StoreMove(str(empty_store), url)
    assert to.value.message.startswith("a migration goes from one primary to another (sqlite://, sqlite-vec://,")
    assert f"{scheme}:// keeps copies" in to.value.message
    assert "name it as a further --store and run `commonplace stores resync NAME`" in to.value.message
    with pytest.raises(ValidationError, match="goes from one primary to another") as begun:
        StoreMove(url, str(tmp_path / "there"))
    assert "--from names the primary" in begun.value.message


def test_a_package_that_offers_a_store_for_copies_is_told_the_same(
    tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "_installed", lambda scheme: lambda url, clock: PrimaryCopy(InMemory(clock)))

    async def work() -> None:
        move = StoreMove(str(empty_store), "abacus://x", clock=FakeClock())
        try:
            await move.report()
        finally:
            await move.close()

    with pytest.raises(ValidationError, match=r"abacus:// keeps copies"):
        asyncio.run(work())


def test_every_other_scheme_of_ours_is_a_primary() -> None:
    others = set(plugins.BUILT_IN) - plugins.COPY_SCHEMES
    assert others == {"sqlite", "sqlite-vec", "postgresql", "postgres", "pgvector", "memory"}


def test_what_will_be_kept_is_said_before_anything_is_made(tmp_path: Path, empty_store: Path) -> None:
    async def work() -> Any:
        move = StoreMove(str(empty_store), str(tmp_path / "there"), clock=FakeClock())
        try:
            return await move.report()
        finally:
            await move.close()

    report = asyncio.run(work())
    assert {row["kept"] for row in report.fidelity} >= {"the same", "not carried"}
    assert all(row["what"] for row in report.fidelity)
    said = Counter(name for row in report.fidelity for name in row["what"].split(", "))
    assert {field.name: said[field.name] for field in fields(Memory)} == {field.name: 1 for field in fields(Memory)}
    assert not (tmp_path / "there").exists()


def test_the_report_names_every_field_of_a_memory_once() -> None:
    named = [name for names in MEMORY_FIELDS for name in names]
    assert sorted(named) == sorted(field.name for field in fields(Memory))
