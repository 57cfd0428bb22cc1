"""A store keeps its name, and what waits under it, wherever its URL stands among others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from attached_copies import LEFT_OUT_SAID, files_with_the_text, open_beside, remember, said_of_the_copy
from replica_house import run

from commonplace.config import Config
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Draft, Engine, Forget
from commonplace.engine.core import SYSTEM
from commonplace.engine.outbox.deliveries import agents_of, kind_of, settle
from commonplace.engine.outbox.resync_notices import STORE_NAME
from commonplace.engine.outbox.store_names import RENAMED_MS, WantedName, assign_names, choose_names, known_names
from commonplace.engine_factory import attachments, open_engine, store_address, wanted_name
from commonplace.stores.base import Record, StoreSettings, Transaction
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.urls import parse_store_url, store_key
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Conflict, NotFound, ValidationError
from commonplace.wire.validate import check

A, B, C = (WantedName(address, "sqlite") for address in "abc")


@pytest.mark.parametrize(
    ("wanted", "known", "waiting", "names"),
    [
        ([A, B], {}, set(), ["sqlite-2", "sqlite-3"]),
        ([B, A], {"sqlite-2": "a", "sqlite-3": "b"}, set(), ["sqlite-3", "sqlite-2"]),
        ([B], {"sqlite-2": "a", "sqlite-3": "b"}, set(), ["sqlite-3"]),
        ([C, B], {"sqlite-2": "a", "sqlite-3": "b"}, {"sqlite-2"}, ["sqlite-4", "sqlite-3"]),
        ([C, B], {"sqlite-2": "a", "sqlite-3": "b"}, set(), ["sqlite-4", "sqlite-3"]),
        # a name that was given wins, and one that is no longer given stays with its store
        ([A, WantedName("b", "sqlite", "sqlite-2")], {"sqlite-2": "a"}, {"sqlite-2"}, ["sqlite-3", "sqlite-2"]),
        ([A], {"spare": "a"}, set(), ["spare"]),
        ([A], {"spare": "a", "sqlite-2": "a"}, {"sqlite-2"}, ["sqlite-2"]),
        ([A, A], {"sqlite-2": "a"}, set(), ["sqlite-2", "sqlite-3"]),
        # objects of a program have none that could be remembered
        ([WantedName("", "theirs"), WantedName("", "theirs")], {"x": ""}, set(), ["theirs", "theirs-2"]),
        ([WantedName("", "sqlite")], {"sqlite-2": "a"}, set(), ["sqlite-3"]),
    ],
)
def test_names(wanted: Any, known: Any, waiting: Any, names: Any) -> None:
    assert choose_names(wanted, "sqlite", known, waiting) == names


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["spare", "spare"], "two stores are named spare"),
        (["spare", None, "spare"], "two stores are named spare"),
        (["sqlite"], "sqlite is the name of the first store"),
        ([None, "sqlite"], "sqlite is the name of the first store"),
    ],
)
def test_a_given_name_that_another_has_is_refused_and_not_changed(given: Any, said: str) -> None:
    """By the place among others it would be another store's after the next change of the URLs."""
    wanted = [WantedName(f"{n}", "sqlite", name) for n, name in enumerate(given)]
    with pytest.raises(ValidationError, match=f"{said}.*another name=") as refused:
        choose_names(wanted, "sqlite", {}, set())
    assert refused.value.details["field"] == "stores"


@pytest.mark.parametrize("urls", [("a.db?name=x", "b.db?name=x"), ("a.db?name=sqlite",)])
@run
async def test_the_start_is_refused_and_nothing_is_copied(tmp_path: Path, urls: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match="another name="):
        await open_beside(tmp_path, FakeClock(), *urls)
    assert {path.name for path in tmp_path.iterdir()} & {"a.db", "b.db"} == set()
    await (await open_beside(tmp_path, FakeClock(), "a.db?name=x", "b.db?name=y")).close()


class Theirs:
    """An object of a program, which is never asked anything here."""

    def __init__(self, name: Any) -> None:
        self.name = name


