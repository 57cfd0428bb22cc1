"""Where clients keep their servers, and how an entry comes into their settings and out of them again."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.cli.support import client_settings, clients, jsonc
from commonplace.cli.support.client_settings import snippet, with_server, without_server
from commonplace.cli.support.clients import CLIENTS, McpClient, McpServer
from commonplace.wire.errors import Conflict, NotFound, ValidationError

SERVER = McpServer("commonplace", "/opt/bin/commonplace", ("mcp", "--agent", "alice"))
PATH = Path("settings")
JSON_CLIENTS = [name for name, client in CLIENTS.items() if client.style != "toml"]


def holding(client: McpClient, servers: dict[str, Any]) -> dict[str, Any]:
    """Settings with these servers where the client has them."""
    for key in reversed(client.keys):
        servers = {key: servers}
    return servers


def servers_in(client: McpClient, settings: dict[str, Any]) -> dict[str, Any]:
    for key in client.keys:
        settings = settings[key]
    return settings


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_an_entry_is_added_and_taken_out_again(name: str) -> None:
    client = CLIENTS[name]
    before = json.dumps({"theme": "dark", **holding(client, {"other": {"command": "x"}})}, indent=4) + "\n"
    after = with_server(client, SERVER, before, PATH)
    settings = json.loads(after)
    assert settings["theme"] == "dark"
    assert servers_in(client, settings)["other"] == {"command": "x"}
    command = servers_in(client, settings)["commonplace"]["command"]
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


@pytest.mark.parametrize(
    "before",
    ['mcp_servers = { other = { command = "x" } }\n', "mcp_servers = 3\n",
     '[mcp_servers.commonplace]\ncommand = "x"\nargs = [\n["x"],\n]\n'],
)  # fmt: skip
def test_toml_that_is_laid_out_otherwise_is_left_alone(before: str) -> None:
    """Nothing is written that says something else than meant, or that Codex could not read."""
    with pytest.raises(Conflict, match="was left alone") as refused:
        with_server(CLIENTS["codex"], SERVER, before, PATH)
    assert "[mcp_servers.commonplace]" in refused.value.message


@pytest.mark.parametrize("quotes", ['"""', "'''"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_heading_within_a_toml_string_is_none(quotes: str, line_end: str) -> None:
    client = CLIENTS["codex"]
    said = ['# don\'t read """ here', "notes = QQQ", "[mcp_servers.commonplace]", 'it\'s "fine"\u2028x', "QQQ", ""]
    before = line_end.join(said).replace("QQQ", quotes)
    after = with_server(client, SERVER, before, PATH)
    assert with_server(client, SERVER, after, PATH) == after
    assert client_settings.made_from(client, "commonplace", after, before)
    assert without_server(client, "commonplace", after, PATH) == before
    more = f"{after}{line_end}[other]{line_end}b = {quotes}{line_end}[c]{line_end}{quotes}{line_end}"
    kept = tomllib.loads(without_server(client, "commonplace", more, PATH))
    assert kept == {**tomllib.loads(before), "other": {"b": "[c]\n"}}


def test_toml_with_dotted_keys_is_added_to() -> None:
    after = with_server(CLIENTS["codex"], SERVER, 'mcp_servers.other.command = "x"\n[tools]\nweb = true\n', PATH)
    assert tomllib.loads(after)["tools"] == {"web": True}
    assert tomllib.loads(after)["mcp_servers"]["commonplace"] == clients.entry(CLIENTS["codex"], SERVER)


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
    other = with_server(client, McpServer("commonplace", "x"), after, PATH)
    assert without_server(client, "commonplace", other, PATH) == before


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), VALUES), st.sampled_from([None, 0, 1, 2, "\t"]), st.booleans())
def test_adding_and_taking_out_gives_back_the_very_text(settings: dict[str, Any], indent: Any, ascii: bool) -> None:
    client = CLIENTS["cursor"]
    settings.pop(client.key, None)
    before = json.dumps(settings, indent=indent, ensure_ascii=ascii)
    assert jsonc.parse(before).value == settings
    after = with_server(client, SERVER, before, PATH)
    assert json.loads(after) == {**settings, client.key: {"commonplace": clients.entry(client, SERVER)}}
    assert without_server(client, "commonplace", after, PATH) == before
    assert client_settings.made_from(client, "commonplace", after, before)


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


