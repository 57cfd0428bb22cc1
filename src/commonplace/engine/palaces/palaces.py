"""Palaces: agents by another name, which may be empty, described, and say who they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from commonplace.engine.core import Core
from commonplace.engine.ledger import audit
from commonplace.stores.base import Reach, Record, Transaction
from commonplace.wire.errors import NotFound, PayloadTooLarge, ValidationError
from commonplace.wire.palace_names import check_name, valid
from commonplace.wire.plain import check_json
from commonplace.wire.record import Memory, Principal, Status

PALACE = "palace"
LONGEST_TEXT = 16_384  # of an identity or a description: an identity is part of every answer
_ANY: tuple[Status, ...] = ("live", "archived", "pending", "deleted")


@dataclass(slots=True)
class Palace:
    """An agent's memory seen as a place. `identity` is what every recall in it begins with."""

    name: str
    description: str | None = None
    identity: str | None = None
    created_at: int = 0


async def palaces(core: Core, who: Principal) -> list[str]:
    """Those that were made, and every agent with a memory whose name is one a palace can have."""
    return await _names(core, who, [record.key for record in await core.primary.records(who.tenant, PALACE)])


async def every(core: Core, who: Principal) -> list[Palace]:
    """All of `palaces`, looked up together: one by one each would read them all."""
    made = {record.key: _palace(record) for record in await core.primary.records(who.tenant, PALACE)}
    found = []
    for name in await _names(core, who, made):
        palace = made.get(name) or await _unmade(core, who, name)
        if palace is not None:  # its last memory may have been erased this moment
            found.append(palace)
    return found


async def _names(core: Core, who: Principal, made: Iterable[str]) -> list[str]:
    names = {*made, *await core.primary.agent_names(who.tenant)}
    return sorted(name for name in names if valid(name) and who.may_use(name))


async def find(core: Core, who: Principal, name: str) -> Palace:
    """The palace, made or not; NotFound where there is neither a palace nor a memory."""
    check_name(name)
    core.require(who, name, "reader")
    for record in await core.primary.records(who.tenant, PALACE):
        if record.key == name:
            return _palace(record)
    unmade = await _unmade(core, who, name)
    if unmade is None:
        raise NotFound(f"there is no palace {name!r}: make it with palace_create, or `commonplace palace create`")
    return unmade


async def create(core: Core, who: Principal, name: str, description: str | None = None) -> Palace:
    """Make it, unless it is there; nothing that was said of it before is changed."""
    check_name(name)
    core.require(who, name, "writer")
    said = _clean(core, "description", description)
    first = await _first(core, who, name)

    def work(tx: Transaction) -> Palace:
        record = tx.record(PALACE, name)
        palace = _palace(record) if record else Palace(name, created_at=first.created_at if first else tx.now)
        if record is None or (said and not palace.description):
            palace.description = said
            _keep(tx, who, palace, "create_palace")
        return palace

    return await core.transact(who.tenant, work)


async def ensure(core: Core, who: Principal, name: str) -> Palace:
    """The palace, made if it is not there."""
    try:
        return await find(core, who, name)
    except NotFound:
        return await create(core, who, name)


async def identify(core: Core, who: Principal, name: str, identity: str | None) -> Palace:
    """Say who the palace is; None or nothing takes it back. A palace that was never made is made."""
    check_name(name)
    core.require(who, name, "writer")
    said = _clean(core, "identity", identity)
    first = await _first(core, who, name)

    def work(tx: Transaction) -> Palace:
        record = tx.record(PALACE, name)
        palace = _palace(record) if record else Palace(name, created_at=first.created_at if first else tx.now)
        palace.identity = said
        _keep(tx, who, palace, "identify_palace")
        return palace

    return await core.transact(who.tenant, work)


def _clean(core: Core, field: str, text: str | None) -> str | None:
    """What is kept of a text, secrets taken out as everywhere; None when nothing is left."""
    kept = (text or "").strip()
    try:
        check_json(kept)
    except ValueError as why:
        raise ValidationError(f"{field} {why}", field=field) from None
    kept = core.redact_text(kept, field) if kept else kept
    if len(kept) > LONGEST_TEXT:
        raise PayloadTooLarge(f"{field} has {len(kept):,} characters; at most {LONGEST_TEXT:,} are kept", field=field)
    return kept or None


async def _unmade(core: Core, who: Principal, name: str) -> Palace | None:
    """The palace that an agent with a memory is, though nobody made it one."""
    first = await _first(core, who, name)
    return None if first is None else Palace(name, created_at=first.created_at)


async def _first(core: Core, who: Principal, name: str) -> Memory | None:
    page = await core.primary.scan(Reach(who.tenant, (name,), statuses=_ANY), limit=1, newest_first=False)
    return page.memories[0] if page.memories else None


def _palace(record: Record) -> Palace:
    value: dict[str, Any] = record.value
    return Palace(record.key, value.get("description"), value.get("identity"), value.get("created_at", 0))


def _keep(tx: Transaction, who: Principal, palace: Palace, operation: str) -> None:
    value = {name: each for name, each in asdict(palace).items() if name != "name" and each is not None}
    tx.put_record(Record(PALACE, palace.name, value))
    audit.append(tx, who, operation, palace.name, [audit.part(None, {"palace": palace.name})])
