"""Policies: the rules in force for a tenant, asked once for every write and every read, whichever way it came."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import Any

from commonplace.engine.governance import learning, rules
from commonplace.engine.governance.named_memories import named_ids, without_names
from commonplace.engine.governance.rules import Operation, Proposal, Rule, Verdict, parse_rules
from commonplace.engine.ledger import audit
from commonplace.engine.transfer.migration_marks import require_whole
from commonplace.stores.base import Primary, Record, Transaction
from commonplace.stores.graph import Triple
from commonplace.wire.canonical import content_hash, new_salt
from commonplace.wire.errors import Forbidden
from commonplace.wire.record import ALL_AGENTS, Memory, Principal, covers

POLICY, RULES = "policy", "rules"
#: For so long rules that were read are used again: looking at every call would cost a recall a tenth of its time.
REFRESH_SECONDS = 0.25
_LISTED = frozenset({"agent", "user", "type", "kind", "source", "dialect", "principal", "operation", "findings"})


class PolicyRefusal(Forbidden):
    """A rule rejects this."""

    def __init__(self, rule: Rule, what: str = "this") -> None:
        note = f": {rule.note}" if rule.note else ""
        super().__init__(f"the policy {rule.name!r} refuses {what}{note}", rule=rule.name)


#: Whether the ledger is told what rules refused or let pass.
_audits: ContextVar[bool] = ContextVar("audits", default=True)


@contextmanager
def without_audit() -> Iterator[None]:
    """For a dry run: rules are asked as ever, and the ledger is not told."""
    before = _audits.set(False)
    try:
        yield
    finally:
        _audits.reset(before)


class ReviewRequired(Forbidden):
    """A rule asks for a review. The engine stages what can wait; where nothing can, the caller is told this."""

    def __init__(self, rule: Rule, pattern: learning.Pattern) -> None:
        super().__init__(
            f"the policy {rule.name!r} asks for a review, and this cannot wait for one: nothing was changed",
            rule=rule.name,
        )
        self.noted = {"rule": rule.name, "pattern": asdict(pattern)}  # in the review


def configured_rules(documents: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """The rules of a file, where one name may stand for a list of one."""
    listed = []
    for document in documents:
        when = document.get("when") if isinstance(document, Mapping) else None
        if isinstance(when, Mapping):
            spelled = {k: [v] if k in _LISTED and isinstance(v, str) else v for k, v in when.items()}
            listed.append({**document, "when": spelled})
        else:
            listed.append(dict(document) if isinstance(document, Mapping) else document)
    return parse_rules(listed, "policy")


@dataclass(slots=True)
class _CompiledRules:
    documents: Any
    rules: tuple[Rule, ...]
    read_at: float


class Policies:
    def __init__(
        self,
        primary: Primary,
        configured: Sequence[Mapping[str, Any]],
        learn_after: Callable[[], int],
        transact: Callable[[str, Callable[[Transaction], Any]], Awaitable[Any]],
    ) -> None:
        self._primary = primary
        self._transact = transact
        self.configured = configured_rules(configured)
        self._compiled: dict[str, _CompiledRules] = {}
        self._used_tenants = set[str]()  # that are no target of a migration, and cannot become one
        self._learn_after = learn_after

    async def in_force(self, tenant: str) -> tuple[Rule, ...]:
        """The operator's, then the tenant's own."""
        return (*self.configured, *await self.own(tenant))

    async def own(self, tenant: str) -> tuple[Rule, ...]:
        """At once as this process has made them; another's are noticed within `REFRESH_SECONDS`."""
        if tenant not in self._used_tenants:
            await self._require_whole(tenant)
        known, now = self._compiled.get(tenant), time.monotonic()
        if known is not None and now - known.read_at < REFRESH_SECONDS:
            return known.rules
        record = await self._primary.record(tenant, POLICY, RULES)
        documents = [] if record is None else record.value["rules"]
        if known is None or known.documents != documents:
            known = _CompiledRules(documents, parse_rules(documents, "rules"), now)
        known.read_at = now
        self._compiled[tenant] = known
        return known.rules

    async def _require_whole(self, tenant: str) -> None:
        """A migration brings rules last, and what was forgotten is there before it is forgotten: whoever had its target
        open while it was empty reads nothing of it until the end."""
        is_used = await self._primary.sequence(tenant) > 0  # asked first: no migration begins in a store like that
        await require_whole(self._primary)
        if is_used:
            self._used_tenants.add(tenant)

    async def replace_own(self, who: Principal, documents: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
        """Make these the tenant's own rules, all of them."""
        parsed = parse_rules(list(documents), "rules")

        def work(tx: Transaction) -> None:
            tx.put_record(Record(POLICY, RULES, {"rules": [dict(rule.document) for rule in parsed]}))
            said = {"rules": [{"name": rule.name, "action": rule.action} for rule in parsed]}
            audit.append(tx, who, "set_policies", ALL_AGENTS, [audit.part(None, said)])

        await self._transact(who.tenant, work)
        self._compiled.pop(who.tenant, None)
        return parsed

    # writing

    async def admit_memory(
        self,
        who: Principal,
        operation: Operation,
        memory: Memory,
        *,
        before: Memory | None = None,
        dialect: str = "",
        reviewed: bool = False,
    ) -> Memory:
        """The memory as it may be kept: as it is, or redacted. Refuses what a rule rejects, and what one wants reviewed
        unless a person has `reviewed` it or is asked to. `before` is what it replaces."""
        in_force = await self.in_force(who.tenant)
        if not in_force:
            return memory
        proposal = _proposal(who, operation, memory, before, dialect)
        verdict = rules.first_match(in_force, proposal)
        await self._enforce(who, verdict, [proposal], reviewed)
        if verdict.action != "redact" or verdict.rule is None:
            return memory
        clean = rules.redacted_memory(verdict.rule, memory)
        if clean is None:
            await self._refuse(who, verdict.rule, proposal)
        assert clean is not None
        if clean.content != memory.content:
            salt = new_salt()
            clean = replace(clean, content_hash=content_hash(clean.content, salt), salt=salt)
        return clean

    async def would_admit(
        self, who: Principal, operation: Operation, memory: Memory, *, before: Memory | None = None
    ) -> bool:
        """Whether `admit_memory` would let it be kept without a person; unlike that it notes nothing."""
        in_force = await self.in_force(who.tenant)
        if not in_force:
            return True
        proposal = _proposal(who, operation, memory, before)
        verdict = rules.first_match(in_force, proposal)
        if verdict.rule is None or verdict.action == "allow":
            return True
        if verdict.action == "redact":
            return rules.redacted_memory(verdict.rule, memory) is not None
        if verdict.action == "review":
            return await self._learned_pattern(who, learning.pattern_of(verdict.rule.name, proposal)) is not None
        return False

    async def admit_all(
        self,
        who: Principal,
        operation: Operation,
        memories: Iterable[Memory],
        *,
        reviewed: bool = False,
        brings_text: bool = False,
    ) -> None:
        """That something may be done to these memories, all of them; the strictest verdict holds."""
        in_force = await self.in_force(who.tenant)
        if not in_force:
            return
        proposals = [rules.of_memory(operation, who, m, who.dialect, brings_text=brings_text) for m in memories]
        verdicts = [rules.first_match(in_force, proposal) for proposal in proposals]
        if verdicts:
            worst = rules.strictest(verdicts)
            await self._enforce(who, worst, [proposals[verdicts.index(worst)]], reviewed)

    async def admitted(
        self, who: Principal, operation: Operation, memories: Sequence[Memory]
    ) -> tuple[list[Memory], Rule | None]:
        """Of these memories those that need nobody's approval for it; and a rule that covers one of the others."""
        in_force = await self.in_force(who.tenant)
        kept: list[Memory] = []
        against: Rule | None = None
        for memory in memories:
            verdict = rules.first_match(in_force, rules.of_memory(operation, who, memory, who.dialect))
            if verdict.action in ("review", "reject"):
                against = verdict.rule
            else:
                kept.append(memory)
        return kept, against

    async def admit_triple(
        self, who: Principal, operation: Operation, triple: Triple, *, reviewed: bool = False
    ) -> Triple:
        """As `admit_memory`, for a statement of the graph."""
        proposal = rules.of_triple(operation, who, triple, who.dialect)
        verdict = rules.first_match(await self.in_force(who.tenant), proposal)
        await self._enforce(who, verdict, [proposal], reviewed)
        redacts = verdict.action == "redact" and verdict.rule is not None and operation == "statement"
        return rules.redacted_triple(verdict.rule, triple) if redacts and verdict.rule else triple

    async def triple_guard(self, who: Principal, operation: Operation) -> Callable[[Triple], None]:
        """For use in a transaction: refuses what a rule rejects or wants reviewed, which here nothing can wait for."""
        in_force = await self.in_force(who.tenant)

        def guard(triple: Triple) -> None:
            proposal = rules.of_triple(operation, who, triple, who.dialect)
            verdict = rules.first_match(in_force, proposal)
            if verdict.rule is not None and verdict.action == "reject":
                raise PolicyRefusal(verdict.rule, f"this {operation}")
            if verdict.rule is not None and verdict.action == "review":
                raise ReviewRequired(verdict.rule, learning.pattern_of(verdict.rule.name, proposal))

        return guard

    async def _enforce(self, who: Principal, verdict: Verdict, proposals: Sequence[Proposal], reviewed: bool) -> None:
        if verdict.rule is None:
            return
        if verdict.action == "reject":
            await self._refuse(who, verdict.rule, proposals[0])
        if verdict.action == "review" and not reviewed:
            pattern = learning.pattern_of(verdict.rule.name, proposals[0])
            if await self._learned(who, pattern):
                return
            raise ReviewRequired(verdict.rule, pattern)

    async def _learned(self, who: Principal, pattern: learning.Pattern) -> bool:
        """Whether reviewers have approved so much of this kind that it needs no more of them; the ledger notes it."""
        held = await self._learned_pattern(who, pattern)
        if held is None:
            return False
        said = {"pattern": held.id, "rule": pattern.rule, "operation": pattern.operation, "after": held.approved}
        await self._append_audit(who, "auto_allow", pattern.agent, said)
        return True

    async def _learned_pattern(self, who: Principal, pattern: learning.Pattern) -> learning.LearnedPattern | None:
        if not self._learn_after():
            return None
        found = await learning.learned(self._primary, who.tenant)
        held = found.get(learning.pattern_id(pattern))
        return None if held is None or held.approved < self._learn_after() else held

    async def _refuse(self, who: Principal, rule: Rule, proposal: Proposal) -> None:
        """Never silently: that something was refused is on the ledger, and nothing of what it said."""
        await self._append_audit(
            who, "policy_reject", proposal.agent, {"rule": rule.name, "operation": proposal.operation}
        )
        raise PolicyRefusal(rule, f"this {proposal.operation}")

    async def _append_audit(self, who: Principal, operation: str, agent: str, said: dict[str, Any]) -> None:
        if _audits.get():
            await self._transact(
                who.tenant, lambda tx: audit.append(tx, who, operation, agent, [audit.part(None, said)])
            )

    # reading

    async def _reader(self, who: Principal) -> Callable[[Memory], Memory | None]:
        """What rules let this caller see of a memory: all of it, some of it, or nothing."""
        found = await self._read_rules(who)
        if not found:
            return lambda memory: memory
        return lambda memory: _seen(rules.first_match(found, _read(who, memory)), memory)

    async def _version_reader(self, who: Principal, ids: Iterable[str]) -> Callable[[Memory], Memory | None]:
        """As `_reader`, for versions of any time of these memories: what a rule says of a memory as it is now holds for
        all that it ever was, too."""
        found = await self._read_rules(who)
        if not found:
            return lambda memory: memory
        there = await self._primary.get(who.tenant, list(dict.fromkeys(ids)))
        now = {memory.id: rules.first_match(found, _read(who, memory)) for memory in there}

        def show(version: Memory) -> Memory | None:
            seen = _seen(now[version.id], version) if version.id in now else None  # it may have been erased this moment
            return None if seen is None else _seen(rules.first_match(found, _read(who, version)), seen)

        return show

    async def shown(self, who: Principal, memories: Iterable[Memory]) -> list[Memory]:
        """Of these memories what this caller may see."""
        show = await self._reader(who)
        return await self._unnamed(who, [seen for memory in memories if (seen := show(memory)) is not None])

    async def shown_versions(self, who: Principal, versions: Sequence[Memory]) -> list[Memory]:
        """As `shown`, of versions of any time."""
        show = await self._version_reader(who, (version.id for version in versions))
        return await self._unnamed(who, [seen for version in versions if (seen := show(version)) is not None])

    async def _unnamed(self, who: Principal, memories: list[Memory]) -> list[Memory]:
        """Without the names of others that are kept from this caller: a memory goes by the names of what was merged
        into it, and says what it was made of."""
        if not memories or not await self.limit_reading(who):
            return memories
        kept = await self._kept_from(who, {id for memory in memories for id in named_ids(memory)})
        return [without_names(memory, kept) for memory in memories] if kept else memories

    async def masked(self, who: Principal, memory: Memory) -> Memory:
        """As `shown`, where something has to stand for it: what is withheld says nothing but that it is there."""
        seen = await self.shown(who, [memory])
        if seen:
            return seen[0]
        kept = ("status", "version", "created_at", "updated_at", "expires_at")
        return Memory(
            memory.id, memory.tenant, memory.agent_id, memory.type, rules.marker("withheld"),
            **{name: getattr(memory, name) for name in kept},
        )  # fmt: skip

    async def withholds(self, who: Principal) -> bool:
        """Whether whole memories may be kept from this caller: then a number of them tells of those, too."""
        return any(rule.action == "reject" for rule in await self._read_rules(who))

    async def withheld(self, who: Principal, ids: Iterable[str]) -> frozenset[str]:
        """Of these ids those of memories that are kept from this caller, whatever has become of them."""
        if not await self.limit_reading(who):
            return frozenset()
        return frozenset(memory.id for memory in await self._kept_from(who, ids))

    async def _kept_from(self, who: Principal, ids: Iterable[str]) -> list[Memory]:
        if not (wanted := list(dict.fromkeys(ids))):
            return []
        show = await self._reader(who)
        return [memory for memory in await self._primary.get(who.tenant, wanted) if show(memory) is None]

    async def shown_triples(self, who: Principal, triples: Iterable[Triple]) -> list[Triple]:
        show = await self.triple_reader(who)
        return await self._unsourced(who, [seen for triple in triples if (seen := show(triple)) is not None])

    async def _unsourced(self, who: Principal, triples: list[Triple]) -> list[Triple]:
        """As `_unnamed`, of statements: without the memory that each is known from, where that is kept from this
        caller."""
        kept = await self.withheld(who, (triple.memory_id for triple in triples if triple.memory_id))
        return [replace(t, provenance=None, memory_id=None) if t.memory_id in kept else t for t in triples]

    async def triple_reader(self, who: Principal) -> Callable[[Triple], Triple | None]:
        found = await self._read_rules(who)

        def show(triple: Triple) -> Triple | None:
            verdict = rules.first_match(found, rules.of_triple("recall", who, triple, who.dialect))
            if verdict.rule is None or verdict.action == "allow":
                return triple
            return rules.redacted_triple(verdict.rule, triple) if verdict.action == "redact" else None

        return show

    async def masked_triples(self, who: Principal, triples: Iterable[Triple], *named: str) -> list[Triple]:
        """As `masked`; what the caller has `named` is no news to them."""
        show, hidden = await self.triple_reader(who), rules.marker("withheld")
        masked = []
        for triple in triples:
            seen = show(triple)
            if seen is None:
                terms = (triple.subject, triple.predicate, triple.object)
                told = (term if term in named else hidden for term in terms)
                seen = Triple(triple.id, triple.agent_id, next(told), next(told), next(told), triple.valid_from)
                seen = replace(seen, valid_to=triple.valid_to)
            masked.append(seen)
        return await self._unsourced(who, masked)

    async def limit_reading(self, who: Principal) -> bool:
        """Whether there are rules about what is read."""
        return bool(await self._read_rules(who))

    async def _read_rules(self, who: Principal) -> tuple[Rule, ...]:
        # A rule about somebody else must not cost this caller the counts that it would tell too much by.
        return tuple(
            rule
            for rule in await self.in_force(who.tenant)
            if "recall" in rule.operation
            and any(covers(pattern, who.name) for pattern in rule.patterns.get("principal", (who.name,)))
        )


def _read(who: Principal, memory: Memory) -> Proposal:
    return rules.of_memory("recall", who, memory, who.dialect)


def _seen(verdict: Verdict, memory: Memory) -> Memory | None:
    if verdict.rule is None or verdict.action == "allow":
        return memory
    return rules.redacted_memory(verdict.rule, memory) if verdict.action == "redact" else None


def _proposal(
    who: Principal, operation: Operation, memory: Memory, before: Memory | None, dialect: str = ""
) -> Proposal:
    by = dialect or who.dialect
    brings = before is None or rules.memory_texts(before) != rules.memory_texts(memory)
    was = None if before is None else rules.of_memory(operation, who, before, by)
    return rules.of_memory(operation, who, memory, by, brings_text=brings, before=was)
