"""Remembering and changing."""

from __future__ import annotations

import json
import logging
from asyncio import gather
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Literal

from commonplace.engine.checks import check_agent_name, check_expiry, check_name_lengths, memory_not_found
from commonplace.engine.core import IDEMPOTENCY, Core, StaleRead, yield_to_others
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.memory.read import part_of_another, resolve
from commonplace.engine.memory.retention import inherit_retention, promised_end
from commonplace.engine.procedures import machine
from commonplace.engine.redaction import Secrets
from commonplace.engine.types import BatchItem, Draft, Receipt
from commonplace.stores.base import Entry, Record, Transaction
from commonplace.wire.canonical import content_hash, mint_id, new_salt, sha256_hex
from commonplace.wire.errors import Conflict, Fault, ValidationError, internal_error
from commonplace.wire.metadata_fields import check_event_time
from commonplace.wire.plain import check_not_blank
from commonplace.wire.record import Memory, Principal, check_content_size, replace_fields

log = logging.getLogger("commonplace.engine")

#: The key of provenance under which an import notes {format, id, created_at, …} of the source; no protocol sets it.
IMPORTED, CAPTURED = "imported", "captured"
#: Notes of what was read from a file, which may be read again years later: the key of such a write is kept for good, or
#: what was forgotten or turned down since would come back.
_READ_AGAIN = frozenset((IMPORTED, CAPTURED))
LASTING = "lasting"
MAX_BATCH = 1000
_CHUNK = 32  # items per unit of work, so that a large batch never holds the write lock for long
#: Fields that a memory takes from its draft as they are.
_AS_DRAFTED = tuple(name for name in Draft.__slots__ if name not in ("kind", "provenance", "expires_at", "embedding"))
_as_drafted = attrgetter(*_AS_DRAFTED)
#: Fields that a policy may redact.
_POLICED = ("content", "title", "entity_name", "source", "speaker", "tags", "metadata")
#: Fields of which an audit entry says that they changed.
_AUDITED = ("content", "metadata", "tags", "confidence", "expires_at", "title", "privacy")
_NO_MEMORY = "the memory written under this idempotency_key has been erased; use a new key to write again"


async def remember(
    core: Core, who: Principal, draft: Draft, idempotency_key: str | None = None, secrets: Secrets | None = None
) -> Receipt:
    check(core, who, draft)
    draft, redacted = await admit_draft(core, who, draft, idempotency_key, secrets)
    memory = new_memory(who, draft, core.clock())

    async def attempt() -> Receipt:
        (entry,) = await core.make_entries([memory], [draft.embedding])
        return await core.transact(who.tenant, lambda tx: _commit(tx, core, who, entry, draft, idempotency_key))

    receipt = await core.retry_on_conflict(attempt)
    receipt.redacted = redacted
    return receipt


def check_batch(items: Sequence[BatchItem]) -> None:
    if not 1 <= len(items) <= MAX_BATCH:
        raise ValidationError(f"items must hold 1 to {MAX_BATCH} memories, not {len(items)}", field="items")


async def remember_many(core: Core, who: Principal, items: Sequence[BatchItem]) -> list[Receipt | Fault]:
    """Each item its own outcome: what is right is kept even when its neighbour is not."""
    check_batch(items)
    outcomes: list[Receipt | Fault | None] = [None] * len(items)
    accepted: list[tuple[int, BatchItem, Memory]] = []
    redacted: dict[int, list[str]] = {}
    now = core.clock()
    for i, item in enumerate(items):
        try:
            await yield_to_others(item.draft.content)
            check(core, who, item.draft)
            draft, redacted[i] = await admit_draft(core, who, item.draft, item.idempotency_key)
            memory = new_memory(who, draft, now, id=item.memory_id)
            accepted.append((i, BatchItem(draft, item.idempotency_key), memory))
        except Fault as fault:
            outcomes[i] = fault

    chunks = [accepted[i : i + _CHUNK] for i in range(0, len(accepted), _CHUNK)]
    written = await gather(*(_remember_chunk(core, who, c) for c in chunks), return_exceptions=True)
    for chunk, done in zip(chunks, written, strict=True):
        if isinstance(done, Exception) and not isinstance(done, Fault):
            # Raised, it would hide that other chunks are written.
            log.error("some memories of a batch could not be written", exc_info=done)
            done = internal_error("this was not written")
        if isinstance(done, BaseException) and not isinstance(done, Fault):
            raise done
        each = [done] * len(chunk) if isinstance(done, Fault) else done
        for (i, _, _), outcome in zip(chunk, each, strict=True):
            outcomes[i] = outcome
            if isinstance(outcome, Receipt):
                outcome.redacted = redacted[i]
    return [outcome for outcome in outcomes if outcome is not None]


