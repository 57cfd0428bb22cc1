"""Which store each name of a replica means. What waits in the outbox waits under a name, so a name that was given by
the place of a URL among others would hand one store's erasures to another when the URLs change places.

The primary therefore remembers the address that had each name, as a hash without what is secret in it. A store without
`name=` keeps the name that it had, and a new one gets one that no other has had. Where the operator gives it another
name, what waits for it goes along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from commonplace.engine.outbox.deliveries import kind_of, merged
from commonplace.engine.outbox.resync_notices import (
    ALL_NOTICES,
    BEGUN_ANEW,
    INCOMPLETE,
    STORE_NAME,
    UNATTACHED,
    UNTIL_EQUAL,
    WAITED_FOR_ANOTHER,
    left_out_in,
    left_out_since,
    rename_left_out,
)
from commonplace.engine.types import SYSTEM
from commonplace.stores.base import Primary, Reach, Record, Transaction
from commonplace.wire.errors import Conflict, Fault, ValidationError
from commonplace.wire.record import Clock

RENAMED_MS = 30 * 24 * 3_600_000  # for which a process may go on that knows a store by its former name
_RENAMED = "renamed"  # when it was


@dataclass(slots=True, frozen=True)
class WantedName:
    address: str  # a hash; "" of what is gone with the process, or is an object of a program
    kind: str  # from which a name is made
    given: str | None = None  # by the operator
    former: str = ""  # the hash that earlier versions remembered of the same address
    is_created_on_open: bool = False  # its file or folder is not there yet


def unused_name(name: str, names: AbstractSet[str]) -> str:
    number, free = 2, name
    while free in names:
        free, number = f"{name}-{number}", number + 1
    return free


def require_unique_name(name: str, primary: str, others: AbstractSet[str]) -> None:
    """Refuse a name that was given to a store while another has it. One made from it by the store's place among the
    others would be another store's, with the erasures that wait under it, as soon as they change places."""
    if name == primary:
        said = f"{name} is the name of the first store: give the copy another name="
    elif name in others:
        said = f"two stores are named {name}: give one of them another name="
    else:
        return
    raise ValidationError(f"{said} in its URL, or as `name` of an object", field="stores")


def choose_names(
    wanted: Sequence[WantedName], primary: str, known: Mapping[str, str], waiting: AbstractSet[str]
) -> list[str]:
    """One for each, in their order. `known` has the address that had each name, and `waiting` the names of those under
    which something waits. No new store gets a known one of itself: a process that has the other records under it."""
    chosen: dict[int, str] = {}
    taken = {primary}

    def take(place: int, name: str) -> None:
        chosen[place] = name
        taken.add(name)

    for place, each in enumerate(wanted):
        if each.given is not None:
            require_unique_name(each.given, primary, taken)
            take(place, each.given)
    for place, each in enumerate(wanted):
        had = [name for name, address in known.items() if each.address and address == each.address]
        free = [name for name in sorted(had, key=lambda name: name not in waiting) if name not in taken]
        if place not in chosen and free:
            take(place, free[0])
    for place, each in enumerate(wanted):
        if place not in chosen:
            take(place, unused_name(each.kind, taken | known.keys()))
    return [chosen[place] for place in range(len(wanted))]


async def assign_names(primary: Primary, wanted: Sequence[WantedName], clock: Clock) -> list[str]:
    """As `choose_names`, by what the primary remembers, which then remembers these."""
    if not wanted:
        return []
    now = clock()
    renewed = {each.former: each.address for each in wanted if each.former}
    records = {record.key: record.value for record in await primary.records(SYSTEM, STORE_NAME)}
    known = {name: renewed.get(str(value["address"]), str(value["address"])) for name, value in records.items()}
    names = choose_names(wanted, primary.name, known, frozenset())
    is_known = all(known.get(name, "") == each.address for name, each in zip(names, wanted, strict=True))
    waiting = set[str]()
    if not is_known:  # or what waits under names does not matter
        waiting = {name for name in known if await _waits(primary, name)}
        names = choose_names(wanted, primary.name, known, waiting)
    former = former_names(wanted, names, known)
    addresses = {*known.values()}
    begun_anew = {
        name for name, each in zip(names, wanted, strict=True) if each.is_created_on_open and each.address in addresses
    }
    is_filled = not is_known and await _has_memories(primary)

    def remember(tx: Transaction) -> str | None:
        """The name that another process has given meanwhile, where there is one: then nothing is remembered."""
        for name, each in zip(names, wanted, strict=True):
            record = tx.record(STORE_NAME, name)
            if record is not None and record.value["address"] not in (known.get(name), each.former, each.address):
                return name
        for name, each in zip(names, wanted, strict=True):
            is_other = known.get(name, "") != each.address
            if is_other or name in begun_anew or _RENAMED in records.get(name, {}):
                record = tx.record(STORE_NAME, name)
                before: Mapping[str, Any] = {} if record is None else record.value
                value: dict[str, Any] = {"address": each.address, "at": tx.now}
                if not is_other:  # what a process that knows it by this name has noted since stays noted
                    value = {key: held for key, held in before.items() if key != _RENAMED} | {"address": each.address}
                elif _may_lack(before, is_waiting=name in waiting):  # only of a name that the operator gave
                    value[WAITED_FOR_ANOTHER] = True
                if name in begun_anew:  # whatever is here: it may have copies of what is erased from now on
                    value |= {INCOMPLETE: BEGUN_ANEW, "at": tx.now}
                elif is_filled and name not in former.values():
                    value[INCOMPLETE] = True
                tx.put_record(Record(STORE_NAME, name, value))
        for old, new in former.items():
            _rename(tx, old, new)
        return None

    taken = None
    with suppress(Fault):  # one that may only read tells no store anything
        for old, new in former.items():
            await _move_deliveries(primary, old, new)
        # Last: whoever is killed before it begins again. Nobody waits for the write lock to note nothing.
        if (
            not is_known
            or begun_anew
            or any(_RENAMED in records.get(name, {}) for name in names)
            or any(_is_to_be_noted(records[old], now) for old in former)
        ):
            taken = await primary.transact(SYSTEM, remember)
    if taken is not None:  # what waits under it would go to either of two stores
        raise Conflict(f"another process has just attached another store as {taken}; start again")
    return names


