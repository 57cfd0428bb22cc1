"""All scopes of a store: finds them again on disk, keeps them up with the rows, and forgets the least used."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from commonplace.stores.sqlite.index import merge, verify as checks
from commonplace.stores.sqlite.index.folder import Manifest, ScopeFolder, measured
from commonplace.stores.sqlite.index.query import Hit, IndexQuery, Source
from commonplace.stores.sqlite.index.rebuild import rebuilt, written
from commonplace.stores.sqlite.index.scrub import scrub
from commonplace.stores.sqlite.index.search import search
from commonplace.stores.sqlite.index.segment import Damaged, Identity, Segment
from commonplace.stores.sqlite.index.view import Scope

log = logging.getLogger("commonplace.index")


class _Held:
    """One scope in this process. The lock is held while it catches up, not while it is searched or merged."""

    def __init__(self, scope: int) -> None:
        self.scope = scope
        self.lock = threading.Lock()
        self.identity: Identity | None = None
        self.rows = Scope(0)
        self.manifest: Manifest | None = None
        self.foreseen: bytes | None = None  # the manifest as `begin` saw it
        self.look_at = 2 * merge.FLUSH  # at this size of the tail, see whether another process has flushed it
        self.cost = 0


class Catalogue:
    """Safe for threads, and for processes that share the folder.

    Every `source` is one read transaction. Its caller should call `begin` for the scope before opening that
    transaction; without it everything is still right, but a process that opens a scope just while another
    flushes it may rebuild it for nothing.
    """

    def __init__(self, folder: Path, store_id: str, budget_bytes: int = 512 << 20) -> None:
        self._root = folder
        self._store_id = store_id
        self._budget = budget_bytes
        self._lock = threading.Lock()
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self.rebuilds = 0

    def begin(self, scope: int) -> None:
        """Read what is on disk; to be called before the transaction that the search will read in."""
        held = self._hold(scope)
        if held.identity is None:
            with held.lock:
                held.foreseen = ScopeFolder(self._root, scope).raw()

    def search(self, source: Source, scope: int, query: IndexQuery) -> list[Hit]:
        held = self._hold(scope)
        with held.lock:
            self._follow(held, source)
            view = held.rows.view
        try:
            return search(view, query)
        except IndexError as error:  # bytes that the header does not vouch for
            log.warning("index of scope %d is rebuilt: %s", scope, error)
        self.rebuilds += 1
        with ScopeFolder(self._root, scope).lock() as alone, held.lock:
            self._rebuild(held, source, alone=alone)
            view = held.rows.view
        return search(view, query)

    def maintain(self, source: Source, scope: int) -> None:
        """Write the tail to a segment and merge, when that is due."""
        held = self._hold(scope)
        with held.lock:
            self._follow(held, source)
            if held.rows.tail.size < merge.FLUSH and not held.rows.erased:
                return
        folder = ScopeFolder(self._root, scope)
        with folder.lock() as alone:
            if alone:
                self._flush(held, folder, source)

    def due(self, scope: int) -> bool:
        """Whether what searches have seen makes `maintain` worth calling."""
        with self._lock:
            held = self._held.get(scope)
        return held is not None and (held.rows.tail.size >= merge.FLUSH or bool(held.rows.erased))

    def purge(self, source: Source, scope: int) -> None:
        """After an erasure: leave nothing of it in any file."""
        folder = ScopeFolder(self._root, scope)
        if not folder.path.is_dir():
            return
        identity = self._identity(source)
        with folder.lock(wait=True):
            try:
                manifest = folder.read(identity)
                folder.sweep(manifest)
                if manifest:
                    erased = list(source.erasures(scope, 0))
                    for listed in manifest.segments:
                        scrub(folder.path / listed.name, identity, erased)
                    return
            except (Damaged, OSError) as error:
                log.warning("index of scope %d: %s", scope, error)
            folder.sweep(None)
        self.forget(scope)

    def rebuild(self, source: Source, scope: int) -> None:
        """Throw the files away and make them again from rows."""
        held = self._hold(scope)
        with ScopeFolder(self._root, scope).lock(wait=True), held.lock:
            self._rebuild(held, source, alone=True)

    def verify(self, source: Source, scope: int) -> list[str]:
        """What is wrong with the files, checked row by row."""
        folder, identity = ScopeFolder(self._root, scope), self._identity(source)
        try:
            manifest = folder.read(identity)
            if manifest is None:
                return []
            shards = folder.shards(manifest, identity, {})
            return checks.problems(source, scope, identity, manifest.watermark, shards)
        except (Damaged, OSError, IndexError, ValueError) as error:
            return [str(error)]

    def forget(self, scope: int) -> None:
        """Let go of what is in memory; the next search opens it again."""
        with self._lock:
            self._held.pop(scope, None)

    def sizes(self) -> dict[str, Any]:
        folders = [path for path in self._root.glob("*") if path.is_dir()] if self._root.is_dir() else []
        files, size = measured(self._root)
        with self._lock:
            held = list(self._held.values())
        return {
            "scopes_on_disk": len(folders),
            "files": files,
            "bytes": size,
            "bytes_on_disk": size,
            "scopes_open": len(held),
            "bytes_open": sum(one.rows.nbytes for one in held),
            "budget_bytes": self._budget,
            "rebuilds": self.rebuilds,
        }

    def close(self) -> None:
        with self._lock:
            self._held.clear()

    def _identity(self, source: Source) -> Identity:
        return Identity(self._store_id, source.generation, source.dimension or 0)

    def _hold(self, scope: int) -> _Held:
        with self._lock:
            held = self._held.get(scope)
            if held is None:
                held = self._held[scope] = _Held(scope)
            else:
                self._held.move_to_end(scope)
            return held

    def _follow(self, held: _Held, source: Source) -> None:
        """Bring the scope up to what the source sees."""
        identity = held.identity
        if (
            identity is None
            or identity.generation != source.generation
            or identity.dimension != (source.dimension or 0)
        ):
            self._load(held, source)
            return
        try:
            held.rows.advance(source, held.scope)
        except BaseException:
            held.identity = None  # half of a change may be in: open it again
            raise
        if held.rows.tail.size >= held.look_at:
            with contextlib.suppress(Damaged, OSError):
                self._adopt(held, source)
            held.look_at = held.rows.tail.size + merge.FLUSH

    def _load(self, held: _Held, source: Source) -> None:
        identity = self._identity(source)
        folder = ScopeFolder(self._root, held.scope)
        known = _known(held, identity)
        held.identity = None
        foreseen, held.foreseen = held.foreseen, None
        try:
            manifest, shards = folder.open(identity, known, foreseen)
            rows = Scope(identity.dimension, shards, manifest.watermark if manifest else 0)
            if manifest is None and source.count(held.scope) >= merge.FLUSH:
                with folder.lock() as alone:
                    self._rebuild(held, source, alone=alone)
                rows, manifest = held.rows, held.manifest
            elif manifest is None:
                rows.advance(source, held.scope)
            elif not rows.advance(source, held.scope, after=manifest.watermark - 1):
                raise Damaged("the manifest is ahead of the rows")
            elif rows.view.count != source.count(held.scope):
                raise Damaged(f"{rows.view.count} rows, not {source.count(held.scope)}")
        except (Damaged, OSError) as error:
            log.warning("index of scope %d is rebuilt: %s", held.scope, error)
            self.rebuilds += 1
            with folder.lock() as alone:
                self._rebuild(held, source, alone=alone)
        else:
            held.identity, held.rows, held.manifest = identity, rows, manifest
        held.look_at = held.rows.tail.size + 2 * merge.FLUSH
        self._weigh(held)

    def _rebuild(self, held: _Held, source: Source, *, alone: bool) -> None:
        """From rows alone; without the lock of the folder it stays in memory."""
        identity = self._identity(source)
        folder = ScopeFolder(self._root, held.scope)
        held.identity, held.rows, held.manifest = None, Scope(identity.dimension), None
        if alone:
            try:
                held.rows, held.manifest = rebuilt(source, held.scope, folder, identity)
            except OSError as error:  # a full disk, or one that may not be written to
                log.warning("index of scope %d stays in memory: %s", held.scope, error)
                alone = False
        if not alone:
            held.rows.advance(source, held.scope)
        held.identity = identity

    def _flush(self, held: _Held, folder: ScopeFolder, source: Source) -> None:
        """With the folder's lock: move the tail into a segment, merge, scrub, and let the manifest say so."""
        identity = self._identity(source)
        with held.lock:
            raw = folder.raw()
            if raw != _raw(held.manifest):
                try:
                    self._adopt(held, source)
                except (Damaged, OSError) as error:
                    log.warning("index of scope %d is rebuilt: %s", held.scope, error)
                    self.rebuilds += 1
                    self._rebuild(held, source, alone=True)
                    return
                if raw != _raw(held.manifest):
                    return
            rows = held.rows
            segments, tail, watermark, erased = list(rows.segments), rows.tail_shard(), rows.seq, list(rows.erased)
        if tail.part.size < merge.FLUSH:
            for segment in segments:
                scrub(folder.path / segment.part.name, identity, erased)
            with held.lock:
                rows.erased = rows.erased[len(erased) :]
            return
        shards = [*segments, tail]
        start = merge.first_to_merge([shard.alive for shard in shards])
        kept, merged = shards[:start], written(folder, identity, shards[start:], watermark)
        for segment in kept:
            scrub(folder.path / segment.part.name, identity, erased)
        manifest = folder.write(identity, watermark, [*kept, merged])
        with held.lock:
            # What happened since is applied again by the next search: the scope is back at the watermark.
            held.rows = Scope(identity.dimension, [*kept, merged], watermark)
            held.manifest = manifest
            held.look_at = 2 * merge.FLUSH
        self._weigh(held)

    def _adopt(self, held: _Held, source: Source) -> None:
        """Take over what another process made of the scope; Damaged when that is of no use.

        Nothing happens when it has seen more than this one: then the source may be older than its manifest.
        """
        identity = self._identity(source)
        manifest, shards = ScopeFolder(self._root, held.scope).open(identity, _known(held, identity))
        if manifest is None:
            raise Damaged("the files are gone")
        if manifest.watermark > held.rows.seq or manifest.raw == _raw(held.manifest):
            return
        rows = Scope(identity.dimension, shards, manifest.watermark)
        rows.advance(source, held.scope)
        if rows.view.count != source.count(held.scope):
            raise Damaged(f"{rows.view.count} rows, not {source.count(held.scope)}")
        held.identity, held.rows, held.manifest = identity, rows, manifest

    def _weigh(self, held: _Held) -> None:
        """Forget the least used while all together are over the budget; the one in use stays."""
        held.cost = held.rows.nbytes
        with self._lock:
            total = sum(one.cost for one in self._held.values())
            for scope in list(self._held):
                if total <= self._budget:
                    break
                if scope != held.scope:
                    total -= self._held.pop(scope).cost


def _raw(manifest: Manifest | None) -> bytes | None:
    return manifest.raw if manifest else None


def _known(held: _Held, identity: Identity) -> dict[str, Segment]:
    """Segments that need not be opened again."""
    if held.identity != identity:
        return {}
    return {s.part.name: s.part for s in held.rows.segments if isinstance(s.part, Segment)}