def _attached(*names: Any) -> list[str]:
    objects: Any = [Theirs(name) for name in names]
    return [each.name for each in attachments("sqlite", ["spare"], [_SPARE], objects, FakeClock(), StoreSettings())]


_SPARE = parse_store_url("sqlite://./spare.db")


def test_an_object_has_the_name_that_it_says_or_one_of_its_kind() -> None:
    assert _attached("notes", None, "", None) == ["spare", "notes", "theirs", "theirs-2", "theirs-3"]


@pytest.mark.parametrize(
    "wrong", ["a\nb", "\x1b[31mred", "a/../b", "x" * 65, ".hidden", "two words", "name\n", 7, "notes@home"]
)
def test_the_name_of_an_object_is_held_to_what_one_in_a_url_is(wrong: Any) -> None:
    with pytest.raises(ValidationError, match="the name of an attached Theirs must be letters") as refused:
        _attached(wrong)
    assert str(wrong) not in refused.value.summary
    with pytest.raises(ValidationError, match="must be letters"):
        parse_store_url(f"sqlite://./a.db?name={quote(str(wrong))}") if wrong != 7 else _attached(wrong)


@pytest.mark.parametrize(
    ("names", "said"),
    [(["notes", "notes"], "two stores are named notes"), (["spare"], "two stores are named spare"),
     (["sqlite"], "sqlite is the name of the first store")],
)  # fmt: skip
def test_the_name_of_an_object_that_another_has_is_refused(names: list[str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        _attached(*names)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("sqlite://./a.db", "sqlite://./b.db", False),
        ("sqlite://./a.db?name=x&timeout=3", "sqlite://./a.db", True),
        ("sqlite:///srv/x@y/a.db", "sqlite:///srv/z@y/a.db", False),
        ("postgresql://alice:old@db/m", "postgresql://alice:new@db/m", True),
        ("postgresql://alice:pw@db/m", "postgresql://alice:pw@db/n", False),
        ("postgresql://alice:pw@db/m?password=x", "postgresql://alice:pw@db/m?password=y", True),
        ("postgresql://db/m?host=a", "postgresql://db/m?host=b", False),
        ("memorywire+https://h?token_env=A", "memorywire+https://h?token_env=B", True),
        ("letta://h/notes?model=a", "letta://h/notes?model=b", True),
        ("letta://h/notes", "letta://h/other", False),
    ],
)
def test_an_address_is_without_what_is_secret_and_what_may_change(one: str, other: str, same: bool) -> None:
    keys = [store_address(parse_store_url(url)) for url in (one, other)]
    assert (keys[0] == keys[1]) is same


async def _erased_while_b_is_away(folder: Path, clock: FakeClock, *urls: str) -> None:
    """Of two copies the first has an erasure, and the other is to have it."""
    engine = await open_beside(folder, clock, *urls)
    id = (await engine.remember(WHO, Draft("agent", "semantic", "PINCODE-ZEBRA opens the safe"))).id
    await engine.close()
    (folder / "b").rename(folder / "b.away")
    (folder / "b").write_text("")
    engine = await open_beside(folder, clock, *urls)
    await engine.forget(WHO, Forget("agent", [id], hard_delete=True))
    await engine.close()
    (folder / "b").unlink()
    (folder / "b.away").rename(folder / "b")
    clock.advance(600_000)


async def _erasure_of_b_discarded(folder: Path) -> FakeClock:
    (folder / "b").mkdir()
    clock = FakeClock()
    await _erased_while_b_is_away(folder, clock, "b/b.db")
    engine = await open_beside(folder, clock)
    await engine.stores.discard(WHO, "sqlite-2")
    await engine.close()
    return clock


@pytest.mark.parametrize("after", [["b/b.db", "a.db"], ["b/b.db"], ["c.db", "b/b.db"]])
@run
async def test_an_erasure_reaches_its_store_wherever_that_is_named(tmp_path: Path, after: list[str]) -> None:
    (tmp_path / "b").mkdir()
    clock = FakeClock()
    await _erased_while_b_is_away(tmp_path, clock, "a.db", "b/b.db")
    assert files_with_the_text(tmp_path)
    engine = await open_beside(tmp_path, clock, *after)
    await engine._core.outbox.run_due()
    waiting = {each["name"]: each["waiting"] for each in await engine.stores.list(WHO)}
    await engine.close()
    assert waiting["sqlite-3"] == 0
    assert files_with_the_text(tmp_path) == []


