"""Taking in what an export holds: memories with their histories, statements, palaces.

Only an admin of the agent may, because a history says who wrote what and when. Secrets are taken out and rules asked as
for anything that is written; what is here already is not written again, and what was erased here does not come back
unless someone says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal

from commonplace.engine.core import IDEMPOTENCY, REVIEW, Core
from commonplace.engine.governance import nearest
from commonplace.engine.governance.decisions import as_of_now
from commonplace.engine.governance.policies import ReviewRequired, without_audit
from commonplace.engine.graph.statements import clean_statement, end_at
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.memory.write import (
    admit_draft,
    check,
    erased_slot,
    idempotency_slot,
    new_memory,
    next_version,
    repeat_receipt,
)
from commonplace.engine.palaces.palaces import Palace, Palaces
from commonplace.engine.transfer.admission import Admitted, admit_history
from commonplace.engine.transfer.erasures import Erasures
from commonplace.engine.transfer.exports import IMPORT
from commonplace.engine.transfer.near_duplicates import is_near_duplicate
from commonplace.engine.transfer.originals import as_imported, with_aliases
from commonplace.engine.types import BatchItem, Draft, Receipt, Statement
from commonplace.stores.base import Entry, Record, Transaction
from commonplace.stores.graph import Triple
from commonplace.wire.canonical import content_hash, is_uuid, new_salt
from commonplace.wire.errors import Conflict, Fault, Forbidden, ValidationError
from commonplace.wire.record import Memory, Principal, replace_fields

_ERASED_HERE = "it was erased here"
_ID_TAKEN = "something else here has this id"
_MAX_ALIKE = 100  # memories that are compared with one that is proposed


@dataclass(slots=True, frozen=True)
class Outcome:
    """What became of one thing that was to be imported, and why where it was left out."""

    result: Literal["written", "known", "left_out"]
    reason: str = ""
    redacted: tuple[str, ...] = ()


_KNOWN = Outcome("known")


class Imports:
    def __init__(self, core: Core, palaces: Palaces) -> None:
        self._core = core
        self._palaces = palaces

    async def erasures(self, who: Principal, *, restore: bool = False) -> Erasures:
        """What must not come back: everything that was erased here or, to `restore` that, what is from now on. The
        caller asks once and hands it on."""
        after = (await self._core.primary.audit_head(who.tenant))[0] if restore else 0
        return Erasures(self._core, who.tenant, after)

    async def memories(
        self,
        who: Principal,
        histories: Sequence[Sequence[Memory]],
        erased: Erasures | None = None,
        *,
        dry_run: bool = False,
    ) -> list[Outcome]:
        """Each memory, all its versions or those that are missing here; what is right goes in though others are not.
        Nothing that was `erased`, without them nothing that ever was."""
        outcomes: dict[int, Outcome] = {}
        ready: list[tuple[int, Admitted]] = []
        survivors: dict[str, str | None] = {}
        erased = erased or await self.erasures(who)
        await erased.read()
        gone = await erased.erased_among(versions[0].id for versions in histories)  # before rules are asked about them
        for i, versions in enumerate(histories):
            try:
                if versions[0].id in gone:
                    raise Conflict(_ERASED_HERE)
                with without_audit() if dry_run else nullcontext():
                    ready.append((i, await admit_history(self._core, who, versions, survivors)))
                survivors[versions[-1].id] = versions[-1].merged_into
            except Fault as fault:
                outcomes[i] = Outcome("left_out", fault.message_for(is_operator=who.is_operator))
        for batch in [ready] if not dry_run else [[each] for each in ready]:
            if not batch:
                continue
            try:
                done = await self._write(who, [admitted for _, admitted in batch], erased, dry_run=dry_run)
            except Conflict:  # of one, such as an id that another tenant has: the others must not wait for it
                done = [await self._write_one(who, admitted, erased, dry_run=dry_run) for _, admitted in batch]
            for (i, admitted), outcome in zip(batch, done, strict=True):
                outcomes[i] = replace(outcome, redacted=admitted.labels) if outcome.result == "written" else outcome
        return [outcomes[i] for i in range(len(histories))]

    async def _write_one(self, who: Principal, admitted: Admitted, erased: Erasures, *, dry_run: bool) -> Outcome:
        try:
            return (await self._write(who, [admitted], erased, dry_run=dry_run))[0]
        except Conflict as conflict:
            return Outcome("left_out", conflict.message)

    async def _write(
        self, who: Principal, batch: Sequence[Admitted], erased: Erasures, *, dry_run: bool = False
    ) -> list[Outcome]:
        async def attempt() -> list[Outcome]:
            if dry_run:
                return await erased.transact(
                    lambda tx: [_refusal(tx, each, erased) or Outcome("written") for each in batch]
                )
            missing = [
                [_salted(as_imported(v, n)) for n, v in enumerate(each.versions[each.known :], start=each.known + 1)]
                for each in batch
            ]
            flat = [version for versions in missing for version in versions]
            entries = iter(await self._core.make_entries(flat) if flat else ())
            wanted = [[next(entries) for _ in versions] for versions in missing]
            todo = list(zip(batch, wanted, strict=True))
            return await erased.transact(lambda tx: [_put(tx, who, *each, erased) for each in todo])

        return await self._core.retry_on_conflict(attempt)

    async def known(self, who: Principal, agent: str, aliases: Sequence[str]) -> dict[str, Memory]:
        """Of these ids that a source gave, those that name a memory here, with what it is now."""
        self._core.require(who, agent, "writer")
        found = {}
        for alias in aliases:
            for memory in await self._core.primary.find_alias(who.tenant, [agent], alias):
                found[alias] = memory
        return found

    async def preview_remember(self, who: Principal, item: BatchItem) -> Receipt | Fault:
        """What `remember_many` would answer for this one; nothing is written or noted."""
        staged: bool | None = item.approval is not None
        try:
            check(self._core, who, item.draft)
            with without_audit():
                try:
                    draft, labels = await admit_draft(
                        self._core, who, item.draft, item.idempotency_key, reviewed=bool(staged)
                    )
                except ReviewRequired:
                    staged = None  # not its author asks for it but a rule
                    draft, labels = await admit_draft(self._core, who, item.draft, item.idempotency_key, reviewed=True)
            if (earlier := await self._used_before(who, draft, item.idempotency_key)) is not None:
                return repeat_receipt(earlier, draft, self._core, staged=staged)
        except Fault as fault:
            return fault
        memory = new_memory(who, draft, self._core.clock())
        if staged is not False:
            return Receipt(memory.id, self._core.clock(), [], review_id="")
        return Receipt(memory.id, self._core.clock(), [], memory=memory, redacted=labels)

    async def _used_before(self, who: Principal, draft: Draft, key: str | None) -> Record | None:
        if key is None:
            return None
        slot, primary = idempotency_slot(draft, key), self._core.primary
        found = await primary.record(who.tenant, IDEMPOTENCY, slot)
        return found or await primary.record(who.tenant, IDEMPOTENCY, erased_slot(slot))

    async def review_status(self, who: Principal, draft: Draft, key: str) -> str | None:
        """How the review stands that was asked for under this key; None where none was."""
        earlier = await self._used_before(who, draft, key)
        id = earlier.value.get("review_id") if earlier is not None else None
        found = await self._core.primary.record(who.tenant, REVIEW, id) if id is not None else None
        return None if found is None else str(as_of_now(self._core, found.value, self._core.clock())["status"])

    async def preview_update(self, who: Principal, memory: Memory, change: Callable[[Memory], Memory]) -> None:
        """Refused where `update_with` would refuse it; nothing is written or noted."""
        with without_audit():
            await next_version(self._core, who, memory.agent_id, memory.id, change, memory.version)

    async def near_duplicate(self, who: Principal, draft: Draft) -> str | None:
        """The id of a memory that the caller may see and that says the same."""
        self._core.require(who, draft.agent_id, "writer")
        proposed = new_memory(who, draft, self._core.clock())
        # Those of other people in the same words come as near, and are left out afterwards.
        near = await nearest.neighbours(self._core, proposed, most=_MAX_ALIKE)
        alike = [each.memory for each in near if is_near_duplicate(proposed, each.memory)]
        return next((memory.id for memory in await self._core.policies.shown(who, alike)), None)

    # statements and palaces

    async def statement(
        self, who: Principal, triple: Triple, erased: Erasures | None = None, *, dry_run: bool = False,
        same_id_is_known: bool = False, ended: dict[str, int] | None = None,
    ) -> Outcome:  # fmt: skip
        """A statement with its interval and its author, where nothing here speaks of the same time, and neither it nor
        the memory it came from was `erased` (see `memories`). One that is here and holds until further notice ends when
        it ended there. With `same_id_is_known` whatever has its id is taken for it, as where the source has no times.
        `ended` is what a dry run notes for what comes after it: the statements that the run will have ended, and when.
        """
        erased = erased or await self.erasures(who)
        try:
            self._core.require(who, triple.agent_id, "admin")
            _check_ids(triple)
            self._core.check_names(asserted_by=triple.asserted_by)
            await erased.read()
            if await erased.erased_among(_derived_from(triple)):  # before rules are asked about it
                raise Conflict(_ERASED_HERE)
            said = Statement(
                triple.agent_id, triple.subject, triple.predicate, triple.object, triple.confidence, triple.provenance,
                triple.valid_from,
            )  # fmt: skip
            with without_audit() if dry_run else nullcontext():
                clean = await clean_statement(self._core, who, said)
        except Fault as fault:
            return Outcome("left_out", fault.message_for(is_operator=who.is_operator))
        names = ("subject", "predicate", "object", "provenance")
        kept = replace(triple, **{name: getattr(clean, name) for name in names})
        try:
            put = _StatementImport(
                who, kept, erased, dry_run, same_id_is_known, {} if ended is None else ended,
                await self._core.policies.triple_guard(who, "forget"),
            )  # fmt: skip
            done = await erased.transact(put)
        except (Conflict, Forbidden) as fault:  # its id is another tenant's, or a rule keeps it from ending
            return Outcome("left_out", fault.message)
        if done.result == "written" and clean != said:
            texts = (triple.subject, triple.predicate, triple.object, triple.provenance)
            return replace(done, redacted=tuple(self._core.redactor.labels_in_statement(*texts)))
        return done

    async def palace(self, who: Principal, palace: Palace, *, dry_run: bool = False) -> Outcome:
        """What a palace says of itself; what one here says already stays."""
        try:
            self._core.require(who, palace.name, "admin")
            held = await self._palaces.find(who, palace.name)
            missing = _not_said(held, self._palaces.cleaned(palace))
            if held is not None and not missing:
                return _KNOWN
            with without_audit() if dry_run else nullcontext():
                missing = [
                    name for name in missing if name in _not_said(held, await self._palaces.admitted(who, palace))
                ]
            if held is not None and not missing:
                return _KNOWN  # but for what a rule masked
            if held is not None and any(getattr(held, name) for name in missing):
                return Outcome("left_out", "a palace of this name is here and says something else of itself")
            labels = self._core.redactor.document([getattr(palace, name) for name in missing])[1]
            if not dry_run:
                if held is None or "description" in missing:
                    await self._palaces.create(who, palace.name, palace.description)
                if "identity" in missing:
                    await self._palaces.set_identity(who, palace.name, palace.identity)
        except Fault as fault:
            return Outcome("left_out", fault.message_for(is_operator=who.is_operator))
        return Outcome("written", redacted=tuple(labels))


def _not_said(held: Palace | None, told: Palace) -> list[str]:
    """What is told of a palace and not said of it here."""
    given = {name: getattr(told, name) for name in ("description", "identity") if getattr(told, name)}
    return [name for name, text in given.items() if held is None or getattr(held, name) != text]


def _salted(memory: Memory) -> Memory:
    salt = new_salt()
    return replace_fields(memory, content_hash=content_hash(memory.content, salt), salt=salt)


def _derived_from(triple: Triple) -> list[str]:
    """Itself and the memories it is from: with any of them it is erased."""
    return [id for id in (triple.id, triple.memory_id, triple.provenance) if id is not None]


def _refusal(tx: Transaction, admitted: Admitted, erased: Erasures) -> Outcome | None:
    """Why nothing of a history would be written; None where what is missing here would."""
    if erased.is_erased(tx, admitted.versions[-1].id):
        return Outcome("left_out", _ERASED_HERE)
    if admitted.known >= len(admitted.versions):
        return _KNOWN
    last = admitted.versions[-1]
    held = tx.get(last.id)
    if (held.version if held else 0) != admitted.known:
        return Outcome("left_out", "it was changed here while it was imported; import it again")
    if held is None and (tx.triple(last.id) is not None or tx.records_about(last.id)):
        return Outcome("left_out", _ID_TAKEN)
    for alias in last.aliases if last.status in ("live", "archived") else ():
        if not _is_free(tx, last, alias):
            return Outcome("left_out", f"its other id {alias!r:.80} names another memory here")
    return None


def _put(tx: Transaction, who: Principal, admitted: Admitted, entries: Sequence[Entry], erased: Erasures) -> Outcome:
    """Write the versions that are missing, with one entry of the ledger; checked before the first of them is put, as
    others' memories share this transaction."""
    if (refusal := _refusal(tx, admitted, erased)) is not None:
        return refusal
    last = admitted.versions[-1]
    held = tx.get(last.id)
    parts = []
    for number, entry in enumerate(entries, start=admitted.known):
        # What an earlier version was called may name another memory by now.
        memory = replace_fields(entry.memory, version=number)
        if held is not None:  # what was demoted here was so by the rules of here
            memory = replace_fields(memory, demotion=held.demotion)
        aliases = [alias for alias in memory.aliases if _is_free(tx, last, alias)]
        memory = memory if aliases == memory.aliases else with_aliases(memory, aliases)
        parts.append(version_part(tx.put(replace(entry, memory=memory))))
    if not admitted.known and last.recalls and last.last_recalled_at is not None:
        tx.count_recalls([last.id], last.last_recalled_at, last.recalls)
    audit.append(tx, who, IMPORT, last.agent_id, parts)
    return Outcome("written")


