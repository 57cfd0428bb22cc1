"""Mistakes and failures: the right exit code, one sentence, never a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.cli.support.command import Session
from commonplace.wire.validate import check

NOBODY = "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["remember", ""], "validation_error", "content"),
        (["remember", "  "], "validation_error", "content"),
        (["remember", "x", "--type", "wrong"], "validation_error", "semantic"),
        (["remember", "x", "--confidence", "2"], "validation_error", "confidence"),
        (["remember", "x", "--importance", "2"], "validation_error", "--importance"),
        (["remember", "x", "--expires", "soon"], "validation_error", "--expires"),
        (["remember", "x", "--expires", "2001-01-01"], "validation_error", "expires_at"),
        (["remember", "x", "--event-time", "once"], "validation_error", "--event-time"),
        (["remember", "x", "--metadata", "novalue"], "validation_error", "KEY=VALUE"),
        (["remember", "x", "--metadata-json", "{"], "validation_error", "--metadata-json"),
        (["remember", "x", "--file", "y"], "validation_error", "not both"),
        (["remember", "--file", "/nowhere/at/all"], "validation_error", "No such file"),
        (["remember", "--batch", "/nowhere/at/all"], "validation_error", "No such file"),
        (["remember", "x", "--batch", "y"], "validation_error", "--batch"),
        (["remember", "x" * 300_000], "payload_too_large", "262,144"),
        (["remember", "x", "--agent", "a" * 300], "validation_error", "agent_id"),
        (["remember", "x", "--data", "~nobody-here/x"], "validation_error", "there is no such home folder"),
        (["export", "-o", "~nobody-here/x"], "validation_error", "there is no such home folder"),
        (
            ["migrate", "--from", "~nobody-here/x", "--to", "y"],
            "validation_error",
            "there is no home folder of that user",
        ),
        (["recall", " "], "validation_error", "query"),
        (["recall", "x", "-k", "0"], "validation_error", "k must"),
        (["recall", "x", "-k", "many"], "validation_error", "-k"),
        (["recall", "x", "--types", "wrong"], "validation_error", "types"),
        (["recall", "x", "--filter", "{"], "validation_error", "--filter"),
        (["recall", "x", "--filter", '{"a": {"$like": 1}}'], "validation_error", "$like"),
        (["recall", "x", "--where", "a"], "validation_error", "--where"),
        (["recall", "x", "--as-of", "then"], "validation_error", "--as-of"),
        (["recall", "x", "--fusion", "wrong"], "validation_error", "rrf"),
        (["recall", "x", "--min-score", "7"], "validation_error", "min_score"),
        (["recall"], "validation_error", "commonplace recall --help"),
        (["recall", "x", "--bogus"], "validation_error", "--bogus"),
        (["get", NOBODY], "not_found", "commonplace list"),
        (["get", "abcdef"], "not_found", "commonplace list"),
        (["history", NOBODY], "not_found", NOBODY),
        (["update", NOBODY, "--content", "x"], "not_found", NOBODY),
        (["update", NOBODY], "validation_error", "nothing to change"),
        (["update", NOBODY, "--tag", "x", "--no-tags"], "validation_error", "not both"),
        (["list", "--type", "wrong"], "validation_error", "semantic"),
        (["list", "--limit", "0"], "validation_error", "limit"),
        (["list", "--cursor", "nonsense"], "validation_error", "cursor"),
        (["list", "--cursor", "abc"], "validation_error", "pass back next_cursor as it came"),
        (["forget"], "validation_error", "--where"),
        (["forget", NOBODY], "not_found", "commonplace list"),
        (["forget", "--where", "a=1", "--hard"], "validation_error", "--yes"),
        (["merge", NOBODY, NOBODY], None, ""),
        (["merge", NOBODY], "validation_error", "DUPES"),
        (["expire"], "validation_error", "--older-than-days"),
        (["expire", "--older-than-days", "0"], "validation_error", "older_than_days"),
        (["expire", "--type", "semantic", "--action", "burn"], "validation_error", "archive"),
        (["reviews", "show", NOBODY], "not_found", NOBODY),
        (["reviews", "approve", NOBODY], "not_found", NOBODY),
        (["reviews", "list", "--status", "odd"], "validation_error", "--status"),
        (["audit", "list", "--cursor", "nonsense"], "validation_error", "cursor"),
        (["audit", "list", "--limit", "0"], "validation_error", "limit"),
        (["reindex", "--embedder", "nonsense"], "validation_error", "nonsense"),
        (["reindex"], "validation_error", "embedder"),
        (["bogus"], "validation_error", "bogus"),
        (["reviews", "bogus"], "validation_error", "bogus"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else None,
)
def test_the_users_mistakes(cli, args: list[str], code: str | None, says: str) -> None:
    result = cli(*args, "--json")
    assert result.code == 1, result
    assert result.err == ""
    check("memorywire/error", result.json)
    assert code in (None, result.json["error"]["code"])
    assert says in result.json["error"]["message"]
    spoken = cli(*args)
    assert (spoken.code, spoken.out) == (1, "")
    assert spoken.err.startswith("commonplace: ")
    assert len(spoken.err.splitlines()) == 1


@pytest.mark.parametrize(
    "args",
    [
        ["remember", "x", "--importance", "2"],
        ["remember", "--batch", "nowhere.jsonl"],
        ["token", "create", "--expires", "soon"],
        ["kg", "assert", "a", "b", "c", "--valid-from", "soon"],
        ["palace", "identity", "p", "--file", "nowhere.txt"],
        ["ask", "http://127.0.0.1:9"],
    ],
    ids=" ".join,
)
def test_a_mistake_begins_no_store(cli, data: Path, args: list[str]) -> None:
    assert cli(*args).code == 1
    assert not data.exists()


def test_a_user_without_a_home_folder(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that is run under a number that no user has."""
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    for name in ("HOME", "XDG_DATA_HOME", "COMMONPLACE_DATA"):
        monkeypatch.delenv(name, raising=False)
    result = cli("status")
    assert result.code == 1
    assert result.err.startswith("commonplace: there is no such home folder; name a path without ~, or set HOME")