@pytest.mark.parametrize(
    "after",
    ["b/b.db?name=spare", "b/../b/b.db", "link/b.db", "b/link.db"],
    ids=["a name", "a detour", "a linked folder", "a link"],
)
@run
async def test_an_erasure_reaches_its_store_under_another_name_and_by_another_path(tmp_path: Path, after: str) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "link").symlink_to("b")
    clock = FakeClock()
    await _erased_while_b_is_away(tmp_path, clock, "b/b.db")
    (tmp_path / "b" / "link.db").symlink_to("b.db")
    engine = await open_beside(tmp_path, clock, after)
    with pytest.raises(NotFound if "name=" in after else Conflict):
        await engine.stores.discard(WHO, "sqlite-2")  # which is the store that is attached
    await engine._core.outbox.run_due()
    waiting = {each["name"]: each["waiting"] for each in await engine.stores.list(WHO)}
    await engine.close()
    assert waiting == {"sqlite": 0, ("spare" if "name=" in after else "sqlite-2"): 0}
    assert files_with_the_text(tmp_path) == []


@run
async def test_a_notice_goes_along_with_the_store_to_its_new_name(tmp_path: Path) -> None:
    clock = await _erasure_of_b_discarded(tmp_path)
    engine = await open_beside(tmp_path, clock, "b/b.db?name=spare")
    assert "what waited for it was discarded" in (await engine.stores.list(WHO))[1]["last_error"]
    assert (await engine.stores.resync(WHO, "spare"))["equal"]
    await engine.close()
    assert files_with_the_text(tmp_path) == []


@pytest.mark.parametrize("other", ["c.db", "c.db?name=sqlite-2"], ids=["of itself", "given"])
@run
async def test_a_notice_is_not_lost_to_a_store_that_would_have_its_name(tmp_path: Path, other: str) -> None:
    """The one that still has what was erased is attached again, and nobody would be told."""
    clock = await _erasure_of_b_discarded(tmp_path)
    engine = await open_beside(tmp_path, clock, other)
    said = (await engine.stores.list(WHO))[1].get("last_error", "")
    assert ("may still have copies of what was erased" in said) is ("name=" in other)
    await engine.close()
    if "name=" not in other:
        engine = await open_beside(tmp_path, clock, other, "b/b.db")
        said = [each.get("last_error", "") for each in await engine.stores.list(WHO)]
        assert ["what waited for it was discarded" in each for each in said] == [False, False, True]
        await engine.close()


@run
async def test_what_waits_under_two_names_of_a_store_is_told_as_either_has_it() -> None:
    """A copy may be left under the agent of the one, and a write of the other may still arrive."""
    clock = FakeClock()
    primary, now = InMemory(clock), clock()

    def work(tx: Transaction) -> None:
        for store, agent, owner in (("old", "alice", "before"), ("new", "bob", None)):
            value = {"agent": agent, "seq": 3, "at": now, "attempts": 0, "due": now, "owner": owner, "until": now + 500}
            tx.put_record(Record(kind_of(store), "m", value))

    await primary.transact("local", work)
    await primary.transact(SYSTEM, lambda tx: tx.put_record(Record(STORE_NAME, "old", {"address": "a", "at": now})))
    assert await assign_names(primary, [WantedName("a", "sqlite", "new")], clock) == ["new"]
    assert await primary.records("local", kind_of("old")) == []
    (record,) = await primary.records("local", kind_of("new"))
    assert agents_of(record.value) == ["bob", "alice"]
    settled = await primary.transact("local", lambda tx: settle(tx, "new", {"m": (3, 0)}, now))
    assert settled == ["m"], "by a delivery that began before"
    assert record.value["doubt"] == now + 500


