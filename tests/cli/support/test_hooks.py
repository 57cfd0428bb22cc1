"""Hooks go into settings and out again, whatever else is in them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from commonplace.cli.support import hooks
from commonplace.wire.errors import Conflict, NotFound

PATH = Path("settings.json")
PROGRAM = "/usr/bin/commonplace capture --hook"
OTHERS = '{"type": "command", "command": "say done"}'
SETTINGS = [
    "",
    "{}",
    "{}\n",
    '{\n  "model": "opus"\n}\n',
    '{\r\n\t"model": "opus",\r\n\t"hooks": {}\r\n}\r\n',
    '{"hooks": {"Stop": [{"hooks": [' + OTHERS + "]}]}}",
    '{\n  // mine\n  "hooks": {\n    "Stop": [\n      {"hooks": ['
    + OTHERS
    + ']}\n    ],\n    "Notification": []\n  }\n}\n',
]


@pytest.mark.parametrize("text", SETTINGS)
def test_they_are_put_in_beside_what_is_there(text: str) -> None:
    after = hooks.with_hooks(text, PROGRAM, PATH)
    from commonplace.cli.support import jsonc

    before = jsonc.parse(text).value if text.strip() else {}
    settings = jsonc.parse(after).value
    for event, seconds in hooks.EVENTS.items():
        others = before.get("hooks", {}).get(event, [])
        ours = {"hooks": [{"type": "command", "command": PROGRAM, "timeout": seconds}]}
        assert settings["hooks"][event] == [*others, ours]
    assert {k: v for k, v in settings.items() if k != "hooks"} == {k: v for k, v in before.items() if k != "hooks"}


@pytest.mark.parametrize("text", SETTINGS)
def test_what_was_made_from_what_is_known(text: str) -> None:
    after = hooks.with_hooks(text, PROGRAM, PATH)
    assert hooks.made_from(after, text, PATH)
    assert not hooks.made_from(after.replace('"timeout": 20', '"timeout": 21'), text, PATH)


@pytest.mark.parametrize("text", SETTINGS[1:])
def test_they_are_taken_out_and_the_rest_says_the_same(text: str) -> None:
    from commonplace.cli.support import jsonc

    after = hooks.without_hooks(hooks.with_hooks(text, PROGRAM, PATH), PATH)
    kept, was = jsonc.parse(after).value, jsonc.parse(text).value
    assert kept.get("hooks", {}) == was.get("hooks", {}) or (not was.get("hooks") and "hooks" not in kept)


GUARDED = """{
  "model": "opus",
  "hooks": {
    // what runs when it stops
    "Stop": [
      // my own guard
      {"hooks": [{"type":  "command", "command": "guard"}]} // never without it
      /* nothing else yet */
    ],
    "SessionEnd": [ /* empty on purpose */ ],
    "PreCompact": [{"hooks": [ // mine
        {"type": "prompt"}, // and this
    ]}, // that is all
    ]
  }
}
"""


@pytest.mark.parametrize("text", [GUARDED, GUARDED.replace("\n", "\r\n"), *SETTINGS[5:]])
def test_only_what_is_ours_comes_and_goes(text: str) -> None:
    added = hooks.with_hooks(text, PROGRAM, PATH)
    assert added.count("capture --hook") == len(hooks.EVENTS)
    changed = hooks.without_hooks(added.replace('"model": "opus"', '"model": "sonnet"'), PATH)
    assert changed.split() == text.replace('"model": "opus"', '"model": "sonnet"').split()


def test_a_hook_of_theirs_beside_ours_stays_with_its_comment() -> None:
    ours = json.dumps({"type": "command", "command": PROGRAM})
    text = '{"hooks": {"Stop": [{"matcher": "", "hooks": [\n  // mine\n  %s,\n  %s\n]}]}}'
    expected = '{"hooks": {"Stop": [{"matcher": "", "hooks": [\n  // mine\n  %s\n]}]}}'
    assert hooks.without_hooks(text % (OTHERS, ours), PATH) == expected % OTHERS


def test_put_in_twice_they_are_there_once() -> None:
    once = hooks.with_hooks(SETTINGS[-1], "/old/commonplace capture --hook", PATH)
    twice = hooks.with_hooks(once, PROGRAM, PATH)
    assert twice.count("capture --hook") == len(hooks.EVENTS)
    assert "/old/" not in twice


@pytest.mark.parametrize(
    "program",
    [
        "/bin/commonplace",
        "'/a b/commonplace'",
        "uvx commonplace-memory",
        "C:/bin/commonplace.exe",
        "env A=b commonplace",
    ],
)
def test_ours_are_told_from_those_of_a_program_that_captures_as_well(program: str) -> None:
    theirs = {"hooks": [{"type": "command", "command": "screen capture --hook"}, {"type": "prompt"}]}
    text = json.dumps({"hooks": {"Stop": [theirs]}})
    added = hooks.with_hooks(text, f"{program} capture --hook --agent a", PATH)
    assert json.loads(hooks.without_hooks(added, PATH))["hooks"]["Stop"] == [theirs]
    with pytest.raises(NotFound):
        hooks.without_hooks(text, PATH)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"hooks": 3}',
        '{"hooks": {"Stop": {}}}',
        '{"hooks": {}, "hooks": {}}',
        '{"hooks": {"Stop": [], "Stop": []}}',
    ],
)
def test_what_is_not_understood_is_left_alone(text: str) -> None:
    with pytest.raises(Conflict, match="was left alone"):
        hooks.with_hooks(text, PROGRAM, PATH)


def test_what_is_not_there_is_not_taken_out() -> None:
    with pytest.raises(NotFound):
        hooks.without_hooks('{"model": "opus"}', PATH)


def test_where_the_settings_are() -> None:
    home, folder = Path("/home/alice"), Path("/projects/tea")
    assert hooks.settings_path("user", home, folder, {}) == Path("/home/alice/.claude/settings.json")
    assert hooks.settings_path("user", home, folder, {"CLAUDE_CONFIG_DIR": "/c"}) == Path("/c/settings.json")
    assert hooks.settings_path("project", home, folder, {}) == Path("/projects/tea/.claude/settings.json")


def test_a_shell_reads_the_command_as_meant() -> None:
    made = hooks.command(["/a b/commonplace"], "it's", "/d ata")
    assert made == """'/a b/commonplace' capture --hook --agent 'it'"'"'s' --data '/d ata'"""
    assert json.loads(hooks.with_hooks("", made, PATH))["hooks"]["Stop"][0]["hooks"][0]["command"] == made


def test_the_command_carries_what_a_client_does_not_inherit() -> None:
    made = hooks.command(
        ["uvx", "commonplace-memory"], None, None, [("COMMONPLACE_STORES", "sqlite:///a.db memory://")]
    )
    assert shlex.split(made) == [
        "env", "COMMONPLACE_STORES=sqlite:///a.db memory://", "uvx", "commonplace-memory", "capture", "--hook"
    ]  # fmt: skip
