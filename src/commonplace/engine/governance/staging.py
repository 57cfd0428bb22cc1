"""Writes that wait for a human: staged in the primary store, invisible until someone decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

from commonplace.engine.core import REVIEW, Core, StaleRead
from commonplace.engine.governance.nearest import nearest, neighbours
from commonplace.engine.governance.policies import ReviewRequired
from commonplace.engine.graph.statements import AssertResult, clean_statement, plan_statement
from commonplace.engine.ledger import audit
from commonplace.engine.memory import forget, merge, write
from commonplace.engine.memory.change import changed, inherit
from commonplace.engine.memory.read import readable
from commonplace.engine.memory.retention import promise_of
from commonplace.engine.memory.write import (
    admit_draft,
    check,
    idempotency_record,
    operation_of,
    redact_draft,
    repeat_receipt,
    used_before,
)
from commonplace.engine.redaction import Secrets
from commonplace.engine.types import (
    Draft,
    Forget,
    ForgetResult,
    Merge,
    MergeResult,
    Receipt,
    Statement,
    Update,
    UpdateResult,
)
from commonplace.stores.base import Record, Transaction
from commonplace.stores.graph import Triple
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import ValidationError
from commonplace.wire.metadata_fields import metadata_with_fields
from commonplace.wire.record import METADATA_FIELDS, Memory, Principal

_GIVEN = ("content", "metadata", "tags")  # texts of an update
Change = Callable[[Memory], Memory]
Operation = Literal["remember", "update", "forget", "merge", "statement", "attestation"]


def draft_document(draft: Draft) -> dict[str, Any]:
    """The draft as reviewers see every remember, whichever protocol it came by."""
    # All of it, because what a reviewer edits is kept instead of what was staged.
    fields = {name: getattr(draft, name) for name in METADATA_FIELDS}
    fields = {name: value for name, value in fields.items() if value not in (None, [])}
    kind = {"kind": draft.kind} if draft.kind else {}
    names = ("agent_id", "type", "content", "confidence", "user_id", "source", "expires_at")
    request = {name: value for name in names if (value := getattr(draft, name)) is not None}
    shared = {"privacy_intent": draft.privacy} if draft.privacy else {}
    return {**request, **shared, "metadata": {**draft.metadata, **fields, **kind}, "approval_required": True}


async def stage_remember(
    core: Core, who: Principal, draft: Draft, request: dict[str, Any] | None, reasoning: str | None,
    key: str | None = None, secrets: Secrets | None = None, asked: ReviewRequired | None = None,
    memory_id: str | None = None,
) -> Receipt:  # fmt: skip
    """`request` is what a reviewer is shown; without one, what the draft says. `asked` is the policy's doing."""
    check(core, who, draft)
    clean, redacted = await redact_draft(core, draft, key, secrets)
    draft, _ = await admit_draft(core, who, clean, secrets=secrets, reviewed=True)
    if request is None or draft is not clean:  # which a policy has redacted
        request = draft_document(draft)
    request = await core.redact_async(request, "request", secrets)
    reasoning = await core.redact_async(reasoning, "reasoning", secrets)
    if redacted:
        request = {name: value for name, value in request.items() if name != "embedding"}  # made of the text as it was
    memory_id = memory_id or mint_id(core.clock())
    shown = await show_draft(core, who, draft, memory_id)

    def work(tx: Transaction) -> Receipt:
        if key is not None and (earlier := used_before(tx, draft, key)) is not None:
            return repeat_receipt(earlier, draft, core, staged=True if asked is None else None)
        value = {"request": request, "memory_id": memory_id, **shown, **noted(asked)}
        review_id = _stage(tx, core, who, operation_of(draft), draft.agent_id, value, reasoning, (memory_id,))
        receipt = Receipt(memory_id, tx.now, [], review_id=review_id)
        if key is not None:
            tx.put_record(idempotency_record(key, draft, receipt, staged=True))
        return receipt

    receipt = await core.transact(who.tenant, work)
    receipt.redacted = redacted
    return receipt


def noted(asked: ReviewRequired | None) -> dict[str, Any]:
    """What a review says of the rule that asks for it."""
    return {} if asked is None else asked.noted