async def _remember_chunk(
    core: Core, who: Principal, accepted: Sequence[tuple[int, BatchItem, Memory]]
) -> list[Receipt | Fault]:
    async def attempt() -> list[Receipt | Fault]:
        entries = await core.make_entries(
            [m for _, _, m in accepted], [item.draft.embedding for _, item, _ in accepted]
        )

        def work(tx: Transaction) -> list[Receipt | Fault]:
            done: list[Receipt | Fault] = []
            for entry, (_, item, _) in zip(entries, accepted, strict=True):
                try:
                    done.append(_commit(tx, core, who, entry, item.draft, item.idempotency_key))
                except Conflict as fault:  # raised before anything of this item was written
                    done.append(fault)
            return done

        return await core.transact(who.tenant, work)

    return await core.retry_on_conflict(attempt)


def check(core: Core, who: Principal, draft: Draft) -> None:
    """Everything that can be wrong with a draft or its author, found before anything is written."""
    core.require(who, draft.agent_id, "writer")
    check_draft(core, draft)


def check_draft(core: Core, draft: Draft) -> None:
    """What can be wrong with a draft, whoever wrote it."""
    check_agent_name(draft.agent_id)
    check_name_lengths(draft)
    _check_content(draft.content)
    check_expiry(draft.expires_at, core.clock())
    for event_time in (draft.event_time, draft.metadata.get("event_time")):
        check_event_time(event_time)
    if draft.type == "procedural":
        machine.check(draft.content)
    if len(set(draft.aliases)) != len(draft.aliases):
        raise ValidationError("aliases must differ from each other", field="aliases")
    if draft.embedding:
        core.given_vector(draft.embedding)


def operation_of(draft: Draft) -> Literal["remember", "attestation"]:
    """A memory that came as another agent's attestation is kept as it came, and reviewed as what it is."""
    return "attestation" if "attestation" in draft.provenance else "remember"


async def admit_draft(
    core: Core, who: Principal, draft: Draft, key: str | None = None, secrets: Secrets | None = None, *,
    replaces: bool = False, reviewed: bool = False,
) -> tuple[Draft, list[str]]:  # fmt: skip
    """As `redact_draft`, and as policies let it be kept; refused where one rejects it, or wants it reviewed and nobody
    has `reviewed` it or will. Every new memory and every whole record comes through here."""
    clean, labels = await redact_draft(core, draft, key, secrets)
    if not await core.policies.in_force(who.tenant):
        return clean, labels
    proposed, by = new_memory(who, clean, core.clock()), who.dialect or str(clean.provenance.get("dialect", ""))
    operation = "update" if replaces else operation_of(clean)
    kept = await core.policies.admit_memory(who, operation, proposed, dialect=by, reviewed=reviewed)
    if kept is not proposed:
        clean = replace(clean, **{name: getattr(kept, name) for name in _POLICED}, embedding=None)
        check_draft(core, clean)
    return clean, labels


async def redact_draft(
    core: Core, draft: Draft, key: str | None = None, secrets: Secrets | None = None
) -> tuple[Draft, list[str]]:
    """The draft as it may be kept, and the labels of what was replaced in it. Everything that is kept of a request is
    made from this one, the hash its idempotency key is held to included: no secret can be guessed from it."""
    if key is not None:
        core.redactor.check_name(key, "idempotency_key", secrets)
    clean, labels = await core.redactor.redact_record_async(draft, secrets)
    if clean is not draft:
        check_draft(core, clean)
    return clean, labels