@pytest.mark.parametrize("is_empty", [False, True], ids=["gone", "empty"])
@pytest.mark.parametrize("more", [0, 1], ids=["the last memory", "one of two"])
@run
async def test_a_copy_whose_file_is_gone_is_begun_anew_and_said_to_lack_what_it_had(
    tmp_path: Path, more: int, is_empty: bool
) -> None:
    """Such as one on a disk that is not mounted: the erasure was delivered to the new file, and nothing showed it."""
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock, "b.db")
    id = (await engine.remember(WHO, Draft("agent", "semantic", "PINCODE-ZEBRA opens the safe"))).id
    for _ in range(more):
        await engine.remember(WHO, Draft("agent", "semantic", "Bob likes tea"))
    await engine.close()
    (tmp_path / "b.db").rename(tmp_path / "b.away")
    if is_empty:
        (tmp_path / "b.db").touch()
    for opened in range(2):
        engine = await open_beside(tmp_path, clock, "b.db")
        said = (await engine.stores.list(WHO))[1].get("last_error", "")
        assert "its file or folder was gone or empty, and was begun anew" in said
        assert "run `commonplace stores resync sqlite-2`" in said
        assert not (await engine.stores.examine())[0].ok
        if not opened:
            await engine.forget(WHO, Forget("agent", [id], hard_delete=True))
        await engine.close()
    for beside in tmp_path.glob("b.db*"):
        beside.unlink()
    (tmp_path / "b.away").rename(tmp_path / "b.db")
    engine = await open_beside(tmp_path, clock, "b.db")
    assert "may have copies of what was erased" in (await engine.stores.list(WHO))[1].get("last_error", "")
    assert (await engine.stores.resync(WHO, "sqlite-2"))["equal"]
    assert "last_error" not in (await engine.stores.list(WHO))[1]
    await engine.close()
    assert files_with_the_text(tmp_path) == []


@pytest.mark.parametrize(
    ("url", "created"),
    [
        ("sqlite://{0}/new.db", True),
        ("sqlite-vec://{0}/not/there/new.db", True),
        ("sqlite://{0}/file", False),
        ("sqlite://{0}/no-bytes", True),
        ("sqlite://{0}/empty", False),  # a folder, which is no file
        ("sqlite://{0}/file/new.db", False),  # no folder can be made there
        ("sqlite://:memory:", False),
        ("mem0://{0}/not/there", True),
        ("mem0://{0}/empty", True),  # where a disk would be mounted
        ("cognee://{0}/full", False),
        ("mem0://full", False),
        ("mem0://other", True),
        ("mem0+postgresql://alice@db/m", False),
        ("memorywire+http://127.0.0.1:9", False),
    ],
)
def test_what_is_not_there_is_created_by_opening_it(tmp_path: Path, url: str, created: bool) -> None:
    (tmp_path / "file").write_text("SQLite")
    (tmp_path / "no-bytes").touch()
    for folder in ("empty", "full", "mem0/full"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("full", "mem0/full"):
        (tmp_path / folder / "meta.json").write_text("{}")
    assert wanted_name(parse_store_url(url.format(tmp_path)), tmp_path).is_created_on_open is created


@pytest.mark.parametrize("after", ["b/b.db", "b/b.db?name=spare"])
@run
async def test_what_a_process_records_under_a_name_that_another_has_changed_reaches_the_store(
    tmp_path: Path, after: str
) -> None:
    """Such as a command with name= beside a server without it: nobody would look under the former name any more."""
    (tmp_path / "b").mkdir()
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock, "b/b.db")
    id = (await engine.remember(WHO, Draft("agent", "semantic", "PINCODE-ZEBRA opens the safe"))).id
    await engine.close()
    (tmp_path / "b").rename(tmp_path / "b.away")
    (tmp_path / "b").write_text("")
    server = await open_beside(tmp_path, clock, "b/b.db")
    await (await open_beside(tmp_path, clock, "b/b.db?name=spare")).close()
    await server.forget(WHO, Forget("agent", [id], hard_delete=True))
    await server.close()
    (tmp_path / "b").unlink()
    (tmp_path / "b.away").rename(tmp_path / "b")
    clock.advance(600_000)
    engine = await open_beside(tmp_path, clock, after)
    await engine._core.outbox.run_due()
    listed = await engine.stores.list(WHO)
    await engine.close()
    assert [(each["waiting"], each.get("last_error")) for each in listed] == [(0, None), (0, None)]
    assert files_with_the_text(tmp_path) == []


