"""What a migration keeps in its target while it lasts: by that everybody knows half of a store from a whole one."""

from __future__ import annotations

from commonplace.engine.types import SYSTEM
from commonplace.stores.base import Primary, Transaction
from commonplace.stores.copies import UNFINISHED_MIGRATION, no_unfinished_migration
from commonplace.wire.errors import Conflict, UnusableStore

#: The kind of these records, and their keys: how far each tenant is, which process fills it, and of which store the
#: target is a copy.
_, MIGRATION, SOURCE = UNFINISHED_MIGRATION
PROGRESS, OWNER = "progress", "owner"
NAME_AN_EMPTY_ONE = "name an empty one, or add to this one with `commonplace export` and `commonplace import`"


async def check_target(target: Primary, source: Primary) -> bool:
    """Whether a stopped migration goes on there; raises Conflict where it holds anything else."""
    if await is_unfinished(target):
        return True
    tenants = (SYSTEM, *await target.tenants())
    if any([await holds_anything(target, tenant) for tenant in tenants]):
        if await _goes_on_from(target, source):
            raise Conflict("the target has everything of this store, and more since", hint=NAME_AN_EMPTY_ONE)
        raise Conflict(
            "the target is not empty, and a migration takes the place of everything in it", hint=NAME_AN_EMPTY_ONE
        )
    return False


async def is_copy(target: Primary, source: Primary) -> bool:
    """Whether a migration of this source has come to its end there, and no ledger of either has grown since."""
    if await is_unfinished(target):
        return False
    heads = await _heads(source)
    return bool(heads) and heads == await _heads(target)


async def _heads(store: Primary) -> dict[str, tuple[int, str]]:
    """Of each tenant that has a ledger; each says with its hash all that was done."""
    heads = {tenant: await store.audit_head(tenant) for tenant in (SYSTEM, *await store.tenants())}
    return {tenant: head for tenant, head in heads.items() if head[0] > 0}


async def _goes_on_from(target: Primary, source: Primary) -> bool:
    """Whether each ledger of the source is the beginning of the target's."""
    heads = await _heads(source)
    found = [
        await target.audit_hashes(tenant, after=number - 1, limit=1) == [head]
        for tenant, (number, head) in heads.items()
    ]
    return bool(found) and all(found)


async def is_unfinished(target: Primary) -> bool:
    """Whether a migration has filled it in part."""
    if await target.record(*UNFINISHED_MIGRATION) is not None:
        return True
    return await _is_begun(target)  # by an earlier version, which did not note of what


async def _is_begun(target: Primary) -> bool:
    tenants = (SYSTEM, *await target.tenants())
    return any([await target.record(tenant, MIGRATION, PROGRESS) is not None for tenant in tenants])


async def holds_more_than_marks(target: Primary) -> bool:
    """Whether there is a store in it, of which a migration has filled nothing yet."""
    held = any([await holds_anything(target, tenant) for tenant in (SYSTEM, *await target.tenants())])
    return held and not await _is_begun(target)


async def require_unfinished(target: Primary) -> None:
    if not await is_unfinished(target):
        raise no_unfinished_migration()


async def require_whole(primary: Primary) -> None:
    """Refuse half of a store: what is not there yet would be missed, and what is written now be taken away. One that
    an earlier version has begun, which noted no source, is not known here: its notes are in every tenant."""
    if await primary.record(*UNFINISHED_MIGRATION) is not None:
        raise _half_of_a_store()


def refuse_while_filled(tx: Transaction) -> None:
    """As `require_whole`, at the moment of a write: whoever opened the store before the migration began was not refused
    then, and what they write would be taken away."""
    if tx.record(MIGRATION, OWNER) is not None:
        raise _half_of_a_store()


def _half_of_a_store() -> UnusableStore:
    return UnusableStore(
        "this store holds a part of another one: a migration into it has not come to its end",
        hint="run that `commonplace migrate` again, which goes on where it was, or name another store; where its "
        "source is lost, `commonplace migrate --to URL --set-aside` sets this one aside",
    )


async def holds_anything(store: Primary, tenant: str) -> bool:
    return await store.sequence(tenant) > 0 or (await store.audit_head(tenant))[0] > 0
