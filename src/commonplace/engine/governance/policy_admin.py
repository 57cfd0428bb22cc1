"""What people do with policies: look at them, replace them, try them on the past, and take back what was learned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from commonplace.engine.checks import require_role
from commonplace.engine.core import Core
from commonplace.engine.governance import learning, rules
from commonplace.engine.governance.rules import Proposal, parse_rules
from commonplace.engine.ledger import audit
from commonplace.engine.memory.write import operation_of
from commonplace.engine.types import Draft
from commonplace.stores.base import AuditEntry, Record, Transaction
from commonplace.stores.graph import Triple
from commonplace.wire.errors import Forbidden, NotFound, ValidationError
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS
from commonplace.wire.words import shorten

MAX_CAUGHT = 1000  # in one answer
MAX_DAYS = 3650
_PAGE = 500
_LOOKED_AT = {
    "remember": "remember", "update": "update", "merge": "merge", "forget": "forget", "graph_assert": "statement",
}  # fmt: skip
_SHOWN_CHARS = 200


class PolicyAdmin:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def get(self, who: Principal) -> dict[str, Any]:
        """{rules, configured}: the tenant's own, and those of the operator, which are asked first."""
        require_role(who, "reviewer")
        own = await self._core.policies.own(who.tenant)
        configured = self._core.policies.configured
        return {"rules": [dict(r.document) for r in own], "configured": [dict(r.document) for r in configured]}

    async def replace(self, who: Principal, documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Make these the tenant's own rules, all of them; they hold from the next request on."""
        _require_tenant_admin(who)
        await self._core.policies.replace_own(who, documents)
        return await self.get(who)

    async def dry_run(self, who: Principal, documents: Sequence[Mapping[str, Any]], days: int = 30) -> dict[str, Any]:
        """{looked_at, counts, caught}: which writes of the last days these rules would have caught, newest first."""
        require_role(who, "reviewer")
        if not 1 <= days <= MAX_DAYS:
            raise ValidationError(f"days must be a whole number from 1 to {MAX_DAYS}, not {days}", field="days")
        tried = parse_rules(list(documents), "rules")
        counts: Counter[str] = Counter({rule.name: 0 for rule in tried})
        looked_at, caught = 0, list[dict[str, Any]]()
        async for entry, id, proposal, text in self._writes(who, self._core.clock() - days * DAY_MS):
            looked_at += 1
            verdict = rules.first_match(tried, proposal)
            if verdict.rule is None:
                continue
            counts[verdict.rule.name] += 1
            ruled = {"rule": verdict.rule.name, "action": verdict.action, "operation": proposal.operation}
            written = {"agent_id": entry.agent_id, "principal": entry.principal, "at": entry.at, "id": id}
            found = {**ruled, **written, "content": shorten(text, _SHOWN_CHARS)}
            caught = [*caught[-MAX_CAUGHT + 1 :], found]
        return {"looked_at": looked_at, "counts": dict(counts), "caught": caught[::-1]}

    async def _writes(self, who: Principal, since: int) -> AsyncIterator[tuple[AuditEntry, str, Proposal, str]]:
        """Every write since then that the ledger names and whose text is still there, as rules would have seen it."""
        after, versions = 0, dict[str, list[Memory]]()
        while entries := await self._core.primary.audit(who.tenant, after=after, limit=_PAGE, since=since):
            after = entries[-1].n
            for entry in entries:
                if entry.operation not in _LOOKED_AT or not who.may_use(entry.agent_id):
                    continue
                author = replace(who, name=entry.principal)
                for part in entry.parts:
                    if part.memory_id is None or part.payload is None:
                        continue
                    if entry.operation == "graph_assert":
                        triple = _stated(entry, part.memory_id, json.loads(part.payload))
                        if triple is not None:
                            text = f"{triple.subject} {triple.predicate} {triple.object}"
                            yield entry, triple.id, rules.of_triple("statement", author, triple), text
                        continue
                    if part.memory_id not in versions:
                        versions[part.memory_id] = await self._core.primary.history(who.tenant, part.memory_id)
                    then = [m for m in versions[part.memory_id] if m.seq <= entry.seq]
                    if then:
                        yield entry, part.memory_id, _as_written(entry, author, then), then[-1].content

    # what was learned

    async def learned(self, who: Principal) -> Sequence[dict[str, Any]]:
        """What reviewers always approve: suggestions, and whether each is allowed without them by now."""
        require_role(who, "reviewer")
        after = self._core.settings.governance.auto_allow_after
        found = await learning.learned(self._core.primary, who.tenant)
        mine = [each for each in found.values() if each.approved and who.may_use(each.pattern.agent)]
        mine.sort(key=lambda each: (-each.approved, each.id))
        return [{**each.to_wire(), "auto_allow": bool(after) and each.approved >= after} for each in mine]

    async def revoke(self, who: Principal, pattern_id: str) -> None:
        """Forget what was learned of a pattern: only later decisions count."""
        require_role(who, "reviewer")
        found = (await learning.learned(self._core.primary, who.tenant)).get(pattern_id)
        if found is None or not found.approved or not who.may_use(found.pattern.agent):
            raise NotFound(f"nothing was learned of a pattern {pattern_id:.80}")

        def work(tx: Transaction) -> None:
            tx.put_record(Record(learning.REVOKED, pattern_id, {"at": tx.now, "by": who.name}))
            said = {"pattern": pattern_id, "rule": found.pattern.rule}
            audit.append(tx, who, "revoke_auto_allow", found.pattern.agent, [audit.part(None, said)])

        await self._core.transact(who.tenant, work)


def _require_tenant_admin(who: Principal) -> None:
    require_role(who, "admin")
    if not who.uses_all_agents:
        raise Forbidden(f"{who.name} may use some agents only; rules are made by an admin who may use all of them")


def _as_written(entry: AuditEntry, author: Principal, then: Sequence[Memory]) -> Proposal:
    now = then[-1]
    dialect = str(now.provenance.get("dialect", ""))
    if entry.operation == "remember":
        given = Draft(now.agent_id, now.type, now.content, provenance=now.provenance)
        return rules.of_memory(operation_of(given), author, now, dialect, brings_text=True)
    before = then[-2] if len(then) > 1 else now
    brings = entry.operation != "forget" and rules.memory_texts(before) != rules.memory_texts(now)
    operation: Any = _LOOKED_AT[entry.operation]
    return rules.of_memory(operation, author, now, dialect, brings_text=brings)


def _stated(entry: AuditEntry, id: str, said: Mapping[str, Any]) -> Triple | None:
    """A statement as the ledger has it; None of the part that says what it ended."""
    if "object" not in said or "valid_from" not in said:
        return None
    parts = (said["subject"], said["predicate"], said["object"], said["valid_from"])
    given = {"confidence": said.get("confidence", 1.0), "provenance": said.get("provenance")}
    return Triple(id, entry.agent_id, *parts, **given)