@run
async def test_a_former_name_is_kept_for_a_while_and_is_no_other_store(tmp_path: Path) -> None:
    clock = FakeClock()

    async def names(url: str) -> tuple[list[str], list[str]]:
        engine = await open_beside(tmp_path, clock, url)
        assert "last_error" not in (await engine.stores.list(WHO))[1]
        await engine.remember(WHO, Draft("agent", "semantic", "tea"))  # which every store is told
        primary = engine._core.primary
        all_of_them = [record.key for record in await primary.records(SYSTEM, STORE_NAME)]
        known = await known_names(primary)
        await engine.close()
        return all_of_them, known

    assert await names("b.db?name=one") == (["one"], ["one"])
    assert await names("b.db?name=two") == (["one", "two"], ["two"])
    assert await names("b.db?name=one") == (["one", "two"], ["one"])
    clock.advance(RENAMED_MS + 1_000)
    assert await names("b.db?name=one") == (["one"], ["one"])


@pytest.mark.parametrize("filled", [True, False])
@run
async def test_an_object_is_known_by_its_name(tmp_path: Path, filled: bool) -> None:
    engine = await open_beside(tmp_path, FakeClock())
    if filled:
        await engine.remember(WHO, Draft("agent", "semantic", "tea"))
    await engine.close()
    config = Config(data=tmp_path, store=f"sqlite://{tmp_path}/primary.db")
    for _ in range(2):
        others: Any = [Theirs("notes")]
        engine = await open_engine(config, embedder=HashingEmbedder(), clock=FakeClock(), others=others)
        shown = (await engine.stores.list(WHO))[1]
        assert shown["name"] == "notes"
        assert ("never resynced" in shown.get("last_error", "")) is filled
        assert shown["error"] in shown.get("last_error", shown["error"]), "why it fails is not hidden by it"
        await engine.remember(WHO, Draft("agent", "semantic", "milk"))
        await engine.close()