def test_an_unknown_embedder(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "nonsense")
    result = cli("recall", "x")
    assert result.code == 1
    assert "encoder" in result.err


def test_an_unknown_store(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_STORE", "nonsense://x")
    assert "sqlite://" in cli("list").err


def test_a_data_directory_under_a_file(cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = cli("list", "--data", str(tmp_path / "file" / "data"))
    assert result.code == 1
    assert str(tmp_path / "file") in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which even root can make nothing")
def test_a_data_directory_that_cannot_be_made(cli) -> None:
    result = cli("remember", "x", "--data", "/proc/commonplace")
    assert (result.code, result.out) == (2, "")
    assert "/proc/commonplace" in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("command", [["list"], ["recall", "x"], ["remember", "x"], ["status"], ["doctor"]])
def test_a_damaged_database_is_left_alone(cli, data: Path, command: list[str]) -> None:
    data.mkdir()
    database = data / "commonplace.db"
    database.write_bytes(b"this is no database" * 100)
    result = cli(*command, "--json")
    assert result.code == 2
    check("memorywire/error", result.json)
    assert result.json["error"]["code"] == "unavailable"
    assert "backup" in result.json["error"]["message"]
    assert database.read_bytes() == b"this is no database" * 100


def test_a_broken_settings_file(cli, data: Path) -> None:
    data.mkdir()
    (data / "commonplace.toml").write_text("agnet = 'x'")
    result = cli("list")
    assert result.code == 1
    assert "agnet" in result.err


def test_a_backup_that_cannot_be_written(cli, tmp_path: Path) -> None:
    cli("remember", "x")
    (tmp_path / "file").write_text("in the way")
    result = cli("backup", str(tmp_path / "file" / "copy.db"), "--json")
    assert result.code == 2, result
    check("memorywire/error", result.json)


def _break(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(self: Session, work: object) -> None:
        work.close()  # type: ignore[attr-defined]
        raise error

    monkeypatch.setattr(Session, "__call__", fail)


def test_what_nobody_foresaw_is_one_sentence(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, RuntimeError("the cat\nsat"))
    result = cli("list")
    assert result.code == 2
    assert "RuntimeError (the cat)" in result.err
    assert "COMMONPLACE_DEBUG=1" in result.err
    assert "Traceback" not in result.err
    check("memorywire/error", cli("list", "--json").json)
    monkeypatch.setenv("COMMONPLACE_DEBUG", "1")
    assert "Traceback" in cli("list").err


def test_ctrl_c_is_quiet(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, KeyboardInterrupt())
    result = cli("list")
    assert (result.code, result.out, result.err.strip()) == (130, "", "")


@pytest.mark.parametrize(
    "args",
    [
        ("get", "\udcff"),
        ("history", "\udcff"),
        ("list", "--agent", "\udcff"),
        ("audit", "list", "--operation", "\udcff"),
    ],
)
def test_what_is_not_text_is_not_a_bug(cli, args: tuple[str, ...]) -> None:
    assert cli("remember", "tea").code == 0
    ran = cli(*args)
    assert ran.code == 1
    assert "is not text" in ran.err


def test_a_text_taken_for_an_option_is_not_repeated(cli) -> None:
    text = "-----BEGIN " + "PRIVATE KEY-----\nabcdefghijklmnop\n"
    for ran in (cli("remember", text), cli("remember", text, "--json")):
        assert ran.code == 1
        assert "abcdefgh" not in ran.out + ran.err
        assert "`--` before it" in ran.out + ran.err
    assert cli("remember", "--", "-5 degrees outside").code == 0


def test_a_typing_mistake_gets_a_hint(cli) -> None:
    assert "'remember'? `commonplace --help`" in cli("remenber", "tea").err


def test_a_folder_that_was_not_there_is_told_of(cli, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path / "typo"))
    ran = cli("recall", "tea")
    assert ran.code == 0
    assert "typo, which COMMONPLACE_DATA names, was not there" in ran.err
    assert (tmp_path / "typo" / "commonplace.db").exists()


def test_reading_begins_no_store_in_a_folder_that_is_named(cli, tmp_path) -> None:
    refused = cli("recall", "tea", "--data", str(tmp_path / "typo"))
    assert (refused.code, "there is no store in" in refused.err) == (1, True)
    assert not (tmp_path / "typo").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_folder_that_cannot_be_made_is_said_with_what_to_do(cli, monkeypatch) -> None:
    """As in a home that is read-only; where this one is, not even root can make any."""
    monkeypatch.setenv("COMMONPLACE_DATA", "/proc/commonplace/data")
    for args in (("remember", "tea"), ("recall", "tea"), ("status",)):
        refused = cli(*args)
        assert refused.code == 2
        assert "cannot create the data folder" in refused.err
        assert "Choose another with --data or COMMONPLACE_DATA" in refused.err


def test_the_data_directory_is_a_folder(cli, tmp_path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("x")
    ran = cli("status", "--data", str(file))
    assert ran.code == 1
    assert "is a file" in ran.err


ENDLESS = "x" * (4 * 262_144 + 2)


@pytest.mark.parametrize(
    "args",
    [
        ("remember",),
        ("remember", "-"),
        ("remember", "--file"),
        ("palace", "identity", "p", "--file"),
        ("remember", "--data"),
    ],
    ids=" ".join,
)
def test_no_more_is_read_than_shows_that_it_is_too_long(cli, tmp_path: Path, args: tuple[str, ...]) -> None:
    path = tmp_path / "endless"
    if args[-1] == "--data":
        path.mkdir()
        (path / "commonplace.toml").write_text(ENDLESS, "utf-8")
    else:
        path.write_text(ENDLESS, "utf-8")
    refused = cli(*args, *([str(path)] if args[-1].startswith("--") else []), stdin=ENDLESS)
    assert refused.code == 1
    assert "has more than" in refused.err
    assert len(refused.err) < 500


def test_as_much_as_is_kept_is_read(cli, tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_text("x" * 262_144 + "\n\n", "utf-8")
    assert cli("remember", "--file", str(path)).code == 0


@pytest.mark.parametrize("host", ["nohost.invalid", "192.0.2.1"])
def test_a_host_that_is_not_this_machine_is_what_is_named(cli, host: str) -> None:
    refused = cli("serve", "--host", host, "--port", "0")
    assert refused.code == 2
    assert f"cannot listen on {host}: " in refused.err
    assert "an address of this machine" in refused.err
    assert "--port" not in refused.err
