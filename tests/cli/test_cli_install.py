"""Connecting clients: the change is shown first, everything else in their settings stays, and it can be undone."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

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


def test_a_project_and_a_running_server(cli, home: Path) -> None:
    ran = cli("install", "--client", "vscode", "--scope", "project", "--url", "http://127.0.0.1:8420/mcp", "-y")
    assert ran.code == 0, ran.err
    found = json.loads((home / ".vscode" / "mcp.json").read_text())
    assert found == {"servers": {"commonplace": {"type": "http", "url": "http://127.0.0.1:8420/mcp"}}}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--client", "emacs"], "commonplace mcp"),
        (["--client", "codex", "--scope", "project"], "--scope user"),
        (["--client", "zed", "--url", "http://127.0.0.1:1/mcp"], "--url"),
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
