"""What waits to be told to a replica: records of the primary, written in the transaction of the change itself. Pure.

A record says which memory changed, never how: whoever delivers it reads the memory as it is then. So the last state
wins, nothing is left of what is erased, and delivering twice does no harm. `owner` is the process that has it in hand,
until its lease runs out. `doubt` is until when an earlier write that the store did not confirm may still arrive there:
until then nothing counts as delivered, also in a process that was started since. `turn` is how often it was to be told
again at the same `seq`, as where its vector is another one: no version, and so no sequence, tells that from before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from commonplace.stores.base import Entry, Record, Transaction
from commonplace.wire.record import Memory

FIRST_RETRY_MS = 1_000
LAST_RETRY_MS = 300_000
FURTHEST_MS = 15 * 60_000  # ahead of the clock that a time is ever recorded: the lease of the slowest store is shorter

#: Which state of a memory is delivered: its sequence and its turn.
Order = tuple[int, int]


@dataclass(slots=True)
class Change:
    """What one unit of work did to one memory. `entry` is what became of it; None means that no copy is to be left."""

    id: str
    agent_id: str
    type: str
    seq: int
    entry: Entry | None
    is_first: bool = False  # the memory's first version, of which no copy can be anywhere
    turn: int = 0
    former_agents: tuple[str, ...] = ()  # under whom a copy may be left: an import may bring an id back as another's

    @property
    def order(self) -> Order:
        return self.seq, self.turn


@dataclass(slots=True)
class DeliveryReport:
    """What each replica did with each memory, for the answer: None where it is done, else why it is not."""

    outcomes: dict[str, dict[str, str | None]] = field(default_factory=dict)  # by id, then by store
    outer: DeliveryReport | None = None  # of whoever asked for the work that this one is about
    shown: Callable[[str], str] = str  # how far whoever asks is told why

    def add(self, store: str, ids: Sequence[str], error: str | None) -> None:
        for id in ids:
            self.outcomes.setdefault(id, {})[store] = error
        if self.outer is not None:
            self.outer.add(store, ids, error)

    def of(self, ids: Iterable[str]) -> dict[str, tuple[int, str | None]]:
        """By store: of how many of these it is done, and the first reason why not of all."""
        found: dict[str, tuple[int, str | None]] = {}
        for id in ids:
            for store, error in self.outcomes.get(id, {}).items():
                count, first = found.get(store, (0, None))
                found[store] = (count + (error is None), first or error)
        return {store: (count, why and self.shown(why)) for store, (count, why) in found.items()}

    def problems(self) -> dict[str, str]:
        """By store that did not do all of it: why."""
        return {store: why for store, (_, why) in self.of(self.outcomes).items() if why is not None}


class RecordingTransaction:
    """A transaction that notes which memories its work changes; everything else is the store's own."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.changes: dict[str, Change] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def put(self, entry: Entry) -> Memory:
        memory = self._tx.put(entry)
        kept = Entry(memory, entry.vectors, entry.terms, entry.generation) if memory.status == "live" else None
        first = memory.version == 1
        self.changes[memory.id] = Change(memory.id, memory.agent_id, memory.type, memory.seq, kept, first)
        return memory

    def erase(self, id: str) -> None:
        memory = self._tx.get(id)
        self._tx.erase(id)
        if memory is not None:  # what was staged and never written is nowhere else
            self.changes[id] = Change(id, memory.agent_id, memory.type, self._tx.seq, None)


def is_current(memory: Memory, now: int) -> bool:
    """Whether copies of it are to be anywhere."""
    return memory.status == "live" and (memory.expires_at is None or memory.expires_at > now)


def kind_of(store: str) -> str:
    return f"outbox/{store}"


def order_of(value: Mapping[str, Any]) -> Order:
    return int(value["seq"]), int(value.get("turn", 0))


def agents_of(value: Mapping[str, Any]) -> list[str]:
    """Under whom the store may have a copy, the last one first."""
    return [agent for agent in (value.get("agent"), *value.get("former", ())) if agent]


def record_change(
    tx: Transaction, store: str, change: Change, owner: str, now: int, lease: int, *, take_over: bool = False
) -> bool:
    """Put it into the outbox; whether it is now in this owner's hands. Another's that is being delivered stays theirs:
    they find that it has moved on, and deliver again, so that no older state arrives last. Whoever does `take_over`
    delivers it once more when theirs can no longer arrive. The change learns under whom else a copy is to go."""
    there = tx.record(kind_of(store), change.id)
    held = there.value if there is not None else {}
    former = [agent for agent in agents_of(held) if agent != change.agent_id]
    change.former_agents = tuple(dict.fromkeys((*change.former_agents, *former)))
    theirs = held.get("owner") not in (None, owner) and is_ahead(held.get("until", 0), now)
    doubts = (held.get("doubt", 0), held["until"] if theirs and take_over else 0)
    theirs = theirs and not take_over
    value = {"agent": change.agent_id, "seq": change.seq, "at": held.get("at", now), "attempts": 0, "due": now}
    value |= {"owner": held["owner"], "until": held["until"]} if theirs else {"owner": owner, "until": now + lease}
    value |= {"doubt": max(ahead)} if (ahead := [doubt for doubt in doubts if is_ahead(doubt, now)]) else {}
    value |= {"turn": held.get("turn", 0) + 1} if held.get("seq") == change.seq else {}
    value |= {"former": former} if former else {}
    tx.put_record(Record(kind_of(store), change.id, value))
    return not theirs


