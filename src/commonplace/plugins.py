"""Which backend a URL means: built-in schemes first, then what installed packages offer."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from commonplace.__about__ import install_command
from commonplace.wire.errors import Fault, OperatorActionRequired, Unavailable, ValidationError, kind_and_place

if TYPE_CHECKING:
    from commonplace.stores.base import Primary, Store, StoreSettings
    from commonplace.wire.record import Clock

ENTRY_POINTS = "commonplace.stores"

BUILT_IN = {
    "sqlite": "commonplace.stores.sqlite",
    "sqlite-vec": "commonplace.stores.sqlite_vec",
    "postgresql": "commonplace.stores.postgres",
    "postgres": "commonplace.stores.postgres",
    "pgvector": "commonplace.stores.postgres",
    "memory": "commonplace.stores.memory",
    "memorywire+http": "commonplace.stores.wire",
    "memorywire+https": "commonplace.stores.wire",
    "mem0": "commonplace.stores.mem0",
    "mem0+postgresql": "commonplace.stores.mem0",
    "letta": "commonplace.stores.letta",
    "letta+https": "commonplace.stores.letta",
    "cognee": "commonplace.stores.cognee",
}
#: Those whose stores only have copies of what a primary keeps.
COPY_SCHEMES = frozenset(
    {"memorywire+http", "memorywire+https", "mem0", "mem0+postgresql", "letta", "letta+https", "cognee"}
)
_TELL_ITS_AUTHORS = "tell the authors of that package"
#: What a scheme needs besides us: the module to look for, the package it comes in, and the extra that installs it.
_NEEDS = {
    "sqlite-vec": ("sqlite_vec", "sqlite-vec", "sqlite-vec"),
    "mem0": ("mem0", "mem0ai", "mem0"),
    "mem0+postgresql": ("mem0", "mem0ai", "mem0"),
    "cognee": ("cognee", "cognee", "cognee"),
    "postgresql": ("psycopg", "psycopg", "postgresql"),
    "postgres": ("psycopg", "psycopg", "postgresql"),
    "pgvector": ("psycopg", "psycopg", "postgresql"),
}


def open_store(url: str, clock: Clock, settings: StoreSettings | None = None) -> Primary:
    """The primary a URL names, by its backend's `open_url(url, clock, settings)`; `settings` may be left out there."""
    from commonplace.stores.base import Primary

    scheme = url.partition("://")[0]
    # Before it is opened: what it needs, such as a package or an embedder, is not what is wrong.
    store = None if scheme in COPY_SCHEMES else open_any(url, clock, settings)
    if not isinstance(store, Primary):
        raise ValidationError(
            f"{scheme}:// keeps copies and cannot be the first store; put one such as sqlite://./memories.db before it",
            field="stores",
        )
    return store


def open_replica(url: str, clock: Clock, settings: StoreSettings | None = None) -> Store:
    """The store a URL names, to keep copies of another's memories."""
    from commonplace.stores.base import Primary
    from commonplace.stores.copies import PrimaryCopy

    store = open_any(url, clock, settings)
    return PrimaryCopy(store) if isinstance(store, Primary) else store


def open_any(url: str, clock: Clock, settings: StoreSettings | None = None) -> Store:
    """The store a URL names, of whatever kind. A package may offer anyone's `MemoryStore`: that one can have copies."""
    from commonplace.stores.base import Store
    from commonplace.wire.memory_store import MemoryStore

    scheme, found = url.partition("://")[0], opener(url)
    if scheme in BUILT_IN:
        return cast("Store", found(url, clock, settings))
    try:
        store = found(url, clock, settings)
    except Fault:
        raise
    except Exception as error:  # whose text may quote the URL, and so a password
        raise Unavailable(
            f"the package that offers {scheme}:// failed: {kind_and_place(error)}", hint=_TELL_ITS_AUTHORS
        ) from error
    if isinstance(store, type):  # which has the methods of one, too
        said = f"the package that offers {scheme}:// opened the class {store.__name__} and no object of it"
        raise Unavailable(said, hint=_TELL_ITS_AUTHORS)
    if isinstance(store, Store):
        return store
    if isinstance(store, MemoryStore):
        from commonplace.stores.foreign import ForeignStore, listing_of

        return ForeignStore(store, scheme, listing_of(store), closes=True)
    kind = type(store).__name__
    raise Unavailable(
        f"the package that offers {scheme}:// opened {_article(kind)} {kind}, which is no store", hint=_TELL_ITS_AUTHORS
    )


