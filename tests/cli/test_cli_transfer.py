"""`export` and `import` as people use them."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foreign_files import EVERY

from commonplace.engine.core import SYSTEM
from commonplace.engine.transfer.migration import Migration
from commonplace.engine.transfer.migration_marks import MIGRATION, SOURCE
from commonplace.stores.base import Record
from commonplace.stores.sqlite import SqliteStore
from commonplace.transfer.migrate import StoreMove
from commonplace.wire.errors import Unavailable

Cli = Callable[..., Any]


def test_out_and_in_again(cli: Cli, remember: Callable[..., str], tmp_path: Path) -> None:
    remember("Alice is allergic to peanuts", "--user", "alice", "--tag", "food")
    remember("deploys on Fridays are forbidden", "--agent", "ops")
    file = tmp_path / "all.jsonl"
    done = cli("export", "-o", str(file))
    assert done.code == 0
    assert done.out.startswith("exported 2 memories, 2 versions to ")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    there = tmp_path / "there"
    done = cli("import", str(file), "--data", str(there), "--dry-run")
    assert done.out == "would import 2 memories\n"
    assert cli("import", str(file), "--data", str(there)).out == "imported 2 memories\n"
    again = cli("import", str(file), "--data", str(there), "--json").json["files"][0]
    assert (again["written"], again["known"]) == ({}, {"memory": 2})
    second = tmp_path / "again.jsonl"
    cli("export", "-o", str(second), "--data", str(there))
    assert second.read_bytes() == file.read_bytes()


def test_what_was_erased_comes_back_where_that_is_asked_for(
    cli: Cli, remember: Callable[..., str], tmp_path: Path
) -> None:
    id, file = remember("Alice is allergic to peanuts"), tmp_path / "all.jsonl"
    cli("export", "-o", str(file))
    cli("forget", id, "--hard", "--yes")
    assert "left out 1: it was erased here" in cli("import", str(file)).err
    assert cli("get", id).code == 1
    assert cli("import", str(file), "--restore-erased").out.startswith("imported 1 memory")
    assert cli("get", id, "--json").json["content"] == "Alice is allergic to peanuts"


def test_of_several_files_those_before_the_one_that_is_refused_are_named(cli: Cli, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps([{"id": "1", "memory": "Alice drinks tea"}]))
    bad.write_text('[{"id": "2", "memory": "Bob drinks')
    refused = cli("import", "--format", "mem0", str(good), str(bad))
    assert refused.code == 1
    assert f"{good} had been imported before it" in refused.err
    assert "imported before it" not in cli("import", "--format", "mem0", str(bad), str(good)).err
    assert [m["content"] for m in cli("list", "--json").json["memories"]] == ["Alice drinks tea"]


@pytest.mark.parametrize(
    ("path", "said"), [(".", "is a folder, and an export of ours is a file"), ("~nobody-here/x", "no home folder")]
)
def test_what_cannot_be_an_export_is_said_to_be_so(cli: Cli, path: str, said: str) -> None:
    refused = cli("import", "--format", "commonplace", path)
    assert refused.code == 1
    assert said in refused.err


def test_one_agent_one_user_or_all(cli: Cli, remember: Callable[..., str], tmp_path: Path) -> None:
    remember("one", "--user", "alice")
    remember("two", "--agent", "ops")

    def count(*args: str) -> int:
        file = tmp_path / "x.jsonl"
        return int(cli("export", "-o", str(file), "--force", *args, "--json").json["counts"]["memory"])

    assert [count(), count("--all"), count("--agent", "ops"), count("--user", "alice")] == [2, 2, 1, 1]
    refused = cli("export", "--all", "--agent", "ops")
    assert refused.code == 1
    assert "--all is everything" in refused.err


def test_agents_whose_names_hold_a_secret_are_counted_and_not_named(
    cli: Cli, remember: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "ghp_" + "a1B2" * 9
    with monkeypatch.context() as patch:
        patch.setenv("COMMONPLACE_REDACTION_MODE", "off")
        remember("one", "--agent", secret)
        assert cli("kg", "assert", "Alice", "likes", "tea", "--agent", secret).code == 0
    remember("two", "--agent", "ops")
    file = tmp_path / "x.jsonl"
    done = cli("export", "-o", str(file))
    assert done.out.startswith("exported 1 memory, 1 version to ")
    said = "note: left out 1 agent whose name holds a secret"
    assert said in done.err
    answer = cli("export", "-o", str(file), "--force", "--json")
    assert answer.json["left_out_agents"] == 1
    piped = cli("export", "-o", "-")
    assert said in piped.err
    assert not any(secret in text for text in (done.out, done.err, answer.out, answer.err, piped.err, file.read_text()))
    one = cli("export", "-o", str(file), "--force", "--agent", "ops", "--json")
    assert one.json["left_out_agents"] == 0
    none = cli("export", "-o", str(file), "--force", "--agent", "nobody")
    assert none.code == 1
    assert "there are ops" in none.err
    assert secret not in none.err


def test_a_file_that_is_there_is_not_replaced_unasked(cli: Cli, remember: Callable[..., str], tmp_path: Path) -> None:
    remember("one")
    file = tmp_path / "x.jsonl"
    file.write_text("precious")
    refused = cli("export", "-o", str(file))
    assert (refused.code, file.read_text()) == (1, "precious")
    assert "--force" in refused.err
    assert cli("export", "-o", str(file), "--force").code == 0


@pytest.mark.parametrize("there", [True, False], ids=["a file", "nothing yet"])
def test_an_export_goes_to_where_a_link_leads(
    cli: Cli, remember: Callable[..., str], tmp_path: Path, there: bool
) -> None:
    remember("Alice likes tea")
    (tmp_path / "disk").mkdir()
    link, place = tmp_path / "latest.jsonl", tmp_path / "disk" / "first.jsonl"
    link.symlink_to(place)
    if there:
        place.write_text("an older one")
    assert cli("export", "-o", str(link), "--force").code == 0
    assert link.is_symlink()
    assert not place.is_symlink()
    assert "Alice likes tea" in place.read_text()
    assert [each.name for each in place.parent.iterdir()] == [place.name]


def test_links_that_lead_in_a_circle_are_said_to(cli: Cli, remember: Callable[..., str], tmp_path: Path) -> None:
    remember("Alice likes tea")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    refused = cli("export", "-o", str(tmp_path / "one"))
    assert refused.code == 1
    assert "its links lead in a circle" in refused.err


def test_what_an_export_left_that_was_killed_is_in_no_others_way(
    cli: Cli, remember: Callable[..., str], tmp_path: Path
) -> None:
    remember("Alice drinks tea")
    file = tmp_path / "all.jsonl"
    left = tmp_path / f".all.jsonl.{os.getpid()}"  # in a container every process has the number of the one before it
    left.write_text("half of an export")
    assert cli("export", "-o", str(file)).code == 0
    assert left.read_text() == "half of an export"  # it may be of one that is under way elsewhere
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("kind", ["folder", "pipe", "nothing"])
def test_an_export_takes_the_place_of_files_alone(
    cli: Cli, remember: Callable[..., str], tmp_path: Path, kind: str, force: list[str]
) -> None:
    """Whoever may write everywhere would put a file in the place of a device."""
    remember("one")
    place = tmp_path / kind
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    refused = cli("export", "-o", "" if kind == "nothing" else str(place), *force)
    said = {"folder": "is a folder; name a file in it", "pipe": "is no file; leave -o out", "nothing": "names no file"}
    assert refused.code == 1
    assert said[kind] in refused.err
    assert kind == "nothing" or place.is_dir() or place.is_fifo()


def test_a_disk_that_is_full_is_a_failure_and_no_mistake(
    cli: Cli, remember: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember("one")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("commonplace.cli.export.sync_file", full)
    failed = cli("export", "-o", str(tmp_path / "x.jsonl"))
    assert (failed.code, "No space left on device; free some space" in failed.err) == (2, True)
    assert list(tmp_path.glob("*.jsonl*")) == []


def test_a_place_that_cannot_be_written_is_said(cli: Cli, remember: Callable[..., str], tmp_path: Path) -> None:
    remember("one")
    refused = cli("export", "-o", str(tmp_path / "no" / "where.jsonl"))
    assert refused.code == 1
    assert "cannot write" in refused.err
    assert list(tmp_path.glob(".*")) == []


def test_through_a_pipe(
    cli: Cli, remember: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember("one")
    file = tmp_path / "x.jsonl"
    cli("export", "-o", str(file))

    class Pipe(io.StringIO):
        buffer: io.BytesIO

    from commonplace.cli import main

    for number, format in enumerate(((), ("--format", "commonplace"))):
        Pipe.buffer = io.BytesIO(file.read_bytes())
        monkeypatch.setattr("sys.stdin", Pipe())
        assert main(("import", "-", *format, "--data", str(tmp_path / f"there{number}"))) == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "x.jsonl is empty: name the file that holds the memories, or export it again"),
        ("hello\n", "x.jsonl is of no known format; there are commonplace, amp, chatgpt"),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused(cli: Cli, tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(content)
    refused = cli("import", str(file))
    assert refused.code == 1
    assert says in refused.err


@pytest.mark.parametrize("packing", ["ZIP_DEFLATED", "ZIP_STORED", "folder"])
def test_an_export_that_is_packed_is_to_be_taken_out(
    cli: Cli, remember: Callable[..., str], tmp_path: Path, packing: str
) -> None:
    remember("Alice drinks tea")
    (tmp_path / "folder").mkdir()
    export = tmp_path / "folder" / "all.jsonl"
    cli("export", "-o", str(export))
    if packing != "folder":
        with zipfile.ZipFile(tmp_path / packing, "w", getattr(zipfile, packing)) as archive:
            archive.write(export, export.name)
    refused = cli("import", str(tmp_path / packing))
    assert refused.code == 1
    assert f"{packing} holds an export of ours, which is read as a file alone: take that out, and name" in refused.err


def test_a_store_of_ours_is_no_file_to_import_and_what_copies_it_is_named(
    cli: Cli, remember: Callable[..., str], data: Path, tmp_path: Path
) -> None:
    remember("Alice drinks tea")
    refused = cli("import", str(data / "commonplace.db"), "--data", str(tmp_path / "there"))
    assert refused.code == 1
    assert "is a store of Commonplace: `commonplace migrate --from FILE --to URL` copies all of one" in refused.err


def test_a_format_that_was_named_is_believed(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"record":"header"}\n')
    refused = cli("import", str(file), "--format", "commonplace")
    assert refused.code == 1
    assert "line 1: is not the header of an export" in refused.err
    assert "nothing was imported" in refused.err
    unknown = cli("import", str(file), "--format", "word")
    assert unknown.code == 1
    assert "--format takes auto, commonplace, amp" in unknown.err


CONVERSATION = [{"title": "Tea", "mapping": {}, "conversation_id": "c"}]
DRAWER = {"format_version": 2, "content": "Bees", "drawer_type": "UserFact", "content_hash": "ab"}
HEADER = {"record": "header", "format": "commonplace-export", "version": 2, "scope": {}}


@pytest.mark.parametrize(
    ("content", "format", "says"),
    [
        *(("", format, "is empty") for format in ("commonplace", "chatgpt", "mem0", "markdown", "amp", "trusty")),
        ("[]", "chatgpt", "x.json holds nothing that could be imported"),
        ("[]", "claude", "x.json holds nothing that could be imported"),
        ('{"results": []}', "mem0", "export it again where it is from, or name another file"),
        ("\n", "server-memory", "holds nothing that could be imported"),
        ("hello", "markdown", "holds nothing that could be imported"),
        (HEADER, "auto", "is of another version of the format than 1, the only one known here: upgrade Commonplace"),
        (DRAWER, "auto", "is of version 2 of the export, and 1 is known here: upgrade Commonplace"),
        (CONVERSATION, "mem0", "x.json is not of the format mem0 but of chatgpt: leave --format out"),
        (CONVERSATION, "claude", "not of the format claude but of chatgpt"),
        (CONVERSATION, "markdown", "not of the format markdown but of chatgpt"),
        (CONVERSATION, "amp", "not of the format amp but of chatgpt"),
        (CONVERSATION, "server-memory", "not of the format server-memory but of chatgpt"),
        (CONVERSATION, "trusty", "not of the format trusty but of chatgpt"),
        (CONVERSATION, "commonplace", "not of the format commonplace but of chatgpt"),
        (
            {"type": "entity", "name": "Al", "entityType": "x"},
            "chatgpt",
            "not of the format chatgpt but of server-memory",
        ),
        (HEADER, "commonplace", "is of another version of the format than 1, the only one known here: upgrade"),
        (HEADER, "mem0", "not of the format mem0 but of commonplace: leave --format out"),
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_a_file_with_nothing_of_the_format_is_refused_in_a_sentence(
    cli: Cli, tmp_path: Path, content: Any, format: str, says: str, skip: bool
) -> None:
    file = tmp_path / "x.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    done = cli("import", str(file), "--format", format, *(["--skip-broken"] if skip else []))
    assert "Traceback" not in done.err
    assert says in done.err
    assert done.code == (0 if skip and "version" in says else 1)  # a broken line is what one may skip
    assert cli("list", "--json").json["memories"] == []


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("format", ["commonplace", *EVERY])
def test_a_file_is_taken_in_by_the_name_of_its_own_format(
    cli: Cli, remember: Callable[..., str], tmp_path: Path, format: str, dry_run: bool
) -> None:
    if format == "commonplace":
        remember("Alice likes tea")
        file, memories = tmp_path / "all.jsonl", 1
        assert cli("export", "-o", str(file)).code == 0
    else:
        file, memories = EVERY[format][0](tmp_path), EVERY[format][1]
    options = ["--data", str(tmp_path / "there"), "--json", *(["--dry-run"] if dry_run else [])]
    done = cli("import", "--format", format.replace("_", "-"), str(file), *options)
    assert (done.code, done.json["files"][0]["written"]["memory"]) == (0, memories), done.err


def test_a_zip_of_another_product_than_was_named(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "chatgpt.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations.json", json.dumps(CONVERSATION))
    refused = cli("import", str(file), "--format", "mem0")
    assert refused.code == 1
    assert "chatgpt.zip is not of the format mem0 but of chatgpt: leave --format out, or give chatgpt" in refused.err
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations.json", "[]")
    refused = cli("import", str(file), "--format", "chatgpt")
    assert (refused.code, "chatgpt.zip holds nothing that could be imported" in refused.err) == (1, True)


MEMORIES = """{"type":"entity","name":"Alice","entityType":"person","observations":["likes tea"]}
{"type":"relation","from":"Alice","to":"Bob","relationType":"knows"}
"""


def test_a_file_of_another_product(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "memory.json"
    file.write_text(MEMORIES)
    foreseen = cli("import", str(file), "--agent", "assistant", "--user", "alice", "--dry-run")
    assert (foreseen.code, foreseen.out) == (0, "would import 2 memories, 1 statement\n")
    assert cli("list", "--agent", "assistant", "--json").json["memories"] == []
    done = cli("import", str(file), "--agent", "assistant", "--user", "alice")
    assert (done.code, done.out) == (0, "imported 2 memories, 1 statement\n")
    found = cli("list", "--agent", "assistant", "--user", "alice", "--json").json["memories"]
    assert sorted(memory["content"] for memory in found) == ["Alice knows Bob", "likes tea"]
    again = cli("import", str(file), "--agent", "assistant", "--user", "alice")
    assert again.out == "imported nothing\nhere already: 2 memories, 1 statement\n"


@pytest.mark.parametrize(("given", "agent"), [((), "theirs"), (("--agent", "assistant"), "assistant")])
def test_whose_memories_of_another_product_become_can_be_said(
    cli: Cli, tmp_path: Path, given: tuple[str, ...], agent: str
) -> None:
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps([{"id": "1", "memory": "Alice drinks tea", "agent_id": "theirs"}]))
    assert cli("import", str(file), *given).code == 0
    kept = {name: cli("list", "--agent", name, "--json").json["memories"] for name in ("theirs", "assistant")}
    assert [name for name, memories in kept.items() if memories] == [agent]


def test_it_may_wait_for_approval(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "memory.json"
    file.write_text(MEMORIES)
    done = cli("import", str(file), "--approval", "--json").json["files"][0]
    assert done["staged"] == 2
    assert len(cli("review", "list", "--json").json["reviews"]) == 2
    assert cli("list", "--json").json["memories"] == []


def test_a_folder_of_notes(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "tea.md").write_text("---\ntags: [drink]\n---\nGreen tea at 80 degrees")
    (tmp_path / "notes" / "logo.png").write_bytes(b"x")
    done = cli("import", str(tmp_path / "notes"))
    assert done.out == "imported 1 memory\n"
    assert "left out 1: it is not Markdown (logo.png)" in done.err


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_what_is_neither_a_file_nor_a_folder_is_refused_before_it_is_read(cli: Cli, tmp_path: Path, kind: str) -> None:
    """The one would wait for ever, the other never ends."""
    path = Path("/dev/zero")
    if kind == "fifo":
        path = tmp_path / "pipe"
        os.mkfifo(path)
    refused = cli("import", str(path))
    assert refused.code == 1
    assert f"{path} is neither a file nor a folder; `commonplace import -` reads an export of ours from" in refused.err


def test_a_file_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    refused = cli("import", str(tmp_path / "nowhere.jsonl"))
    assert refused.code == 1
    assert "cannot read" in refused.err


def test_the_broken_line_is_left_out_and_named_where_that_was_chosen(
    cli: Cli, remember: Callable[..., str], tmp_path: Path
) -> None:
    remember("one")
    remember("two")
    file = tmp_path / "x.jsonl"
    cli("export", "-o", str(file))
    lines = file.read_text().splitlines(keepends=True)
    lines[1] = "{\n"
    file.write_text("".join(lines))
    refused = cli("import", str(file), "--data", str(tmp_path / "there"))
    assert (refused.code, "line 2" in refused.err) == (1, True)
    done = cli("import", str(file), "--data", str(tmp_path / "there"), "--skip-broken")
    assert done.code == 0
    assert done.out == "imported 1 memory\n"
    assert "broken, left out: line 2: is not valid JSON" in done.err


def test_whose_memories_they_are_is_in_the_file(cli: Cli, remember: Callable[..., str], tmp_path: Path) -> None:
    remember("one")
    file = tmp_path / "x.jsonl"
    cli("export", "-o", str(file))
    refused = cli("import", str(file), "--agent", "other")
    assert refused.code == 1
    assert "leave --agent, --user and --approval out" in refused.err


def test_the_export_is_lines_of_json(cli: Cli, remember: Callable[..., str], tmp_path: Path) -> None:
    id = remember("one")
    file = tmp_path / "x.jsonl"
    cli("export", "-o", str(file))
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record["record"] for record in records] == ["header", "memory", "manifest"]
    assert records[1]["id"] == id


def test_a_store_is_moved_to_another_folder(cli: Cli, remember: Callable[..., str], data: Path, tmp_path: Path) -> None:
    id = remember("Alice is allergic to peanuts")
    cli("update", id, "--content", "Alice is allergic to cashews")
    there = str(tmp_path / "there")
    foreseen = cli("migrate", "--from", str(data), "--to", there, "--dry-run", "--json").json
    assert foreseen["counts"]["version"] == 2
    assert foreseen["dry_run"]
    assert not (tmp_path / "there").exists()
    shown = cli("migrate", "--from", str(data), "--to", there, "--dry-run")
    assert "the ledger\tthe same" in shown.out
    done = cli("migrate", "--from", str(data), "--to", there)
    assert done.code == 0, done
    assert "copied 1 memory, 2 versions" in done.out
    assert "both stores hold the same" in done.out
    assert cli("audit", "verify", "--data", there).code == 0
    assert len(cli("history", id, "--data", there, "--json").json["versions"]) == 2
    again = cli("migrate", "--from", str(data), "--to", there, "--dry-run")
    assert "would copy nothing: 1 memory, 2 versions" in again.out
    again = cli("migrate", "--from", str(data), "--to", there)
    assert again.code == 0, again
    assert "1 memory, 2 versions" in again.out
    assert "already; both stores hold the same" in again.out
    assert cli("migrate", "--from", str(data), "--to", there, "--json", "--yes").json["already_there"]
    remember("Bob keeps bees")
    later = cli("migrate", "--from", str(data), "--to", there)
    assert later.code == 1
    assert "the target is not empty" in later.err


@pytest.mark.parametrize("target", ["sqlite://", "", "{}/file/there", "{}/data/../data"])
def test_a_dry_run_ends_as_the_run_would(
    cli: Cli, remember: Callable[..., str], data: Path, tmp_path: Path, target: str
) -> None:
    remember("Alice is allergic to peanuts")
    (tmp_path / "file").write_text("no folder")
    ends = ("--from", str(data), "--to", target.format(tmp_path))
    foreseen, done = cli("migrate", *ends, "--dry-run"), cli("migrate", *ends, "--yes")
    assert (foreseen.code != 0, foreseen) == (True, done)


@pytest.mark.parametrize("yes", [["--yes"], []], ids=["unasked", "no terminal"])
def test_what_is_kept_is_said_before_anything_is_copied(
    cli: Cli, remember: Callable[..., str], data: Path, tmp_path: Path, yes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remember("Alice is allergic to peanuts")
    foreseen = cli("migrate", "--from", str(data), "--to", str(tmp_path / "there"), "--dry-run")
    table = foreseen.out.rpartition("would copy")[0]
    assert "the ledger\tthe same" in table

    async def fail(*args: Any) -> None:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(StoreMove, "run", fail)
        failed = cli("migrate", "--from", str(data), "--to", str(tmp_path / "there"), *yes)
    assert (failed.code != 0, failed.out) == (True, table)
    done = cli("migrate", "--from", str(data), "--to", str(tmp_path / "there"), *yes)
    assert done.code == 0, done
    assert done.out.startswith(f"{table}copied 1 memory, 1 version")


def test_what_is_kept_is_said_once_to_whoever_is_asked(
    cli: Cli, remember: Callable[..., str], data: Path, tmp_path: Path
) -> None:
    remember("Alice is allergic to peanuts")
    refused = cli("migrate", "--from", str(data), "--to", str(tmp_path / "there"), typed="n\n")
    assert refused.out.count("the ledger\tthe same") == 1
    assert "copy 1 memory" in refused.err
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("yes", [["--yes"], []], ids=["unasked", "no terminal"])
def test_to_a_program_what_is_kept_is_said_in_the_one_document(
    cli: Cli, remember: Callable[..., str], data: Path, tmp_path: Path, yes: list[str]
) -> None:
    remember("Alice is allergic to peanuts")
    done = cli("migrate", "--from", str(data), "--to", str(tmp_path / "there"), "--json", *yes).json
    assert ("the ledger", "the same") in [(row["what"], row["kept"]) for row in done["fidelity"]]


@pytest.mark.timeout(60)  # a server that starts goes on
@pytest.mark.parametrize("command", ["recall x", "remember x", "list", "export", "status", "migrate", "serve --port 0"])
def test_a_store_that_is_half_moved_is_not_used(
    cli: Cli, remember: Callable[..., str], data: Path, tmp_path: Path, command: str
) -> None:
    remember("Alice is allergic to peanuts")

    async def mark() -> None:
        store = SqliteStore(data / "commonplace.db")
        await store.transact(SYSTEM, lambda tx: tx.put_record(Record(MIGRATION, SOURCE, {"begins": {}})))
        await store.close()

    asyncio.run(mark())
    ends = ["--from", str(data), "--to", str(tmp_path / "on")] if command == "migrate" else []
    refused = cli(*command.split(), *ends)
    assert refused.code == 2
    assert not (tmp_path / "on").exists()
    assert "a migration into it has not come to its end" in refused.err
    assert "run that `commonplace migrate` again" in refused.err


def test_nothing_is_noted_in_a_store_that_is_half_moved(
    cli: Cli, remember: Callable[..., str], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even under which names other stores have its copies."""
    remember("Alice is allergic to peanuts")
    database = data / "commonplace.db"

    async def kinds(marks: bool) -> list[str]:
        store = SqliteStore(database)
        if marks:
            await store.transact(SYSTEM, lambda tx: tx.put_record(Record(MIGRATION, SOURCE, {"begins": {}})))
        found = sorted(await store.record_kinds(SYSTEM))
        await store.close()
        return found

    before = asyncio.run(kinds(marks=True))
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{database} sqlite://{tmp_path}/copy.db")
    assert cli("list").code == 2
    assert asyncio.run(kinds(marks=False)) == before


