"""Connecting clients: the change is shown first, everything else in their settings stays, and it can be undone."""

from __future__ import annotations

import difflib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from commonplace import __version__
from commonplace.cli.install import _Change
from commonplace.cli.serve import _ways_to_connect
from commonplace.cli.support import client_settings
from commonplace.cli.support.clients import CLIENTS, Scope, settings_path
from commonplace.cli.support.mcp_arguments import McpArguments, client_variables
from commonplace.config import Config, standard_folder
from commonplace.wire.errors import ValidationError


@pytest.fixture
def home(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COMMONPLACE_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_the_shell_says_is_told_to_the_client(cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_DATA", "here")
    monkeypatch.setenv("COMMONPLACE_AGENT", "alice")
    monkeypatch.setenv("COMMONPLACE_STORE", "sqlite://./my.db")
    expected = ["mcp", "--agent", "alice"]  # a folder that a flag names would have its own store
    env = {"COMMONPLACE_STORE": f"sqlite://{home / 'my.db'}", "COMMONPLACE_DATA": str(home / "here")}
    for args in (("install", "--client", "cursor", "--print"), ("mcp", "--json")):
        entry = json.loads(cli(*args).out)["mcpServers"]["commonplace"]
        assert (entry["args"], entry["env"]) == (expected, env)
    flags = cli("install", "--client", "opencode", "--print", "--data", "there", "--agent", "bob")
    entry = json.loads(flags.out)["mcp"]["servers"]["commonplace"]
    assert entry["command"][1:] == ["mcp", "--agent", "bob", "--data", str(home / "there")]
    assert "environment" not in entry
    assert "COMMONPLACE_STORE is not written: --data names a folder, whose own store is meant" in flags.err
    for command in (("install", "--client", "claude-code", "--hooks", "--print"), ("mcp", "--json")):
        told = cli(*command, "--data", "there")
        assert told.err.count("COMMONPLACE_STORE is not written: --data names a folder, whose own store is meant") == 1
        assert ("COMMONPLACE_STORE" in told.out, f"{home}/there" in told.out) == (False, True)
        assert "is not written" not in cli(*command).err
    assert (
        "is not written" not in cli("install", "--client", "claude-code", "--hooks", "--remove", "--data", "there").err
    )
    hooks = cli("install", "--client", "claude-code", "--hooks", "--print").out
    assert f"env COMMONPLACE_STORE=sqlite://{home}/my.db COMMONPLACE_DATA={home}/here" in hooks
    assert "--data" not in hooks
    monkeypatch.delenv("COMMONPLACE_STORE")
    entry = json.loads(cli("mcp", "--json").out)["mcpServers"]["commonplace"]
    assert (entry["args"], "env" in entry) == (["mcp", "--agent", "alice", "--data", str(home / "here")], False)


@pytest.mark.parametrize("own", [None, "sqlite://./its-own.db"])
def test_a_folder_that_a_flag_names_keeps_the_copies_that_a_variable_gives_its_own_store(
    cli, home: Path, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    """A server that is started with this flag uses them."""
    there = home / "there"
    there.mkdir()
    if own:
        (there / "commonplace.toml").write_text(f'stores = ["{own}"]', "utf-8")
    first = there / ("its-own.db" if own else "commonplace.db")
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{first} sqlite://./copy.db?name=spare")
    env = {"COMMONPLACE_STORES": f"sqlite://{first} sqlite://{home}/copy.db?name=spare"}
    for args in (("install", "--client", "cursor", "--print"), ("mcp", "--json")):
        done = cli(*args, "--data", "there")
        entry = json.loads(done.out)["mcpServers"]["commonplace"]
        assert (entry["args"], entry["env"]) == (["mcp", "--data", str(there)], env)
        assert "is not written" not in done.err
    hooks = cli("install", "--client", "claude-code", "--hooks", "--print", "--data", "there").out
    assert f"env 'COMMONPLACE_STORES={env['COMMONPLACE_STORES']}'" in hooks
    assert f"--data {there}" in hooks


def test_a_store_with_a_password_is_not_copied_into_settings() -> None:
    store = "postgres://alice:" + "wonder" + "land@db/memories"
    with pytest.raises(ValidationError, match=r"commonplace\.toml"):
        client_variables({"COMMONPLACE_STORE": store}, data=None)
    assert client_variables({"COMMONPLACE_STORE": "memory://"}, data=None) == (("COMMONPLACE_STORE", "memory://"),)
    assert client_variables({}, data=None) == ()
    several = "sqlite:///a.db memory://"
    assert client_variables({"COMMONPLACE_STORES": several}, data=None) == (("COMMONPLACE_STORES", several),)
    gone = "sqlite:///a.db sqlite://:memory:?name=b"  # which is no file of that name
    assert client_variables({"COMMONPLACE_STORES": gone}, data=None) == (("COMMONPLACE_STORES", gone),)
    assert McpArguments().for_client({}).data is None


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such variable")
def test_a_moved_data_home_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "moved"))
    assert McpArguments().for_client().data == str(standard_folder())


def test_the_server_announces_ways_to_this_very_memory(home: Path) -> None:
    url = "http://127.0.0.1:8420"
    plain = _ways_to_connect(Config(standard_folder()), url, is_open=True)
    assert [command for command, _ in plain] == [
        "commonplace install --client claude-code",
        f"commonplace install --client claude-code --url {url}/mcp",
    ]
    there = _ways_to_connect(Config(Path("my data"), agent="alice"), url, is_open=False)
    assert [command for command, _ in there] == [
        f"commonplace install --client claude-code --data '{home / 'my data'}' --agent alice",
        f"commonplace install --client claude-code --url {url}/mcp --token-env COMMONPLACE_TOKEN",
    ]
    elsewhere = _ways_to_connect(Config(Path("d"), store="memory://"), url, is_open=True)
    assert [what for _, what in elsewhere] == ["which calls this server"]


def test_the_tutorial_says_how_many_clients_are_known() -> None:
    tutorial = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")
    assert (len(CLIENTS), "ten clients are known" in tutorial) == (10, True)


def test_print_changes_nothing(cli, home: Path) -> None:
    ran = cli("install", "--client", "claude-code", "--print", "--agent", "alice")
    assert ran.code == 0
    assert json.loads(ran.out)["mcpServers"]["commonplace"]["args"] == ["mcp", "--agent", "alice"]
    assert list(home.iterdir()) == []


def test_it_is_not_written_without_a_yes(cli, home: Path) -> None:
    ran = cli("install", "--client", "cursor")
    assert ran.code == 1
    assert '+    "commonplace"' in ran.out
    assert "--yes" in ran.err
    assert not (home / ".cursor").exists()


@pytest.mark.parametrize("count", [0, 1, 3, 50])
def test_the_change_is_shown_as_difflib_shows_it(count: int) -> None:
    lines = [f"line {n}\n" for n in range(count)]
    for added in ([], ["new\n"], ["new\n", "line 1\n"]):
        for at in range(0, count + 1, 7):
            after = lines[:at] + added + lines[at + 1 :]
            change = _Change(Path("p"), "".join(lines), "".join(after))
            assert change.diff() == "".join(difflib.unified_diff(lines, after, "p", "p"))


def test_a_no_writes_nothing_and_exits_with_one(cli, home: Path) -> None:
    refused = cli("install", "--client", "cursor", typed="n\n")
    assert refused.code == 1
    assert "nothing was written" in refused.err
    assert not (home / ".cursor" / "mcp.json").exists()


def test_it_is_written_with_a_copy_of_what_was_there(cli, home: Path) -> None:
    settings = home / ".cursor" / "mcp.json"
    settings.parent.mkdir()
    settings.write_text('{\n  "mcpServers": {}\n}\n')
    settings.chmod(0o640)
    ran = cli("install", "--client", "cursor", "--yes")
    assert ran.code == 0, ran.err
    written = json.loads(settings.read_text())["mcpServers"]["commonplace"]
    assert os.access(written["command"], os.X_OK)
    assert settings.stat().st_mode & 0o777 == 0o640
    assert settings.with_name("mcp.json.before-commonplace").read_text() == '{\n  "mcpServers": {}\n}\n'
    again = cli("install", "--client", "cursor", "--yes", "--json")
    assert json.loads(again.out)["changed"] is False
    assert cli("install", "--client", "cursor", "--remove", "--yes").code == 0
    assert settings.read_text() == '{\n  "mcpServers": {}\n}\n'
    assert list(settings.parent.iterdir()) == [settings]


def test_the_first_copy_is_never_written_over(cli, home: Path) -> None:
    settings = home / ".cursor" / "mcp.json"
    settings.parent.mkdir()
    first = '{"theme":  "dark"}'
    settings.write_text(first)
    assert cli("install", "--client", "cursor", "--yes").code == 0
    settings.write_text(settings.read_text().replace("dark", "light"))  # as the client does
    second = settings.read_text()
    assert cli("install", "--client", "cursor", "--agent", "alice", "--yes").code == 0
    ran = cli("install", "--client", "cursor", "--remove", "--yes")
    assert ran.code == 0
    assert settings.read_text() == '{"theme":  "light"}'
    copies = [settings.with_name("mcp.json.before-commonplace" + end) for end in ("", ".2")]
    assert [copy.read_text() for copy in copies] == [first, second]
    assert str(settings.with_name("mcp.json.before-commonplace.3")) in ran.out


@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_a_file_that_was_not_there_before_goes_again(cli, home: Path, client: str) -> None:
    assert cli("install", "--client", client, "--yes").code == 0
    assert cli("install", "--client", client, "--agent", "alice", "--yes").code == 0
    assert len(list((home / f".{client}").iterdir())) == 2
    ran = cli("install", "--client", client, "--remove", "--yes")
    assert (ran.code, "deleted" in ran.out) == (0, True)
    assert list((home / f".{client}").iterdir()) == []


OBJECTS = {
    "none": None,
    "empty": "",
    "blank": "\n",
    "object": "{}",
    "object and line": "{}\n",
    "one line": '{"theme": "dark"}',
    "spread": '{\n  "theme": "dark"\n}\n',
    "tabs": '{\n\t"theme": "dark",\n\t"KEY": {\n\t\t"other": {"command": "x", "type": "stdio"}\n\t}\n}',
    "other line ends": '{\r\n    "KEY": {},\r\n    "theme": "dark"\r\n}\r\n',
    "comments": '// mine\n{\n  "theme": "dark", // dark\n  /* more */\n}\n',
    "byte order mark": '\ufeff{\n  "theme": "dark"\n}\n',
    "escapes": '{\n  "thème": "d\\u00e4rk \\"} ☃",\n  "list": [1, 2.0, {"a": []}]\n}\n',
}
TABLES = {
    "none": None,
    "empty": "",
    "one line": 'model = "m"',
    "other line ends": '# mine\r\nmodel = "m"\r\n\r\n[KEY.other]\r\ncommand = "x"\r\n',
    "blank lines at the end": '[KEY.other]\ncommand = "x"\n\n\n\n',
    "comment at the end": 'model = "m" # fast\n\n[a]\nb = [\n  "[c]",\n]\n# the end',
}


@pytest.mark.parametrize(
    ("client", "scope"),
    [
        (name, scope)
        for name, each in CLIENTS.items()
        for scope in ("user", "project")
        if scope == "user" or each.project
    ],
)
def test_of_every_client_removing_gives_the_settings_back_to_the_byte(
    cli, home: Path, client: str, scope: Scope
) -> None:
    chosen = CLIENTS[client]
    path = settings_path(chosen, scope, home, home)
    folder = path.parent
    folder.mkdir(parents=True, exist_ok=True)
    arguments = ("install", "--client", client, "--scope", scope, "--yes")
    for name, text in (TABLES if chosen.style == "toml" else OBJECTS).items():
        before = None if text is None else text.replace("KEY", chosen.keys[0]).encode()
        if before is not None:
            path.write_bytes(before)
        for more in ((), ("--agent", "alice"))[: 2 if name in ("none", "one line") else 1]:  # and changed once more
            ran = cli(*arguments, *more)
            assert ran.code == 0, (name, ran.err)
            assert path.read_bytes() != before, name
        ran = cli(*arguments, "--remove")
        assert ran.code == 0, (name, ran.err)
        assert (path.read_bytes() if path.exists() else None) == before, name
        assert list(folder.iterdir()) == ([path] if before is not None else []), f"{name}: a copy is left"


def test_a_project_is_told_no_place_of_this_machine(cli, home: Path) -> None:
    ran = cli("install", "--client", "claude-code", "--scope", "project", "--yes")
    assert ran.code == 0
    assert json.loads((home / ".mcp.json").read_text())["mcpServers"]["commonplace"] == {
        "type": "stdio", "command": "commonplace", "args": ["mcp"],
    }  # fmt: skip
    assert "PATH" in ran.err
    assert "this machine" in cli("install", "--client", "cursor", "--scope", "project", "--data", "d", "-y").err


def test_uvx_starts_it_where_nothing_is_installed(cli, home: Path) -> None:
    ran = cli("install", "--client", "vscode", "--scope", "project", "--uvx", "--agent", "alice", "--yes")
    assert ran.code == 0
    assert json.loads((home / ".vscode" / "mcp.json").read_text())["servers"]["commonplace"] == {
        "type": "stdio", "command": "uvx", "args": ["commonplace-memory", "mcp", "--agent", "alice"],
    }  # fmt: skip
    assert "`uvx` must be on the PATH" in ran.err
    printed = cli("install", "--client", "claude-code", "--scope", "project", "--uvx", "--hooks", "--print")
    assert "uvx commonplace-memory capture --hook" in printed.out


def test_opencode_keeps_the_comments_of_its_settings(cli, home: Path) -> None:
    settings = home / ".config" / "opencode" / "opencode.jsonc"
    settings.parent.mkdir(parents=True)
    before = '{\n  // mine\n  "model": "m", // fast\n}\n'
    settings.write_text(before)
    assert cli("install", "--client", "opencode", "--yes").code == 0
    written = settings.read_text()
    assert "// mine" in written
    assert "// fast" in written
    assert '"servers"' in written
    assert not settings.with_name("opencode.json").exists()
    assert cli("install", "--client", "opencode", "--remove", "--yes").code == 0
    assert settings.read_text() == before


def test_line_ends_stay_as_they_are(cli, home: Path) -> None:
    settings = home / ".codex" / "config.toml"
    settings.parent.mkdir()
    before = b'# mine\r\nmodel = "m"\r\n'
    settings.write_bytes(before)
    assert cli("install", "--client", "codex", "--yes").code == 0
    assert settings.read_bytes().startswith(before)
    assert b"\n" not in settings.read_bytes().replace(b"\r\n", b"")
    assert settings.with_name("config.toml.before-commonplace").read_bytes() == before
    assert cli("install", "--client", "codex", "--remove", "--yes").code == 0
    assert settings.read_bytes() == before


def test_settings_that_changed_meanwhile_are_not_written_over(cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = home / ".claude.json"
    settings.write_text('{"a": 1}')

    def with_server(*given: Any) -> str:
        settings.write_text('{"a": 2}')  # as the client itself does all the time
        return really(*given)

    really = client_settings.with_server
    monkeypatch.setattr(client_settings, "with_server", with_server)
    ran = cli("install", "--client", "claude-code", "--yes")
    assert ran.code == 1
    assert "meanwhile" in ran.err
    assert settings.read_text() == '{"a": 2}'


def test_settings_that_are_no_text_are_left_alone(cli, home: Path) -> None:
    (home / ".claude.json").write_bytes(b"\xff\xfe{\x00}\x00")
    ran = cli("install", "--client", "claude-code", "--yes")
    assert ran.code == 1
    assert "--print" in ran.err


def test_a_project_and_a_running_server(cli, home: Path) -> None:
    ran = cli("install", "--client", "vscode", "--scope", "project", "--url", "http://127.0.0.1:8420/mcp", "-y")
    assert ran.code == 0, ran.err
    found = json.loads((home / ".vscode" / "mcp.json").read_text())
    assert found == {"servers": {"commonplace": {"type": "http", "url": "http://127.0.0.1:8420/mcp"}}}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--client", "emacs"], "commonplace mcp"),
        (["--client", "windsurf", "--scope", "project"], "--scope user"),
        (["--client", "claude-desktop", "--url", "http://127.0.0.1:1/mcp"], "--url"),
        (["--client", "cursor", "--tools", "everything"], "trusty"),
        (["--client", "cursor", "--remove", "--yes"], "no server called commonplace"),
        (["--client", "cursor", "--remove", "--print"], "leave one of them out"),
        (["--client", "claude-desktop", "--scope", "project", "--print"], "--scope user"),
        (["--client", "cursor", "--url", "notaurl"], "http://127.0.0.1:8420/mcp"),
        (["--client", "cursor", "--url", "http://h:99999/mcp"], "http://127.0.0.1:8420/mcp"),
        (["--client", "cursor", "--name", " ", "--print"], "--name"),
        (["--client", "cursor", "--token-env", "T", "--print"], "--url"),
        (["--client", "cursor", "--url", "http://h/mcp", "--token-env", "a b"], "never the token itself"),
        (["--client", "cursor", "--url", "http://h/mcp", "--token-env", "cp_" + "ab_cd"], "never the token itself"),
        (["--client", "zed", "--url", "http://h/mcp", "--token-env", "T", "--print"], "Zed"),
        (["--client", "antigravity", "--url", "http://h/mcp", "--token-env", "T", "--print"], "Antigravity"),
        (["--client", "antigravity", "--scope", "project", "--print"], "--scope user"),
        (["--client", "cursor", "--uvx", "--url", "http://h/mcp"], "leave one of them out"),
    ],
)
def test_mistakes_are_explained(cli, home: Path, args: list[str], says: str) -> None:
    ran = cli("install", *args)
    assert ran.code == 1
    assert says in ran.err
    assert list(home.iterdir()) == []


def test_without_a_client_it_lists_them(cli, home: Path) -> None:
    ran = cli("install")
    assert ran.code == 0
    assert all(name in ran.out for name in CLIENTS)


def test_the_registry_entry_is_of_this_version() -> None:
    root = Path(__file__).parents[2]
    entry = json.loads((root / "server.json").read_text())
    assert {entry["version"], *(p["version"] for p in entry["packages"])} == {__version__}
    assert len(entry["description"]) <= 100
    assert f"mcp-name: {entry['name']}" in (root / "README.md").read_text()
