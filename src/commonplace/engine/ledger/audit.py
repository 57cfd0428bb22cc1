"""The audit chain: immutable headers, each bound to the one before, over payloads that can be erased."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from commonplace.stores.base import AuditEntry, AuditPart, Primary, Record, Transaction
from commonplace.wire.canonical import canonical, new_salt, sha256_hex
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Principal

#: What entries can be of, as people look for them: what is done to memories, by reviewers, in the graph, and the rest.
AUDIT_OPERATIONS = (
    "remember", "update", "forget", "merge", "unmerge", "expire", "undo", "undelete", "recall", "import", "consolidate",
    "stage_remember", "stage_update", "stage_forget", "stage_merge", "stage_statement", "stage_attestation",
    "approve", "reject", "edit_review", "expire_review", "set_policies", "auto_allow", "revoke_auto_allow",
    "policy_reject", "graph_assert", "graph_retract", "graph_erase", "create_palace", "identify_palace",
    "recover", "undo_recovery", "mend_time", "create_token", "rotate_token", "revoke_token", "remove_token",
    "add_peer", "remove_peer", "vouch", "rotate_identity", "discard_deliveries",
)  # fmt: skip
#: The record that says which entry is the last to tell of something erased: whoever has read the ledger that far knows
#: in a transaction, where it cannot read on, that nothing was erased since.
_ERASURES, _LAST = "erasures", "last"
_PAGE = 1000


def part(memory_id: str | None, payload: dict[str, Any]) -> AuditPart:
    """What was done to one memory. Destroying payload and salt leaves a hash that says nothing."""
    data, salt = canonical(payload), new_salt()
    return AuditPart(memory_id, data, salt, _part_hash(memory_id, data, salt))


def _part_hash(memory_id: str | None, payload: bytes, salt: bytes) -> str:
    return sha256_hex(salt, (memory_id or "").encode(), b"\n", payload)


async def agents_in(primary: Primary, tenant: str, operations: Sequence[str] | None = None) -> set[str]:
    """Every agent that entries of these operations, or of any, are filed under: also one that has no memory any more.
    What concerns all agents is filed under *."""
    found: set[str] = set()
    for operation in operations or (None,):
        after = 0
        while entries := await primary.audit(tenant, after=after, limit=_PAGE, operation=operation):
            found |= {entry.agent_id for entry in entries}
            after = entries[-1].n
    return found


async def erased_ids(primary: Primary, tenant: str, after: int = 0) -> tuple[list[str], int]:
    """Everything that was erased, by what the entries after this one say, in that order; and the last that was read."""
    found = dict[str, None]()
    while entries := await primary.audit(tenant, after=after, limit=_PAGE):
        found |= dict.fromkeys(id for entry in entries for part in entry.parts if (id := _erased_id(part)) is not None)
        after = entries[-1].n
    return list(found), after


def last_erasure(tx: Transaction) -> int:
    """The number of the last entry that tells of something erased; 0 before the first."""
    noted = tx.record(_ERASURES, _LAST)
    return 0 if noted is None else int(noted.value["n"])


def _erased_id(part: AuditPart) -> str | None:
    if part.memory_id is not None or part.payload is None or b'"erased"' not in part.payload:
        return None
    payload = json.loads(part.payload)
    return payload.get("id") if payload.get("erased") else None


def append(tx: Transaction, who: Principal, operation: str, agent_id: str, parts: Sequence[AuditPart]) -> AuditEntry:
    """Chain an entry onto the tenant's ledger, in the transaction of what it describes."""
    number, previous = tx.audit_head()
    entry = AuditEntry(
        n=number + 1,
        at=tx.now,
        seq=tx.seq,
        operation=operation,
        agent_id=agent_id,
        principal=who.name,
        payload_hash=_payload_hash(parts),
        previous=previous,
        hash="",
        parts=list(parts),
    )
    entry.hash = _header_hash(entry)
    tx.append_audit(entry)
    if any(_erased_id(part) is not None for part in parts):
        tx.put_record(Record(_ERASURES, _LAST, {"n": entry.n}))
    return entry


def _payload_hash(parts: Sequence[AuditPart]) -> str:
    return sha256_hex("\n".join(p.hash for p in parts).encode())


_HASHED = ("n", "at", "seq", "operation", "agent_id", "principal", "payload_hash", "previous")
_NUMBERS = ("n", "at", "seq")


def _header_hash(entry: AuditEntry) -> str:
    return sha256_hex(canonical({name: getattr(entry, name) for name in _HASHED}))


def header(entry: AuditEntry) -> dict[str, Any]:
    """The immutable half as a document: nothing of it says what a memory holds."""
    return {name: getattr(entry, name) for name in (*_HASHED, "hash")}


def from_header(document: Mapping[str, Any]) -> AuditEntry:
    """An entry without its parts; raises ValidationError for what is no header."""
    for name in (*_HASHED, "hash"):
        if type(document.get(name)) is not (int if name in _NUMBERS else str):
            raise ValidationError(f"this is no entry of a ledger: its {name} is missing or wrong", field=name)
    return AuditEntry(**{name: document[name] for name in (*_HASHED, "hash")})


def is_intact(entry: AuditEntry) -> bool:
    """Whether its hash is that of its header."""
    try:
        return entry.hash == _header_hash(entry)
    except (TypeError, ValueError):
        return False


@dataclass(slots=True)
class Verifier:
    """Walks a ledger from its first entry; `problem` names what is wrong with the first bad one."""

    entries: int = 0
    head: str = ""
    first_bad: int | None = None
    problem: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """{ok, entries, head}, and when it is not ok {first_bad, problem}."""
        verdict = {"ok": self.problem is None, "entries": self.entries, "head": self.head}
        bad = {"first_bad": self.first_bad, "problem": self.problem}
        return verdict | {name: value for name, value in bad.items() if value is not None}

    def feed(self, batch: Iterable[AuditEntry]) -> None:
        for entry in batch:
            if self.first_bad is not None:
                return
            try:
                self.problem = self._check(entry)
            except (TypeError, ValueError):  # a number or a text that no entry of ours holds
                self.problem = "it cannot be read"
            if self.problem is not None:
                self.first_bad = entry.n
                return
            self.entries, self.head = entry.n, entry.hash

    def _check(self, entry: AuditEntry) -> str | None:
        if entry.n != self.entries + 1:
            return f"entry {self.entries + 1} is missing"
        if entry.previous != self.head:
            return "it does not follow from the entry before it"
        if entry.hash != _header_hash(entry):
            return "its header was changed"
        if entry.payload_hash != _payload_hash(entry.parts):
            return "its payloads were changed, removed or added"
        for p in entry.parts:
            if p.payload is not None and _part_hash(p.memory_id, p.payload, p.salt or b"") != p.hash:
                return "a payload was changed"
            if p.payload is None and (p.memory_id is not None or p.salt is not None):
                return "of an erased payload something is left"
        return None