def test_a_store_that_is_not_there_is_not_moved(cli: Cli, tmp_path: Path) -> None:
    refused = cli("migrate", "--from", str(tmp_path / "no"), "--to", str(tmp_path / "there"))
    assert refused.code == 1
    assert "there is no store at" in refused.err
    assert not (tmp_path / "there").exists()


def _mark(database: Path) -> None:
    async def mark() -> None:
        store = SqliteStore(database)
        await store.transact(SYSTEM, lambda tx: tx.put_record(Record(MIGRATION, SOURCE, {"begins": {}})))
        await store.close()

    asyncio.run(mark())


def test_a_target_that_was_half_filled_is_set_aside_whole(
    cli: Cli, remember: Callable[..., str], data: Path, tmp_path: Path
) -> None:
    remember("Alice is allergic to peanuts")
    _mark(data / "commonplace.db")
    closed = cli("list")
    assert "migrate --to" in closed.err
    assert "--set-aside" in closed.err
    foreseen = cli("migrate", "--to", str(data), "--set-aside", "--dry-run")
    assert foreseen.code == 0
    assert "would set aside 1 memory, 1 version" in foreseen.out
    assert cli("list").code == 2
    refused = cli("migrate", "--to", str(data), "--set-aside", typed="n\n")
    assert "nothing was changed" in refused.err
    done = cli("migrate", "--to", str(data), "--set-aside", "--json").json
    aside = data / "commonplace.unfinished.db"
    assert (done["set_aside"], done["counts"]["memory"]) == (f"sqlite://{aside}", 1)
    assert cli("list", "--json").json["memories"] == []
    remember("Bob drinks tea")
    assert [m["content"] for m in cli("list", "--json").json["memories"]] == ["Bob drinks tea"]
    # All of it is where it was put, and still half of a store.
    again = cli("migrate", "--to", f"sqlite://{aside}", "--set-aside", "--dry-run", "--json").json
    assert again["counts"] == done["counts"]
    _mark(data / "commonplace.db")
    second = cli("migrate", "--to", str(data), "--set-aside", "--yes")
    assert "commonplace.unfinished-2.db" in second.out
    assert aside.exists()
    # Whoever deletes one may leave what lies beside it.
    aside.unlink()
    (data / "commonplace.unfinished.segments").mkdir(exist_ok=True)
    _mark(data / "commonplace.db")
    assert "commonplace.unfinished-3.db" in cli("migrate", "--to", str(data), "--set-aside", "--yes").out


