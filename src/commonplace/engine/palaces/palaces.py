"""Palaces: agents by another name, which may be empty, described, and say who they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from commonplace.engine.checks import check_agent_name
from commonplace.engine.core import Core
from commonplace.engine.graph.statements import AssertResult
from commonplace.engine.ledger import audit
from commonplace.engine.memory.read import READABLE
from commonplace.engine.palaces import palace_recall
from commonplace.engine.palaces.palace_recall import DECAY, PalaceRecall
from commonplace.engine.recall.recall import Recaller
from commonplace.engine.recall.recall_log import RecallLog
from commonplace.engine.types import Statement
from commonplace.stores.base import Reach, Record, Transaction
from commonplace.wire.errors import NotFound, PayloadTooLarge
from commonplace.wire.filters import Where
from commonplace.wire.palace_names import check_name, valid
from commonplace.wire.plain import check_field
from commonplace.wire.record import EVERY_STATUS, Memory, Principal, Role

PALACE = "palace"
MAX_TEXT_CHARS = 16_384  # of an identity or a description: an identity is part of every answer


@dataclass(slots=True)
class Palace:
    """An agent's memory seen as a place. `identity` is what every recall in it begins with."""

    name: str
    description: str | None = None
    identity: str | None = None
    created_at: int = 0


