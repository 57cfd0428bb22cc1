"""`commonplace stores`: what waits for each, and making one equal again."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commonplace import plugins
from commonplace.cli.amp import main as amp_main
from commonplace.sdk import SyncMemory
from commonplace.serve.running_server import Advertisement, running_server
from commonplace.stores.copies import PrimaryCopy
from commonplace.stores.sqlite.store import SqliteStore  # itself: the copy is a file, whatever the primary is

sys.path.append(str(Path(__file__).parents[1] / "serve"))
from server_process import run_server, token


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch, data: Path) -> Path:
    copy = data.parent / "copy.db"
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db sqlite://{copy}?name=spare")
    return copy


@pytest.fixture(autouse=True)
def plain_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process has it that no server was started in."""
    monkeypatch.setattr("commonplace.serve.telemetry.configure_logs", lambda level: None)
    monkeypatch.setattr(logging.getLogger("commonplace"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("commonplace"), "handlers", [])


def test_one_store_is_listed_and_has_nothing_to_resync(cli: Any, data: Path) -> None:
    cli("remember", "Alice drinks tea")
    (only,) = cli("stores", "--json").json["stores"]
    assert (only["name"], only["role"], only["status"], only["waiting"]) == ("sqlite", "primary", "ok", 0)
    assert "there is no store 'mem0' with copies" in cli("stores", "resync", "mem0", "--json").json["error"]["message"]
    assert "stores resync NAME" in cli("stores", "resync", "--json").json["error"]["message"]


def test_a_store_that_was_added_later_is_made_equal(cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("Alice drinks tea", "Bob drinks coffee"):
        cli("remember", text)
    monkeypatch.setenv(
        "COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db sqlite://{data.parent}/copy.db?name=spare"
    )
    done = cli("stores", "resync", "spare", "--json").json
    assert (done["equal"], done["sent"], done["memories"], done["copies"]) == (True, 2, 2, 2)
    assert done["hash"] == done["copies_hash"]
    said = cli("stores", "resync", "spare").out
    assert "both have the same 2" in said
    assert "tenants" not in said
    kept = cli("remember", "Carol drinks water", "--json").json
    assert kept["stores"] == ["sqlite", "spare"]
    listed = cli("stores", "--json").json["stores"]
    assert [each["name"] for each in listed] == ["sqlite", "spare"]
    assert not any("altered" in each for each in listed)  # which only who recalled can count
    assert cli("recall", "who drinks tea", "--json").json["stores_queried"] == ["sqlite", "spare"]


def test_a_recall_may_ask_for_what_several_stores_have_found(cli: Any, data: Path, two: Path) -> None:
    both = cli("remember", "Alice drinks tea", "--json").json["id"]
    one = cli("remember", "Alice drinks green tea", "--json").json["id"]

    async def lose() -> None:
        copy = PrimaryCopy(SqliteStore(two))
        await copy.delete("local", [one])  # without our knowing of it
        await copy.close()

    asyncio.run(lose())
    for quorum, ids in (("1", {both, one}), ("2", {both})):
        found = cli("recall", "who drinks tea", "--quorum-k", quorum, "--json").json
        assert {hit["id"] for hit in found["results"]} == ids
    none = cli("recall", "who drinks tea", "--quorum-k", "3")
    assert "--quorum-k 3 leaves nothing, because only 2 stores answered" in none.err


def test_one_that_is_down_is_named_and_told_later(
    cli: Any, data: Path, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = "memorywire+http://127.0.0.1:9?name=other"
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db {down}")
    kept = cli("remember", "Alice drinks tea", "--json").json
    assert kept["stores"] == ["sqlite"]
    assert [each["store"] for each in kept["errors"]] == ["other"]
    assert "it is kept and tried again" in kept["errors"][0]["error"]
    other = cli("stores", "--json").json["stores"][1]
    assert (other["waiting"], other["failing"]) == (1, 1)
    assert "could not be reached" in other["last_error"]
    row = next(line.split("\t") for line in cli("stores").out.splitlines() if line.startswith("other\t"))
    assert row[3:5] == ["1", "1"]
    assert re.fullmatch(r"\d+ (s|min)", row[5])  # how far it is behind
    assert "could not be reached" in row[6]
    found = cli("recall", "tea", "--json").json
    assert [hit["content"] for hit in found["results"]] == ["Alice drinks tea"]
    assert found["errors"][0]["store"] == "other"
    failed = cli("stores", "resync", "other", "--json")
    assert (failed.code, "could not be reached" in failed.json["error"]["message"]) == (2, True)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
@pytest.mark.parametrize(
    ("place", "why"), [("/proc/commonplace/copy.db", "No such file or directory"), (f"/{'x' * 300}", "name too long")]
)
def test_a_place_where_no_copy_can_be_is_said_with_what_to_do(
    place: str, why: str, cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy is not in the data folder: its URL is what has to be changed. Not even root can make a file there."""
    cli("remember", "Alice drinks tea")
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db sqlite://{place}?name=spare")
    said = _why(cli, "spare").partition("; never resynced")[0]
    assert why in said
    assert said.endswith("or in the URL of the store")


def test_why_a_store_fails_now_is_said_before_why_its_last_delivery_did(
    cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has set the variable reads of the next mistake, and not that it is not set."""
    url = "memorywire+http://127.0.0.1:9?name=other&token_env=OTHER_TOKEN"
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db {url}")
    cli("remember", "Alice drinks tea")
    assert _why(cli, "other").count("is not set") == 1
    monkeypatch.setenv("OTHER_TOKEN", "secret")
    said, before = _why(cli, "other").split("; at the last delivery: ")
    assert ("could not be reached" in said, "is not set" in said, "is not set" in before) == (True, False, True)


def _why(cli: Any, name: str) -> str:
    return str(next(line for line in cli("stores").out.splitlines() if line.startswith(f"{name}\t")).split("\t")[6])


def test_people_are_told_what_one_that_is_down_waits_for(cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db memorywire+http://127.0.0.1:9?name=other")
    kept = cli("remember", "Alice drinks tea", "--json").json
    assert cli("remember", "Bob drinks milk").err == f"note: other: {kept['errors'][0]['error']}\n"
    lines = cli("remember", "--batch", "-", stdin='"Alice sings"\n"Bob sings"\n')
    assert (lines.out, lines.err.count("it is kept and tried again")) == ("remembered 2 of 2 lines\n", 1)
    merged = cli("merge", cli("remember", "Alice sings", "--json").json["id"], kept["id"])
    assert ("merged 1 memory" in merged.out, "note: other: " in merged.err) == (True, True)


def test_one_that_is_down_is_told_by_whoever_looks(cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was ever written to it: it is asked."""
    cli("remember", "Alice drinks tea")
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db memorywire+http://127.0.0.1:9?name=other")
    other = cli("stores", "--json").json["stores"][1]
    assert (other["status"], other["waiting"]) == ("degraded", 0)
    assert "could not be reached" in other["error"]
    assert "could not be reached" in cli("stores").out
    assert "the store other does not answer: 127.0.0.1:9 could not be reached" in cli("status").err
    assert "other" in cli("status", "--json").json["note"]
    looked = cli("doctor", "--json")
    (check,) = [check for check in looked.json["checks"] if check["check"] == "store other"]
    assert (looked.code, check["ok"], "could not be reached" in check["detail"]) == (2, False, True)


def test_a_status_says_what_waits_for_a_store_and_also_for_one_that_is_left_out(
    cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An erasure among them goes nowhere as long as nobody knows of it."""
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db memorywire+http://127.0.0.1:9?name=other")
    id = cli("remember", "Alice drinks tea", "--json").json["id"]
    cli("remember", "Bob drinks milk")
    assert "2 changes for the store other wait; `commonplace stores` says why" in cli("status").err
    monkeypatch.delenv("COMMONPLACE_STORES")
    assert "2 changes for the store other wait; `commonplace stores` says why" in cli("status").err
    assert cli("status", "--json").json["stores"][1]["waiting"] == 2
    cli("forget", id, "--hard", "--yes")
    cli("stores", "discard", "other", "--yes")
    assert "wait" not in cli("status").err


def test_what_a_store_did_not_take_is_told_by_the_doctor(cli: Any, data: Path, two: Path) -> None:
    cli("remember", "Alice drinks tea")
    (check,) = [c for c in cli("doctor", "--json").json["checks"] if c["check"] == "store spare"]
    assert (check["ok"], check["detail"]) == (True, "ok")


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite-vec"])
@pytest.mark.parametrize("command", [("recall", "tea"), ("list",), ("status",), ("stores",), ("get", "0" * 36)])
def test_reading_begins_no_store(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], scheme: str
) -> None:
    for variable in ("COMMONPLACE_STORE", "COMMONPLACE_STORES"):
        monkeypatch.setenv(variable, f"{scheme}://{tmp_path}/nowhere.db")
        refused = cli(*command, "--json")
        assert refused.code == 1
        assert f"there is no store at {scheme}://{tmp_path}/nowhere.db" in refused.json["error"]["message"]
        assert list(tmp_path.glob("nowhere*")) == []
        monkeypatch.delenv(variable)


@pytest.mark.parametrize("named_by", ["--data", "COMMONPLACE_STORE"])
@pytest.mark.parametrize(
    ("command", "said"), [("import", "would import 1 memory"), ("capture", "Alice drinks green tea")]
)
def test_a_dry_run_begins_no_store(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, said: str, named_by: str
) -> None:
    at, turn = "2026-11-19T20:00:00Z", {"role": "user", "content": "Remember that Alice drinks green tea."}
    turns = [{"type": "user", "sessionId": "s", "uuid": "u", "timestamp": at, "message": turn}]
    notes = {"results": [{"id": "1", "memory": "Alice drinks green tea", "created_at": at}]}
    file = tmp_path / "file.json"
    file.write_text("\n".join(map(json.dumps, [notes] if command == "import" else turns)), "utf-8")
    if named_by == "COMMONPLACE_STORE":
        monkeypatch.setenv("COMMONPLACE_STORE", f"sqlite://{tmp_path}/there/commonplace.db")
    args = ["--data", str(tmp_path / "there")] if named_by == "--data" else []
    foreseen = cli(command, str(file), "--dry-run", *args)
    assert (foreseen.code, said in foreseen.out) == (0, True), foreseen
    assert not (tmp_path / "there").exists()
    (tmp_path / "there").write_text("no folder", "utf-8")
    refused = cli(command, str(file), "--dry-run", *args)
    assert refused.code != 0, "as the run would be"


@pytest.mark.parametrize("url", [
    "sqlite://", "sqlite-vec://?name=spare", "memorywire+http://", "memorywire+http://:8420", "memorywire+http://h:99999",
    "memorywire+http://h:s3cret", "memorywire+https://[::1", "memorywire+http://h/ü", "letta://", "letta:///notes",
    "letta+https://h:s3cret/notes", "mem0://", "mem0://a/b", "cognee://", "cognee://..",
])  # fmt: skip
def test_a_copy_whose_url_names_no_place_stops_the_start(
    cli: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    for package in ("mem0", "cognee"):  # nothing of them is imported
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db {url}")
    refused = cli("remember", "words")
    scheme = url.partition(":")[0]
    assert refused.code == 1
    said, _, example = refused.err.partition("; write ")
    assert f"{scheme}://" in said
    assert f"{scheme}://" in example or "its port is no number" in said
    assert "s3cret" not in refused.err
    assert not (data / "commonplace.db").exists()


@pytest.mark.parametrize("first", [True, False])
def test_a_setting_that_a_store_does_not_have_is_refused(
    cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    slip = f"sqlite://{data.parent}/slip.db?cache=1"
    monkeypatch.setenv("COMMONPLACE_STORES", slip if first else f"sqlite://{data}/commonplace.db {slip}")
    refused = cli("remember", "words", "--json")
    assert refused.code == 1
    assert "'cache' is no setting of sqlite://" in refused.json["error"]["message"]
    assert "name, timeout, weight, types are for stores after the first" in refused.json["error"]["message"]
    assert list(data.parent.glob("slip*")) == list(data.glob("commonplace.db")) == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense://x", "there is no store for nonsense://"),
        ("plain words", "is not a store URL"),
        ("mem0://x?timeout=soon", "timeout='soon' in a store's URL must be a number above 0"),
        ("sqlite://x.db?types=tea", "types='tea' in a store's URL must be some of semantic"),
        ("sqlite://x.db?name=a/b", "name='a/b' in a store's URL must be letters"),
        ("memorywire+http://127.0.0.1:99999", "its port is no number from 1 to 65535"),
        ("memorywire+http://?name=o2", "names no server"),
        ("letta://?timeout=1", "names no server"),
        ("postgresql://127.0.0.1:1/d?connect_timeout=abc", "connect_timeout must be a number of seconds"),
    ],
)
def test_a_wrong_url_opens_nothing(cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch, url: str, said: str) -> None:
    data.mkdir()
    (data / "commonplace.toml").write_text(f'stores = ["sqlite://{data}/new.db", "{url}"]', "utf-8")
    refused = cli("remember", "words", "--json")
    assert refused.code == 1
    assert said in refused.json["error"]["message"]
    assert not (data / "new.db").exists()


@pytest.mark.parametrize("scheme", sorted(plugins.COPY_SCHEMES))
def test_a_store_with_copies_cannot_be_the_first(cli: Any, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("COMMONPLACE_STORES", f"{scheme}://127.0.0.1:9")
    refused = cli("remember", "words", "--json")
    assert refused.code == 1
    assert f"{scheme}:// keeps copies and cannot be the first store" in refused.json["error"]["message"]


MACHINE = {
    "name": "door", "initial": "open", "current": "open", "states": ["open", "closed"],
    "transitions": [{"trigger": "close", "source": "open", "dest": "closed"}],
}  # fmt: skip


class Written:
    """What there is before a store fails, as the commands below need it."""

    def __init__(self, cli: Any, folder: Path) -> None:
        def kept(text: str, *options: str) -> str:
            return str(cli("remember", text, *options, "--json").json["id"])

        self.one, self.two = (
            kept("Alice drinks tea"),
            kept("Alice drinks green tea", "--source", "https://evil.example"),
        )
        self.forgotten = kept("Bob drinks milk")
        cli("forget", self.forgotten)
        self.procedure = kept(json.dumps(MACHINE), "--type", "procedural")
        self.review = cli("remember", "Alice sings", "--approval", "--json").json["review_id"]
        self.batch = folder / "lines.jsonl"
        self.batch.write_text('"Alice sings"\n"Bob sings"\n', "utf-8")
        self.notes = folder / "notes.md"
        self.notes.write_text("- Alice plays chess\n", "utf-8")
        kept("perhaps cocoa", "--confidence", "0.1")
        said = {"type": "user", "message": {"role": "user", "content": "I prefer tabs over spaces."}, "sessionId": "s"}
        self.transcript = folder / "session.jsonl"
        self.transcript.write_text(json.dumps(said) + "\n", "utf-8")


#: Every command that changes memories, from what there is.
WRITES: dict[str, Callable[[Written], tuple[str, ...]]] = {
    "remember": lambda w: ("remember", "Carol drinks water"),
    "remember --batch": lambda w: ("remember", "--batch", str(w.batch)),
    "update": lambda w: ("update", w.one, "--content", "Alice drinks coffee"),
    "forget": lambda w: ("forget", w.one),
    "forget --hard": lambda w: ("forget", w.one, "--hard", "--yes"),
    "forget --undo": lambda w: ("forget", "--undo", w.forgotten),
    "merge": lambda w: ("merge", w.one, w.two),
    "expire": lambda w: ("expire", "--type", "procedural", "--yes"),
    "undo": lambda w: ("undo", w.forgotten),
    "procedure fire": lambda w: ("procedure", "fire", w.procedure, "close"),
    "review approve": lambda w: ("review", "approve", w.review),
    "import": lambda w: ("import", str(w.notes), "--format", "markdown"),
    "recover": lambda w: ("recover", "--source", "https://evil.example", "--yes"),
    "lifecycle run": lambda w: ("lifecycle", "run", "expire"),
    "capture": lambda w: ("capture", str(w.transcript), "--no-review"),
    "amp store": lambda w: ("amp", "store", "--type", "lesson", "--title", "tea", "--content", "Alice likes tea"),
    "amp delete": lambda w: ("amp", "delete", w.one),
}


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "--json"])
@pytest.mark.parametrize("command", WRITES)
def test_every_command_that_writes_tells_of_a_store_that_is_down(
    cli: Any, program: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, as_json: bool
) -> None:
    name, *args = WRITES[command](Written(cli, tmp_path))
    (data / "commonplace.toml").write_text('[lifecycle]\nexpire = ["confidence_below=0.5"]\n', "utf-8")
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db memorywire+http://127.0.0.1:9?name=other")
    run = program(amp_main) if name == "amp" else partial(cli, name)
    done = run(*args, *(["--json"] if as_json else []))
    assert done.code in (0, 2), done
    if not as_json:
        assert done.err.count("it is kept and tried again") == 1, done
        assert re.search(r"\bother: .*; it is kept and tried again", done.err), done
        return
    (document,) = [json.loads(line) for line in done.out.splitlines()]
    said = json.dumps(document)
    assert '"other"' in said, done
    assert "it is kept and tried again" in said


def test_a_backup_that_is_restored_is_older_than_the_copies_until_they_are_resynced(
    cli: Any, data: Path, two: Path, tmp_path: Path
) -> None:
    cli("remember", "Alice drinks tea")
    changed = cli("remember", "Bob drinks milk", "--metadata", "cup=red", "--json").json["id"]
    assert cli("backup", str(tmp_path / "backup.db")).code == 0
    cli("remember", "written later")
    cli("update", changed, "--metadata", "cup=blue")
    restored = cli("restore", str(tmp_path / "backup.db"), "--force")
    assert "the other stores have what was there before; `commonplace stores resync NAME`" in restored.err
    assert "with --yes deletes what was written after the backup, which only they have now" in restored.err
    done = cli("stores", "resync", "spare", "--yes", "--json").json
    assert (done["equal"], done["sent"], done["deleted"], done["copies"]) == (True, 1, 1, 2)


def test_a_store_that_is_left_out_is_listed_while_something_waits_for_it(
    cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db memorywire+http://127.0.0.1:9?name=other")
    cli("remember", "Alice drinks tea")
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db")
    left = cli("stores", "--json").json["stores"][1]
    assert (left["name"], left["status"], left["waiting"]) == ("other", "down", 1)
    assert "it is not among the configured stores" in cli("stores").out
    elsewhere = cli("stores", "--store", f"sqlite://{data}/commonplace.db")
    assert "give `stores resync` and `stores discard` the same" in elsewhere.err, "what it advises is of these stores"
    assert "the same" not in cli("stores", "--store", "memory://").err, "nothing is to be done there"


def test_a_copy_that_was_used_as_a_first_store_is_begun_anew_once_it_is_moved_away(
    cli: Any, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = cli("remember", "Alice drinks tea", "--json").json["id"]
    with monkeypatch.context() as patch:
        patch.delenv("COMMONPLACE_STORES")
        patch.setenv("COMMONPLACE_STORE", f"sqlite://{two}")
        assert "Alice drinks tea" in cli("recall", "tea").out
    erased = cli("forget", id, "--hard", "--yes")
    assert erased.code == 2, "its copy is left there"
    assert "move this one away and resync" in erased.err
    for file in two.parent.glob(f"{two.name}*"):
        file.rename(two.parent / f"away-{file.name}")
    assert cli("stores", "resync", "spare", "--json").json["equal"]


def test_a_policy_keeps_writes_and_questions_from_the_others(cli: Any, data: Path, two: Path) -> None:
    data.mkdir(exist_ok=True)
    (data / "commonplace.toml").write_text('[routing]\nwrite = "primary_only"\nrecall = "primary_only"\n', "utf-8")
    assert cli("remember", "Alice drinks tea", "--json").json["stores"] == ["sqlite"]
    assert cli("recall", "tea", "--json").json["stores_queried"] == ["sqlite"]
    assert cli("stores", "--json").json["stores"][1]["waiting"] == 0
    done = cli("stores", "resync", "spare", "--json").json
    assert (done["equal"], done["sent"], done["copies"]) == (True, 1, 1)
    assert cli("stores", "--json").json["stores"][1]["waiting"] == 0
    (data / "commonplace.toml").write_text('[routing]\nrecall = "rerank"\n', "utf-8")
    assert cli("recall", "tea", "--json").json["stores_queried"] == ["sqlite", "spare"]
    (data / "commonplace.toml").write_text('[routing]\nrecall = "all"\n', "utf-8")
    refused = cli("recall", "tea", "--json")
    assert (refused.code, "fan_out" in refused.json["error"]["message"]) == (1, True)


def test_a_store_is_used_as_its_url_says(cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "name=spare&types=episodic&weight=0.5&timeout=7"
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db sqlite://{data.parent}/copy.db?{said}")
    assert cli("remember", "Alice drank tea", "--type", "episodic", "--json").json["stores"] == ["sqlite", "spare"]
    other = cli("remember", "Alice drinks tea", "--type", "semantic", "--json").json
    assert other["stores"] == ["sqlite"]
    assert other["errors"] == [{"store": "spare", "error": "it does not keep semantic memories"}]
    spare = cli("stores", "--json").json["stores"][1]
    assert (spare["name"], spare["weight"], spare["timeout"]) == ("spare", 0.5, 7)


@pytest.mark.parametrize("second", ["sqlite-vec://{}/commonplace.db", "sqlite://{}/link.db?name=spare"])
@pytest.mark.parametrize("way", ["COMMONPLACE_STORES", "commonplace.toml", "serve --store"])
def test_a_store_cannot_have_copies_of_itself(
    cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch, way: str, second: str
) -> None:
    data.mkdir()
    (data / "link.db").symlink_to(data / "commonplace.db")
    urls = [f"sqlite://{data}/commonplace.db", second.format(data)]
    command = ["remember", "Alice drinks tea", "--json"]
    if way == "commonplace.toml":
        (data / way).write_text(f"stores = {json.dumps(urls)}", "utf-8")
    elif way == "serve --store":
        command = ["serve", "--port", "0", *(word for url in urls for word in ("--store", url))]
    else:
        monkeypatch.setenv("COMMONPLACE_STORES", " ".join(urls))
    before = sorted(each.name for each in data.iterdir())
    refused = cli(*command)
    assert refused.code == 1, refused
    assert f"{urls[0]} and {second.format(data)} name the same store" in refused.out + refused.err
    assert sorted(each.name for each in data.iterdir()) == before


@pytest.mark.parametrize("variable", ["COMMONPLACE_STORE", "COMMONPLACE_STORES"])
def test_a_folder_that_is_named_has_its_own_store_whatever_a_variable_says(
    cli: Any, program: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    there = tmp_path / "there"
    monkeypatch.setenv(variable, f"sqlite://{tmp_path}/elsewhere.db")
    kept = cli("remember", "Alice drinks tea", "--data", str(there))
    assert f"note: {variable} is not used: {there} was named as the data folder" in kept.err
    assert kept.err.count("is not used") == 1
    stored = program(amp_main)("store", "--type", "lesson", "--title", "t", "--content", "c", "--data", str(there))
    assert (stored.code, stored.err.count("is not used")) == (0, 1)
    assert "is not used" in cli("list", "--data", str(there)).err
    assert cli("status", "--data", str(there), "--json").json["database"] == str(there / "commonplace.db")
    assert cli("backup", str(tmp_path / "copy.db"), "--data", str(there)).code == 0
    restored = cli("restore", str(tmp_path / "copy.db"), "--data", str(tmp_path / "new"))
    assert (restored.code, "is not used" in restored.err, (tmp_path / "new" / "commonplace.db").exists()) == (
        0, True, True)  # fmt: skip
    assert not (tmp_path / "elsewhere.db").exists()
    assert "there is no store in" in cli("recall", "tea", "--data", str(tmp_path / "typo")).err
    (there / "commonplace.toml").write_text('stores = ["sqlite://./its-own.db"]', "utf-8")
    assert cli("remember", "Bob drinks milk", "--data", str(there)).code == 0
    assert (there / "its-own.db").exists()


def test_a_program_that_names_a_folder_has_its_own_store(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{tmp_path}/elsewhere.db")
    with SyncMemory(data=tmp_path / "there", embedder="none") as memory:
        memory.remember("Alice drinks tea")
    assert (tmp_path / "there" / "commonplace.db").exists()
    assert "COMMONPLACE_STORES is not used" in caplog.text
    with SyncMemory(data=tmp_path / "there", stores=[f"sqlite://{tmp_path}/named.db"], embedder="none") as memory:
        memory.remember("Alice drinks tea")
    assert (tmp_path / "named.db").exists()
    with SyncMemory(embedder="none") as memory:
        memory.remember("Alice drinks tea")
    assert (tmp_path / "elsewhere.db").exists()


def test_settings_of_a_folder_without_a_store_begin_none(cli: Any, tmp_path: Path, data: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "commonplace.toml").write_text('agent = "alice"', "utf-8")
    assert "there is no store in" in cli("recall", "tea", "--data", str(tmp_path / "there")).err


@pytest.mark.parametrize("named", [["", "{0}/m.db"], ["{0}/m.db", " "], [""]])
@pytest.mark.parametrize("command", ["stores", "serve"])
def test_a_store_that_is_named_by_nothing_is_refused(
    cli: Any, data: Path, tmp_path: Path, command: str, named: list[str]
) -> None:
    """As a variable that is not set leaves it: another store would be written to, or a copy not be told."""
    flags = [f"--store={f'sqlite://{url.format(tmp_path)}' if url.strip() else url}" for url in named]
    refused = cli(command, *flags)
    assert refused.code == 1
    assert "one of the stores is named by an empty text; give its URL, such as sqlite://./memories.db" in refused.err
    assert not data.exists()
    assert list(tmp_path.glob("m.*")) == []


def test_the_stores_can_be_named_by_flags(cli: Any, data: Path, tmp_path: Path) -> None:
    cli("remember", "Alice drinks tea")
    flags = ("--store", f"sqlite://{data}/commonplace.db", "--store", f"sqlite://{tmp_path}/copy.db?name=spare")
    assert cli("stores", "resync", "spare", *flags, "--json").json["equal"] is True
    assert [each["name"] for each in cli("stores", *flags, "--json").json["stores"]] == ["sqlite", "spare"]
    refused = cli("stores", "--store", f"sqlite://{tmp_path}/nowhere.db", "--json")
    assert (refused.code, "there is no store at" in refused.json["error"]["message"]) == (1, True)
    nameless = cli("stores", "--store", "sqlite-vec://")
    assert (nameless.code, "sqlite-vec:// names no file; write sqlite-vec://./memories.db" in nameless.err) == (1, True)
    assert "there is no store 'spare' with copies" in cli("stores", "resync", "spare", "--json").out


def test_a_question_mark_may_be_in_the_name_of_every_file_and_folder(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "why?name=x"
    assert cli("remember", "Alice drinks tea", "--data", str(folder)).code == 0
    (folder / "commonplace.toml").write_text(
        f'stores = ["sqlite://commonplace.db", "sqlite://a?.db?name=one", "sqlite://{tmp_path}/b%3Fname=y?name=two"]\n'
    )
    for name in ("one", "two"):
        assert cli("stores", "resync", name, "--data", str(folder), "--json").json["equal"] is True
    assert (folder / "a?.db").exists()
    assert (tmp_path / "b?name=y").exists()
    assert cli("backup", str(tmp_path / "b"), "--data", str(folder)).code == 0
    monkeypatch.setenv("COMMONPLACE_STORE", f"sqlite://{tmp_path}/restored%3F.db")
    assert cli("restore", str(tmp_path / "b")).code == 0
    assert (tmp_path / "restored?.db").exists()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COMMONPLACE_STORE", "sqlite://a?.db")
    printed = cli("mcp", "--json").json["mcpServers"]["commonplace"]["env"]["COMMONPLACE_STORE"]
    monkeypatch.setenv("COMMONPLACE_STORE", printed)
    assert "Alice drinks tea" in cli("list").out


def test_what_waits_for_a_store_that_was_removed_can_be_dropped(
    cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_other = f"sqlite://{data}/commonplace.db memorywire+http://127.0.0.1:9?name=other"
    monkeypatch.setenv("COMMONPLACE_STORES", with_other)
    erased = cli("remember", "Alice drinks tea", "--json").json["id"]
    cli("remember", "Bob drinks milk")
    cli("forget", erased, "--hard", "--yes")
    refused = cli("stores", "discard", "other", "--yes", "--json")
    assert (refused.code, "is configured" in refused.json["error"]["message"]) == (1, True)
    monkeypatch.delenv("COMMONPLACE_STORES")
    looked = cli("stores", "discard", "other", "--dry-run")
    assert looked.out == (
        "would discard 2 changes, of which other is never told; 1 deletion among them, so it may keep what was erased "
        "or forgotten; nothing was changed\n"
    )
    assert cli("stores", "discard", "other", "--dry-run", "--json").json == {
        "dry_run": True, "store": "other", "waiting": 2, "deletions": 1,
    }  # fmt: skip
    unasked = cli("stores", "discard", "other")
    assert (unasked.code, "add --yes" in unasked.err) == (1, True)
    assert cli("stores", "discard", "other", typed="n\n").code == 1
    assert cli("stores", "--json").json["stores"][1]["waiting"] == 2
    done = cli("stores", "discard", "other", "--yes", "--json").json
    assert done == {"store": "other", "waiting": 2, "deletions": 1}
    assert [each["name"] for each in cli("stores", "--json").json["stores"]] == ["sqlite"]
    entry = cli("audit", "list", "--operation", "discard_deliveries", "--json").json["entries"][-1]
    assert entry["payload"][0] == {"store": "other", "changes": 2, "deletions": 1}
    assert cli("audit", "verify").code == 0
    again = cli("stores", "discard", "other", "--yes", "--json")
    assert (again.code, "nothing waits for a store 'other'" in again.json["error"]["message"]) == (1, True)
    monkeypatch.setenv("COMMONPLACE_STORES", with_other)
    back = cli("stores", "--json").json["stores"][1]
    assert "what waited for it was discarded" in back["last_error"]
    assert "stores resync other" in back["last_error"]


def test_what_is_dropped_without_a_deletion_says_so(cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db memorywire+http://127.0.0.1:9?name=other")
    cli("remember", "Alice drinks tea")
    monkeypatch.delenv("COMMONPLACE_STORES")
    said = cli("stores", "discard", "other", "--yes").out
    assert said == "discarded 1 change, of which other is never told; no deletion is among them\n"


def test_a_server_on_the_data_directory_is_asked_for_its_stores(cli: Any, data: Path, tmp_path: Path) -> None:
    token = cli("token", "create", "--role", "admin", "--json").json["token"]  # from now on it asks for one
    down = "memorywire+http://127.0.0.1:9?name=other"
    settings = {"COMMONPLACE_STORES": f"sqlite://{data}/commonplace.db {down}"}
    with run_server(data, **settings) as server:
        server.post("/v0/remember", {"agent_id": "a", "type": "semantic", "content": "Alice drinks tea"}, token=token)
        found = cli("stores", "--json").json
        assert (found["server"], [each["name"] for each in found["stores"]]) == (server.url, ["sqlite", "other"])
        assert (found["stores"][1]["waiting"], found["stores"][1]["altered"]) == (1, 0)
        assert f"as the server at {server.url} has them" in cli("stores").err
        named = cli("stores", "--store", f"sqlite://{data}/commonplace.db", "--json").json
        assert "server" not in named
        refused = cli("stores", "discard", "other", "--yes", "--json").json["error"]["message"]
        assert f"the server at {server.url} has the store other" in refused
        missing = cli("stores", "resync", "other", "--json").json["error"]["message"]
        assert "give this command the same --store as the server" in missing
        told = running_server(data)
        assert told is not None
        for path in ("/v0/status", "/v0/audit", "/v0/memories?agent_id=a"):  # it is for nothing else
            answer = server.get(path, token=told.token)
            assert answer.status in (401, 403) or b"tea" not in answer.body
    assert "server" not in cli("stores", "--json").json


def test_a_server_that_has_another_first_store_is_not_asked_for_the_one_that_is_named(
    cli: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would say of that one's copies that all is well, and its page has nothing of what waits for approval there."""
    ours = f"sqlite://{tmp_path}/notes.db"
    with run_server(data) as server:
        assert cli("stores", "--json").json["server"] == server.url
        assert server.url in cli("remember", "Alice drinks tea", "--approval").out
        monkeypatch.setenv("COMMONPLACE_STORES", f"{ours} memorywire+http://127.0.0.1:9?name=other")
        assert server.url not in cli("remember", "Bob has a dog", "--approval").out
        cli("remember", "Bob has a cat")
        found = cli("stores", "--json").json
        assert "server" not in found
        assert [(each["name"], each["waiting"]) for each in found["stores"]] == [("sqlite", 0), ("other", 1)]
        monkeypatch.delenv("COMMONPLACE_STORES")
        assert cli("stores", "--json").json["server"] == server.url, "where none is named it is the server's"
    with run_server(data, COMMONPLACE_STORES=ours) as server:
        assert cli("stores", "--json").json["server"] == server.url
        monkeypatch.setenv("COMMONPLACE_STORE", f"sqlite://{tmp_path}/../{tmp_path.name}/notes.db")
        assert cli("stores", "--json").json["server"] == server.url
        assert server.url in cli("remember", "Bob has a hen", "--approval").out


def test_what_another_server_has_and_cannot_be_read_is_named(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    named = [{"tenant": "local", "agent_id": "default", "id": f"theirs-{n}"} for n in range(12)]
    done = {"store": "other", "equal": False, "sent": 0, "deleted": 0, "memories": 1, "copies": 13, "hash": "a"}
    done |= {"copies_hash": "b", "all_tenants": False, "unreadable": named}

    async def resync(*_: Any, **__: Any) -> dict[str, Any]:
        return done

    monkeypatch.setattr("commonplace.sdk.Memory.resync", resync)
    said = cli("stores", "resync", "other")
    assert said.code == 2
    assert "12 memories there (theirs-0 of agent default, tenant local; " in said.out
    assert "and 2 more (--json has all)) cannot be read, or not be deleted from here" in said.out
    assert "so they were left; delete them there" in said.out
    looked = cli("stores", "resync", "other", "--dry-run")
    assert "would send other 0 memories and delete 0 there; 12 memories there (theirs-0 of" in looked.out
    assert "may be its own, so they would be left; nothing was changed" in looked.out
    done |= {"equal": True, "copies": 1}
    del done["unreadable"]
    assert "it cannot say whether it has tenants" in cli("stores", "resync", "other").out


@pytest.mark.parametrize("flag", ["--dry-run", "--yes"])
def test_options_of_what_changes_are_refused_with_a_list(cli: Any, two: Path, flag: str) -> None:
    cli("remember", "Alice drinks tea")
    refused = cli("stores", flag)
    assert refused.code == 1
    assert "--dry-run and --yes are of resync and discard: leave them out" in refused.err


@pytest.fixture
def older(cli: Any, data: Path, two: Path, tmp_path: Path) -> str:
    """A first store that was restored from a backup, and of the memory that only its copy has the id."""
    cli("remember", "Alice drinks tea")
    assert cli("backup", str(tmp_path / "backup.db")).code == 0
    later = cli("remember", "written later", "--json").json["id"]
    assert cli("restore", str(tmp_path / "backup.db"), "--force").code == 0
    return str(later)


def copied(copy: Path) -> set[str]:
    with SyncMemory("default", stores=[f"sqlite://{copy}"]) as memory:
        return {held["content"] for held in memory.list()["memories"]}


def test_a_dry_run_says_what_a_resync_would_do_and_does_nothing(cli: Any, two: Path, older: str) -> None:
    before = copied(two)
    said = cli("stores", "resync", "spare", "--dry-run")
    assert said.code == 0
    assert "would send spare 0 memories and delete 1 there, 1 of which the first store never had" in said.out
    assert f"{older} of agent default, tenant local; nothing was changed" in said.out
    assert copied(two) == before
    assert cli("stores", "resync", "spare", "--yes").code == 0
    said = cli("stores", "resync", "spare", "--dry-run")
    assert "spare has the same 1 already; nothing was changed" in said.out


@pytest.mark.parametrize("typed", ["y\n", "n\n", ""])
def test_a_person_is_asked_before_what_the_first_store_never_had_is_deleted(
    cli: Any, two: Path, older: str, typed: str
) -> None:
    said = cli("stores", "resync", "spare", typed=typed)
    assert f"1 memory that the first store never had: {older} of agent default, tenant local" in said.err
    assert "they are nowhere else. Delete them? [y/N]" in said.err
    if typed.startswith("y"):
        assert said.code == 0
        assert "lost 1 memory, 1 of which the first store never had; both have the same 1" in said.out
        assert copied(two) == {"Alice drinks tea"}
    else:
        assert said.code == 2
        assert f"they still differ (1 and 2): 1 memory that the first store never had: {older} of agent" in said.out
        assert "tenant local, which were left" in said.out
        assert copied(two) == {"Alice drinks tea", "written later"}


def test_nobody_is_asked_who_said_yes(cli: Any, two: Path, older: str) -> None:
    said = cli("stores", "resync", "spare", "--yes", typed="")
    assert (said.code, "Delete them?" in said.err) == (0, False)
    assert copied(two) == {"Alice drinks tea"}


@pytest.mark.parametrize("args", [[], ["--json"]])
def test_a_script_deletes_nothing_that_the_first_store_never_had(
    cli: Any, two: Path, older: str, args: list[str]
) -> None:
    said = cli("stores", "resync", "spare", *args)
    assert said.code == 2
    if args:
        assert [each["id"] for each in said.json["unknown"]] == [older]
        assert said.json["equal"] is False
    else:
        assert f"1 memory that the first store never had: {older} of agent" in said.out
        assert "they are nowhere else, --yes deletes them" in said.out
    assert copied(two) == {"Alice drinks tea", "written later"}


def test_a_script_that_says_yes_is_told_what_the_first_store_never_had(cli: Any, two: Path, older: str) -> None:
    said = cli("stores", "resync", "spare", "--yes")
    assert said.code == 0
    assert "lost 1 memory, 1 of which the first store never had; both have the same 1" in said.out
    assert copied(two) == {"Alice drinks tea"}


def test_nobody_is_asked_about_what_was_erased(cli: Any, data: Path, two: Path, monkeypatch: Any) -> None:
    ids = [cli("remember", text, "--json").json["id"] for text in ("Alice drinks tea", "Bob drinks milk")]
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db")
    cli("forget", ids[0], "--hard")
    cli("forget", ids[1])
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db sqlite://{two}?name=spare")
    said = cli("stores", "resync", "spare", typed="")
    assert (said.code, said.err.count("Delete them?")) == (0, 0)
    assert "lost 2 memories; both have the same 0" in said.out


@pytest.mark.parametrize(
    "answer",
    [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
     b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntea", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"],
)  # fmt: skip
def test_a_server_that_does_not_answer_as_one_is_said_and_this_command_looks_itself(
    cli: Any, data: Path, answer: bytes
) -> None:
    cli("remember", "Alice drinks tea")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(2):
                connection, _address = listener.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        shared = Advertisement(data)
        shared.publish(url)
        try:
            listed = cli("stores")
            mistyped = cli("stores", "resync", "sapre")
        finally:
            shared.withdraw()
        thread.join(10)
    assert (listed.code, "sqlite" in listed.out) == (0, True)
    assert f"the server at {url} does not answer (" in listed.err
    assert "): this is what this command sees itself" in listed.err
    assert "there is no store 'sapre' with copies" in mistyped.err


def test_a_token_that_is_not_taken_is_said_with_its_store_and_its_variable(
    cli: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = tmp_path / "served"
    monkeypatch.setenv("READER", token(served, "--role", "reader"))
    monkeypatch.setenv("WRONG", "cp_000000000000_nobody")
    needed = "a token of a writer for every agent there"
    with run_server(served) as server:

        def use(query: str) -> None:
            url = f"memorywire+http://127.0.0.1:{server.port}?name=other&timeout=30{query}"
            monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{data}/commonplace.db {url}")

        use("&token_env=READER")
        said = f"it refused: forbidden; set READER, which token_env names, to {needed}"
        assert said in cli("remember", "Alice drinks tea").err
        assert said in cli("stores").out
        resynced = cli("stores", "resync", "other")
        assert resynced.code == 2
        assert f"1 memory not taken: {said}" in resynced.out
        assert "something was written meanwhile" not in resynced.out
        (error,) = cli("stores", "resync", "other", "--json").json["errors"]
        assert error == {"error": said, "count": 1}
        for query, then in (
            ("&token_env=WRONG", f"set WRONG, which token_env names, to {needed}"),
            ("", f"put token_env=NAME into its URL, the variable NAME holding {needed}"),
        ):
            use(query)
            resynced = cli("stores", "resync", "other")
            assert (resynced.code, resynced.out) == (2, "")
            assert f"the store other: it refused: unauthenticated; {then}" in resynced.err
            assert f"other: it refused: unauthenticated; {then}" in cli("recall", "tea").err


@pytest.mark.parametrize("port", ["0", "65536", "none"])
@pytest.mark.parametrize("scheme", ["postgresql", "memorywire+http"])
def test_a_port_that_is_none_is_the_users_mistake_in_every_command(
    cli: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, port: str
) -> None:
    """As docs/cli.md has it: 2 is a server that is not there."""
    assert cli("remember", "Alice drinks tea").code == 0
    url, own = f"{scheme}://127.0.0.1:{port}/x", f"sqlite://{data}/commonplace.db"
    given = [("serve", "--port", "0", "--store", own, "--store", url), ("conformance", "--store", url)]
    if scheme == "postgresql":  # the other is no end of a migration
        given += [("serve", "--port", "0", "--store", url)]
        given += [("migrate", "--from", own, "--to", url, "--dry-run"), ("migrate", "--to", url, "--set-aside")]
        given += [("migrate", "--from", url, "--to", str(tmp_path / "new"), "--dry-run")]
    said = [cli(*each) for each in given]
    monkeypatch.setenv("COMMONPLACE_STORES", f"{own} {url}")
    said += [cli(*each) for each in (("stores",), ("stores", "resync", "postgresql"), ("status",), ("remember", "x"))]
    for each in said:
        assert each.code == 1, each
        assert "its port is no number from 1 to 65535" in each.err, each