@pytest.mark.parametrize("dry_run", [["--dry-run"], ["--yes"]])
@pytest.mark.parametrize("kind", ["ordinary", "finished", "new", "empty", "missing", "memory", "copies", "other"])
def test_nothing_but_a_half_filled_target_is_set_aside(
    cli: Cli, remember: Callable[..., str], data: Path, tmp_path: Path, kind: str, dry_run: list[str]
) -> None:
    remember("Alice is allergic to peanuts")
    there = tmp_path / "there"
    if kind == "finished":
        assert cli("migrate", "--from", str(data), "--to", str(there), "--yes").code == 0
    elif kind == "new":
        asyncio.run(SqliteStore(there / "commonplace.db").close())
    elif kind in ("other", "empty"):
        there.mkdir()
        (there / "commonplace.db").write_text("no database" if kind == "other" else "")
    target = {"ordinary": str(data), "memory": "memory://", "copies": "mem0://x"}.get(kind, str(there))
    before = sorted(tmp_path.rglob("*.db"))
    refused = cli("migrate", "--to", target, "--set-aside", *dry_run)
    assert refused.code in (1, 2)
    assert refused.out == ""
    assert sorted(tmp_path.rglob("*.db")) == before
    if kind == "empty":
        assert (there / "commonplace.db").stat().st_size == 0
    assert [m["content"] for m in cli("list", "--json").json["memories"]] == ["Alice is allergic to peanuts"]


