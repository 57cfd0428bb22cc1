"""The ten tools for one caller: arguments in, documents out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from commonplace.dialects.trusty import records
from commonplace.dialects.trusty.tools import TOOLS, read_arguments
from commonplace.engine import Engine, Forget, Palace, PalaceRecall, tagged
from commonplace.wire.errors import Fault, NotFound, ValidationError
from commonplace.wire.filters import Where
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import milliseconds

Document = dict[str, Any]

TOP_K = 10
LIST_LIMIT = 50


class Trusty:
    """Each tool takes its arguments and gives its answer; `palace` is meant when a call names none.

    It need not be there: until the first write makes it, it reads as an empty one.
    """

    def __init__(self, engine: Engine, who: Principal, palace: str | None = None) -> None:
        self._engine = engine
        self._who = replace(who, dialect=records.DIALECT)
        self._default = palace

    async def call(self, tool: str, arguments: Any) -> Document:
        """The answer; every refusal names the tool."""
        if tool not in TOOLS:
            raise NotFound(f"unknown tool: {tool}")
        try:
            answer: Document = await getattr(self, tool)(**read_arguments(tool, arguments, self._default))
            return answer
        except Fault as fault:
            if not fault.message.startswith(f"{tool}: "):
                fault.message = f"{tool}: {fault.message}"
                fault.public = fault.public and f"{tool}: {fault.public}"
            raise

    async def memory_remember(self, palace: str, text: str, room: str | None, tags: list[str] | None) -> Document:
        draft = records.to_draft(palace, text, room, tags or [])
        await self.open_to_write(palace)
        receipt = await self._engine.remember(self._who, draft)
        status = "stored" if receipt.review_id is None else "pending"
        return {"drawer_id": receipt.id, "palace": palace, "status": status, **self.approval(receipt.review_id)}

    async def memory_recall(self, palace: str, query: str, top_k: int, deep: bool = False) -> Document:
        found = await self.recall(palace, query, top_k, deep=deep)
        return {"palace": palace, "query": query, "results": records.recall_results(found, self.now)}

    async def memory_recall_deep(self, palace: str, query: str, top_k: int) -> Document:
        return await self.memory_recall(palace, query, top_k, deep=True)

    async def palace_create(self, name: str, description: str | None) -> Document:
        await self._engine.palaces.create(self._who, name, description)
        return {"palace_id": name, "status": "created"}

    async def palace_list(self) -> Document:
        names = await self._engine.palaces.names(self._who)
        return {"palaces": sorted({*names, *self._usable_default})}

    async def kg_assert(
        self, palace: str, subject: str, predicate: str, object: str, confidence: float, provenance: str | None
    ) -> Document:
        await self.open_to_write(palace)
        fact = (subject, predicate, object)
        stated = await self._engine.palaces.assert_fact(self._who, palace, fact, confidence, provenance)
        return {"status": "asserted" if stated.review_id is None else "pending", **self.approval(stated.review_id)}

    async def kg_query(self, palace: str, subject: str, as_of: str | None = None) -> Document:
        """What holds now, or held at `as_of`, which is written as the times of the answer are."""
        await self.open(palace)
        at = None if as_of is None else milliseconds(as_of, "as_of")
        found = await self._engine.graph.query(self._who, palace, subject, as_of=at)
        return {"subject": subject, "triples": [records.triple_to_wire(triple) for triple in found]}

    async def memory_list(self, palace: str, room: str | None, tag: str | None, limit: int | None) -> Document:
        found = await self.listing(palace, room, tag, LIST_LIMIT if limit is None else limit)
        return {"palace": palace, "drawers": [records.list_item(memory, self.now) for memory in found]}

    async def memory_forget(self, palace: str, drawer_id: str) -> Document:
        """Gone afterwards, whether or not it was there; deleted as every protocol but memorywire deletes, softly."""
        id = uuid_of(drawer_id)
        if id is None:
            raise ValidationError(f"drawer_id must be a UUID, not {drawer_id[:80]!r}", field="drawer_id")
        await self.open(palace)
        done = await self._engine.forget(self._who, Forget(palace, [id]))
        status = "deleted" if done.review_id is None else "pending"
        return {"status": status, "drawer_id": drawer_id, "palace": palace, **self.approval(done.review_id)}

    def approval(self, review_id: str | None) -> Document:
        """Where a person decides about what waits; nothing where nothing does, or no server shows it."""
        url = self._engine.approval_url(review_id)
        return {"approval_url": url} if url else {}

    async def palace_info(self, palace: str) -> Document:
        await self.open(palace)
        count = await self._engine.count(self._who, (palace,))
        return {"id": palace, "name": palace, "drawer_count": count, "data_dir": self.data_dir}

    # what the tools and the companion server share

    @property
    def now(self) -> int:
        return self._engine.clock()

    @property
    def data_dir(self) -> str | None:
        """Where all palaces lie: the business of the operator, and of nobody else."""
        folder = self._engine.settings.folder
        return str(folder.absolute()) if folder is not None and self._who.is_operator else None

    async def open(self, palace: str) -> Palace:
        """For reading: it must be there, unless it is the default one."""
        try:
            return await self._engine.palaces.get(self._who, palace)
        except NotFound:
            if palace != self._default:
                raise
            return Palace(palace, created_at=self.now)

    async def open_to_write(self, palace: str) -> None:
        """The palace must be there; only the default one is made when it is not."""
        if palace == self._default:
            await self._engine.palaces.ensure(self._who, palace)
        else:
            await self._engine.palaces.get(self._who, palace)

    async def every_palace(self) -> list[Palace]:
        """In the order of their names; the default one is among them before it is made."""
        found = {palace.name: palace for palace in await self._engine.palaces.all(self._who)}
        for name in self._usable_default:
            found[name] = found.get(name) or await self.open(name)
        return [found[name] for name in sorted(found)]

    @property
    def _usable_default(self) -> list[str]:
        return [self._default] if self._default is not None and self._who.may_use(self._default) else []

    async def recall(self, palace: str, query: str, top_k: int, *, deep: bool) -> PalaceRecall:
        try:
            return await self._engine.palaces.recall(self._who, palace, query, top_k, deep=deep)
        except NotFound:
            await self.open(palace)
            return PalaceRecall(None, [])

    async def listing(self, palace: str, room: str | None, tag: str | None, limit: int) -> list[Memory]:
        await self.open(palace)
        where: Where = (*((records.in_room(room),) if room else ()), *((tagged(tag),) if tag is not None else ()))
        return list(await self._engine.palaces.most_important(self._who, palace, where, limit=limit))


def uuid_of(text: str) -> str | None:
    """As our ids are spelled, however the caller spells it."""
    try:
        return str(UUID(text)) if text.isascii() else None
    except ValueError:
        return None