async def show_draft(core: Core, who: Principal, draft: Draft, memory_id: str) -> dict[str, Any]:
    """The part of a review that says what a new memory would be, and what it would stand beside."""
    diff = {"added": [_draft_shown(memory_id, draft)], "removed": [], "modified": []}
    near = await neighbours(core, write.new_memory(who, draft, core.clock(), id=memory_id))
    # It is approved, merged or put in their place by someone who has read these as they are.
    versions = {each.memory.id: each.memory.version for each in near}
    return {"draft": asdict(draft), "diff": diff, "nearest": [each.document for each in near], "versions": versions}


async def stage_replace(
    core: Core, who: Principal, draft: Draft, held: Memory, asked: ReviewRequired | None = None
) -> Receipt:
    """Let a record wait that would replace all of one that is there: an update of it, to a reviewer."""
    check(core, who, draft)
    whole = draft_document(draft)
    names = ("agent_id", "content", "metadata", "confidence", "expires_at", "approval_required")
    request = await core.redact_async({name: whole[name] for name in names if name in whole}, "request")
    value = {"request": request, "replacement": asdict(draft), **noted(asked)}

    async def attempt() -> str:
        shown = await show_update(core, who, replacement_of(who, draft, core.clock()), draft.agent_id, held.id)

        def work(tx: Transaction) -> str:
            shown.require_current(tx)
            return _stage(tx, core, who, "update", draft.agent_id, {**value, **shown.value}, None, shown.ids)

        return await core.transact(who.tenant, work)

    review_id = await core.retry_on_conflict(attempt)
    return Receipt(held.id, core.clock(), [], review_id=review_id)


def replacement_of(author: Principal, draft: Draft, now: int) -> Change:
    """The change that puts a whole record in the place of what is there."""
    return lambda memory: inherit(write.new_memory(author, draft, now, id=memory.id), memory)


async def stage_forget(
    core: Core, who: Principal, request: Forget, asked: ReviewRequired | None = None
) -> ForgetResult:
    if request.all_agents:
        raise ValidationError("approval is asked for one agent at a time; leave all_agents out", field="all_agents")
    _, review_id = await _stage_shown(core, who, "forget", request, lambda: show_forget(core, who, request), asked)
    return ForgetResult([], core.primary.name, erased=request.hard_delete, review_id=review_id)


async def stage_merge(core: Core, who: Principal, request: Merge, asked: ReviewRequired | None = None) -> MergeResult:
    shown, review_id = await _stage_shown(core, who, "merge", request, lambda: show_merge(core, who, request), asked)
    return MergeResult(shown.memories[0], [], changed=False, review_id=review_id)


async def stage_update(core: Core, who: Principal, update: Update, asked: ReviewRequired | None = None) -> UpdateResult:
    change = partial(changed, update=update)

    async def show() -> ShownChange:
        return await show_update(core, who, change, update.agent_id, update.id, update.expected_version)

    shown, review_id = await _stage_shown(core, who, "update", update, show, asked)
    return UpdateResult(shown.memories[0], review_id)


async def _stage_shown(
    core: Core, who: Principal, operation: Operation, request: Forget | Merge | Update,
    show: Callable[[], Awaitable[ShownChange]], asked: ReviewRequired | None = None,
) -> tuple[ShownChange, str]:  # fmt: skip
    core.require(who, request.agent_id, "writer")
    document = await core.redact_async(to_document(request), "request")

    async def attempt() -> tuple[ShownChange, str]:
        shown = await show()

        def work(tx: Transaction) -> str:
            shown.require_current(tx)
            value = {"request": as_kept(document, shown.after), **shown.value, **noted(asked)}
            return _stage(tx, core, who, operation, request.agent_id, value, document.get("reasoning"), shown.ids)

        return shown, await core.transact(who.tenant, work)

    return await core.retry_on_conflict(attempt)


def as_kept(document: dict[str, Any], after: Memory | None) -> dict[str, Any]:
    """The request of an update with the texts that would be kept: a policy may have redacted what was given."""
    if after is None:
        return document
    return {**document, **{name: getattr(after, name) for name in _GIVEN if name in document}}


