"""Texts that every adapter is tried with: one that waits for a person, one that is refused, one with a secret."""

from __future__ import annotations

#: A text with this word waits for a person, one with that is refused.
STAGES, REJECTS = "salary", "gossip"
RULES = [
    {"name": "salaries", "action": "review", "when": {"content": f"(?i){STAGES}"}},
    {"name": "no gossip", "action": "reject", "when": {"content": f"(?i){REJECTS}"}},
]
#: A credential of a well-known form, in two parts so that nobody takes it for one.
SECRET = "AKIA" + "QWERTYUIOPASDFGH"