@run
async def test_what_an_earlier_version_remembered_of_an_address_is_known_again(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    clock = FakeClock()
    await _erased_while_b_is_away(tmp_path, clock, "a.db", "b/b.db")
    primary = SqliteStore(tmp_path / "primary.db", clock)
    old = store_key(f"sqlite://{tmp_path}/b/b.db")
    await primary.transact(SYSTEM, lambda tx: tx.put_record(Record(STORE_NAME, "sqlite-3", {"address": old, "at": 1})))
    await primary.close()
    engine = await open_beside(tmp_path, clock, "b/b.db")
    await engine._core.outbox.run_due()
    await engine.close()
    assert files_with_the_text(tmp_path) == []


@run
async def test_a_store_that_takes_the_place_of_another_does_not_take_what_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    clock = FakeClock()
    await _erased_while_b_is_away(tmp_path, clock, "a.db", "b/b.db")
    engine = await open_beside(tmp_path, clock, "a.db", "c.db")
    await engine._core.outbox.run_due()
    waiting = {each["name"]: each["waiting"] for each in await engine.stores.list(WHO)}
    await engine.close()
    assert waiting == {"sqlite": 0, "sqlite-2": 0, "sqlite-4": 0, "sqlite-3": 1}
    engine = await open_beside(tmp_path, clock, "c.db", "b/b.db")
    await engine._core.outbox.run_due()
    await engine.close()
    assert files_with_the_text(tmp_path) == []


@run
async def test_a_given_name_that_means_another_store_while_something_waits_is_said(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    clock = FakeClock()
    await _erased_while_b_is_away(tmp_path, clock, "b/b.db?name=spare")
    for _ in range(2):  # also when what waited was delivered to the one that has the name now
        engine = await open_beside(tmp_path, clock, "c.db?name=spare")
        await engine._core.outbox.run_due()
        listed = await engine.stores.list(WHO)
        assert "may still have copies of what was erased" in listed[1]["last_error"]
        check("memorywire/operations/stores.response", {"stores": listed})
        (finding,) = await engine.stores.examine()
        assert not finding.ok
        await engine.close()
    engine = await open_beside(tmp_path, clock, "b/b.db?name=old", "c.db?name=spare")
    for name in ("old", "spare"):
        assert (await engine.stores.resync(WHO, name))["equal"]
    assert ["last_error" in each for each in await engine.stores.list(WHO)] == [False] * 3
    await engine.close()
    assert files_with_the_text(tmp_path) == []


@pytest.mark.parametrize("name", ["two", "one"], ids=["as it is called now", "as it is called again"])
@run
async def test_what_a_process_notes_of_a_store_under_its_former_name_is_said_of_it(tmp_path: Path, name: str) -> None:
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock, "b.db?name=one")
    id = await remember(engine, "PINCODE-ZEBRA opens the safe")
    await engine.close()
    without = await open_beside(tmp_path, clock)
    await (await open_beside(tmp_path, clock, "b.db?name=two")).close()
    await without.forget(WHO, Forget("agent", [id], hard_delete=True))
    await without.close()
    engine = await open_beside(tmp_path, clock, f"b.db?name={name}")
    assert LEFT_OUT_SAID in await said_of_the_copy(engine)
    assert (await engine.stores.resync(WHO, name))["equal"]
    await engine.close()
    assert files_with_the_text(tmp_path) == []


async def _open_with_object(folder: Path, clock: FakeClock, name: str) -> Engine:
    config, others = Config(data=folder, store=f"sqlite://{folder}/primary.db"), [Theirs(name)]
    return await open_engine(config, embedder=HashingEmbedder(), clock=clock, others=cast("Any", others))


@pytest.mark.parametrize("waits", [True, False], ids=["an erasure waits", "nothing waits"])
@run
async def test_an_object_that_takes_the_name_of_a_store_is_another_one(tmp_path: Path, waits: bool) -> None:
    """What is left there of what was erased would be of the object by its name, which has the erasure."""
    (tmp_path / "b").mkdir()
    clock = FakeClock()
    if waits:
        await _erased_while_b_is_away(tmp_path, clock, "b/b.db?name=notes")
    else:
        engine = await open_beside(tmp_path, clock, "b/b.db?name=notes")
        await remember(engine, "Alice drinks tea")
        await engine.close()
    for _ in range(2):
        engine = await _open_with_object(tmp_path, clock, "notes")
        said = (await engine.stores.list(WHO))[1].get("last_error", "")
        assert ("may still have copies of what was erased" in said) is waits
        assert ("never resynced" in said) is not waits, "of a first store that has memories"
        await engine.close()


@run
async def test_a_new_store_takes_no_name_that_another_process_may_have(tmp_path: Path) -> None:
    """What waits for the other under it would go to the new one, and an erasure with it."""
    (tmp_path / "b").mkdir()
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock, "b/b.db")
    id = await remember(engine, "PINCODE-ZEBRA opens the safe")
    await engine.close()
    (tmp_path / "b").rename(tmp_path / "b.away")
    (tmp_path / "b").write_text("")
    server = await open_beside(tmp_path, clock, "b/b.db")
    command = await open_beside(tmp_path, clock, "c.db")
    await server.forget(WHO, Forget("agent", [id], hard_delete=True))
    clock.advance(600_000)
    await command._core.outbox.run_due()
    (tmp_path / "b").unlink()
    (tmp_path / "b.away").rename(tmp_path / "b")
    await server._core.outbox.run_due()
    assert [each["waiting"] for each in await server.stores.list(WHO)] == [0, 0]
    await command.close()
    await server.close()
    assert files_with_the_text(tmp_path) == []