def merged(value: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """What was recorded of one memory under two names of a store, as the first: delivered anew, to all of whom either
    knows, and once more when nothing can arrive any more that either has under way."""
    former = [agent for agent in dict.fromkeys((*agents_of(value), *agents_of(other))) if agent != value["agent"]]
    doubt = max(value.get("doubt", 0), other.get("doubt", 0), other["until"] if other.get("owner") else 0)
    return {**value, "turn": value.get("turn", 0) + 1, "former": former, "doubt": doubt}


def claim(
    tx: Transaction, store: str, ids: Iterable[str], owner: str, now: int, lease: int, *, idle: bool = False
) -> dict[str, Mapping[str, Any]]:
    """Those of them that are due and nobody else's, now in this owner's hands, each with what was recorded; of `idle`
    ones only what was not in its hands before either."""
    claimed: dict[str, Mapping[str, Any]] = {}
    for id in ids:
        there = tx.record(kind_of(store), id)
        if there is None or not is_due(there.value, None if idle else owner, now):
            continue
        tx.put_record(Record(there.kind, id, {**there.value, "owner": owner, "until": now + lease}))
        claimed[id] = there.value
    return claimed


def release(tx: Transaction, store: str, claimed: Mapping[str, Mapping[str, Any]], owner: str) -> None:
    """Let go of what this owner has claimed and sent to nobody, but for what has changed since: that is being sent."""
    for id, value in claimed.items():
        there = tx.record(kind_of(store), id)
        if there is not None and there.value.get("owner") == owner and order_of(there.value) == order_of(value):
            tx.put_record(Record(there.kind, id, {**there.value, "owner": None, "until": 0}))


def is_due(value: Mapping[str, Any], owner: str | None, now: int) -> bool:
    """For this owner, or for whoever has none of it in hand."""
    free = value.get("owner") in (None, owner) or not is_ahead(int(value.get("until", 0)), now)
    return free and not is_ahead(int(value.get("due", 0)), now)


def is_ahead(at: int, now: int) -> bool:
    """Whether a recorded time is still to come. What lies further ahead than any is ever recorded is from before the
    clock was set back, and would keep an erasure waiting until that time comes again."""
    return now < at <= now + FURTHEST_MS


def settle(tx: Transaction, store: str, delivered: Mapping[str, Order], now: int) -> list[str]:
    """Take out what is delivered; those that have changed since stay, and are to be delivered again. What an earlier
    write may still overtake stays until it no longer can, and is delivered once more then."""
    again = []
    for id, order in delivered.items():
        there = tx.record(kind_of(store), id)
        if there is None:
            continue
        if order_of(there.value) != order:
            again.append(id)
        elif is_ahead(doubt := int(there.value.get("doubt", 0)), now):
            value = {name: given for name, given in there.value.items() if name != "error"}
            value |= {"attempts": 0, "due": doubt, "owner": None, "until": 0}
            tx.put_record(Record(there.kind, id, value))
        else:
            tx.drop_record(there.kind, id)
    return again


def requeue_overtaken(tx: Transaction, store: str, sent: Iterable[Change], owner: str, now: int) -> None:
    """What was sent although its lease had run out, as where a machine slept meanwhile, and another process took it
    over: it may lie over what that one delivered, which is delivered once more."""
    for change in sent:
        there = tx.record(kind_of(store), change.id)
        if there is None:
            # Of now: of the sequence that was sent it would be overtaken by what the other has delivered.
            value = {"agent": change.agent_id, "seq": tx.seq, "at": now, "attempts": 0, "due": now}
            tx.put_record(Record(kind_of(store), change.id, {**value, "owner": None, "until": 0}))
        elif there.value.get("owner") not in (None, "", owner):
            doubt = max(int(there.value.get("doubt", 0)), int(there.value.get("until", 0)))
            tx.put_record(Record(there.kind, change.id, {**there.value, "doubt": doubt}))


def note_doubt(tx: Transaction, store: str, doubt: Mapping[str, int], now: int) -> None:
    """Write down until when writes that were not confirmed may arrive, where whoever delivers next will read it."""
    for id, until in doubt.items():
        there = tx.record(kind_of(store), id)
        if there is None:
            continue
        known = int(there.value.get("doubt", 0))
        if known < until or not is_ahead(known, now):
            tx.put_record(Record(there.kind, id, {**there.value, "doubt": until}))


def postpone(
    tx: Transaction, store: str, ids: Iterable[str], error: str, owner: str, now: int, chance: random.Random
) -> None:
    """Let go of what failed, until it is due again; what another has taken over since is theirs."""
    for id in ids:
        there = tx.record(kind_of(store), id)
        if there is not None and there.value.get("owner") in (None, owner):
            attempts = int(there.value.get("attempts", 0)) + 1
            value = {**there.value, "attempts": attempts, "due": now + retry_delay(attempts, chance), "error": error}
            value |= {"owner": None, "until": 0}
            tx.put_record(Record(there.kind, id, value))


def retry_delay(attempts: int, chance: random.Random) -> int:
    """Milliseconds: doubled with each attempt, up to a limit, and spread so that not all that failed together comes
    back together."""
    delay: int = min(FIRST_RETRY_MS << min(attempts - 1, 20), LAST_RETRY_MS)
    return round(delay * chance.uniform(0.5, 1.5))
