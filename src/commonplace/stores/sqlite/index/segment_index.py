"""All scopes of a store: finds them again on disk, keeps them up with the rows, and evicts the least used."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commonplace.stores.sqlite.index import compaction, verify as checks
from commonplace.stores.sqlite.index.manifest import Manifest, ScopeFolder, disk_usage
from commonplace.stores.sqlite.index.query import IndexHit, IndexQuery, IndexSource
from commonplace.stores.sqlite.index.scope import ScopeRows
from commonplace.stores.sqlite.index.search import search
from commonplace.stores.sqlite.index.segment import IndexDamage, OtherVersion, Segment, SegmentIdentity, erase_rows

log = logging.getLogger("commonplace.index")


@dataclass(slots=True)
class _OpenScope:
    """One scope in this process. The lock is held while it catches up, not while it is searched or merged."""

    scope: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    identity: SegmentIdentity | None = None
    rows: ScopeRows = field(default_factory=lambda: ScopeRows(0))
    manifest: Manifest | None = None
    prefetched: bytes | None = None  # the manifest as `prefetch` saw it
    #: At this size of the tail it is time to see whether another process has flushed it.
    recheck_at: int = field(default_factory=lambda: 2 * compaction.FLUSH_ROWS)
    cost: int = 0


class SegmentIndex:
    """Safe for threads, and for processes that share the folder.

    Every `source` is one read transaction. Its caller should call `prefetch` for the scope before opening that
    transaction; without it everything is still right, but a process that opens a scope just while another
    flushes it may rebuild it for nothing.
    """

    def __init__(self, folder: Path, store_id: str, budget_bytes: int = 512 << 20) -> None:
        self._root = folder
        self._store_id = store_id
        self._budget = budget_bytes
        self._lock = threading.Lock()
        self._open_scopes: OrderedDict[int, _OpenScope] = OrderedDict()
        self.rebuilds = 0

    def prefetch(self, scope: int) -> None:
        """Read what is on disk; to be called before the transaction that the search will read in."""
        held = self._scope(scope)
        if held.identity is None:
            with held.lock:
                held.prefetched = ScopeFolder(self._root, scope).raw()

    def search(self, source: IndexSource, scope: int, query: IndexQuery) -> list[IndexHit]:
        held = self._scope(scope)
        with held.lock:
            self._catch_up(held, source)
            snapshot = held.rows.snapshot
        try:
            return search(snapshot, query)
        except (IndexDamage, IndexError) as error:  # bytes that the header does not vouch for
            problem = error
        with ScopeFolder(self._root, scope).lock() as alone, held.lock:
            self._repair(held, source, problem, alone=alone)
            snapshot = held.rows.snapshot
        return search(snapshot, query)

    def maintain(self, source: IndexSource, scope: int) -> None:
        """Write the tail to a segment and merge, when that is due."""
        held = self._scope(scope)
        with held.lock:
            self._catch_up(held, source)
            if held.rows.tail.size < compaction.FLUSH_ROWS and not held.rows.erased:
                return
        folder = ScopeFolder(self._root, scope)
        with folder.lock() as alone:
            if alone:
                try:
                    self._flush(held, folder, source)
                except (IndexDamage, IndexError) as error:
                    with held.lock:
                        self._repair(held, source, error, alone=True)

    def maintenance_due(self, scope: int) -> bool:
        """Whether what searches have seen makes `maintain` worth calling."""
        with self._lock:
            held = self._open_scopes.get(scope)
        return held is not None and (held.rows.tail.size >= compaction.FLUSH_ROWS or bool(held.rows.erased))

    def purge_erased(self, source: IndexSource, scope: int) -> None:
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
                    for segment in manifest.segments:
                        erase_rows(folder.path / segment.name, identity, erased)
                    return
            except (IndexDamage, OSError) as error:
                log.warning("index of scope %d: %s", scope, error)
            folder.sweep(None)
        with self._lock:
            self._open_scopes.pop(scope, None)  # the next search opens it again

    def rebuild(self, source: IndexSource, scope: int) -> None:
        """Throw the files away and make them again from rows."""
        held = self._scope(scope)
        with ScopeFolder(self._root, scope).lock(wait=True), held.lock:
            self._rebuild(held, source, alone=True)

    def verify(self, source: IndexSource, scope: int) -> list[str]:
        """What is wrong with the files, checked row by row."""
        folder, identity = ScopeFolder(self._root, scope), self._identity(source)
        try:
            manifest = folder.read(identity)
            if manifest is None:
                return []
            shards = folder.shards(manifest, identity, {})
            return checks.problems(source, scope, identity, manifest.watermark, shards)
        except OtherVersion:
            return []  # the next search makes it anew
        except (IndexDamage, OSError, IndexError, ValueError) as error:
            return [str(error)]

    def sizes(self) -> dict[str, Any]:
        folders = [path for path in self._root.glob("*") if path.is_dir()] if self._root.is_dir() else []
        files, size = disk_usage(self._root)
        with self._lock:
            held = list(self._open_scopes.values())
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
            self._open_scopes.clear()

    def _identity(self, source: IndexSource) -> SegmentIdentity:
        return SegmentIdentity(self._store_id, source.generation, source.dimension or 0)

    def _scope(self, scope: int) -> _OpenScope:
        with self._lock:
            held = self._open_scopes.get(scope)
            if held is None:
                held = self._open_scopes[scope] = _OpenScope(scope)
            else:
                self._open_scopes.move_to_end(scope)
            return held

    def _catch_up(self, held: _OpenScope, source: IndexSource) -> None:
        """Bring the scope up to what the source sees."""
        if held.identity != self._identity(source):
            self._open(held, source)
            return
        try:
            held.rows.advance(source, held.scope)
        except BaseException:
            held.identity = None  # half of a change may be in: open it again
            raise
        if held.rows.tail.size >= held.recheck_at:
            with contextlib.suppress(IndexDamage, OSError):
                self._adopt_files(held, source)
            held.recheck_at = held.rows.tail.size + compaction.FLUSH_ROWS

    def _open(self, held: _OpenScope, source: IndexSource) -> None:
        identity = self._identity(source)
        folder = ScopeFolder(self._root, held.scope)
        opened = _opened_segments(held, identity)
        held.identity = None
        prefetched, held.prefetched = held.prefetched, None
        try:
            manifest, shards = folder.open(identity, opened, prefetched)
            rows = ScopeRows(identity.dimension, shards, manifest.watermark if manifest else 0)
            if manifest is None and source.count(held.scope) >= compaction.FLUSH_ROWS:
                with folder.lock() as alone:
                    self._rebuild(held, source, alone=alone)
                rows, manifest = held.rows, held.manifest
            elif manifest is None:
                rows.advance(source, held.scope)
            elif not rows.advance(source, held.scope, after=manifest.watermark - 1):
                raise IndexDamage("the manifest is ahead of the rows")
            elif rows.snapshot.count != source.count(held.scope):
                raise IndexDamage(f"{rows.snapshot.count} rows, not {source.count(held.scope)}")
        except (IndexDamage, OSError) as error:
            with folder.lock() as alone:
                self._repair(held, source, error, alone=alone)
        else:
            held.identity, held.rows, held.manifest = identity, rows, manifest
        held.recheck_at = held.rows.tail.size + 2 * compaction.FLUSH_ROWS
        self._evict_over_budget(held)

    def _repair(self, held: _OpenScope, source: IndexSource, problem: Exception, *, alone: bool) -> None:
        level = logging.INFO if isinstance(problem, OtherVersion) else logging.WARNING
        log.log(level, "index of scope %d is rebuilt: %s", held.scope, problem)
        self.rebuilds += 1
        self._rebuild(held, source, alone=alone)

    def _rebuild(self, held: _OpenScope, source: IndexSource, *, alone: bool) -> None:
        """From rows alone; without the lock of the folder it stays in memory."""
        identity = self._identity(source)
        folder = ScopeFolder(self._root, held.scope)
        held.identity, held.rows, held.manifest = None, ScopeRows(identity.dimension), None
        if alone:
            try:
                held.rows, held.manifest = compaction.rebuild(source, folder, identity)
            except OSError as error:  # a full disk, or one that may not be written to
                log.warning("index of scope %d stays in memory: %s", held.scope, error)
                alone = False
        if not alone:
            held.rows.advance(source, held.scope)
        held.identity = identity

    def _flush(self, held: _OpenScope, folder: ScopeFolder, source: IndexSource) -> None:
        """With the folder's lock: move the tail into a segment, merge, erase, and let the manifest say so."""
        identity = self._identity(source)
        with held.lock:
            raw = folder.raw()
            if raw != _raw(held.manifest):
                try:
                    self._adopt_files(held, source)
                except (IndexDamage, OSError) as error:
                    self._repair(held, source, error, alone=True)
                    return
                if raw != _raw(held.manifest):
                    return
            rows = held.rows
            segments, tail, watermark, erased = list(rows.segments), rows.tail_shard(), rows.seq, list(rows.erased)
        if tail.part.size < compaction.FLUSH_ROWS:
            for segment in segments:
                erase_rows(folder.path / segment.part.name, identity, erased)
            with held.lock:
                rows.erased = rows.erased[len(erased) :]
            return
        shards = [*segments, tail]
        start = compaction.first_to_merge([shard.alive for shard in shards])
        kept, merged = shards[:start], compaction.write_shard(folder, identity, shards[start:], watermark)
        for segment in kept:
            erase_rows(folder.path / segment.part.name, identity, erased)
        manifest = folder.write(identity, watermark, [*kept, merged])
        with held.lock:
            # What happened since is applied again by the next search: the scope is back at the watermark.
            held.rows = ScopeRows(identity.dimension, [*kept, merged], watermark)
            held.manifest = manifest
            held.recheck_at = 2 * compaction.FLUSH_ROWS
        self._evict_over_budget(held)

    def _adopt_files(self, held: _OpenScope, source: IndexSource) -> None:
        """Take over what another process made of the scope; IndexDamage when that is of no use.

        Nothing happens when it has seen more than this one: then the source may be older than its manifest.
        """
        identity = self._identity(source)
        manifest, shards = ScopeFolder(self._root, held.scope).open(identity, _opened_segments(held, identity))
        if manifest is None:
            raise IndexDamage("the files are gone")
        if manifest.watermark > held.rows.seq or manifest.raw == _raw(held.manifest):
            return
        rows = ScopeRows(identity.dimension, shards, manifest.watermark)
        rows.advance(source, held.scope)
        if rows.snapshot.count != source.count(held.scope):
            raise IndexDamage(f"{rows.snapshot.count} rows, not {source.count(held.scope)}")
        held.identity, held.rows, held.manifest = identity, rows, manifest

    def _evict_over_budget(self, held: _OpenScope) -> None:
        """Let go of the least used while all together are over the budget; the one in use stays."""
        held.cost = held.rows.nbytes
        with self._lock:
            total = sum(one.cost for one in self._open_scopes.values())
            for scope in list(self._open_scopes):
                if total <= self._budget:
                    break
                if scope != held.scope:
                    total -= self._open_scopes.pop(scope).cost


def _raw(manifest: Manifest | None) -> bytes | None:
    return manifest.raw if manifest else None


def _opened_segments(held: _OpenScope, identity: SegmentIdentity) -> dict[str, Segment]:
    """Segments that need not be opened again."""
    if held.identity != identity:
        return {}
    return {s.part.name: s.part for s in held.rows.segments if isinstance(s.part, Segment)}
