"""What a store beside the primary cannot have: what still waits for it in the outbox, what it is not to keep, and until
a resync has come to its end what is older than its attachment, and newer than a change that it was left out of or that
was kept from it.

Only our own records and the types that it was attached with decide. What a store says of itself does not count here:
one that leaves out what it was given must not have the primary's vote for it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from dataclasses import dataclass

from commonplace.engine.core import Core
from commonplace.engine.outbox.deliveries import kind_of
from commonplace.engine.outbox.replicas import Replica
from commonplace.engine.outbox.resync_notices import incomplete_since, left_out_since
from commonplace.wire.record import Memory

_MOST_READ = 200  # records of one store's outbox, before a recall


@dataclass(slots=True, frozen=True)
class ReplicationLag:
    """What one store had not been told of one tenant when it was asked."""

    ids: frozenset[str] = frozenset()  # of the memories that waited for it: all of them, or the first of too many
    all: bool = True
    untold_before: int = 0  # of what was changed last before that it was never told
    untold_since: float = math.inf  # and from then on perhaps not


async def read_lag(core: Core, tenant: str, replica: Replica) -> ReplicationLag:
    """To be read before the store is asked: what is delivered while it answers it may have searched without."""
    page = await core.primary.records_page(tenant, kind_of(replica.name), {}, limit=_MOST_READ)
    since = None if replica.is_complete else await incomplete_since(core.primary, replica.name)
    replica.is_complete = since is None
    left_out = await left_out_since(core.primary, tenant, replica.name)
    return ReplicationLag(
        frozenset(record.key for record in page),
        len(page) < _MOST_READ,
        since or 0,
        math.inf if left_out is None else left_out,
    )


async def is_waiting(core: Core, store: str, lag: ReplicationLag, memory: Memory) -> bool:
    return memory.id in lag.ids or (not lag.all and await core.outbox.is_waiting(memory.tenant, store, memory.id))


async def is_untold(core: Core, lag: ReplicationLag, memory: Memory, text: str) -> bool:
    """Whether this is an older text of a memory that has changed since without the store's being told."""
    if lag.untold_before <= memory.updated_at < lag.untold_since:
        return False
    return any(old.content == text for old in await core.primary.history(memory.tenant, memory.id))


async def lacking(
    core: Core, replica: Replica, lag: ReplicationLag, memories: Iterable[Memory], asked_at: int
) -> frozenset[str]:
    """Which of these, that it did not name, it could not have named."""
    found, others = set[str](), list[Memory]()
    for memory in memories:
        # What was written after the question came may have arrived there too late, and be delivered by now.
        is_told = lag.untold_before <= memory.updated_at < lag.untold_since and memory.id not in lag.ids
        if not is_told or memory.updated_at > asked_at or replica.omits(memory) is not None:
            found.add(memory.id)
        else:
            others.append(memory)
    if not lag.all:
        told = await asyncio.gather(*(is_waiting(core, replica.name, lag, memory) for memory in others))
        found |= {memory.id for memory, waits in zip(others, told, strict=True) if waits}
    return frozenset(found)