async def stage_statement(
    core: Core, who: Principal, statement: Statement, asked: ReviewRequired | None = None
) -> AssertResult:
    clean = await clean_statement(core, who, statement, reviewed=True)
    request = await core.redact_async(to_document(clean), "request")
    id = mint_id(core.clock())
    near = await near_statement(core, who, clean)

    def work(tx: Transaction) -> AssertResult:
        made = plan_statement(tx, who, clean, id)
        value = {"request": request, "statement_id": id, "nearest": near, **show_statement(made), **noted(asked)}
        why = request.get("reasoning")
        review_id = _stage(tx, core, who, "statement", clean.agent_id, value, why, quoted_ids(made))
        return replace(made, review_id=review_id)

    return await core.transact(who.tenant, work)


async def near_statement(core: Core, who: Principal, clean: Statement) -> list[dict[str, Any]]:
    """The memories that a statement speaks of, too."""
    said = f"{clean.subject} {clean.predicate} {clean.object}"
    return await nearest(core, Memory("", who.tenant, clean.agent_id, "semantic", said))


def show_statement(made: AssertResult) -> dict[str, Any]:
    """The part of a review that says what a statement would make and end, and between which two it would stand."""
    ended = []
    if made.held is not None and made.replaced is not None:
        ended = [{"before": _triple_shown(made.held), "after": _triple_shown(made.replaced)}]
    diff = {"added": [_triple_shown(made.triple)], "removed": [], "modified": ended}
    said = {"subject": made.triple.subject, "object": made.triple.object}
    return {"diff": diff, "statement": said, "line": timeline_position(made)}


def timeline_position(made: AssertResult) -> list[Any]:
    """The statement that would end, and when the next one begins: approving means between these two."""
    return [None if made.held is None else made.held.id, made.triple.valid_to]


def quoted_ids(made: AssertResult) -> tuple[str, ...]:
    """What the review of a statement may quote."""
    ids = (made.triple.id, made.triple.memory_id, made.held.id if made.held is not None else None)
    return tuple(id for id in ids if id is not None)


@dataclass(slots=True)
class ShownChange:
    """What a reviewer is shown of a request, and the versions it was made from: approving means these and no others."""

    diff: dict[str, Any]
    memories: list[Memory]
    drafts: list[str] = field(default_factory=list)  # ids of staged writes that would be erased with them
    nearest: list[dict[str, Any]] = field(default_factory=list)
    after: Memory | None = None  # what an update would make

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(m.id for m in self.memories)

    @property
    def value(self) -> dict[str, Any]:
        """The part of a review that says so."""
        versions = {m.id: m.version for m in self.memories}
        shown = {"diff": self.diff, "ids": [*self.ids], "versions": versions, "drafts": self.drafts}
        return {**shown, "nearest": self.nearest}

    def require_current(self, tx: Transaction) -> None:
        """In the transaction that keeps it: of what was erased since it was read, nothing may be quoted."""
        if not is_current(tx, self.value):
            raise StaleRead


def is_current(tx: Transaction, review: Mapping[str, Any]) -> bool:
    """Whether every memory is still the version that a review shows, and every staged write still none."""
    versions, drafts = review.get("versions", {}), review.get("drafts", ())
    there = all((now := tx.get(id)) is not None and now.version == version for id, version in versions.items())
    return there and all(tx.get(id) is None for id in drafts)


async def show_forget(core: Core, who: Principal, request: Forget) -> ShownChange:
    memories = await forget.select(core, who, request)
    await core.policies.admit_all(who, "forget", memories, reviewed=True)
    drafts = await forget.select_drafts(core, who, request, await forget.reach_of(core, who, request), memories)
    now = core.clock()
    removed = [
        _shown(m) if readable(m, now) else {"id": m.id, "status": forget.status_label(m, now)}
        for m in (*memories, *drafts)
    ]
    diff = {"added": [], "removed": removed, "modified": []}
    # What says the same as the one that goes, and would stay.
    named = [m for m in memories if readable(m, now)]
    near = await nearest(core, named[0], [m.id for m in memories]) if len(named) == 1 else []
    return ShownChange(diff, memories, [draft.id for draft in drafts], near)