class Palaces:
    def __init__(
        self,
        core: Core,
        recaller: Recaller,
        log: RecallLog,
        state: Callable[[Principal, Statement], Awaitable[AssertResult]],
    ) -> None:
        self._core = core
        self._recaller = recaller
        self._log = log
        self._state = state  # at once, or once a reviewer has approved

    # which there are

    async def names(self, who: Principal) -> list[str]:
        """Those that were made, and every agent with a memory whose name is one a palace can have."""
        made = await self._core.primary.records(who.tenant, PALACE)
        return await self._usable(who, [record.key for record in made])

    async def all(self, who: Principal) -> list[Palace]:
        """Each of `names`."""
        made = {record.key: _palace(record) for record in await self._core.primary.records(who.tenant, PALACE)}
        found = []
        for name in await self._usable(who, made):
            palace = made.get(name) or await self._implicit_palace(who, name)
            if palace is not None:  # its last memory may have been erased this moment
                found.append(palace)
        return found

    async def _usable(self, who: Principal, made: Iterable[str]) -> list[str]:
        names = {*filter(self._core.redactor.is_name, made), *await self._core.agent_names(who.tenant)}
        return sorted(name for name in names if valid(name) and who.may_use(name))

    def _check(self, who: Principal, name: str, role: Role) -> None:
        self._core.check_names(palace=name)  # first, because the refusal of what is no name repeats it
        check_name(name)
        if role != "reader":
            check_agent_name(name)
        self._core.require(who, name, role)

    async def get(self, who: Principal, name: str) -> Palace:
        """The palace, made or not; NotFound where there is neither a palace nor a memory."""
        self._check(who, name, "reader")
        palace = await self._look_up(who, name)
        if palace is None:
            raise NotFound(f"there is no palace {name!r}: make it with palace_create, or `commonplace palace create`")
        return palace

    async def find(self, who: Principal, name: str) -> Palace | None:
        """One of `names`, without listing them; None where it is none of them."""
        if not (valid(name) and who.may_use(name) and self._core.redactor.is_name(name)):
            return None
        return await self._look_up(who, name)

    async def _look_up(self, who: Principal, name: str) -> Palace | None:
        record = await self._core.primary.record(who.tenant, PALACE, name)
        return _palace(record) if record is not None else await self._implicit_palace(who, name)

    # making them

    async def create(self, who: Principal, name: str, description: str | None = None) -> Palace:
        """Make it, unless it is there; nothing that was said of it before is changed."""
        said = await self._admitted(who, name, self._clean("description", description))

        def describe(palace: Palace, new: bool) -> bool:
            if not new and (palace.description or not said):
                return False
            palace.description = said
            return True

        return await self._change(who, name, "create_palace", describe)

    async def ensure(self, who: Principal, name: str) -> Palace:
        """The palace, made if it is not there."""
        try:
            return await self.get(who, name)
        except NotFound:
            return await self.create(who, name)

    async def set_identity(self, who: Principal, name: str, identity: str | None) -> Palace:
        """Say who the palace is; None or nothing takes it back. A palace that was never made is made."""
        said = await self._admitted(who, name, self._clean("identity", identity))

        def identify(palace: Palace, new: bool) -> bool:
            palace.identity = said
            return True

        return await self._change(who, name, "identify_palace", identify)

    def cleaned(self, palace: Palace) -> Palace:
        """What is kept of what it says of itself, rules aside."""
        description = self._clean("description", palace.description)
        return replace(palace, description=description, identity=self._clean("identity", palace.identity))

    async def admitted(self, who: Principal, palace: Palace) -> Palace:
        """What it may say of itself; nothing is kept."""
        self._check(who, palace.name, "writer")
        clean = self.cleaned(palace)
        description = await self._admitted(who, palace.name, clean.description)
        return replace(clean, description=description, identity=await self._admitted(who, palace.name, clean.identity))

    async def _change(
        self, who: Principal, name: str, operation: str, change: Callable[[Palace, bool], bool]
    ) -> Palace:
        """`change` alters the palace, told whether it is new, and says whether there is something to keep."""
        self._check(who, name, "writer")
        first = await self._first(who, name)

        def work(tx: Transaction) -> Palace:
            record = tx.record(PALACE, name)
            palace = _palace(record) if record else Palace(name, created_at=first.created_at if first else tx.now)
            if change(palace, record is None):
                value = {key: each for key, each in asdict(palace).items() if key != "name" and each is not None}
                tx.put_record(Record(PALACE, name, value))
                audit.append(tx, who, operation, name, [audit.part(None, {"palace": name})])
            return palace

        return await self._core.transact(who.tenant, work)

    def _clean(self, field: str, text: str | None) -> str | None:
        """What is kept of a text, secrets taken out as everywhere; None when nothing is left."""
        kept = (text or "").strip()
        check_field(kept, field)
        kept = self._core.redact_text(kept, field) if kept else kept
        if len(kept) > MAX_TEXT_CHARS:
            sentence = f"{field} has {len(kept):,} characters; at most {MAX_TEXT_CHARS:,} are kept"
            raise PayloadTooLarge(sentence, field=field)
        return kept or None

    async def _admitted(self, who: Principal, name: str, text: str | None) -> str | None:
        """As policies let it be said: whoever recalls in a palace reads what it says of itself."""
        if text is None:
            return None
        said = Memory("", who.tenant, name, "semantic", text, kind="identity")
        return (await self._core.policies.admit_memory(who, "remember", said)).content

    async def _implicit_palace(self, who: Principal, name: str) -> Palace | None:
        """The palace that an agent with a memory is, though nobody made it one."""
        first = await self._first(who, name)
        return None if first is None else Palace(name, created_at=first.created_at)

    async def _first(self, who: Principal, name: str) -> Memory | None:
        reach = Reach(who.tenant, (name,), statuses=EVERY_STATUS)
        page = await self._core.primary.scan(reach, limit=1, newest_first=False)
        return page.memories[0] if page.memories else None

    # what is in them

    async def recall(self, who: Principal, name: str, text: str, k: int, *, deep: bool = False) -> PalaceRecall:
        """Layer by layer; what is shown is in the audit, and what of it answers the question counts as recalled."""
        palace, policies = await self.get(who, name), self._core.policies
        self._recaller.spend(who, (name,))
        found = await palace_recall.recall(self._core, who, name, text, k, palace.identity, deep=deep)
        seen = {memory.id: memory for memory in await policies.shown(who, [hit.memory for hit in found.hits])}
        found.hits = [replace(hit, memory=seen[hit.memory.id]) for hit in found.hits if hit.memory.id in seen]
        if found.identity is not None:
            said = Memory("", who.tenant, name, "semantic", found.identity, kind="identity")
            found.identity = next((memory.content for memory in await policies.shown(who, [said])), None)
        shown = [hit.memory.id for hit in found.hits]
        await self._recaller.log(who, (name,), text, shown, tail=frozenset(shown) - frozenset(found.found))
        return found

    async def most_important(self, who: Principal, name: str, where: Where = (), *, limit: int) -> list[Memory]:
        """A listing by importance as it is now, the recalls of a moment ago counted; the highest first."""
        self._core.require(who, name, "reader")
        await self._log.flush()
        now = self._core.clock()
        reach = Reach(who.tenant, (name,), where, statuses=READABLE, now=now)
        found = await self._core.primary.most_important(reach, DECAY, now, limit)
        return await self._core.policies.shown(who, found)

    async def assert_fact(
        self, who: Principal, name: str, fact: tuple[str, str, str], confidence: float, provenance: str | None
    ) -> AssertResult:
        """State (subject, predicate, object); a confidence that is out of range counts as the nearest that is not."""
        said = Statement(name, *fact, min(max(confidence, 0.0), 1.0), provenance or None)
        return await self._state(who, said)


def _palace(record: Record) -> Palace:
    value: dict[str, Any] = record.value
    return Palace(record.key, value.get("description"), value.get("identity"), value.get("created_at", 0))
