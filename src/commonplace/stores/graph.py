"""The graph beside the memories: statements about things, and what ties one memory to another.

A statement (a triple) holds during an interval; those of one subject and predicate never overlap. Memories are tied
by what they refer to or replace, by the thing they are about, and by statements that join two such things.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from commonplace.wire.record import Memory

if TYPE_CHECKING:
    from commonplace.stores.base import Reach

#: So many of what a memory refers to are tied to it; a longer name than this names nothing.
REFERENCES = 64
MAX_NAME_CHARS = 1024

REFERS, ABOUT = 0, 1  # kinds of links a store derives from a memory
#: Statuses under which a memory keeps its links; which of them a reader sees is settled when it reads.
LINKED = ("live", "archived")


@dataclass(slots=True, frozen=True)
class Triple:
    """One statement: it holds from `valid_from` until before `valid_to`; None is until further notice."""

    id: str
    agent_id: str
    subject: str
    predicate: str
    object: str
    valid_from: int
    valid_to: int | None = None
    confidence: float = 1.0
    provenance: str | None = None
    asserted_by: str = ""
    memory_id: str | None = None  # the memory that `provenance` names: erasing that one erases this

    def holds(self, at: int) -> bool:
        return self.valid_from <= at and (self.valid_to is None or at < self.valid_to)

    @property
    def empty(self) -> bool:
        """Whether it holds at no instant: it was replaced in the millisecond it began, or before."""
        return self.valid_to is not None and self.valid_to <= self.valid_from

    def overlaps(self, other: Triple) -> bool:
        """Whether there is an instant at which both hold."""
        ends = [each.valid_to for each in (self, other) if each.valid_to is not None]
        begins = max(self.valid_from, other.valid_from)
        return not self.empty and not other.empty and all(begins < end for end in ends)


#: How far a tenant's last commit may lie ahead of the clock and still be believed: a clock that was set back, or one of
#: several machines'. What lies farther ahead was written under a wrong clock.
LEAP_MS = 7 * 86_400_000


def commit_time(clock: int, last_commit: int) -> int:
    """The time of a tenant's next commit: never before its last, unless that one was a leap. Without this exception one
    write under a clock that is years ahead would date everything after it."""
    return clock if last_commit - clock > LEAP_MS else max(clock, last_commit)


@dataclass(slots=True, frozen=True)
class Instant:
    """An instant in ms: a given one, or the present, which is never before the tenant's last commit."""

    ms: int
    given: bool = False

    def resolve(self, last_commit: int) -> int:
        return self.ms if self.given else commit_time(self.ms, last_commit)


class GraphWork(Protocol):
    """What a unit of work may do to statements."""

    def triple(self, id: str) -> Triple | None: ...

    def triple_at(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        """The one that holds then."""

    def triple_after(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        """The first that begins later and is not empty."""

    def triples_from(self, memory_id: str) -> list[Triple]:
        """Those that name this memory as where they come from."""

    def put_triple(self, triple: Triple) -> None:
        """Keep it, in place of the one of its agent with its id; Conflict where another tenant or agent has that."""

    def erase_triple(self, id: str) -> None:
        """Remove it and its audit payloads."""


class GraphReads(Protocol):
    """What can be asked of a primary about its statements and ties."""

    async def triples(
        self,
        tenant: str,
        agent_id: str,
        *,
        subject: str | None = None,
        predicate: str | None = None,
        at: Instant | None = None,
        limit: int | None = None,
    ) -> list[Triple]:
        """In the order they begin: all of them, or those that hold then."""

    async def triples_about(self, tenant: str, agent_id: str, subject: str, mentions: bool = False) -> list[Triple]:
        """Every version about a subject, oldest first; with `mentions` also those that have it as their object."""

    async def triple_counts(self, tenant: str, agent_id: str, at: Instant) -> tuple[int, int, int]:
        """How many there are, how many hold then, and about how many subjects those are."""

    async def path(self, tenant: str, agent_id: str, start: str, end: str, max_hops: int, at: Instant) -> list[Triple]:
        """The fewest statements that lead from one thing to another, in either direction of each."""

    async def linked(
        self, reach: Reach, ids: Sequence[str], hops: int, at: Instant, most: int
    ) -> dict[str, dict[str, int]]:
        """For each of these memories the distance of the `most` nearest that are tied to it, nearest first, and of
        others of `ids` met on the way; when `most` is 0 that of one of the nearest others of `ids` within `hops`, and
        no more. Only memories in reach are named or walked through."""


def name_key(name: str) -> str:
    """How names of entities are compared when the graph is traversed."""
    return name.strip().casefold()


def references(memory: Memory) -> list[str]:
    """The ids and aliases of what a memory refers to or replaces."""
    given = memory.metadata.get("references", ())
    named = [given] if isinstance(given, str) else given if isinstance(given, (list, tuple)) else ()
    both = [*memory.supersedes, *(name for name in named if isinstance(name, str))]
    return [name for name in dict.fromkeys(both) if 0 < len(name) <= MAX_NAME_CHARS][:REFERENCES]


def entity_key(entity_name: str | None) -> str:
    """The name of what a memory is about, as it is compared; "" when it is about nothing."""
    return name_key(entity_name) if entity_name and len(entity_name) <= MAX_NAME_CHARS else ""


def links_of(memory: Memory) -> Iterable[tuple[int, str]]:
    """(kind, target) of each link: the ids and aliases it refers to, and the key of what it is about."""
    yield from ((REFERS, target) for target in references(memory))
    if name := entity_key(memory.entity_name):
        yield ABOUT, name
