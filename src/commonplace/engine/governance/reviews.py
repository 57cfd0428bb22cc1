"""Reviews: what waits for a human, and what becomes of it when someone decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, get_args

from commonplace.engine.checks import RANK, check_one_of, check_page_size
from commonplace.engine.core import REVIEW, Core
from commonplace.engine.governance import approval, nearest, staging
from commonplace.engine.governance.decisions import (
    Decision,
    Edit,
    ReviewOutcome,
    ReviewOutdated,
    as_of_now,
    author_of,
    conclude,
    erase_quotes,
    may_see,
    require_other_eyes,
    require_pending,
    review_not_found,
    shown,
    stale,
)
from commonplace.engine.graph import statements
from commonplace.engine.ledger import audit
from commonplace.engine.memory.change import check_update
from commonplace.engine.memory.retention import promise_of
from commonplace.engine.memory.write import admit_draft, check_draft, new_memory
from commonplace.engine.types import Draft, Forget, Merge, Receipt, Statement, Update
from commonplace.stores.base import Record, Transaction
from commonplace.wire.canonical import canonical, is_uuid, sha256_hex
from commonplace.wire.errors import Conflict, Fault, NotFound, ValidationError
from commonplace.wire.record import REVIEW_STATUSES, Memory, Principal

MAX_DECIDED = 1000  # reviews that one request decides
_AT_ONCE = 500
_LOOK_AGAIN = "it stays pending and shows how things are now: look again"

#: Made outside a transaction, called in one: what a review shows now, and the memories and statements it quotes.
Description = Callable[[Transaction], tuple[dict[str, Any], Sequence[str]]]


class Reviews:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def list(self, who: Principal, status: str | None = "pending") -> Sequence[dict[str, Any]]:
        """Those the caller may see, oldest first."""
        check_one_of("status", status, REVIEW_STATUSES)
        records, now = await self._core.primary.records(who.tenant, REVIEW), self._core.clock()
        found = [as_of_now(self._core, r.value, now) for r in records if may_see(who, r.value)]
        plain = await self._quotes_only_ids(who)
        return [shown(plain(value)) for value in found if status in (None, value["status"])]

    async def page(
        self,
        who: Principal,
        status: str | None = "pending",
        *,
        agent_id: str | None = None,
        operation: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        after: str | None = None,
        newest_first: bool = False,
    ) -> tuple[Sequence[dict[str, Any]], str | None]:
        """As `list`, a page of them, and the cursor of the next one; None where this is the last. `after` is the id of
        a review instead of a cursor: what stands behind that one."""
        check_page_size(limit)
        check_one_of("status", status, REVIEW_STATUSES)
        check_one_of("operation", operation, get_args(staging.Operation))
        self._core.check_names(cursor=cursor, agent_id=agent_id)
        # A cursor belongs to its list: in another one the same review has another place.
        listed = _list_name(status, agent_id, operation, newest_first)
        if cursor is not None:
            after = _place(cursor, listed)
        where = {"agent_id": agent_id, "operation": operation}
        if RANK[who.role] < RANK["reviewer"]:
            where["requested_by"] = who.name
        if status != "expired" or not self._core.settings.governance.review_days:
            where["status"] = status  # one that has waited too long is noted as pending until the next sweep
        said = {name: value for name, value in where.items() if value is not None}
        found: list[dict[str, Any]] = []
        now, more = self._core.clock(), True
        while more and len(found) <= limit:
            records = await self._core.primary.records_page(
                who.tenant, REVIEW, said, after=after, limit=limit + 1, newest_first=newest_first
            )
            more = len(records) > limit
            after = records[-1].key if records else after
            seen = [as_of_now(self._core, r.value, now) for r in records if may_see(who, r.value)]
            found += [value for value in seen if status in (None, value["status"])]
        plain = await self._quotes_only_ids(who)
        shown_here = [shown(plain(value)) for value in found[:limit]]
        return shown_here, f"{listed}{shown_here[-1]['id']}" if len(found) > limit else None

    async def get(self, who: Principal, review_id: str) -> dict[str, Any]:
        """One of them, with what the memories nearest to it say now."""
        value = as_of_now(self._core, await self._load(who, review_id), self._core.clock())
        if "nearest" in value:
            value = {**value, "nearest": await nearest.with_text(self._core, who.tenant, value["nearest"])}
        return shown((await self._quotes_only_ids(who))(value))

    async def _quotes_only_ids(self, who: Principal) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """Whoever asked for something is told no more of what is there than a recall would tell them."""
        if RANK[who.role] >= RANK["reviewer"] or not await self._core.policies.limit_reading(who):
            return lambda value: value
        return without_existing

    def proposed(self, receipt: Receipt, draft: Draft) -> Memory:
        """What a staged write would be, for the one who wrote it."""
        memory = new_memory(Principal(), draft, receipt.stored_at, id=receipt.id)
        clean, _ = self._core.redactor.redact_record(memory)
        return replace(clean, created_at=receipt.stored_at)

    async def _load(self, who: Principal, review_id: str) -> dict[str, Any]:
        self._core.check_names(review_id=review_id)
        record = await self._core.primary.record(who.tenant, REVIEW, review_id)
        if record is None or not may_see(who, record.value):
            raise review_not_found(review_id)
        return record.value

    async def _load_to_decide(self, who: Principal, review_id: str, decision: Decision) -> dict[str, Any]:
        value = await self._load(who, review_id)
        self._core.require(who, value["agent_id"], "reviewer")
        require_pending(self._core, value, decision, self._core.clock())
        return value

    async def decide(self, who: Principal, review_id: str, decision: Decision) -> ReviewOutcome:
        """Approve, approve as edited, or reject: once. What is approved happens in the transaction that says so."""
        with self._core.outbox.reporting(who) as report:
            decided = await self._decide(who, review_id, decision)
        decided.undelivered = report.problems()
        return decided

    async def _decide(self, who: Principal, review_id: str, decision: Decision) -> ReviewOutcome:
        value = await self._load_to_decide(who, review_id, decision)
        require_other_eyes(self._core, who, value, decision)
        if (decision.merge_into or decision.forget) and not (decision.approved and value["operation"] == "remember"):
            raise ValidationError("apply is only for approving a remember", field="apply")
        if decision.merge_into and decision.forget:
            raise ValidationError("apply merges or forgets, not both", field="apply")
        decision = await self._redacted(self._named(who, decision))
        if not decision.approved:
            rejected = await self._core.transact(
                who.tenant, lambda tx: conclude(tx, self._core, who, review_id, decision)
            )
            return ReviewOutcome(shown(rejected), None)
        try:
            return await approval.approve(self._core, who, author_of(who, value), value, decision)
        except ReviewOutdated:
            raise await self._refresh(who, value) from None

    async def decide_many(
        self,
        who: Principal,
        review_ids: Sequence[str],
        decision: Decision,
        revisions: Mapping[str, int | None] | None = None,
    ) -> Sequence[ReviewOutcome | Fault]:
        """The same decision about each, each with its own outcome; `revisions` are those that were looked at."""
        if not 1 <= len(review_ids) <= MAX_DECIDED:
            raise ValidationError(f"ids must name 1 to {MAX_DECIDED} reviews, not {len(review_ids)}", field="ids")
        outcomes: dict[str, ReviewOutcome | Fault] = {}
        for review_id in dict.fromkeys(review_ids):
            try:
                looked_at = decision if revisions is None else replace(decision, revision=revisions.get(review_id))
                outcomes[review_id] = await self.decide(who, review_id, looked_at)
            except Fault as fault:
                fault.details.setdefault("review_id", review_id)
                outcomes[review_id] = fault
        return [outcomes[review_id] for review_id in review_ids]

    async def with_changes(
        self, who: Principal, review_id: str, changes: Mapping[str, Any]
    ) -> tuple[Edit, dict[str, Any]]:
        """The request of a review with other values for some of its fields, as `edit` and `Decision` take it, and as
        the review then shows it."""
        value = await self._load(who, review_id)
        self._core.require(who, value["agent_id"], "reviewer")
        return approval.with_changes(value, changes)

    async def edit(
        self, who: Principal, review_id: str, edited: Edit, request: dict[str, Any], revision: int | None = None
    ) -> dict[str, Any]:
        """Ask for something else instead: the review stays pending, at its next revision and with a fresh diff.
        `request` is the edit as its author wrote it."""
        looked_at = Decision(True, edited=edited, revision=revision)
        value = await self._load_to_decide(who, review_id, looked_at)
        changed = {**value, **await self._edited(author_of(who, value), value, edited, request)}
        editors = dict.fromkeys((*value.get("edited_by", ()), who.name))

        async def attempt() -> dict[str, Any]:
            describe = await self._describe(who, changed)

            def work(tx: Transaction) -> dict[str, Any]:
                record = tx.record(REVIEW, review_id)
                if record is None:
                    raise review_not_found(review_id)
                require_pending(self._core, record.value, looked_at, tx.now)
                fresh, ids = describe(tx)
                whole = {**changed, **fresh, "edited_by": [*editors]}
                kept = _keep(tx, record, whole, ids)
                audit.append(tx, who, "edit_review", value["agent_id"], [audit.part(None, {"review_id": review_id})])
                return kept

            return await self._core.transact(who.tenant, work)

        return shown(await self._core.retry_on_conflict(attempt))

    async def _edited(
        self, author: Principal, value: dict[str, Any], edited: Edit, request: dict[str, Any]
    ) -> dict[str, Any]:
        """What a review notes of an edit: the request, without secrets and as policies let it be."""
        kinds: dict[str, type[Any]] = {"update": Update, "forget": Forget, "merge": Merge, "statement": Statement}
        checked = approval.edit_of(edited, kinds.get(value["operation"], Draft), value)
        if not isinstance(checked, Draft):
            assert checked is not None
            if isinstance(checked, Update):
                check_update(checked)
            return {"request": await self._core.redact_async(staging.to_document(checked), "request")}
        given = approval.as_edited(Draft(**value["draft"]), checked)
        check_draft(self._core, given)
        draft, _ = await admit_draft(self._core, author, given, reviewed=True)
        asked = request if draft is given else staging.draft_document(draft)
        return {"request": await self._core.redact_async(asked, "request"), "draft": asdict(draft)}

    async def overdue(self, who: Principal) -> Sequence[str]:
        """Reviews of agents the caller may use that have waited too long, and are still noted as pending."""
        found = []
        after: str | None = None
        while self._core.settings.governance.review_days:
            page = await self._core.primary.records_page(
                who.tenant, REVIEW, {"status": "pending"}, after=after, limit=_AT_ONCE
            )
            old = [record for record in page if stale(self._core, record.value, self._core.clock())]
            found += [record.key for record in old if who.may_use(record.value["agent_id"])]
            if len(old) < _AT_ONCE:  # those behind were made later
                break
            after = page[-1].key
        return found

    async def sweep(self, who: Principal) -> int:
        """Note which reviews have expired; how many."""
        overdue = await self.overdue(who)

        def work(tx: Transaction) -> int:
            done = 0
            for key in overdue:
                record = tx.record(REVIEW, key)
                if record is None or not stale(self._core, record.value, tx.now):
                    continue
                value = {**record.value, "status": "expired"}
                if self._core.settings.governance.rejected == "erase":
                    value = erase_quotes(tx, value)
                tx.put_record(replace(record, value=value))
                audit.append(tx, who, "expire_review", value["agent_id"], [audit.part(None, {"review_id": key})])
                done += 1
            return done

        return await self._core.transact(who.tenant, work) if overdue else 0

    async def _refresh(self, who: Principal, value: dict[str, Any]) -> Conflict:
        """Show the review as it would be made now; it stays pending, to be looked at again."""
        core, id = self._core, value["id"]
        said = f"what review {id} showed has changed since"

        async def show_anew() -> dict[str, Any]:
            describe = await self._describe(who, value)

            def work(tx: Transaction) -> dict[str, Any]:
                fresh, ids = describe(tx)
                record = tx.record(REVIEW, id)
                if record is None or record.value["status"] != "pending" or record.value.get("erased"):
                    return value
                return _keep(tx, record, {**record.value, **fresh}, ids)

            return await core.transact(who.tenant, work)

        try:
            now = await core.retry_on_conflict(show_anew)
        except NotFound as gone:
            return Conflict(f"{said}: {gone.summary}; reject it", review_id=id)
        return Conflict(f"{said}; {_LOOK_AGAIN}", review_id=id, review=shown(now))

    async def _describe(self, who: Principal, value: dict[str, Any]) -> Description:
        """What a review shows of its request as things are now."""
        core, request, author = self._core, value["request"], author_of(who, value)
        if value["operation"] == "statement":
            clean = await statements.clean_statement(core, who, Statement(**request), author=author, reviewed=True)
            near = await staging.near_statement(core, who, clean)

            def plan(tx: Transaction) -> tuple[dict[str, Any], Sequence[str]]:
                made = statements.plan_statement(tx, author, clean, value["statement_id"])
                kept = {**staging.show_statement(made), "nearest": near, "request": staging.to_document(clean)}
                return kept, staging.quoted_ids(made)

            return plan
        if value["operation"] in ("remember", "attestation"):
            draft = await staging.show_draft(core, author, Draft(**value["draft"]), value["memory_id"])
            return lambda tx: (draft, (value["memory_id"],))
        match value["operation"]:
            case "forget":
                fresh = await staging.show_forget(core, who, Forget(**request))
            case "merge":
                fresh = await staging.show_merge(core, who, Merge(**request))
            case _:
                change = approval.change_of(author, value, core.clock())
                at = (value["agent_id"], value["ids"][0])
                fresh = await staging.show_update(core, who, change, *at, author=author)

        def require_current(tx: Transaction) -> tuple[dict[str, Any], Sequence[str]]:
            fresh.require_current(tx)
            return {**fresh.value, "request": staging.as_kept(request, fresh.after)}, fresh.ids

        return require_current

    def _named(self, who: Principal, decision: Decision) -> Decision:
        """With the reviewer's name: a token says whose decision it is, and in open local mode whoever decides."""
        return replace(decision, reviewer=who.name) if who != Principal() or not decision.reviewer else decision

    async def _redacted(self, decision: Decision) -> Decision:
        """What a reviewer writes is kept like everything else; an edited draft is cleaned where it is used."""
        return replace(
            decision,
            reviewer=self._core.redact_text(decision.reviewer or "", "reviewer"),
            reason=await self._core.redact_async(decision.reason, "reason"),
            edited_request=await self._core.redact_async(decision.edited_request, "request"),
        )


