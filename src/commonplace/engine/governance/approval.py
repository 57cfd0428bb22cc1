"""What happens when a review is approved: exactly what was shown, in the transaction that notes the decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from commonplace.engine.core import Core
from commonplace.engine.governance import staging
from commonplace.engine.governance.decisions import (
    Decision,
    Edit,
    ReviewOutcome,
    ReviewOutdated,
    conclude,
    require_unchanged,
    shown,
)
from commonplace.engine.graph import statements
from commonplace.engine.memory import erase, forget, merge
from commonplace.engine.memory.change import changed, check_update
from commonplace.engine.memory.read import resolve
from commonplace.engine.memory.write import admit_draft, check_draft, new_memory, next_version, write, write_next
from commonplace.engine.types import Draft, Forget, ForgetResult, Merge, MergeResult, Receipt, Statement, Update
from commonplace.stores.base import Transaction
from commonplace.wire.errors import NotFound, ValidationError
from commonplace.wire.record import Memory, Principal

#: What a reviewer may change of a request, by its operation.
EDITABLE = {
    "remember": ("content", "type", "title", "tags", "metadata", "confidence", "source", "expires_at"),
    "update": ("content", "tags", "metadata", "confidence", "expires_at"),
    "forget": ("ids", "hard_delete", "reason"),
    "merge": ("duplicates", "strategy"),
    "statement": ("subject", "predicate", "object", "confidence"),
}

_Edit = TypeVar("_Edit", Draft, Update, Forget, Merge, Statement)


async def approve(
    core: Core, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
) -> ReviewOutcome:
    """Raises ReviewOutdated where what was shown is no longer what is there."""
    by_operation = {
        "remember": _approve_remember,
        "attestation": _approve_remember,
        "update": _approve_update,
        "forget": _approve_forget,
        "merge": _approve_merge,
        "statement": _approve_statement,
    }
    return await by_operation[value["operation"]](core, who, author, value, decision)


async def _approve_remember(
    core: Core, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
) -> ReviewOutcome:
    edited = edit_of(decision.edited, Draft, value)
    draft = Draft(**value["draft"])
    if edited is not None:
        draft = as_edited(draft, edited)
    check_draft(core, draft)
    given = draft
    draft, redacted = await admit_draft(core, author, draft, reviewed=True)
    if edited is not None and draft is not given:  # nothing that was redacted stays in the review
        decision = replace(decision, edited_request=staging.draft_document(draft))

    async def attempt() -> ReviewOutcome:
        memory = new_memory(author, draft, core.clock(), id=value["memory_id"])
        (entry,) = await core.make_entries([memory], [draft.embedding])
        apply = await _prepare(core, who, memory, decision)

        def work(tx: Transaction) -> ReviewOutcome:
            if edited is None:
                require_unchanged(tx, value)
            kept = conclude(tx, core, who, value["id"], decision)
            written = write(tx, author, entry, "remember", review_id=value["id"])
            store = [core.primary.name]
            receipt = Receipt(written.id, written.updated_at, store, memory=written, redacted=redacted)
            return ReviewOutcome(shown(kept), receipt, apply(tx, written))

        return await core.transact(who.tenant, work)

    return await core.retry_on_conflict(attempt)


async def _prepare(
    core: Core, who: Principal, proposed: Memory, decision: Decision
) -> Callable[[Transaction, Memory], ForgetResult | MergeResult | None]:
    """What else is to happen in the transaction that makes the proposed memory live."""
    agent = proposed.agent_id
    if decision.merge_into is not None:
        request = Merge(agent, decision.merge_into, [proposed.id], "merge_content")
        canonical = await resolve(core, who, agent, decision.merge_into)
        duplicate = replace(proposed, created_at=core.clock())
        merged, entry = await merge.merged_entry(core, who, canonical, [duplicate], request, reviewed=True)

        def join(tx: Transaction, written: Memory) -> MergeResult:
            merged.losers = [written]
            return merge.apply_merge(tx, who, request, merged, entry)

        return join
    others = [await resolve(core, who, agent, ref) for ref in decision.forget]
    await core.policies.admit_all(who, "forget", others, reviewed=True)

    def supersede(tx: Transaction, written: Memory) -> ForgetResult | None:
        if not others:
            return None
        reason = f"superseded by {written.id}"
        done = forget.apply_forget(tx, core, who, agent, others, hard=False, because=reason)
        return ForgetResult(done, core.primary.name, erased=False)

    return supersede


async def _approve_forget(
    core: Core, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
) -> ReviewOutcome:
    edited = edit_of(decision.edited, Forget, value)
    request = await forget.redact_reason(core, edited or Forget(**value["request"]))
    # Without an edit exactly what the reviewer was shown is forgotten, not what the filter would find by now.
    if edited is None:
        memories = await core.primary.get(who.tenant, value["ids"])
        drafts = value.get("drafts", [])
    else:
        memories = await forget.select(core, who, request)
        reach = await forget.reach_of(core, who, request)
        drafts = [draft.id for draft in await forget.select_drafts(core, who, request, reach, memories)]
    await core.policies.admit_all(author, "forget", memories, reviewed=True)
    ids = [m.id for m in memories]
    unchanged = edited is not None and forget.by_filter(request)
    result = ForgetResult([], core.primary.name, erased=request.hard_delete)

    def work(tx: Transaction) -> ReviewOutcome:
        if edited is None:
            require_unchanged(tx, value)
        kept = conclude(tx, core, who, value["id"], decision, about=ids)
        done = forget.apply_forget(
            tx, core, author, value["agent_id"], memories, hard=request.hard_delete, reason=request.reason,
            unchanged=unchanged,
        )  # fmt: skip
        done += erase.erase_drafts(tx, core, author, value["agent_id"], drafts, reason=request.reason)
        result.ids = done
        return ReviewOutcome(shown(kept), result)

    outcome = await core.transact(who.tenant, work)
    if request.hard_delete or any(erase.must_erase(m) for m in memories):
        gone = set(result.ids)
        await forget.finish_erasure(core, who, [m for m in memories if m.id in gone], result)
    return outcome


async def _approve_merge(
    core: Core, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
) -> ReviewOutcome:
    edited = edit_of(decision.edited, Merge, value)
    request = edited or Merge(**value["request"])
    if edited is None:  # those the reviewer was shown, not whoever carries the entity name by now
        canonical_id, *others = value["ids"]
        request = replace(request, canonical=canonical_id, duplicates=others)

    async def attempt() -> ReviewOutcome:
        with _gone_is_outdated(edited):
            canonical, duplicates = await merge.resolve_parties(core, who, request)
        merged, entry = await merge.merged_entry(core, author, canonical, duplicates, request, reviewed=True)

        def work(tx: Transaction) -> ReviewOutcome:
            if edited is None:
                require_unchanged(tx, value)
            about = [canonical.id, *(m.id for m in duplicates)]
            kept = conclude(tx, core, who, value["id"], decision, about=about)
            return ReviewOutcome(shown(kept), merge.apply_merge(tx, author, request, merged, entry))

        return await core.transact(who.tenant, work)

    return await core.retry_on_conflict(attempt)


async def _approve_update(
    core: Core, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
) -> ReviewOutcome:
    edited = edit_of(decision.edited, Update, value)
    if edited is not None:
        check_update(edited)
    change = change_of(author, value, core.clock(), edited)

    async def attempt() -> ReviewOutcome:
        with _gone_is_outdated(edited):
            current, next = await next_version(
                core, who, value["agent_id"], value["ids"][0], change, author=author, reviewed=True
            )
        (entry,) = await core.make_entries([next])
        asked = decision.edited_request
        noted = decision if asked is None else replace(decision, edited_request=staging.as_kept(asked, next))

        def work(tx: Transaction) -> ReviewOutcome:
            if edited is None:
                require_unchanged(tx, value)
            kept = conclude(tx, core, who, value["id"], noted)
            written = write_next(tx, author, current, entry, review_id=value["id"])
            receipt = Receipt(written.id, written.updated_at, [core.primary.name], memory=written)
            return ReviewOutcome(shown(kept), receipt)

        return await core.transact(who.tenant, work)

    return await core.retry_on_conflict(attempt)


def change_of(author: Principal, value: dict[str, Any], now: int, edited: Update | None = None) -> staging.Change:
    """What a staged update makes of its memory, or would with this edit in the place of what was asked. Which version
    it means is pinned by the review."""
    update = edited or staging.to_update(value["request"], value["ids"][0])
    replacement = value.get("replacement")
    if replacement is None:
        return lambda memory: changed(memory, update)
    whole = staging.replacement_of(author, Draft(**replacement), now)
    # An edit changes what would be put in the place of the record, not the record that is there.
    as_staged = edited is None and not value.get("edited_by")
    return whole if as_staged else lambda memory: changed(whole(memory), update)


async def _approve_statement(
    core: Core, who: Principal, author: Principal, value: dict[str, Any], decision: Decision
) -> ReviewOutcome:
    edited = edit_of(decision.edited, Statement, value)
    said = edited or Statement(**value["request"])
    clean = await statements.clean_statement(core, who, said, author=author, reviewed=True)

    def work(tx: Transaction) -> ReviewOutcome:
        made = statements.plan_statement(tx, author, clean, value["statement_id"])
        if edited is None and staging.timeline_position(made) != value["line"]:
            raise ReviewOutdated
        kept = conclude(tx, core, who, value["id"], decision, about=staging.quoted_ids(made))
        return ReviewOutcome(shown(kept), statements.apply_statement(tx, author, made))

    return await core.transact(who.tenant, work)


@contextmanager
def _gone_is_outdated(edited: object) -> Iterator[None]:
    """What the reviewer was shown and is no more makes the review outdated; what an edit names must be there."""
    try:
        yield
    except NotFound:
        if edited is None:
            raise ReviewOutdated from None
        raise


def edit_of(edited: object, kind: type[_Edit], value: dict[str, Any]) -> _Edit | None:
    """The request as the reviewer edited it: an edit changes neither the operation nor whose memory it is about."""
    operation = value["operation"]
    if edited is not None and operation == "attestation":
        raise ValidationError("an attestation is kept as its author signed it: approve or reject it", field="request")
    if edited is None:
        return None
    if isinstance(edited, kind) and edited.agent_id == value["agent_id"]:
        return edited
    article = "an" if operation == "update" else "a"
    raise ValidationError(f"the edited request must be {article} {operation} of the same agent", field="request")


def with_changes(value: Mapping[str, Any], changes: Mapping[str, Any]) -> tuple[Edit, dict[str, Any]]:
    """The request that waits with other values for some of its fields: an edit, and the document that shows it."""
    operation = value["operation"]
    fields = EDITABLE.get(operation, ())
    if wrong := sorted(set(changes) - set(fields)):
        allowed = f"; there are {', '.join(fields)}" if fields else ": approve or reject it"
        raise ValidationError(f"{wrong[0][:80]} of {operation} cannot be edited{allowed}", field=wrong[0][:80])
    if operation == "remember":
        draft = replace(Draft(**value["draft"]), **{**changes, "embedding": None})
        return draft, staging.draft_document(draft)
    asked = {**value["request"], **changes}
    kinds: dict[str, type[Any]] = {"forget": Forget, "merge": Merge, "statement": Statement}
    if operation in kinds:
        return kinds[operation](**asked), asked
    return Update(**{**_update_fields(asked), "id": value["ids"][0], "expected_version": None}), asked


def _update_fields(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Of a record that another protocol puts in the place of one: it says more than an update can."""
    return {name: asked[name] for name in Update.__slots__ if name in asked}


def as_edited(staged: Draft, edited: Draft) -> Draft:
    """The edit, which is a plain remember, with what the record is to the protocol that it came by."""
    # The kind was shown to the reviewer among the metadata, where it comes back from.
    metadata = {k: v for k, v in edited.metadata.items() if k != "kind" or not staged.kind or v != staged.kind}
    return replace(edited, metadata=metadata, aliases=staged.aliases, kind=staged.kind, provenance=staged.provenance)
