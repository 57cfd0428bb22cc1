"""Procedures that nobody may store: each with the key that its refusal names."""

from __future__ import annotations

import json
from typing import Any

MACHINE: dict[str, Any] = {
    "name": "book", "initial": "idle", "current": "idle", "states": ["idle", {"name": "paid"}], "metadata": {"x": 1},
    "transitions": [{"trigger": "pay", "source": "idle", "dest": "paid", "conditions": "is_ok", "unless": ["a", "b"]}],
}  # fmt: skip
CODE = "os.system"


def changed(**fields: Any) -> str:
    return json.dumps({**MACHINE, **fields})


def without(*fields: str) -> str:
    return json.dumps({name: value for name, value in MACHINE.items() if name not in fields})


def with_transition(**fields: Any) -> str:
    return changed(transitions=[{**MACHINE["transitions"][0], **fields}])


def with_state(**fields: Any) -> str:
    return changed(states=["idle", {"name": "paid", **fields}])


_STEP = "content.transitions[0]"
_AT_TRANSITION = (
    "before",
    "after",
    "prepare",
    "on_enter",
    "timeout",
    "shell",
    "__init__",
    "model",
    "Before",
    "before ",
)
_AT_STATE = (
    "on_enter",
    "on_exit",
    "on_final",
    "on_timeout",
    "children",
    "initial",
    "parallel",
    "final",
    "tags",
    "ignore_invalid_triggers",
)
_AT_MACHINE = (
    "before_state_change", "after_state_change", "prepare_event", "finalize_event", "on_exception", "on_final", "model",
    "send_event", "queued", "auto_transitions", "ordered_transitions",
    "model_attribute", "model_override", "include", "extends", "__class__",
)  # fmt: skip
_NO_GUARDS = (
    CODE, "a.b", "subprocess.Popen", "__class__", "__import__", "__globals__", "__import__('os')",
    "x()", "is ok", "is-ok", "", " ", "9lives",
    "a\nb", "a\x00", "ok;rm", "lambda: 0", 5, None, True, {}, [["x"]], {"func": CODE},
)  # fmt: skip
_NO_NAMES = (
    CODE,
    "__class__",
    "__del__",
    "in progress",
    "in-progress",
    "a/b",
    "*",
    "=",
    "",
    "1st",
    7,
    None,
    ["idle"],
    "x" * 129,
)

#: (content, the key that the refusal names)
HOSTILE: list[tuple[str, str]] = [
    *((with_transition(**{key: CODE}), f"{_STEP}.{key}") for key in _AT_TRANSITION),
    *((with_state(**{key: CODE}), f"content.states[1].{key}") for key in _AT_STATE),
    *((changed(**{key: CODE}), f"content.{key}") for key in _AT_MACHINE),
    *((with_transition(**{key: guard}), f"{_STEP}.{key}") for key in ("conditions", "unless") for guard in _NO_GUARDS),
    *((with_transition(conditions=["ok", guard]), f"{_STEP}.conditions") for guard in _NO_GUARDS),
    *((with_transition(trigger=name), f"{_STEP}.trigger") for name in _NO_NAMES),
    *((changed(states=["idle", "paid", name]), "content.states[2]") for name in _NO_NAMES),
    *((changed(states=["idle", "paid", {"name": name}]), "content.states[2]") for name in _NO_NAMES),
    *((with_transition(source=name), f"{_STEP}.source")
      for name in ("nowhere", CODE, [], ["*", "idle"], {}, None, 5, ["idle", 5])),
    *((with_transition(dest=name), f"{_STEP}.dest") for name in ("nowhere", CODE, "*", [], ["idle"], {}, 5, True)),
    *((changed(**{key: value}), f"content.{key}") for key in ("initial", "current")
      for value in ("nowhere", None, 5, ["idle"], {}, "")),
    *((changed(name=value), "content.name") for value in (None, 5, "", "  ", [], {}, "x" * 129)),
    *((changed(metadata=value), "content.metadata") for value in (None, [], "x", 5)),
    *((changed(states=value), "content.states")
      for value in (None, [], {}, "idle", 5, {"idle": CODE}, [f"s{i}" for i in range(201)])),
    *((changed(transitions=value), "content.transitions") for value in (None, {}, "pay", 5)),
    *((changed(transitions=[value]), _STEP) for value in ("pay", 5, None, [], ["pay", "idle", "paid"])),
    (changed(transitions=[{"trigger": "pay"}]), f"{_STEP}.source"),
    (changed(transitions=[{"source": "idle", "dest": "paid"}]), f"{_STEP}.trigger"),
    (changed(transitions=[{"trigger": "pay", "source": "idle"}]), f"{_STEP}.dest"),
    (changed(transitions=MACHINE["transitions"] * 2), "content.transitions[1].trigger"),
    (with_transition(source=["idle", "idle"]), f"{_STEP}.trigger"),
    (changed(transitions=[{"trigger": "x", "source": "*", "dest": "idle"}] * 2), "content.transitions[1].trigger"),
    (changed(transitions=[{"trigger": f"t{i}", "source": "*", "dest": "="} for i in range(1001)]),
     "content.transitions"),
    (changed(states=["idle", "paid", "idle"]), "content.states[2]"),
    (changed(states=["idle", "paid", {"name": "idle"}]), "content.states[2]"),
    (without("name"), "content.name"), (without("states"), "content.states"), ("{}", "content.name"),
    ("[]", "content"), ("[1, 2]", "content"), (json.dumps([MACHINE]), "content"),
    ("[" * 100_000, "content"), ('{"a": ' * 100_000, "content"),
    (changed(metadata=json.loads('{"a":' * 150 + "1" + "}" * 150)), "content"),
    ('{"name": "book", "states": ["idle"], "states": ["idle", "os.system"]}', "content"),
    ('{"name": "book", "states": ["idle"], "metadata": {"a": NaN}}', "content"),
    ('{"name": "book", "states": ["idle"], "metadata": {"a": -Infinity}}', "content"),
    ('{"name": "book", "states": ["idle"], "metadata": {"a": "\\ud800"}}', "content"),
]  # fmt: skip