def _is_to_be_noted(former: Mapping[str, Any], now: int) -> bool:
    """Whether there is anything to do about the record of a former name."""
    return _RENAMED not in former or now - former[_RENAMED] > RENAMED_MS or not ALL_NOTICES.isdisjoint(former)


def _rename(tx: Transaction, old: str, new: str) -> None:
    """The former name is kept for a while: a process that was started before records erasures under it, and whoever
    opens the store next finds them, as it does a notice that such a process left there."""
    if (record := tx.record(STORE_NAME, old)) is None:
        return
    notices = {key: held for key, held in record.value.items() if key in ALL_NOTICES}
    if notices and (there := tx.record(STORE_NAME, new)) is not None:
        attached = {"at": record.value["at"]} if INCOMPLETE in notices else {}
        tx.put_record(Record(STORE_NAME, new, {**there.value, **notices, **attached}))
    value = {key: held for key, held in record.value.items() if key not in notices}
    if tx.now - value.setdefault(_RENAMED, tx.now) > RENAMED_MS:
        tx.drop_record(STORE_NAME, old)
    else:
        tx.put_record(Record(STORE_NAME, old, value))


async def remember_objects(primary: Primary, names: Sequence[str]) -> None:
    """Those of a program have no address: by its name each is the one of before, or is new. One that takes the name of
    a store with an address is new, too, and that store is never told what waited under the name."""
    known = {record.key: record.value for record in await primary.records(SYSTEM, STORE_NAME)} if names else {}
    new = [name for name in names if name not in known or known[name]["address"]]
    if not new:
        return
    waiting = {name for name in new if name in known and await _waits(primary, name)}
    more = {INCOMPLETE: True} if await _has_memories(primary) else {}

    def remember(tx: Transaction) -> None:
        for name in new:
            record = tx.record(STORE_NAME, name)
            before: Mapping[str, Any] = {} if record is None else record.value
            if record is None or before["address"]:
                lacks = {WAITED_FOR_ANOTHER: True} if _may_lack(before, is_waiting=name in waiting) else {}
                tx.put_record(Record(STORE_NAME, name, {"address": "", "at": tx.now, **lacks, **more}))

    with suppress(Fault):  # one that may only read tells no store anything
        await primary.transact(SYSTEM, remember)


def _may_lack(before: Mapping[str, Any], *, is_waiting: bool) -> bool:
    """Whether the store that had a name until now may have copies of what was erased, and no word of it."""
    return is_waiting or not {_RENAMED, *UNTIL_EQUAL}.isdisjoint(before)


async def _has_memories(primary: Primary) -> bool:
    for tenant in await primary.tenants():
        agents = tuple(await primary.agent_names(tenant))
        if agents and (await primary.scan(Reach(tenant, agents), limit=1)).memories:
            return True
    return False


def former_names(wanted: Sequence[WantedName], names: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """The names that stores had before, each with the one that its store has now."""
    by_address = {each.address: name for name, each in zip(names, wanted, strict=True) if each.address}
    return {old: by_address[address] for old, address in known.items() if address in by_address and old not in names}


async def _move_deliveries(primary: Primary, old: str, new: str) -> None:
    """What waits for a store under the name that it had, such as an erasure, waits under the one that it has."""
    for tenant in await primary.tenants():
        ids = [record.key for record in await primary.records(tenant, kind_of(old))]
        is_left_out = await left_out_since(primary, tenant, old) is not None

        def work(tx: Transaction, ids: Sequence[str] = ids) -> None:
            for id in ids:
                # Either says that the memory is to be delivered as it is then.
                if (record := tx.record(kind_of(old), id)) is not None:
                    there = tx.record(kind_of(new), id)
                    value = record.value if there is None else merged(there.value, record.value)
                    tx.put_record(Record(kind_of(new), id, value))
                    tx.drop_record(kind_of(old), id)
            rename_left_out(tx, old, new)

        if ids or is_left_out:
            await primary.transact(tenant, work)


async def _waits(primary: Primary, name: str) -> bool:
    """Whether there is anything under the name that its store was not told."""
    for tenant in await primary.tenants():
        if await primary.records(tenant, kind_of(name)):
            return True
    return bool(await left_out_in(primary, name, (UNATTACHED,)))


async def known_names(primary: Primary) -> list[str]:
    return [record.key for record in await primary.records(SYSTEM, STORE_NAME) if _RENAMED not in record.value]
