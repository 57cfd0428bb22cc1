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
        hooks = _node(_object(after, path), _KEY)
        if event in there:  # behind what the user has in it, to the letter
            after = jsonc.append(after, _node(hooks, event), _entry(event, program))
        else:
            after = jsonc.put(after, hooks, event, wanted[event])
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
    after = text
    for event, groups in kept.items():
        while (without := _without_one(after, _node(_node(_object(after, path), _KEY), event))) is not None:
            after = without
        if not groups and there[event]:
            after = _without_blank(after, path, _KEY, event)
    after = _without_blank(after, path, _KEY)
    return _checked(after, {**root.value, _KEY: kept}, path)


def _without_one(text: str, groups: jsonc.Node) -> str | None:
    """Without the first of our hooks among these groups; with its group, where that has nothing else."""
    for group in groups.members:
        hooks = group.node.member("hooks") if _hooks_of(group.node.value) else None
        for hook in hooks.node.members if hooks is not None else ():
            if hooks is not None and _is_ours(hook.node.value):
                alone = len(hooks.node.members) == 1
                return jsonc.drop(text, groups, group) if alone else jsonc.drop(text, hooks.node, hook)
    return None


def _without_blank(text: str, path: Path, *keys: str) -> str:
    """Without the last of these keys, if not even a comment is left in what it holds."""
    node = _object(text, path)
    for key in keys[:-1]:
        node = _node(node, key)
    member = node.member(keys[-1])
    if member is None or text[member.node.start + 1 : member.node.end - 1].strip():
        return text
    return jsonc.drop(text, node, member)


def _node(node: jsonc.Node, key: str) -> jsonc.Node:
    return next(member.node for member in node.members if member.key == key)


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
    known = root.member(_KEY)
    if (
        not isinstance(there, dict)
        or not all(isinstance(each, list) for each in there.values())
        or _has_twice(root, _KEY)
        or (known is not None and any(_has_twice(known.node, event) for event in there))
    ):
        raise Conflict(f"{path} was left alone: its hooks are laid out in a way that is not understood here")
    return root


def _has_twice(node: jsonc.Node, key: str) -> bool:
    return [member.key for member in node.members].count(key) > 1


def _checked(after: str, expected: dict[str, Any], path: Path) -> str:
    """Never write settings that say something else than meant."""
    if _meaning(jsonc.parse(after).value) != _meaning(expected):
        raise Conflict(f"{path} was left alone: it is laid out in a way that is not understood here")
    return after


def _meaning(settings: dict[str, Any]) -> dict[str, Any]:
    """No hooks of an event are as good as no such event."""
    hooks = {event: groups for event, groups in settings.get(_KEY, {}).items() if groups}
    return {**settings, _KEY: hooks}