def new_memory(who: Principal, draft: Draft, now: int, id: str | None = None) -> Memory:
    """The memory a draft becomes; its sequence and times are given when it is committed."""
    salt = new_salt()
    expires_at = promised_end(draft.privacy, now, draft.expires_at)
    fields = dict(zip(_AS_DRAFTED, _as_drafted(draft), strict=True))
    return Memory(
        id or mint_id(now),
        who.tenant,
        **fields,
        kind=draft.kind or draft.type,
        provenance={"principal": who.name, **draft.provenance},
        expires_at=expires_at,
        content_hash=content_hash(draft.content, salt),
        salt=salt,
    )


def _commit(tx: Transaction, core: Core, who: Principal, entry: Entry, draft: Draft, key: str | None) -> Receipt:
    if key is not None and (earlier := used_before(tx, draft, key)) is not None:
        return repeat_receipt(earlier, draft, core, staged=False)
    memory = write(tx, who, entry, "remember")
    receipt = Receipt(memory.id, memory.updated_at, [core.primary.name], memory=memory)
    if key is not None:
        tx.put_record(idempotency_record(key, draft, receipt, staged=False))
    return receipt


def write(tx: Transaction, who: Principal, entry: Entry, operation: str, **more: Any) -> Memory:
    """Put one version and its audit entry."""
    if entry.memory.created_at == 0:
        for alias in entry.memory.aliases:
            holder = tx.by_alias(entry.memory.agent_id, alias)
            if holder is not None and holder.expires_at is not None and holder.expires_at <= tx.now:
                # Nobody can see it any more, so its alias is as free as a forgotten one's.
                gone = tx.put(Entry(replace(holder, status="deleted"), None, b""))
                audit.append(tx, who, "forget", gone.agent_id, [version_part(gone)])
            elif holder is not None:
                raise Conflict(f"the id {alias!r} already names another memory of {entry.memory.agent_id}", alias=alias)
        entry = replace(entry, memory=replace_fields(entry.memory, created_at=_first_time(entry.memory, tx.now)))
    memory = tx.put(entry)
    audit.append(tx, who, operation, memory.agent_id, [version_part(memory, **more)])
    return memory


def _first_time(memory: Memory, now: int) -> int:
    """When it was made: now, or when its source says so, where it was imported; never later than now."""
    at = memory.provenance.get(IMPORTED, {}).get("created_at")
    return min(at, now) if isinstance(at, int) and at > 0 else now