def _list_name(*conditions: object) -> str:
    """What the cursors of a list begin with."""
    return f"review-{sha256_hex(canonical(list(conditions)))[:8]}-"


def _place(cursor: str, listed: str) -> str:
    """The review that a page of this list ended with."""
    after = cursor.removeprefix(listed)
    if f"{listed}{after}" == cursor and is_uuid(after):
        return after
    raise ValidationError(
        f"invalid cursor {cursor!r:.80} for this list; pass back next_cursor as it came, with the same conditions",
        field="cursor",
    )


def without_existing(value: dict[str, Any]) -> dict[str, Any]:
    """A review that names what is there, and quotes only what was asked for."""
    quoted = value.get("diff") or {}
    named = [{"id": m["id"]} for m in quoted.get("removed", ())]
    pairs = [{**pair, "before": {"id": pair["before"]["id"]}} for pair in quoted.get("modified", ())]
    if value["operation"] in ("update", "merge"):  # what would be kept of the old text is in the new
        pairs = [{"before": pair["before"], "after": {"id": pair["after"]["id"]}} for pair in pairs]
    versions = value.get("versions", {}) if value["operation"] not in ("remember", "attestation") else {}
    # What stands near it was found by the reviewer's rights, and may be what nobody else is told of.
    return {**value, "diff": {**quoted, "removed": named, "modified": pairs}, "nearest": [], "versions": versions}


def _keep(tx: Transaction, record: Record, value: dict[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """The next revision of a review, which may quote others than the one before did."""
    value = {**value, "revision": record.value.get("revision", 1) + 1}
    tx.put_record(Record(REVIEW, record.key, value, tuple(dict.fromkeys((*record.about, *ids)))))
    if (promise := promise_of(value)) is not None:
        tx.put_record(promise)
    return value