@pytest.mark.parametrize("comment", ["", "// mine\n"])
def test_what_is_not_on_the_way_to_the_servers_is_not_looked_at_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch, comment: str
) -> None:
    """Claude Code keeps what was typed in its settings, which have megabytes then."""
    projects = {f"/p{n}": {"history": [{"display": f"{k}", "pasted": {}} for k in range(20)]} for n in range(20)}
    text = comment + json.dumps({"projects": projects, "mcpServers": {"other": {"command": "x"}}}, indent=2)
    decoded = 0

    def raw_decode(self: json.JSONDecoder, source: str, idx: int = 0) -> Any:
        nonlocal decoded
        value, end = really(self, source, idx)
        decoded += end - idx
        return value, end

    really = json.JSONDecoder.raw_decode
    monkeypatch.setattr(json.JSONDecoder, "raw_decode", raw_decode)
    client = CLIENTS["claude-code"]
    after = with_server(client, SERVER, text, PATH)
    assert without_server(client, "commonplace", after, PATH) == text
    assert client_settings.made_from(client, "commonplace", after, text)
    assert decoded < 20 * len(text)


def test_a_server_that_is_not_there_cannot_be_taken_out() -> None:
    for text in ("", "{}", "{\n  // none\n}"):
        with pytest.raises(NotFound):
            without_server(CLIENTS["cursor"], "commonplace", text, PATH)


def test_codex_keeps_variables_of_a_server_together() -> None:
    client = CLIENTS["codex"]
    server = McpServer("commonplace", "c", ("mcp",), env=(("COMMONPLACE_STORE", "sqlite:///x.db"),))
    text = with_server(client, server, "", PATH)
    assert tomllib.loads(text)["mcp_servers"]["commonplace"]["env"] == {"COMMONPLACE_STORE": "sqlite:///x.db"}
    split = '[mcp_servers.commonplace]\ncommand = "c"\n\n[mcp_servers.commonplace.env]\nA = "b"\n\n[other]\nc = 1\n'
    assert tomllib.loads(without_server(client, "commonplace", split, PATH)) == {"other": {"c": 1}}


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_has_a_snippet_and_a_place(name: str) -> None:
    client = CLIENTS[name]
    text = snippet(client, SERVER)
    found = tomllib.loads(text) if client.style == "toml" else json.loads(text)
    assert "commonplace" in servers_in(client, found)
    for platform in ("linux", "darwin", "win32"):
        assert clients.settings_path(
            client, "user", Path("/home/alice"), Path("/projects/tea"), platform
        ).is_relative_to("/home/alice")


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
        ("antigravity", "win32", {}, "/home/alice/.gemini/config/mcp_config.json"),
    ],
)
def test_where_each_client_looks(name: str, platform: str, environment: dict[str, str], expected: str) -> None:
    found = clients.settings_path(
        CLIENTS[name], "user", Path("/home/alice"), Path("/projects/tea"), platform, environment
    )
    assert found.as_posix() == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude-code", {"type": "http", "url": "U"}), ("vscode", {"type": "http", "url": "U"}),
        ("cursor", {"url": "U"}),
        ("windsurf", {"serverUrl": "U"}), ("gemini", {"httpUrl": "U"}), ("codex", {"url": "U"}), ("zed", {"url": "U"}),
        ("opencode", {"type": "remote", "url": "U"}), ("antigravity", {"serverUrl": "U"}),
    ],
)  # fmt: skip
def test_each_client_is_told_an_address_in_its_own_words(name: str, expected: dict[str, str]) -> None:
    assert clients.entry(CLIENTS[name], McpServer("commonplace", url="U")) == expected


@pytest.mark.parametrize(
    ("name", "said"),
    [("claude-code", "${T}"), ("vscode", "${env:T}"), ("cursor", "${env:T}"), ("windsurf", "${env:T}"),
     ("gemini", "${T}"), ("opencode", "{env:T}")],
)  # fmt: skip
def test_a_token_is_named_and_never_written(name: str, said: str) -> None:
    entry = clients.entry(CLIENTS[name], McpServer("commonplace", url="U", token_env="T"))
    assert entry["headers"] == {"Authorization": f"Bearer {said}"}


def test_clients_with_other_ways_to_a_token() -> None:
    entry = clients.entry(CLIENTS["codex"], McpServer("commonplace", url="U", token_env="T"))
    assert entry == {"url": "U", "bearer_token_env_var": "T"}
    for name in ("zed", "antigravity"):
        with pytest.raises(ValidationError, match=CLIENTS[name].title):
            clients.entry(CLIENTS[name], McpServer("commonplace", url="U", token_env="T"))


def test_an_entry_that_is_there_already_leaves_the_file_as_it_is_written() -> None:
    compact = json.dumps({"mcpServers": {"commonplace": clients.entry(CLIENTS["cursor"], SERVER)}})
    assert with_server(CLIENTS["cursor"], SERVER, compact, PATH) == compact


def test_antigravity_is_told_no_type_because_it_drops_such_entries() -> None:
    assert clients.entry(CLIENTS["antigravity"], SERVER).keys() == {"command", "args"}


# opencode, which has had two formats and two names of its file

