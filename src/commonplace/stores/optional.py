"""What a backend may do beyond what it must (`base`): whoever needs it asks with isinstance, and does without it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from commonplace.stores.base import AgentContext, Candidate, EmbedderInfo, Reach, Search, Vectors
from commonplace.stores.token_vectors import Codes
from commonplace.wire.record import Memory

T = TypeVar("T")

#: Told how much is done of how much there is.
Progress = Callable[[int, int], None]


@runtime_checkable
class PerAgentStore(Protocol):
    """A store that finds a memory only among those of its agent: it is told whose they are."""

    async def get_of(self, tenant: str, agent_id: str, ids: Sequence[str]) -> list[Memory]: ...

    async def delete_of(self, tenant: str, agent_id: str, ids: Sequence[str]) -> int: ...


@runtime_checkable
class Selective(Protocol):
    """A replica that is not to have a copy of every memory of the types that it keeps."""

    def keeps(self, memory: Memory) -> bool: ...


@runtime_checkable
class AgentListing(Protocol):
    """A store that can say whose memories it has."""

    async def agent_names(self, tenant: str) -> list[str]: ...


@runtime_checkable
class TenantListing(Protocol):
    """A store that can say of which tenants it has memories."""

    async def tenants(self) -> list[str]: ...


@runtime_checkable
class CopyListing(Protocol):
    """A store that has to read everything for one page of a `scan`, and so gives all of an agent's in one go."""

    def copy_pages(self, tenant: str, agent_id: str) -> AsyncIterator[Sequence[Memory]]:
        """Every copy, also two of one memory, as its own listing gives them: in any order, page by page."""


@runtime_checkable
class RecordKinds(Protocol):
    """A store that can say which kinds of records it keeps, so that all of them can be carried elsewhere."""

    async def record_kinds(self, tenant: str) -> list[str]: ...


@dataclass(slots=True)
class Finding:
    """One thing that was checked. What can be derived again is repaired; the rest is only told."""

    check: str
    ok: bool
    detail: str
    repaired: bool = False


@runtime_checkable
class FileUpkeep(Protocol):
    """A store that looks after files of its own."""

    async def sizes(self) -> dict[str, Any]:
        """Where it lies and how large it is."""

    async def backup(self, target: Path, progress: Progress | None = None) -> int:
        """A consistent copy while others read and write; its size in bytes."""

    async def compact(self, progress: Progress | None = None) -> int:
        """Give back unused space and every erased byte; how many scopes had some."""

    async def examine(self, repair: bool, progress: Progress | None = None) -> list[Finding]: ...

    async def warm(self, progress: Progress | None = None) -> None:
        """Bring every index up to date."""


class ReadView(Protocol):
    """What a recall reads, all of it as of one instant; the methods are those of `Primary`, without waiting."""

    def context(self, tenant: str, agents: Sequence[str], now: int | None = None) -> AgentContext: ...

    def search(self, search: Search) -> list[Candidate]: ...

    def neighbours_in_session(self, search: Search, ids: Sequence[str], each: int) -> list[list[Candidate]]: ...


@runtime_checkable
class Viewable(Protocol):
    """A store that has all the reads of one recall done together, instead of being waited for at each."""

    async def view(self, reach: Reach, work: Callable[[ReadView], T], *, second: bool = False) -> T:
        """Run `work`, which reads what is in reach and must not keep the view, perhaps in another thread. `second`:
        whether it searches by the second embedder, too."""


@runtime_checkable
class Reindexable(Protocol):
    """A store whose vectors can be made anew by another embedder, in a second generation beside the first."""

    async def begin_generation(self, name: str, dimension: int) -> tuple[int, bool]:
        """Begin, or take up again, the vectors of another embedder: its number, and whether it was begun before."""

    async def without_vectors(self, generation: int, after: int, limit: int) -> list[tuple[int, Memory]]:
        """Versions that generation lacks, in order of their number, from `after` on."""

    async def count_without_vectors(self, generation: int) -> int: ...

    async def fill_vectors(
        self, generation: int, vectors: Sequence[tuple[int, Vectors, Sequence[Codes] | None]]
    ) -> None:
        """Of the versions with these numbers, with the tokens of each part (see `Entry`)."""

    async def switch_generation(self, generation: int) -> bool:
        """Search by that generation from now on, unless a memory still lacks its vector: then False."""


@runtime_checkable
class LateVectors(Reindexable, Protocol):
    """A store that takes the vectors of a memory after the memory itself."""

    async def add_vectors(
        self, memory: Memory, number: int, generation: int, vectors: Vectors, tokens: Sequence[Codes] | None = None
    ) -> None:
        """Of the version with that number (see `without_vectors`): searched from now on, without a version or an
        audit entry. Nothing happens to one that is gone; raises StaleGeneration when another embedder took over."""


@dataclass(slots=True, frozen=True)
class SecondEmbedderInfo(EmbedderInfo):
    """The embedder of the second vectors; they are searched once every memory has its own."""

    ready: bool


@runtime_checkable
class SecondVectors(Protocol):
    """A store that keeps the vectors of another embedder beside its own and searches by both."""

    async def second_embedder(self) -> SecondEmbedderInfo | None: ...

    async def begin_second(self, name: str, dimension: int) -> SecondEmbedderInfo:
        """Begin, or take up again, the vectors of a second embedder; those of any other before it are gone."""

    async def without_second(self, after: int, limit: int) -> list[tuple[int, Memory]]:
        """Live versions that lack theirs, in order of their number, from `after` on."""

    async def count_without_second(self) -> int: ...

    async def fill_second(self, generation: int, vectors: Sequence[tuple[int, Vectors]]) -> None:
        """Before they are searched; nothing happens to versions that are gone."""

    async def finish_second(self, generation: int) -> bool:
        """Search by them from now on, unless a memory still lacks its own: then False."""

    async def add_second(self, memory: Memory, number: int, generation: int, vectors: Vectors) -> None:
        """As `LateVectors.add_vectors`, for what was written without while they are searched already."""

    async def drop_second(self) -> bool:
        """Remove them all, from every file; whether there were any."""