@pytest.mark.parametrize("other", ["a.db", "b.db"])
@run
async def test_two_processes_that_attach_stores_at_once_give_no_name_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """An erasure that waits under it would go to either of the two."""
    clock = FakeClock()
    transact, opened = SqliteStore.transact, list[Engine]()

    async def after_another(self: SqliteStore, tenant: str, work: Any) -> Any:
        monkeypatch.setattr(SqliteStore, "transact", transact)
        opened.append(await open_beside(tmp_path, clock, other))
        return await transact(self, tenant, work)

    monkeypatch.setattr(SqliteStore, "transact", after_another)
    if other == "b.db":  # as servers of one database that start together
        opened.append(await open_beside(tmp_path, clock, "b.db"))
    else:
        with pytest.raises(Conflict, match="another store as sqlite-2; start again"):
            await open_beside(tmp_path, clock, "b.db")
        opened.append(await open_beside(tmp_path, clock, "b.db"))
    names = [(await engine.stores.list(WHO))[1]["name"] for engine in opened]
    for engine in opened:
        await engine.close()
    assert names == ["sqlite-2", "sqlite-2" if other == "b.db" else "sqlite-3"]


@pytest.mark.parametrize("name", ["", "?name=sqlite-2"], ids=["of itself", "given"])
@run
async def test_a_store_that_is_gone_with_the_process_is_not_told_in_place_of_another(tmp_path: Path, name: str) -> None:
    """By its name it would be the one that has been told of an erasure."""
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock, "b.db")
    id = await remember(engine, "PINCODE-ZEBRA opens the safe")
    await remember(engine, "Alice drinks tea")
    await engine.close()
    stores = (f"sqlite://{tmp_path}/primary.db", f"sqlite://:memory:{name}")
    engine = await open_engine(
        Config(data=tmp_path, store=stores[0], stores=stores), embedder=HashingEmbedder(), clock=clock
    )
    await engine.stores.wait_until_open(5)
    await engine.forget(WHO, Forget("agent", [id], hard_delete=True))
    await engine.close()
    engine = await open_beside(tmp_path, clock, "b.db")
    listed = (await engine.stores.list(WHO))[1]
    assert ("never resynced" if name else LEFT_OUT_SAID) in listed.get("last_error", "")
    assert (await engine.stores.resync(WHO, listed["name"]))["equal"]
    await engine.close()
    assert files_with_the_text(tmp_path) == []


@pytest.mark.parametrize("newer", ["c.db", "c.db?name=sqlite-2"], ids=["of itself", "given"])
@run
async def test_a_former_name_is_no_new_stores(tmp_path: Path, newer: str) -> None:
    """A process that knows the first by it may still record an erasure under it, which would be the new one's."""
    (tmp_path / "b").mkdir()
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock, "b/b.db")
    await remember(engine, "PINCODE-ZEBRA opens the safe")
    await engine.close()
    await (await open_beside(tmp_path, clock, "b/b.db?name=spare")).close()
    engine = await open_beside(tmp_path, clock, newer)
    names = [each["name"] for each in await engine.stores.list(WHO)]
    if "name=" in newer:
        assert "may still have copies of what was erased" in await said_of_the_copy(engine)
    else:
        assert names[1] not in ("sqlite-2", "spare")
    await engine.close()


@run
async def test_after_a_rename_a_start_that_notes_nothing_takes_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    engine = await open_beside(tmp_path, clock, "b.db")
    await remember(engine, "Alice likes tea")
    await engine.close()
    engine = await open_beside(tmp_path, clock, "b.db?name=spare")
    primary = engine._core.primary
    taken: list[str] = []
    transact = primary.transact

    async def noted(tenant: str, work: Any) -> Any:
        taken.append(tenant)
        return await transact(tenant, work)

    monkeypatch.setattr(primary, "transact", noted)
    known = {r.key: r.value for r in await primary.records(SYSTEM, STORE_NAME)}
    address = next(value["address"] for name, value in known.items() if name == "spare")
    assert await assign_names(primary, [WantedName(address, "sqlite", "spare")], clock) == ["spare"]
    assert taken == []
    clock.advance(RENAMED_MS + 1)
    await assign_names(primary, [WantedName(address, "sqlite", "spare")], clock)
    assert taken == [SYSTEM]
    assert await known_names(primary) == ["spare"]
    await engine.close()
