"""Hooks in the settings of Claude Code: which there are, and how they are put in and taken out. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from commonplace.cli.support import jsonc
from commonplace.wire.errors import Conflict, NotFound

#: When Claude Code calls, and how many seconds it waits.
EVENTS = {"SessionStart": 10, "Stop": 20, "PreCompact": 60, "SessionEnd": 60}
_KEY = "hooks"
_MARK = "capture --hook"
# Not the mark alone: others have programs that capture, too.
_OURS = re.compile(rf"commonplace(?:-memory)?(?:\.exe)?['\"]? {_MARK}\b")


def settings_path(scope: str, home: Path, folder: Path, environment: Mapping[str, str]) -> Path:
    if scope == "project":
        return folder / ".claude" / "settings.json"
    moved = environment.get("CLAUDE_CONFIG_DIR")
    return (Path(moved).expanduser() if moved else home / ".claude") / "settings.json"


def command(
    program: Sequence[str], agent: str | None, data: str | None, variables: Sequence[tuple[str, str]] = ()
) -> str:
    """As a shell takes it, which is how Claude Code starts hooks."""
    words = ["env", *(f"{name}={value}" for name, value in variables)] if variables else []
    words += [*program, *_MARK.split()]
    words += ["--agent", agent] if agent else []
    words += ["--data", data] if data else []
    return shlex.join(words)


def _entry(event: str, program: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": program, "timeout": EVENTS[event]}]}


def with_hooks(text: str, program: str, path: Path) -> str:
    """The settings with these hooks behind those that are there; ours of before go."""
    if not text.strip():
        made = {_KEY: {event: [_entry(event, program)] for event in EVENTS}}
        return json.dumps(made, indent=2, ensure_ascii=False) + "\n"
    clean = _without(text, path)
    root = _object(clean, path)
    there = root.value.get(_KEY, {})
    wanted = {**there, **{event: [*there.get(event, []), _entry(event, program)] for event in EVENTS}}
    if _object(text, path).value.get(_KEY) == wanted:
        return text  # laid out in whatever way
    if _KEY not in root.value:
        return _checked(jsonc.put(clean, root, _KEY, wanted), {**root.value, _KEY: wanted}, path)
    after = clean
    for event in EVENTS:
        node = next(member.node for member in _object(after, path).members if member.key == _KEY)
        after = jsonc.put(after, node, event, wanted[event])
    return _checked(after, {**root.value, _KEY: wanted}, path)


def without_hooks(text: str, path: Path) -> str:
    after = _without(text, path) if text.strip() else text
    if after == text:
        raise NotFound(f"there is nothing to remove: {path} has no hooks of commonplace")
    return after


def made_from(text: str, original: str, path: Path) -> bool:
    """Whether these settings are exactly what adding hooks to the original made of it."""
    try:
        program = _program(text, path)
        return program is not None and with_hooks(original, program, path) == text
    except (Conflict, ValueError):
        return False


def _program(text: str, path: Path) -> str | None:
    for groups in _object(text, path).value.get(_KEY, {}).values() if text.strip() else ():
        for group in groups:
            for hook in _hooks_of(group):
                if _is_ours(hook):
                    return str(hook["command"])
    return None


def _hooks_of(group: Any) -> list[Any]:
    """None where it is no group as Claude Code has them: whatever else stands there is the user's."""
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _is_ours(hook: Any) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None


def _without(text: str, path: Path) -> str:
    root = _object(text, path)
    there = root.value.get(_KEY, {})
    kept = {event: _kept(groups) for event, groups in there.items()}
    if kept == there:
        return text
    rest = {event: groups for event, groups in kept.items() if groups or not there[event]}
    if not rest:
        member = next(member for member in root.members if member.key == _KEY)
        others = {key: value for key, value in root.value.items() if key != _KEY}
        return _checked(jsonc.drop(text, root, member), others, path)
    after = text
    for event, groups in kept.items():
        if groups == there[event]:
            continue
        node = next(member.node for member in _object(after, path).members if member.key == _KEY)
        if event in rest:
            after = jsonc.put(after, node, event, groups)
        else:
            after = jsonc.drop(after, node, next(member for member in node.members if member.key == event))
    return _checked(after, {**root.value, _KEY: rest}, path)


def _kept(groups: list[Any]) -> list[Any]:
    """The groups of an event without our hooks, and without groups that held nothing else."""
    found = []
    for group in groups:
        hooks = _hooks_of(group)
        if not any(_is_ours(hook) for hook in hooks):
            found.append(group)
        elif others := [hook for hook in hooks if not _is_ours(hook)]:
            found.append({**group, "hooks": others})
    return found


def _object(text: str, path: Path) -> jsonc.Node:
    try:
        root = jsonc.parse(text)
    except ValueError as error:
        raise Conflict(f"{path} was left alone: {error}; mend it first, or add what `--print` shows") from None
    there = root.value.get(_KEY, {}) if isinstance(root.value, dict) else None
    keys = [member.key for member in root.members]
    if (
        not isinstance(there, dict)
        or not all(isinstance(each, list) for each in there.values())
        or keys.count(_KEY) > 1
    ):
        raise Conflict(f"{path} was left alone: its hooks are laid out in a way that is not understood here")
    return root


def _checked(after: str, expected: dict[str, Any], path: Path) -> str:
    """Never write settings that say something else than meant."""
    if jsonc.parse(after).value != expected:
        raise Conflict(f"{path} was left alone: it is laid out in a way that is not understood here")
    return after