V2 = """{
  // servers of opencode 2
  "mcp": {
    "servers": {
      "other": {"type": "local", "command": ["x"]}, /* mine */
    },
  },
}
"""


@pytest.mark.parametrize(
    ("before", "where"),
    [
        ("", ["mcp", "servers"]),
        ("{}", ["mcp", "servers"]),
        ('{"mcp": {}}', ["mcp", "servers"]),
        ('{"mcp": {"servers": {}}}', ["mcp", "servers"]),
        ('{"mcp": {"timeout": {"startup": 5000}}}', ["mcp", "servers"]),
        (V2, ["mcp", "servers"]),
        ('{"mcp": {"other": {"type": "local", "command": ["x"]}}}', ["mcp"]),
        ('{"mcp": {"servers": {"type": "local", "command": ["x"]}}}', ["mcp"]),
        ('{"mcp": {"servers": {"enabled": false}}}', ["mcp"]),
        ('{"mcp": {"old": {"type": "local", "command": ["x"]}, "servers": {"new": {"type": "local"}}}}',
         ["mcp", "servers"]),
    ],
)  # fmt: skip
def test_opencode_has_a_server_where_its_version_has_them(before: str, where: list[str]) -> None:
    client = CLIENTS["opencode"]
    after = with_server(client, SERVER, before, PATH)
    found = jsonc.parse(after).value
    for key in where:
        found = found[key]
    assert found["commonplace"] == {"type": "local", "command": ["/opt/bin/commonplace", *SERVER.args]}
    assert with_server(client, SERVER, after, PATH) == after
    assert client_settings.made_from(client, "commonplace", after, before)
    rest = jsonc.parse(without_server(client, "commonplace", after, PATH)).value
    known = jsonc.parse(before or "{}").value
    assert {**known, "mcp": rest.get("mcp", {})} == {**rest, "mcp": rest.get("mcp", {})}
    if "other" in before or "old" in before:
        assert without_server(client, "commonplace", after, PATH) == before, "comments too"


def test_opencode_settings_of_both_formats_lose_the_server_of_both() -> None:
    entry = {"type": "local", "command": ["x"]}
    text = json.dumps({"mcp": {"commonplace": entry, "servers": {"commonplace": entry, "other": entry}}})
    assert json.loads(without_server(CLIENTS["opencode"], "commonplace", text, PATH)) == {
        "mcp": {"servers": {"other": entry}}
    }
    with pytest.raises(NotFound):
        without_server(CLIENTS["opencode"], "servers", text, PATH)


@pytest.mark.parametrize("scope", ["user", "project"])
def test_opencode_settings_with_comments_have_another_name(scope: Any, tmp_path: Path) -> None:
    client, folder = CLIENTS["opencode"], tmp_path if scope == "project" else tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text("{}")
    assert clients.settings_path(client, scope, tmp_path, tmp_path, "linux", {}).name == "opencode.json"
    (folder / "opencode.jsonc").write_text("// mine\n{}")
    assert clients.settings_path(client, scope, tmp_path, tmp_path, "linux", {}).name == "opencode.jsonc"


# what starts the program


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("/home/alice/.cache/uv/archive-v0/Xy3", True),
        ("/home/alice/.cache/uv/environments-v2/commonplace-memory-1a2b", True),
        ("/home/alice/.local/share/uv/tools/commonplace-memory", False),
        ("/projects/archive-v/.venv", False),
        ("/usr", False),
    ],
)
def test_an_environment_of_uvx_is_known_by_its_place(prefix: str, expected: bool) -> None:
    assert clients.runs_in_uv_cache(prefix) is expected


def test_what_is_shared_names_no_place_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clients.program(shared=True) == ("commonplace",)
    assert clients.program(shared=True, uvx=True) == ("uvx", "commonplace-memory")
    monkeypatch.setattr(clients, "runs_in_uv_cache", lambda: True)
    assert clients.program(shared=True) == ("uvx", "commonplace-memory")
    assert clients.program()[1:] == ("commonplace-memory",)


def test_the_table_in_the_documentation_is_about_these_clients() -> None:
    document = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text("utf-8")
    table = document.split("### Clients\n\n", 1)[1].split("\n\n")[0]
    rows = {row.split("`")[1]: row for row in table.splitlines()[2:]}
    assert rows.keys() == CLIENTS.keys()
    for name, client in CLIENTS.items():
        _, _, files, key, address, token, source, _ = (cell.strip() for cell in rows[name].split("|"))
        assert all(part[-1] in files for part in (client.user, client.project) if part), name
        assert ("," in files) is (client.project is not None), name
        assert client.also is None or client.also in files
        assert key == f"`{client.key}`"
        assert (f"`{client.remote}`" if client.remote else "none") in address
        assert client.expands is None or f"Bearer {client.expands % 'NAME'}" in token
        assert source.startswith(f"[{client.title}](https://")