def store_exists(url: str) -> bool:
    """Whether there is a store at this URL already, so that opening it begins none; raises where it cannot be asked."""
    from commonplace.stores.file_checks import names_missing_file
    from commonplace.stores.urls import DATABASE_SCHEMES, is_ephemeral

    if is_ephemeral(url) or names_missing_file(url):
        return False
    scheme = url.partition("://")[0]
    if scheme not in DATABASE_SCHEMES:  # a database is there before a store is in it
        return True
    opener(url)
    return bool(import_module(BUILT_IN[scheme]).store_exists(url))


def require_creatable(url: str) -> None:
    """Refuse a URL at which there is no store and none could be begun, with the reason; nothing is made."""
    from commonplace.stores.file_checks import require_creatable_file
    from commonplace.stores.urls import DATABASE_SCHEMES, FILE_SCHEMES

    opener(url)
    scheme = url.partition("://")[0]
    if scheme in DATABASE_SCHEMES:
        import_module(BUILT_IN[scheme]).require_creatable(url)
    elif scheme in FILE_SCHEMES:
        require_creatable_file(url)


def set_aside(url: str) -> str:
    """Set half of a store aside, so that another can begin there; where it is then, as it may be shown."""
    from commonplace.stores.urls import DATABASE_SCHEMES, FILE_SCHEMES, database_file, file_url
    from commonplace.wire.shown_urls import shown_url

    opener(url)
    scheme = url.partition("://")[0]
    if scheme in DATABASE_SCHEMES:
        return str(import_module(BUILT_IN[scheme]).set_aside(url))
    if scheme in FILE_SCHEMES and (database := database_file(url)) is not None:
        from commonplace.stores.sqlite.unfinished_migration import set_aside

        return shown_url(file_url(scheme, set_aside(database)))
    raise ValidationError(f"{scheme}:// cannot be set aside from here; move it by its own means", field="to")


def database_identity(url: str) -> str | None:
    """What its server says of which database it is, whatever its address; None where it does not answer."""
    from commonplace.stores.urls import parse_store_url

    found: str | None = import_module(BUILT_IN[url.partition("://")[0]]).database_identity(parse_store_url(url).url)
    return found


def opener(url: str) -> Callable[..., object]:
    """What opens such a URL; raises where there is no such backend, or a package that it needs is missing. Nothing is
    opened, nor anything imported that takes long."""
    from commonplace.stores.url_checks import require_well_formed
    from commonplace.stores.urls import has_scheme, require_place

    if not has_scheme(url):  # it is not quoted: it may hold a password
        raise ValidationError(
            "what names the store is not a store URL; write for example sqlite://./memories.db", field="store"
        )
    scheme = url.partition("://")[0]
    if scheme in BUILT_IN:
        require_place(url)
        if scheme in _NEEDS:
            _require(scheme, *_NEEDS[scheme])
        require_well_formed(url)
        return lambda *given: import_module(BUILT_IN[scheme]).open_url(*given)
    found = _installed(scheme)
    if _takes(found, 3):
        return found
    # Openers were called with two arguments before there were settings; those go on working.
    if _takes(found, 2):
        return lambda url, clock, settings: found(url, clock)
    said = f"the package that offers {scheme}:// does not take (url, clock) nor (url, clock, settings)"
    raise Unavailable(said, hint=_TELL_ITS_AUTHORS)


def _require(scheme: str, module: str, package: str, extra: str) -> None:
    from importlib.util import find_spec

    try:
        there = find_spec(module) is not None
    except (ImportError, ValueError):
        there = False
    if not there:
        raise OperatorActionRequired(f"{scheme}:// needs the package {package}", hint=install_command(extra))


def _article(word: str) -> str:
    return "an" if word[:1] in "aeiouAEIOU" else "a"


def _takes(opener: Callable[..., object], arguments: int) -> bool:
    import inspect

    try:
        inspect.signature(opener).bind(*[None] * arguments)
    except ValueError:  # one that is not written in Python may have none: it was always called with two
        return arguments == 2
    except TypeError:
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