def test_one_that_is_in_use_is_not_set_aside(cli: Cli, remember: Callable[..., str], data: Path) -> None:
    remember("Alice is allergic to peanuts")
    _mark(data / "commonplace.db")
    store = SqliteStore(data / "commonplace.db")
    try:
        refused = cli("migrate", "--to", str(data), "--set-aside", "--yes")
        assert (refused.code, "is in use" in refused.err) == (1, True)
    finally:
        asyncio.run(store.close())
    assert cli("migrate", "--to", str(data), "--set-aside", "--yes").code == 0


def test_one_whose_folder_may_not_be_written_says_what_to_do(
    cli: Cli, remember: Callable[..., str], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember("Alice is allergic to peanuts")
    _mark(data / "commonplace.db")

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("commonplace.stores.sqlite.unfinished_migration.os.rename", refuse)
        refused = cli("migrate", "--to", str(data), "--set-aside", "--yes")
    assert "Permission denied" in refused.err
    assert "give the folder write permission, then repeat it" in refused.err
    assert cli("migrate", "--to", str(data), "--set-aside", "--yes").code == 0


def test_what_is_set_aside_goes_on_with_its_source(
    cli: Cli, remember: Callable[..., str], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember("Alice is allergic to peanuts")
    there = str(tmp_path / "there")

    async def fail(*args: Any) -> None:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Migration, "_copy_ledger", fail)
        assert cli("migrate", "--from", str(data), "--to", there, "--yes").code == 2
    aside = cli("migrate", "--to", there, "--set-aside", "--yes", "--json").json["set_aside"]
    done = cli("migrate", "--from", str(data), "--to", aside, "--yes")
    assert "went on where it had stopped" in done.out


def test_setting_aside_and_copying_are_two_things(cli: Cli, data: Path) -> None:
    both = cli("migrate", "--from", str(data), "--to", str(data), "--set-aside")
    assert (both.code, "leave --from out" in both.err) == (1, True)
    neither = cli("migrate", "--to", str(data))
    assert (neither.code, "--from" in neither.err) == (1, True)