def _check_ids(triple: Triple) -> None:
    """No other text is kept under the names of ids: nobody would look for a secret there."""
    for field, id in (("id", triple.id), ("memory_id", triple.memory_id)):
        if id is not None and not is_uuid(id):
            raise ValidationError(f"its {field} must be a UUID", field=field)


def _is_free(tx: Transaction, memory: Memory, alias: str) -> bool:
    holder = tx.by_alias(memory.agent_id, alias)
    return holder is None or holder.id == memory.id


def stated_already(triple: Triple) -> str:
    return f"something else is stated here of {triple.subject!r} at that time"


@dataclass(slots=True, frozen=True)
class _StatementImport:
    """The unit of work that takes in one statement, or finds out what it would do."""

    who: Principal
    triple: Triple
    erased: Erasures
    dry_run: bool
    same_id_is_known: bool
    ended: dict[str, int]
    may_end: Callable[[Triple], None]  # raises where a rule says otherwise

    def __call__(self, tx: Transaction) -> Outcome:
        triple = self.triple
        if any(self.erased.is_erased(tx, id) for id in _derived_from(triple)):
            return Outcome("left_out", _ERASED_HERE)
        held = tx.triple(triple.id)
        if held is not None:
            return self._beside(tx, held)
        # What erases a statement erases whatever the ledger and the records say under its id.
        if tx.get(triple.id) is not None or tx.records_about(triple.id):
            return Outcome("left_out", _ID_TAKEN)
        if not triple.empty and self._overlaps(tx):
            return Outcome("left_out", stated_already(triple))
        if not self.dry_run:
            tx.put_triple(triple)
            said = {name: getattr(triple, name) for name in ("subject", "predicate", "object", "confidence")}
            said |= {"valid_from": triple.valid_from, "valid_to": triple.valid_to, "asserted_by": triple.asserted_by}
            said |= {} if triple.memory_id is None else {"derived_from": triple.memory_id}
            said |= {} if triple.provenance is None else {"provenance": triple.provenance}
            audit.append(tx, self.who, IMPORT, triple.agent_id, [audit.part(triple.id, said)])
        return Outcome("written")

    def _beside(self, tx: Transaction, held: Triple) -> Outcome:
        """One that is here under its id: the same, the same before it ended, or another."""
        triple = self.triple
        if held == triple:
            return _KNOWN
        if triple.valid_to is not None and held == replace(triple, valid_to=None):
            self.may_end(held)
            if self.dry_run:
                self.ended[held.id] = triple.valid_to
            else:
                audit.append(tx, self.who, IMPORT, held.agent_id, [end_at(tx, held, triple.valid_to)])
            return Outcome("written")
        if self.same_id_is_known and held.agent_id == triple.agent_id:
            return _KNOWN
        return Outcome("left_out", "a statement with this id is here and differs")

    def _overlaps(self, tx: Transaction) -> bool:
        triple = self.triple
        line = (triple.agent_id, triple.subject, triple.predicate)
        after = tx.triple_after(*line, triple.valid_from)
        if after is not None and (triple.valid_to is None or after.valid_from < triple.valid_to):
            return True
        at = tx.triple_at(*line, triple.valid_from)
        return at is not None and self.ended.get(at.id, triple.valid_from + 1) > triple.valid_from
