"""From one URL to another: what is said before, what is copied, and what is refused."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from commonplace import plugins
from commonplace.stores.copies import PrimaryCopy
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, open_subject
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


def _refusal(source: Path | str, target: str, *, dry_run: bool) -> Fault | None:
    """Why the command would end: a dry run reports, and the run copies after the same report."""

    async def work() -> None:
        move = StoreMove(str(source), target, clock=FakeClock())
        try:
            report = await move.report()
            if not dry_run:
                await move.run(WHO, report)
        finally:
            await move.close()

    try:
        asyncio.run(work())
    except Fault as fault:
        return fault
    return None


#: What is named as the target, in a folder that has these in it, and what is said of it.
REFUSED = {
    "sqlite://": "names no file",
    "sqlite-vec://": "names no file",
    "sqlite://:memory:": "is gone when the command ends",
    "memory://": "is gone when the command ends",
    "{}/file/there": "{}/file is not a folder",
    "{}/file": "is not an SQLite database",
    "sqlite://{}/file/x/y.db": "{}/file is not a folder",
    "sqlite-vec://{}/file/y.db": "{}/file is not a folder",
    "sqlite://{}/file": "is not an SQLite database",
    "sqlite://{}": "is a folder",
    "sqlite://{}/x.db?cache=1": "'cache' is no setting of sqlite://",
    "{}/full": "the target is not empty",
    "{}/full/commonplace.db": "the target is not empty",
    "{}/source": "name the same store",
    "{}/link": "name the same store",
    "{}/hard.db": "name the same store",
    "{}/full/../source": "name the same store",
    "sqlite-vec://{}/link/commonplace.db": "name the same store",
    "sqlite:///{}/source/commonplace.db": "name the same store",
    "sqlite://{}/hard.db": "name the same store",
    "abacus://x": "there is no store for abacus://",
    "mem0://x": "keeps copies",
    "sqlite:x": "is not a store URL",
    "host=127.0.0.1 password=hunter22 dbname=x": "is not a store URL",
    "": "names no store",
    " ": "names no store",
}


@pytest.mark.parametrize("target", REFUSED)
def test_a_dry_run_refuses_what_the_run_refuses(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_text("no folder")
    for name in ("source", "full"):
        clock = FakeClock()
        with open_subject(SqliteStore(tmp_path / name / "commonplace.db", clock), clock) as (subject, run):
            run(subject.remember("Alice drinks tea"))
    (tmp_path / "link").symlink_to(tmp_path / "source")
    (tmp_path / "hard.db").hardlink_to(tmp_path / "source" / "commonplace.db")
    before = sorted(tmp_path.iterdir())
    said = []
    for dry_run in (True, False):
        fault = _refusal(tmp_path / "source", target.format(tmp_path), dry_run=dry_run)
        assert fault is not None, dry_run
        assert REFUSED[target].format(tmp_path) in fault.message
        assert "hunter22" not in fault.message
        said.append((type(fault), fault.message))
    assert said[0] == said[1]
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder here takes no file from anybody")
@pytest.mark.parametrize("target", ["sqlite:///proc/x.db", "/proc/x", "sqlite-vec:///proc/x/y/z.db"])
def test_a_folder_that_takes_no_file_is_refused_by_both(empty_store: Path, target: str) -> None:
    """Root may write there by its rights, and yet cannot."""
    said = [_refusal(empty_store, target, dry_run=dry_run) for dry_run in (True, False)]
    assert all(fault is not None and "/proc cannot be written" in fault.message for fault in said), said


def test_a_dry_run_tries_a_folder_and_leaves_it_as_it_was(tmp_path: Path, empty_store: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    for target in ("new", "new/within/it"):
        assert _refusal(empty_store, str(tmp_path / target), dry_run=True) is None
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_refused_by_both(tmp_path: Path, empty_store: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    for target in ("closed", "closed/within"):
        said = [_refusal(empty_store, str(tmp_path / target), dry_run=dry_run) for dry_run in (True, False)]
        assert all(fault is not None and "cannot be written" in fault.message for fault in said)


@pytest.mark.parametrize("source", ["", "sqlite://", "{}/nowhere", "{}/file", "sqlite://{}/file", "sqlite://{}/empty"])
def test_a_source_that_is_none_is_refused_by_both(tmp_path: Path, source: str) -> None:
    (tmp_path / "file").write_text("no store")
    (tmp_path / "empty").touch()
    said = []
    for dry_run in (True, False):
        fault = _refusal(source.format(tmp_path), str(tmp_path / "there"), dry_run=dry_run)
        assert fault is not None
        said.append(fault.message)
    assert said[0] == said[1]
    assert not (tmp_path / "there").exists()
    assert (tmp_path / "empty").read_bytes() == b""


def test_a_dry_run_leaves_an_empty_file_empty(tmp_path: Path, empty_store: Path) -> None:
    (tmp_path / "new.db").touch()
    assert _refusal(empty_store, f"sqlite://{tmp_path}/new.db", dry_run=True) is None
    assert (tmp_path / "new.db").read_bytes() == b""
    assert _refusal(empty_store, f"sqlite://{tmp_path}/new.db", dry_run=False) is None
    assert (tmp_path / "new.db").read_bytes() != b""


def test_the_file_of_a_store_names_it_as_its_folder_does(
    tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(empty_store)
    (tmp_path / "new.db").touch()
    for given in ("commonplace.db", "./commonplace.db", str(empty_store / "commonplace.db")):
        assert store_url(given) == store_url(str(empty_store)) == f"sqlite://{empty_store}/commonplace.db"
    assert _refusal(empty_store / "commonplace.db", f"{tmp_path}/new.db", dry_run=False) is None
    assert (tmp_path / "new.db").stat().st_size > 0


@pytest.mark.parametrize("given", ["~nobody-of-this-name/x", "x" * 5000])
@pytest.mark.parametrize("option", ["from", "to"])
def test_what_no_path_can_be_is_refused_in_words(option: str, given: str) -> None:
    with pytest.raises(ValidationError, match=f"--{option} names no store: ") as refused:
        store_url(given, option)
    assert refused.value.details["field"] == option


@pytest.mark.parametrize("option", ["from", "to"])
def test_an_export_is_no_damaged_store(tmp_path: Path, option: str) -> None:
    file = tmp_path / "everything.jsonl"
    file.write_text('{"format":"commonplace-export","record":"header","scope":{},"version":1}\n', "utf-8")
    with pytest.raises(ValidationError, match=f"--{option} names no store: .* is an export; `commonplace import`"):
        store_url(str(file), option)


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
