"""Connecting clients: the change is shown first, everything else in their settings stays, and it can be undone."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import __version__
from commonplace.cli import clients
from commonplace.cli.clients import CLIENTS, Server, snippet, with_server, without_server
from commonplace.wire.errors import Conflict, NotFound

SERVER = Server("commonplace", "/opt/bin/commonplace", ("mcp", "--agent", "alice"))
PATH = Path("settings")
JSON_CLIENTS = [name for name, client in CLIENTS.items() if client.style != "toml"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_an_entry_is_added_and_taken_out_again(name: str) -> None:
    client = CLIENTS[name]
    before = json.dumps({"theme": "dark", client.key: {"other": {"command": "x"}}}, indent=4) + "\n"
    after = with_server(client, SERVER, before, PATH)
    settings = json.loads(after)
    assert settings["theme"] == "dark"
    assert settings[client.key]["other"] == {"command": "x"}
    command = settings[client.key]["commonplace"]["command"]
    assert command == ["/opt/bin/commonplace", *SERVER.args] if isinstance(command, list) else "/opt/bin/commonplace"
    assert with_server(client, SERVER, after, PATH) == after
    assert without_server(client, "commonplace", after, PATH) == before


def test_codex_keeps_the_rest_of_its_toml_with_its_comments() -> None:
    client = CLIENTS["codex"]
    before = '# my settings\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "x"\n'
    after = with_server(client, SERVER, before, PATH)
    assert after.startswith(before)
    assert tomllib.loads(after)["mcp_servers"]["commonplace"] == {
        "command": "/opt/bin/commonplace", "args": ["mcp", "--agent", "alice"],
    }  # fmt: skip
    assert with_server(client, SERVER, after, PATH) == after
    assert without_server(client, "commonplace", after, PATH) == before


@given(
    st.dictionaries(st.text(min_size=1), st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=4))
)
def test_nothing_else_in_the_settings_changes(settings: dict[str, object]) -> None:
    client = CLIENTS["cursor"]
    settings.pop(client.key, None)
    after = json.loads(with_server(client, SERVER, json.dumps(settings), PATH))
    assert after.pop(client.key).keys() == {"commonplace"}
    assert after == settings


def test_settings_with_comments_are_left_alone() -> None:
    with pytest.raises(Conflict, match="--print"):
        with_server(CLIENTS["zed"], SERVER, '{\n  // mine\n  "theme": "dark"\n}\n', PATH)
    with pytest.raises(NotFound):
        without_server(CLIENTS["cursor"], "commonplace", "{}", PATH)


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_has_a_snippet_and_a_place(name: str) -> None:
    client = CLIENTS[name]
    text = snippet(client, SERVER)
    found = tomllib.loads(text) if client.style == "toml" else json.loads(text)
    assert "commonplace" in found[client.key]
    for platform in ("linux", "darwin", "win32"):
        assert clients.place(client, "user", Path("/home/alice"), Path("/work"), platform).is_relative_to("/home/alice")


@pytest.mark.parametrize(
    ("name", "platform", "environment", "expected"),
    [
        ("claude-code", "linux", {}, "/home/alice/.claude.json"),
        ("claude-code", "darwin", {"CLAUDE_CONFIG_DIR": "/cfg"}, "/cfg/.claude.json"),
        ("claude-desktop", "darwin", {}, "/home/alice/Library/Application Support/Claude/claude_desktop_config.json"),
        ("codex", "linux", {"CODEX_HOME": "/cfg"}, "/cfg/config.toml"),
        ("vscode", "linux", {}, "/home/alice/.config/Code/User/mcp.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "/xdg"}, "/xdg/Code/User/mcp.json"),
        ("vscode", "win32", {"XDG_CONFIG_HOME": "/xdg"}, "/home/alice/AppData/Roaming/Code/User/mcp.json"),
        ("zed", "darwin", {}, "/home/alice/.config/zed/settings.json"),
        ("zed", "win32", {}, "/home/alice/AppData/Roaming/Zed/settings.json"),
        ("opencode", "linux", {"XDG_CONFIG_HOME": "/xdg"}, "/xdg/opencode/opencode.json"),
        ("cursor", "linux", {"XDG_CONFIG_HOME": "/xdg"}, "/home/alice/.cursor/mcp.json"),
    ],
)
def test_where_each_client_looks(name: str, platform: str, environment: dict[str, str], expected: str) -> None:
    found = clients.place(CLIENTS[name], "user", Path("/home/alice"), Path("/work"), platform, environment)
    assert found.as_posix() == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude-code", {"type": "http", "url": "U"}), ("vscode", {"type": "http", "url": "U"}),
        ("cursor", {"url": "U"}),
        ("windsurf", {"serverUrl": "U"}), ("gemini", {"httpUrl": "U"}), ("codex", {"url": "U"}), ("zed", {"url": "U"}),
        ("opencode", {"type": "remote", "url": "U"}),
    ],
)  # fmt: skip
def test_each_client_is_told_an_address_in_its_own_words(name: str, expected: dict[str, str]) -> None:
    assert clients.entry(CLIENTS[name], Server("commonplace", url="U")) == expected


def test_an_entry_that_is_there_already_leaves_the_file_as_it_is_written() -> None:
    compact = json.dumps({"mcpServers": {"commonplace": clients.entry(CLIENTS["cursor"], SERVER)}})
    assert with_server(CLIENTS["cursor"], SERVER, compact, PATH) == compact


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
    assert json.loads(settings.read_text()) == {}


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

    really = clients.with_server
    monkeypatch.setattr(clients, "with_server", with_server)
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