async def show_merge(core: Core, who: Principal, request: Merge) -> ShownChange:
    canonical, duplicates = await merge.resolve_parties(core, who, request)
    merged = await merge.admit_merge(core, who, canonical, duplicates, request, reviewed=True)
    before = {m.id: m for m in (canonical, *duplicates)}
    survivor = {"before": _shown(before[merged.survivor.id]), "after": _shown(merged.survivor)}
    modified = [survivor] if survivor["before"] != survivor["after"] else []
    diff = {"added": [], "removed": [_shown(m) for m in merged.losers], "modified": modified}
    return ShownChange(diff, [*before.values()], nearest=await nearest(core, merged.survivor, [*before]))


async def show_update(
    core: Core, who: Principal, change: Change, agent_id: str, ref: str, expected_version: int | None = None, *,
    author: Principal | None = None,
) -> ShownChange:  # fmt: skip
    current, next = await write.next_version(
        core, who, agent_id, ref, change, expected_version, author=author, reviewed=True
    )
    modified = [{"before": _shown(current), "after": _shown(next)}]
    diff = {"added": [], "removed": [], "modified": modified}
    return ShownChange(diff, [current], nearest=await nearest(core, next, [current.id]), after=next)


def to_document(request: Forget | Merge | Update | Statement) -> dict[str, Any]:
    """A request as reviewers read it, and as it is taken up again when it is approved; nothing that was not given."""
    document = asdict(request)
    document.pop("id", None)  # an update's, which stands in its path; the diff says which memory it is
    removes_expiry = document.pop("remove_expiry", False)
    given = {name: value for name, value in document.items() if value is not None and (name != "ids" or value)}
    return {**given, "expires_at": None} if removes_expiry else given


def to_update(document: Mapping[str, Any], id: str) -> Update:
    """An update as `to_document` has it, of the memory that the review is about; the review pins its version."""
    removes = "expires_at" in document and document["expires_at"] is None
    return Update(**{**document, "id": id, "expected_version": None, "remove_expiry": removes})


def _stage(
    tx: Transaction, core: Core, who: Principal, operation: Operation, agent_id: str, value: dict[str, Any],
    reasoning: str | None, about: tuple[str, ...],
) -> str:  # fmt: skip
    """`value` and `reasoning` are redacted: that can take seconds, and here every other writer waits."""
    review_id = mint_id(core.clock())
    review = {
        "id": review_id,
        "operation": operation,
        "agent_id": agent_id,
        "reasoning": reasoning,
        "created_at": tx.now,
        "status": "pending",
        "revision": 1,
        "requested_by": who.name,
        "dialect": who.dialect or None,
        **value,
    }
    tx.put_record(Record(REVIEW, review_id, review, about))
    if (promise := promise_of(review)) is not None:
        tx.put_record(promise)
    audit.append(tx, who, f"stage_{operation}", agent_id, [audit.part(None, {"review_id": review_id})])
    return review_id


def _shown(memory: Memory) -> dict[str, Any]:
    shown = {"id": memory.id, "type": memory.type, "content": memory.content, "confidence": memory.confidence}
    for name in ("user_id", "title", "tags", "source", "expires_at"):
        if value := getattr(memory, name):
            shown[name] = value
    # With the fields that other protocols keep beside it: new metadata takes their place, too.
    metadata = {n: v for n, v in metadata_with_fields(memory).items() if n in memory.metadata or n not in shown}
    if metadata:
        shown["metadata"] = metadata
    if memory.privacy:
        shown["privacy_intent"] = memory.privacy
    return shown


def _triple_shown(triple: Triple) -> dict[str, Any]:
    return {name: value for name, value in asdict(triple).items() if value is not None and name != "memory_id"}


def _draft_shown(memory_id: str, draft: Draft) -> dict[str, Any]:
    fields = (*METADATA_FIELDS, "user_id", "metadata", "confidence", "source", "expires_at", "privacy")
    given = {name: getattr(draft, name) for name in fields}
    return _shown(Memory(memory_id, "", draft.agent_id, draft.type, draft.content, **given))
