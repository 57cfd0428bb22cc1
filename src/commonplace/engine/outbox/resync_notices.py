"""What is to be said of a replica until it was resynced: nothing but a resync puts right what it was never told.

Why is noted beside its name; that a process which did not have it changed something is noted in the tenant where that
was, with the change itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.engine.types import SYSTEM
from commonplace.stores.base import Primary, Record, Transaction

STORE_NAME = "store_name"  # the kind of record, under the name
#: Why a store is to be resynced: the name was given to another while something waited for it; what waited was dropped;
#: it was attached to a store that had memories.
WAITED_FOR_ANOTHER, DISCARDED, INCOMPLETE = "waited_for_another", "discarded", "incomplete"
UNTIL_EQUAL = frozenset({WAITED_FOR_ANOTHER, DISCARDED})
ALL_NOTICES = UNTIL_EQUAL | {INCOMPLETE}
BEGUN_ANEW = "begun_anew"  # what `INCOMPLETE` says of one that had been attached before
#: The two in each tenant that name stores which were not told a change there: the process that made it did not have
#: them, or had them and was to keep what is written from them. One for all of them, because it is looked at with each
#: change, and there may be many that are attached no more.
LEFT_OUT, UNATTACHED, WITHHELD = "left_out", "stores", "withheld"
_SINCE, _RESYNC = "since", "resync"  # when first; and the resync that has begun since then


def resync_call(name: str, *, has_address: bool) -> str:
    """An object of a program has no address, and no command can attach it."""
    return f"`commonplace stores resync {name}`" if has_address else f"`await memory.resync({name!r})`"


async def resync_advice(primary: Primary, name: str, *, writes: bool = True) -> str | None:
    """Why, if at all, a store is to be resynced, which nothing else would put right. That it lacks what is kept from it
    is said once `writes` go there again: until then it is meant to."""
    record = await primary.record(SYSTEM, STORE_NAME, name)
    held: Mapping[str, Any] = {} if record is None else record.value
    resync = resync_call(name, has_address=bool(held.get("address")))
    said = []
    if held.get(DISCARDED):
        said.append(
            f"what waited for it was discarded, so it may still have copies of what was erased: {resync} makes it equal"
        )
    elif held.get(WAITED_FOR_ANOTHER):
        said.append(
            f"the name {name} was given to another address while changes waited for the store that had it, which may "
            "still have copies of what was erased: attach that one under a name of its own and resync it; "
            f"{resync} then ends this notice, or at once where the same store has moved"
        )
    if held.get(INCOMPLETE) == BEGUN_ANEW:
        said.append(
            "its file or folder was gone or empty, and was begun anew: it lacks what it had, and the one before may "
            f"have copies of what was erased: put that back if it is somewhere; then run {resync}"
        )
    elif held.get(INCOMPLETE):
        said.append(f"never resynced: memories from before it was attached are not there; run {resync}")
    if writes and await left_out_in(primary, name, (WITHHELD,)):
        said.append(f'what was written under write = "primary_only" is not there; run {resync}')
    if await left_out_in(primary, name, (UNATTACHED,)):
        said.append(
            "something was changed by a process that did not have it, such as a command without --store: it may lack "
            f"memories, and have copies of what was erased; run {resync}"
        )
    return "; ".join(said) or None


async def incomplete_since(primary: Primary, name: str) -> int | None:
    """When it was attached, if it was never made equal since: of what was changed last before that it was not told."""
    record = await primary.record(SYSTEM, STORE_NAME, name)
    return None if record is None or not record.value.get(INCOMPLETE) else int(record.value["at"])


async def mark_deliveries_discarded(primary: Primary, name: str) -> None:
    """It is not told what waited for it: should it be attached again, someone has to make it equal."""

    def work(tx: Transaction) -> None:
        record = tx.record(STORE_NAME, name)
        held = {"address": "", "at": tx.now} if record is None else record.value  # none is kept of a program's objects
        tx.put_record(Record(STORE_NAME, name, {**held, DISCARDED: True}))

    await primary.transact(SYSTEM, work)


async def begin_resync(primary: Primary, name: str) -> str:
    """What tells a change that was left out before this resync from one that comes while it is under way."""
    token = uuid.uuid4().hex

    def work(tx: Transaction) -> None:
        for which in (UNATTACHED, WITHHELD):
            held = _left_out(tx, which)
            if name in held:
                _keep_left_out(tx, held | {name: {**held[name], _RESYNC: token}}, which)

    for tenant in await left_out_in(primary, name):
        await primary.transact(tenant, work)
    return token


async def clear_resync_notices(primary: Primary, name: str, token: str, *, equal: bool) -> None:
    """The resync of this token has come to its end, and so what it did not take waits; where both are equal the rest is
    seen to."""

    def drop_left_out(tx: Transaction) -> None:
        for which in (UNATTACHED, WITHHELD):
            held = _left_out(tx, which)
            if held.get(name, {}).get(_RESYNC) == token:
                _keep_left_out(tx, {other: left_out for other, left_out in held.items() if other != name}, which)

    def drop_notices(tx: Transaction) -> None:
        record = tx.record(STORE_NAME, name)
        gone = {INCOMPLETE} | (UNTIL_EQUAL if equal else frozenset())
        if record is not None and not gone.isdisjoint(record.value):
            value = {key: held for key, held in record.value.items() if key not in gone}
            tx.put_record(Record(STORE_NAME, name, value))

    for tenant in await left_out_in(primary, name):
        await primary.transact(tenant, drop_left_out)
    await primary.transact(SYSTEM, drop_notices)


def note_left_out(tx: Transaction, names: Sequence[str], which: str = UNATTACHED) -> None:
    """In the transaction of a change that these stores are not told: whoever is killed after it leaves word of both.
    Anew where a resync has begun since: it may have read already what is changed now."""
    held = _left_out(tx, which) if names else {}
    noted = [name for name in names if name not in held or _RESYNC in held[name]]
    if noted:
        first = {_SINCE: tx.now}
        _keep_left_out(tx, held | {name: {_SINCE: held.get(name, first)[_SINCE]} for name in noted}, which)


def rename_left_out(tx: Transaction, old: str, new: str) -> None:
    for which in (UNATTACHED, WITHHELD):
        held = _left_out(tx, which)
        if (left_out := held.pop(old, None)) is not None:
            since = min(left_out[_SINCE], held.get(new, left_out)[_SINCE])
            _keep_left_out(tx, held | {new: {_SINCE: since}}, which)


async def left_out_since(
    primary: Primary, tenant: str, name: str, which: Sequence[str] = (UNATTACHED, WITHHELD)
) -> int | None:
    """When something was changed there first of which it was not told, if anything was since it was last made equal."""
    records = [record for record in await primary.records(tenant, LEFT_OUT) if record.key in which]
    return min((int(record.value[name][_SINCE]) for record in records if name in record.value), default=None)


async def left_out_in(primary: Primary, name: str, which: Sequence[str] = (UNATTACHED, WITHHELD)) -> list[str]:
    """The tenants in which something was changed that this store was not told."""
    return [each for each in await primary.tenants() if await left_out_since(primary, each, name, which) is not None]


def _left_out(tx: Transaction, which: str) -> dict[str, dict[str, Any]]:
    """By name."""
    record = tx.record(LEFT_OUT, which)
    return {} if record is None else dict(record.value)


def _keep_left_out(tx: Transaction, held: Mapping[str, Mapping[str, Any]], which: str) -> None:
    tx.put_record(Record(LEFT_OUT, which, dict(held)))
