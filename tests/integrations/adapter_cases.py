"""Texts that every adapter is tried with: those that wait for a person, are refused, are too long, or have a secret."""

from __future__ import annotations

#: A text with this word waits for a person, one with that is refused.
STAGES, REJECTS = "salary", "gossip"
RULES = [
    {"name": "salaries", "action": "review", "when": {"content": f"(?i){STAGES}"}},
    {"name": "no gossip", "action": "reject", "when": {"content": f"(?i){REJECTS}"}},
]
#: A credential of a well-known form, in two parts so that nobody takes it for one.
SECRET = "AKIA" + "QWERTYUIOPASDFGH"
#: What is not kept where those rules hold and secrets are rejected.
NOT_KEPT = {
    "too long": "a" * 300_000,
    "has a secret": f"my key is {SECRET}",
    "refused by a rule": f"some {REJECTS}",
    "waits for a person": f"her {STAGES}",
}
