"""What the doctor says of rows that any SQL store has: told in the same words whichever store holds them."""

from __future__ import annotations

from collections.abc import Iterable

from commonplace.stores.graph import name_key
from commonplace.stores.optional import Finding
from commonplace.wire.canonical import content_hash
from commonplace.wire.words import plural


def examine_contents(rows: Iterable[tuple[str, str, bytes, str]]) -> Finding:
    """Of (id, content, salt, hash): text that was changed by anything but us no longer has the hash that was written,
    and audited, with it."""
    changed = [id for id, content, salt, written in rows if content_hash(content, salt) != written]
    said = f"{len(changed)} texts are not what was written, first {changed[0]}" if changed else "ok"
    return Finding("contents", not changed, said)


def examine_names(rows: Iterable[tuple[str, str, str, str, str]]) -> Finding:
    """Of (id, subject, its key, object, its key): a statement is found by its keys."""
    wrong = [id for id, *names in rows if (name_key(names[0]), name_key(names[2])) != (names[1], names[3])]
    said = f"{len(wrong)} statements are filed under another name, first {wrong[0]}" if wrong else "ok"
    return Finding("names", not wrong, said)


def examine_vectors(waiting: int) -> Finding:
    """Never wrong: what waits for its vector is found by its words meanwhile."""
    wait = "waits for its vectors" if waiting == 1 else "wait for their vectors"
    said = f"{plural(waiting, 'memory')} {wait}; a running server makes them, or `commonplace reindex`"
    return Finding("vectors", True, said if waiting else "ok")
