"""What of a history that is imported may come in: checked, without secrets, and as rules let it be. Writes nothing but
what rules tell the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from commonplace.engine.checks import check_name_lengths
from commonplace.engine.core import Core
from commonplace.engine.governance.policies import without_audit
from commonplace.engine.governance.rules import Operation
from commonplace.engine.memory.read import expired
from commonplace.engine.memory.write import check_draft
from commonplace.engine.transfer.originals import as_original, same_words
from commonplace.engine.types import Draft
from commonplace.wire.canonical import is_uuid
from commonplace.wire.errors import Conflict, Forbidden, ValidationError
from commonplace.wire.record import Memory, Principal, replace_fields

#: Why a memory is not taken that nobody could take apart again; an import says so of a file as a whole, too.
MERGED_INTO_ITSELF = "it says that it became part of itself"
MERGED_IN_A_CIRCLE = "it became part of a memory that became part of it"
_CHANGED_HERE = "a memory with this id is here and says something else; forget that one first, or keep it"
_DRAFTED = tuple(name for name in Draft.__slots__ if name not in ("embedding", "created_at"))
_READABLE = ("live", "archived")
_NONE: Mapping[str, str | None] = MappingProxyType({})
_MAX_SURVIVORS = 100  # that are followed: each costs a reading, and of a file alone every circle is found before


@dataclass(slots=True, frozen=True)
class Admitted:
    """A history as it may be kept here: so many of its versions are here already, and secrets were replaced in it."""

    versions: list[Memory]
    known: int
    labels: tuple[str, ...]


async def admit_history(
    core: Core, who: Principal, versions: Sequence[Memory], survivors: Mapping[str, str | None] = _NONE
) -> Admitted:
    """Conflict where the memory is here and neither history continues the other. `survivors` are what others, admitted
    with it and not written yet, became part of."""
    last = versions[-1]
    core.require(who, last.agent_id, "admin")
    if not is_uuid(last.id) or any(v.id != last.id or v.agent_id != last.agent_id for v in versions):
        raise ValidationError("its versions must have one id, which is a UUID, and one agent_id")
    if expired(last, core.clock()):
        raise ValidationError("it has expired", field="expires_at")
    await _check_survivors(core, who, versions, survivors)
    core.check_names(id=last.aliases)
    check_draft(core, Draft(**{name: getattr(last, name) for name in _DRAFTED}))
    clean, labels = list[Memory](), list[str]()
    for version in versions:
        check_name_lengths(version)
        each, found = await core.redactor.redact_record_async(replace_fields(version, tenant=who.tenant))
        clean.append(each)
        labels += found
    here = [as_original(version) for version in await core.primary.history(who.tenant, last.id)]
    await _check_common(core, who, here, clean)
    # What is here already is taken as it is, and no rule is asked again: nothing is done to it.
    kept = here[: len(clean)]
    for version in clean[len(kept) :]:
        kept.append(await _admit_version(core, who, version, kept[-1] if here else None))
    return Admitted(kept, min(len(here), len(clean)), tuple(dict.fromkeys(labels)))


async def _check_survivors(
    core: Core, who: Principal, versions: Sequence[Memory], survivors: Mapping[str, str | None]
) -> None:
    """Memories are merged within an agent, and what is done to one reaches those it was merged with."""
    last, into = versions[-1], {v.merged_into for v in versions if v.merged_into is not None}
    if not all(map(is_uuid, into)):
        raise ValidationError("merged_into must be a UUID", field="merged_into")
    if last.id in into:
        raise ValidationError(MERGED_INTO_ITSELF, field="merged_into")
    for memory in await core.primary.get(who.tenant, sorted(into)) if into else ():
        if memory.agent_id != last.agent_id:
            raise ValidationError("it says that it became part of another agent's memory", field="merged_into")
    next_one = last.merged_into
    for _ in range(_MAX_SURVIVORS):  # nobody could take a circle apart again
        if next_one is None:
            return
        if next_one == last.id:
            raise ValidationError(MERGED_IN_A_CIRCLE, field="merged_into")
        if next_one in survivors:
            next_one = survivors[next_one]
        else:
            next_one = next((m.merged_into for m in await core.primary.get(who.tenant, [next_one])), None)


async def _check_common(core: Core, who: Principal, here: Sequence[Memory], there: Sequence[Memory]) -> None:
    """That one history begins with the other; what a rule masked here is compared with what it would make of theirs."""
    before: Memory | None = None
    for mine, theirs in zip(here, there, strict=False):
        if not same_words(mine, theirs):
            masked = [await _masked(core, who, "remember", theirs), await _masked(core, who, "update", theirs, before)]
            if not any(same_words(mine, each) for each in masked):
                raise Conflict(_CHANGED_HERE)
        before = mine


async def _masked(
    core: Core, who: Principal, operation: Operation, memory: Memory, before: Memory | None = None
) -> Memory:
    with without_audit():
        try:
            return await core.policies.admit_memory(who, operation, memory, before=before, reviewed=True)
        except Forbidden:
            return memory


async def _admit_version(core: Core, who: Principal, version: Memory, before: Memory | None) -> Memory:
    """`before` is the version that it changes, of a memory that is here: rules are asked as where that is done by hand.
    A memory that is not here comes in with its history, and nothing here is changed or forgotten by it."""
    policies = core.policies
    if before is None or (before.status not in _READABLE and version.status in _READABLE):
        return await policies.admit_memory(who, "remember", version)
    if version.status != before.status and version.status != "live":
        await policies.admit_all(who, "forget", [before])
        if same_words(version, replace_fields(before, status=version.status, updated_at=version.updated_at)):
            return version
    return await policies.admit_memory(who, "update", version, before=before)
