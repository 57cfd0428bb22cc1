"""What scenarios are written with: a clock that passes when told to, and a store under the real engine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from commonplace.engine import BatchItem, Draft, Engine, Expire, Forget, ForgetResult, Merge, MergeResult, Query
from commonplace.stores.base import Primary, Reach, Store
from commonplace.stores.mixins import scan_all
from commonplace.stores.optional import PerAgentStore
from commonplace.wire.errors import Fault, NotFound
from commonplace.wire.filters import parse
from commonplace.wire.record import EVERY_STATUS, Memory, Principal

START = 1_750_000_000_000
WHO = Principal()
AGENT = "agent"


class ScenarioFailure(Exception):
    """The store did not do what a scenario says; the message is for whoever looks after it."""


def expect(what: str, found: object, wanted: object) -> None:
    # No `assert`: Python leaves those out when it is told to, and every store would pass.
    if found != wanted:
        raise ScenarioFailure(f"{what}: {found!r:.200} instead of {wanted!r:.200}")


@dataclass(eq=False)
class FakeClock:
    """Milliseconds that pass only when told to; a negative step is a clock that was set back."""

    now: int = START

    def __call__(self) -> int:
        return self.now

    def advance(self, ms: int) -> int:
        self.now += ms
        return self.now


@dataclass(eq=False)
class Subject:
    """A primary under an engine, with the shortest way to say each thing."""

    engine: Engine
    store: Primary
    clock: FakeClock
    who: Principal = field(default=WHO)
    agent: str = AGENT

    async def remember(self, content: str, agent: str | None = None, **fields: Any) -> str:
        draft = Draft(agent or self.agent, fields.pop("type", "semantic"), content, **fields)
        return (await self.engine.remember(self.who, draft)).id

    async def remember_all(self, drafts: list[Draft]) -> list[str]:
        done = await self.engine.remember_many(self.who, [BatchItem(draft) for draft in drafts])
        return [receipt.id for receipt in done if not isinstance(receipt, Fault)]

    async def recall(self, text: str, agent: str | None = None, **query: Any) -> list[Memory]:
        where = parse(query.pop("filter", None))
        found = await self.engine.recall(self.who, Query((agent or self.agent,), text, where=where, **query))
        return [hit.memory for hit in found.hits]

    async def get(self, id: str, agent: str | None = None, **options: Any) -> Memory:
        return await self.engine.get(self.who, agent or self.agent, id, **options)

    async def list(
        self, agent: str | None = None, filter: dict[str, Any] | None = None, **options: Any
    ) -> list[Memory]:
        found = await self.engine.list(self.who, (agent or self.agent,), parse(filter), limit=1000, **options)
        return found.memories

    async def update(self, id: str, **fields: Any) -> Memory:
        return await self.engine.update_with(self.who, self.agent, id, lambda m: replace(m, **fields))

    async def forget(self, *ids: str, agent: str | None = None, **fields: Any) -> ForgetResult:
        return await self.engine.forget(self.who, Forget(agent or self.agent, ids, **fields))

    async def merge(self, canonical: str, *duplicates: str, strategy: Any = "keep_canonical") -> MergeResult:
        return await self.engine.merge(self.who, Merge(self.agent, canonical, duplicates, strategy))

    async def expire(self, action: Any = "forget", **policy: Any) -> list[str]:  # type: ignore[valid-type]
        return (await self.engine.expire(self.who, Expire(self.agent, action=action, **policy))).ids

    async def gone(self, id: str, agent: str | None = None) -> bool:
        try:
            await self.get(id, agent)
        except NotFound:
            return True
        return False

    @property
    def protocol(self) -> type:
        """What the store must be."""
        return Primary

    @property
    def source(self) -> str:
        """Where hits are said to come from."""
        return self.store.name


@dataclass(eq=False)
class CopySubject(Subject):
    """A store that has copies, beside a primary: what it finds and holds is what counts, not what the primary does.

    `name` is that under which the engine knows it, `primary` the name of the store beside it.
    """

    store: Store  # type: ignore[assignment]
    name: str = "copy"
    primary: str = "memory"

    async def recall(self, text: str, agent: str | None = None, **query: Any) -> list[Memory]:
        """What the store itself found, in its order."""
        where = parse(query.pop("filter", None))
        asked = Query((agent or self.agent,), text, where=where, explain=True, **query)
        found = await self.engine.recall(self.who, asked)
        expect("what the recall says of the store", found.errors.get(self.name), None)
        expect("whether it was asked", self.name in found.stores_queried, True)
        places = [((hit.explain or {})["stores"].get(self.name), hit.memory) for hit in found.hits]
        # What it was not told yet is counted as found, which says nothing of the store.
        known = [(at["rank"], memory) for at, memory in places if at and "assumed" not in at]
        ranked = sorted(known, key=lambda each: each[0])
        return [memory for _, memory in ranked]

    async def list(
        self, agent: str | None = None, filter: dict[str, Any] | None = None, **options: Any
    ) -> list[Memory]:
        """What the store itself holds, newest first, which must be what the primary shows."""
        shown = await super().list(agent, filter, **options)
        reach = Reach(self.who.tenant, (agent or self.agent,), parse(filter), EVERY_STATUS, now=self.clock())
        held = await scan_all(self.store, reach)
        expect("what it holds", sorted(m.id for m in held), sorted(m.id for m in shown))
        expect("the texts", {m.id: m.content for m in held}, {m.id: m.content for m in shown})
        return held[::-1]

    async def gone(self, id: str, agent: str | None = None) -> bool:
        if isinstance(self.store, PerAgentStore):
            held = await self.store.get_of(self.who.tenant, agent or self.agent, [id])
        else:
            held = await self.store.get(self.who.tenant, [id])
        return not held and await super().gone(id, agent)

    @property
    def protocol(self) -> type:
        return Store

    @property
    def source(self) -> str:
        return self.primary
