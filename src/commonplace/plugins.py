"""Which backend a URL means: built-in schemes first, then what installed packages offer."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from commonplace.wire.errors import Unavailable, ValidationError

if TYPE_CHECKING:
    from commonplace.stores.base import Primary, StoreSettings
    from commonplace.wire.record import Clock

ENTRY_POINTS = "commonplace.stores"

BUILT_IN = {
    "sqlite": "commonplace.stores.sqlite",
    "sqlite-vec": "commonplace.stores.sqlite_vec",
    "postgresql": "commonplace.stores.postgres",
    "postgres": "commonplace.stores.postgres",
    "memory": "commonplace.stores.memory",
}


def open_store(url: str, clock: Clock, settings: StoreSettings | None = None) -> Primary:
    """The store a URL names, by its backend's `open_url(url, clock, settings)`; `settings` may be left out there."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise ValidationError(f"{url!r} is not a store URL; write for example sqlite://./memories.db", field="store")
    if scheme in BUILT_IN:
        return cast("Primary", import_module(BUILT_IN[scheme]).open_url(url, clock, settings))
    opener = _installed(scheme)
    given = (url, clock, settings) if _takes_settings(opener) else (url, clock)
    return cast("Primary", opener(*given))


def _takes_settings(opener: Callable[..., object]) -> bool:
    # Openers were called with two arguments before there were settings; those go on working.
    import inspect

    try:
        inspect.signature(opener).bind("", None, None)
    except (TypeError, ValueError):
        return False
    return True


def _installed(scheme: str) -> Callable[..., object]:
    # Only for schemes that are not ours: reading every installed package's metadata takes longer than a recall.
    from importlib.metadata import entry_points

    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if scheme not in offered:
        known = ", ".join(f"{name}://" for name in sorted({*BUILT_IN, *offered}))
        raise ValidationError(f"there is no store for {scheme}://; there are {known}", field="store")
    try:
        opener: Callable[..., object] = offered[scheme].load()
    except Exception as error:
        raise Unavailable(f"the package that offers {scheme}:// cannot be imported: {error}") from error
    return opener
