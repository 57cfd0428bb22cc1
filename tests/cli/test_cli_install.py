"""Connecting clients: the change is shown first, everything else in their settings stays, and it can be undone."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import __version__
from commonplace.cli.serve import _ways_to_connect
from commonplace.cli.support import clients, jsonc
from commonplace.cli.support.clients import CLIENTS, Server, snippet, with_server, without_server
from commonplace.cli.support.mcp_arguments import McpArguments, client_variables
from commonplace.config import Config, standard_folder
from commonplace.wire.errors import Conflict, NotFound, ValidationError

SERVER = Server("commonplace", "/opt/bin/commonplace", ("mcp", "--agent", "alice"))
PATH = Path("settings")
JSON_CLIENTS = [name for name, client in CLIENTS.items() if client.style != "toml"]


@pytest.fixture
def home(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COMMONPLACE_DATA"):
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


COMMENTED = [
    '// mine\n{\n  // theme\n  "theme": "dark"\n}\n',
    '{\n    "theme": "dark", // trailing\n    /* last */\n}\n',
    '{\n\t"theme": "dark" // no comma\n}',
    '{\r\n  "theme": "dark",\r\n  "context_servers": {\r\n    "other": {}, // x\r\n  },\r\n}\r\n',
    '{"theme": "dark", "context_servers": {"other": {}}}',
    '{"context_servers": {"other": {"url": "//not a comment /* either"},}}',
]


@pytest.mark.parametrize("before", COMMENTED)
def test_comments_and_layout_stay_to_the_letter(before: str) -> None:
    client = CLIENTS["zed"]
    after = with_server(client, SERVER, before, PATH)
    found = jsonc.parse(after).value
    assert found["context_servers"]["commonplace"] == clients.entry(client, SERVER)
    assert found.get("theme") == jsonc.parse(before).value.get("theme")
    assert with_server(client, SERVER, after, PATH) == after
    assert without_server(client, "commonplace", after, PATH) == before
    other = with_server(client, Server("commonplace", "x"), after, PATH)
    assert without_server(client, "commonplace", other, PATH) == before


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES), st.sampled_from([None, 0, 1, 2, "\t"]), st.booleans())
def test_adding_and_taking_out_gives_back_the_very_text(settings: dict[str, Any], indent: Any, ascii: bool) -> None:
    client = CLIENTS["cursor"]
    settings.pop(client.key, None)
    before = json.dumps(settings, indent=indent, ensure_ascii=ascii)
    assert jsonc.parse(before).value == settings
    after = with_server(client, SERVER, before, PATH)
    assert json.loads(after) == {**settings, client.key: {"commonplace": clients.entry(client, SERVER)}}
    assert without_server(client, "commonplace", after, PATH) == before
    assert clients.made_from(client, "commonplace", after, before)


@pytest.mark.parametrize(
    "text",
    ["{", "[1]", "{'a': 1}", '{"a": 1 "b": 2}', '{"a": NaN}', '{"a": "\\x"}', "{} {}", "/* open", '{,}', '{"a": [1 2]}',
     "[" * 5000, '{"mcpServers": {}, "mcpServers": {}}', '{"mcpServers": {"commonplace": 1, "commonplace": 2}}',
     '{"mcpServers": []}'],
)  # fmt: skip
def test_settings_that_cannot_be_changed_safely_are_left_alone(text: str) -> None:
    with pytest.raises(Conflict, match="by hand") as refused:
        with_server(CLIENTS["cursor"], SERVER, text, PATH)
    assert snippet(CLIENTS["cursor"], SERVER).rstrip() in str(refused.value)
    with pytest.raises((Conflict, NotFound)) as refused_too:
        without_server(CLIENTS["cursor"], "commonplace", text, PATH)
    assert "add" not in str(refused_too.value)


def test_a_server_that_is_not_there_cannot_be_taken_out() -> None:
    for text in ("", "{}", "{\n  // none\n}"):
        with pytest.raises(NotFound):
            without_server(CLIENTS["cursor"], "commonplace", text, PATH)


def test_codex_keeps_variables_of_a_server_together() -> None:
    client = CLIENTS["codex"]
    server = Server("commonplace", "c", ("mcp",), env=(("COMMONPLACE_STORE", "sqlite:///x.db"),))
    text = with_server(client, server, "", PATH)
    assert tomllib.loads(text)["mcp_servers"]["commonplace"]["env"] == {"COMMONPLACE_STORE": "sqlite:///x.db"}
    split = '[mcp_servers.commonplace]\ncommand = "c"\n\n[mcp_servers.commonplace.env]\nA = "b"\n\n[other]\nc = 1\n'
    assert tomllib.loads(without_server(client, "commonplace", split, PATH)) == {"other": {"c": 1}}


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_has_a_snippet_and_a_place(name: str) -> None:
    client = CLIENTS[name]
    text = snippet(client, SERVER)
    found = tomllib.loads(text) if client.style == "toml" else json.loads(text)
    assert "commonplace" in found[client.key]
    for platform in ("linux", "darwin", "win32"):
        assert clients.settings_path(client, "user", Path("/home/alice"), Path("/work"), platform).is_relative_to(
            "/home/alice"
        )


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
    found = clients.settings_path(CLIENTS[name], "user", Path("/home/alice"), Path("/work"), platform, environment)
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


@pytest.mark.parametrize(
    ("name", "said"),
    [("claude-code", "${T}"), ("vscode", "${env:T}"), ("cursor", "${env:T}"), ("windsurf", "${env:T}"),
     ("gemini", "${T}"), ("opencode", "{env:T}")],
)  # fmt: skip
def test_a_token_is_named_and_never_written(name: str, said: str) -> None:
    entry = clients.entry(CLIENTS[name], Server("commonplace", url="U", token_env="T"))
    assert entry["headers"] == {"Authorization": f"Bearer {said}"}


def test_clients_with_other_ways_to_a_token() -> None:
    entry = clients.entry(CLIENTS["codex"], Server("commonplace", url="U", token_env="T"))
    assert entry == {"url": "U", "bearer_token_env_var": "T"}
    with pytest.raises(ValidationError, match="Zed"):
        clients.entry(CLIENTS["zed"], Server("commonplace", url="U", token_env="T"))


def test_what_the_shell_says_is_told_to_the_client(cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_DATA", "here")
    monkeypatch.setenv("COMMONPLACE_AGENT", "alice")
    monkeypatch.setenv("COMMONPLACE_STORE", "sqlite://./my.db")
    expected = ["mcp", "--agent", "alice", "--data", str(home / "here")]
    env = {"COMMONPLACE_STORE": f"sqlite://{home / 'my.db'}"}
    for args in (("install", "--client", "cursor", "--print"), ("mcp", "--json")):
        entry = json.loads(cli(*args).out)["mcpServers"]["commonplace"]
        assert (entry["args"], entry["env"]) == (expected, env)
    flags = cli("install", "--client", "opencode", "--print", "--data", "there", "--agent", "bob")
    entry = json.loads(flags.out)["mcp"]["commonplace"]
    assert entry["command"][1:] == ["mcp", "--agent", "bob", "--data", str(home / "there")]
    assert entry["environment"] == env


def test_a_store_with_a_password_is_not_copied_into_settings() -> None:
    store = "postgres://alice:" + "wonder" + "land@db/memories"
    with pytest.raises(ValidationError, match=r"commonplace\.toml"):
        client_variables({"COMMONPLACE_STORE": store})
    assert client_variables({"COMMONPLACE_STORE": "memory://"}) == (("COMMONPLACE_STORE", "memory://"),)
    assert client_variables({}) == ()
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


def test_a_project_is_told_no_place_of_this_machine(cli, home: Path) -> None:
    ran = cli("install", "--client", "claude-code", "--scope", "project", "--yes")
    assert ran.code == 0
    assert json.loads((home / ".mcp.json").read_text())["mcpServers"]["commonplace"] == {
        "type": "stdio", "command": "commonplace", "args": ["mcp"],
    }  # fmt: skip
    assert "PATH" in ran.err
    assert "this machine" in cli("install", "--client", "cursor", "--scope", "project", "--data", "d", "-y").err


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
        (["--client", "cursor", "--remove", "--print"], "leave one of them out"),
        (["--client", "claude-desktop", "--scope", "project", "--print"], "--scope user"),
        (["--client", "cursor", "--url", "notaurl"], "http://127.0.0.1:8420/mcp"),
        (["--client", "cursor", "--url", "http://h:99999/mcp"], "http://127.0.0.1:8420/mcp"),
        (["--client", "cursor", "--name", " ", "--print"], "--name"),
        (["--client", "cursor", "--token-env", "T", "--print"], "--url"),
        (["--client", "cursor", "--url", "http://h/mcp", "--token-env", "a b"], "never the token itself"),
        (["--client", "cursor", "--url", "http://h/mcp", "--token-env", "cp_" + "ab_cd"], "never the token itself"),
        (["--client", "zed", "--url", "http://h/mcp", "--token-env", "T", "--print"], "Zed"),
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