def _draft_hash(draft: Draft, salt: bytes) -> str:
    body = {name: getattr(draft, name) for name in Draft.__slots__}
    return sha256_hex(salt, json.dumps(body, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def idempotency_slot(draft: Draft, key: str) -> str:
    """Keys are each agent's own, whatever characters either holds."""
    return json.dumps([draft.agent_id, key], ensure_ascii=False)


def erased_slot(slot: str) -> str:
    """Where the record of a key lies once what it was used for is erased: the key itself may quote that."""
    return sha256_hex(slot.encode("utf-8", "surrogatepass"))


def used_before(tx: Transaction, draft: Draft, key: str) -> Record | None:
    slot = idempotency_slot(draft, key)
    return tx.record(IDEMPOTENCY, slot) or tx.record(IDEMPOTENCY, erased_slot(slot))


def idempotency_record(key: str, draft: Draft, receipt: Receipt, *, staged: bool) -> Record:
    salt = new_salt()
    value: dict[str, Any] = {"salt": salt.hex(), "hash": _draft_hash(draft, salt), "staged": staged}
    value |= {"id": receipt.id, "at": receipt.stored_at, "review_id": receipt.review_id}
    if not _READ_AGAIN.isdisjoint(draft.provenance):
        value[LASTING] = True
    return Record(IDEMPOTENCY, idempotency_slot(draft, key), value, (receipt.id,))


def repeat_receipt(earlier: Record, draft: Draft, core: Core, *, staged: bool | None) -> Receipt:
    """The first answer again. `staged`: whether approval is asked for, which makes it another request; None where not
    the caller asks for it but a policy."""
    value = earlier.value
    if "hash" not in value:
        raise Conflict(_NO_MEMORY, field="idempotency_key")
    same = value.get("staged", value.get("review_id") is not None) is staged
    if not (same or staged is None) or _draft_hash(draft, bytes.fromhex(value["salt"])) != value["hash"]:
        raise Conflict("idempotency_key was used before with another request; use a new key", field="idempotency_key")
    review = value.get("review_id")
    return Receipt(value["id"], value["at"], [] if review else [core.primary.name], review_id=review)


async def update(
    core: Core,
    who: Principal,
    agent_id: str,
    ref: str,
    change: Callable[[Memory], Memory],
    *,
    expected_version: int | None = None,
) -> Memory:
    """The next version of a memory; refused when it is no longer the version the caller saw."""

    async def attempt() -> Memory:
        current, changed = await next_version(core, who, agent_id, ref, change, expected_version)
        (entry,) = await core.make_entries([changed])
        return await core.transact(who.tenant, lambda tx: write_next(tx, who, current, entry))

    return await core.retry_on_conflict(attempt)


async def next_version(
    core: Core,
    who: Principal,
    agent_id: str,
    ref: str,
    change: Callable[[Memory], Memory],
    expected_version: int | None = None,
    *,
    author: Principal | None = None,
    reviewed: bool = False,
) -> tuple[Memory, Memory]:
    """A memory as it is and as a change would have it, checked, redacted and as policies let it be; nothing is written.
    `author` is who asked for the change, where that is another; policies want it `reviewed` or are asked."""
    core.require(who, agent_id, "writer")
    current = await resolve(core, who, agent_id, ref)
    if ref in current.provenance.get("merged", ()):
        # Whoever saw that one, and its version, has not seen what would be changed.
        said = f"memory {ref} has become part of {current.id}; read that one and change it"
        raise await part_of_another(core, who, ref, current.id, said)
    if expected_version is not None and current.version != expected_version:
        raise Conflict(
            f"memory {ref} is at version {current.version}, not {expected_version}; read it again and retry",
            version=current.version,
        )
    changed = change(current)
    check_change(core, current, changed)
    redacted, _ = await core.redactor.redact_record_async(changed, before=current)
    if redacted is not changed:
        changed = redacted
        check_change(core, current, changed)
    changed = inherit_retention(changed, [current])
    asking = author or who
    changed = await core.policies.admit_memory(asking, "update", changed, before=current, reviewed=reviewed)
    check_change(core, current, changed)
    if changed.content != current.content:
        salt = new_salt()
        changed = replace(changed, content_hash=content_hash(changed.content, salt), salt=salt)
    return current, changed


def write_next(tx: Transaction, who: Principal, current: Memory, entry: Entry, **more: Any) -> Memory:
    """Put the next version of what was read as `current`, unless it has moved on since."""
    now = tx.get(current.id)
    if now is None or now.status not in ("live", "archived"):
        raise memory_not_found(current.agent_id, current.id)
    if now.version != current.version:
        raise StaleRead
    fields = [name for name in _AUDITED if getattr(now, name) != getattr(entry.memory, name)]
    # A demotion makes no version, so it may have come after the row was read.
    kept = replace(entry, memory=replace_fields(entry.memory, demotion=now.demotion))
    return write(tx, who, kept, "update", changed=fields, **more)


def check_change(core: Core, current: Memory, changed: Memory) -> None:
    """What can be wrong with the next version of a memory."""
    _check_content(changed.content)
    check_name_lengths(changed, current)
    if changed.expires_at != current.expires_at:
        check_expiry(changed.expires_at, core.clock())
    if (event_time := changed.metadata.get("event_time")) != current.metadata.get("event_time"):
        check_event_time(event_time)
    # Only what is new: one kept by earlier rules stays changeable in everything else.
    if changed.type == "procedural" and (changed.type, changed.content) != (current.type, current.content):
        machine.check(changed.content)


def _check_content(content: str) -> None:
    check_content_size(content)
    check_not_blank(content, "content")
