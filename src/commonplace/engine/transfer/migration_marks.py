"""What a migration keeps in its target while it lasts: by that everybody knows half of a store from a whole one."""

from __future__ import annotations

from commonplace.engine.core import SYSTEM
from commonplace.stores.base import Primary
from commonplace.stores.copies import UNFINISHED_MIGRATION, no_unfinished_migration
from commonplace.wire.errors import Conflict, UnusableStore

#: The kind of these records, and their keys: how far each tenant is, and of which store the target is a copy.
_, MIGRATION, SOURCE = UNFINISHED_MIGRATION
PROGRESS = "progress"
NAME_AN_EMPTY_ONE = "name an empty one, or add to this one with `commonplace export` and `commonplace import`"


async def check_target(target: Primary) -> bool:
    """Whether a stopped migration goes on there; raises Conflict where it holds anything else."""
    if await is_unfinished(target):
        return True
    tenants = (SYSTEM, *await target.tenants())
    if any([await holds_anything(target, tenant) for tenant in tenants]):
        raise Conflict(
            "the target is not empty, and a migration takes the place of everything in it", hint=NAME_AN_EMPTY_ONE
        )
    return False


async def is_unfinished(target: Primary) -> bool:
    """Whether a migration has filled it in part."""
    if await target.record(*UNFINISHED_MIGRATION) is not None:
        return True
    tenants = (SYSTEM, *await target.tenants())
    # by an earlier version, which did not note of what
    return any([await target.record(tenant, MIGRATION, PROGRESS) is not None for tenant in tenants])


async def require_unfinished(target: Primary) -> None:
    if not await is_unfinished(target):
        raise no_unfinished_migration()


async def require_whole(primary: Primary) -> None:
    """Refuse half of a store: what is not there yet would be missed, and what is written now be taken away. One that
    an earlier version has begun, which noted no source, is not known here: its notes are in every tenant."""
    if await primary.record(*UNFINISHED_MIGRATION) is not None:
        raise UnusableStore(
            "this store holds a part of another one: a migration into it has not come to its end",
            hint="run that `commonplace migrate` again, which goes on where it was, or name another store; where its "
            "source is lost, `commonplace migrate --to URL --set-aside` sets this one aside",
        )


async def holds_anything(store: Primary, tenant: str) -> bool:
    return await store.sequence(tenant) > 0 or (await store.audit_head(tenant))[0] > 0
