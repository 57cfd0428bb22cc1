"""All scopes of a store: finds them again on disk, keeps them up with the rows, and forgets the least used."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from commonplace.stores.sqlite.index import verify as checks
from commonplace.stores.sqlite.index.build import write_segment
from commonplace.stores.sqlite.index.folder import Manifest, ScopeFolder
from commonplace.stores.sqlite.index.merge import FLUSH, first_to_merge
from commonplace.stores.sqlite.index.query import Hit, IndexQuery, Source
from commonplace.stores.sqlite.index.scrub import scrub
from commonplace.stores.sqlite.index.search import search
from commonplace.stores.sqlite.index.segment import Damaged, Identity, Segment
from commonplace.stores.sqlite.index.view import Scope, Shard

log = logging.getLogger("commonplace.index")

#: While rebuilding, so many rows are held in memory before they go into a file.
_SPILL = 65_536
_RETRIES = 5


class _Held:
    """One scope in this process. The lock is held while it catches up, not while it is searched or merged."""

    def __init__(self, scope: int) -> None:
        self.scope = scope
        self.lock = threading.Lock()
        self.identity: Identity | None = None
        self.rows = Scope(0)
        self.manifest: Manifest | None = None
        self.foreseen: bytes | None = None  # the manifest as `begin` saw it
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
        return search(view, query)

    def maintain(self, source: Source, scope: int) -> None:
        """Write the tail to a segment and merge, when that is due."""
        held = self._hold(scope)
        with held.lock:
            self._follow(held, source)
            if held.rows.tail.size < FLUSH and not held.rows.erased_in_segments:
                return
        folder = ScopeFolder(self._root, scope)
        with folder.lock() as alone:
            if alone:
                self._flush(held, folder, source)

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
                    self._scrub(folder, identity, manifest, source, scope, {one.name for one in manifest.segments})
                    held = self._hold(scope)
                    with held.lock:
                        if held.manifest and held.manifest.raw == manifest.raw:
                            held.rows.erased_in_segments = False
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
        except (Damaged, OSError) as error:
            return [str(error)]
        return checks.problems(source, scope, identity, manifest.watermark, shards)

    def drop(self, scope: int) -> None:
        self.forget(scope)
        folder = ScopeFolder(self._root, scope)
        if folder.path.is_dir():
            with folder.lock(wait=True):
                folder.drop()

    def forget(self, scope: int) -> None:
        """Let go of what is in memory; the next search opens it again."""
        with self._lock:
            self._held.pop(scope, None)

    def sizes(self) -> dict[str, Any]:
        folders = [path for path in self._root.glob("*") if path.is_dir()] if self._root.is_dir() else []
        with self._lock:
            held = list(self._held.values())
        return {
            "scopes_on_disk": len(folders),
            "bytes_on_disk": sum(path.stat().st_size for folder in folders for path in folder.glob("*")),
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
        else:
            held.rows.advance(source, held.scope)

    def _load(self, held: _Held, source: Source) -> None:
        identity = self._identity(source)
        folder = ScopeFolder(self._root, held.scope)
        known = _known(held, identity)
        held.identity = None
        foreseen, held.foreseen = held.foreseen, None
        try:
            manifest, shards = _opened(folder, identity, known, foreseen)
            rows = Scope(identity.dimension, shards, manifest.watermark if manifest else 0)
            if manifest is None:
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
        self._weigh(held)

    def _rebuild(self, held: _Held, source: Source, *, alone: bool) -> None:
        """From rows alone; without the lock of the folder it stays in memory."""
        identity = self._identity(source)
        folder = ScopeFolder(self._root, held.scope)
        rows = Scope(identity.dimension)
        held.identity, held.rows, held.manifest = None, rows, None
        if alone:
            folder.sweep(None)
            rows.advance(source, held.scope, spill=lambda: _spill(rows, folder, identity))
            if rows.segments or rows.tail.size >= FLUSH:
                shard = _written(folder, identity, [*rows.segments, rows.tail_shard()], rows.seq)
                held.manifest = folder.write(identity, rows.seq, [shard])
                held.rows = Scope(identity.dimension, [shard], rows.seq)
        else:
            rows.advance(source, held.scope)
        held.identity = identity

    def _flush(self, held: _Held, folder: ScopeFolder, source: Source) -> None:
        """With the folder's lock: move the tail into a segment, merge, scrub, and let the manifest say so."""
        identity = self._identity(source)
        with held.lock:
            try:
                current = folder.read(identity)
            except (Damaged, OSError):
                current = None
            if _raw(current) != _raw(held.manifest):
                self._catch_up(held, source, folder)
            base, segments, tail = held.manifest, list(held.rows.segments), held.rows.tail_shard()
            watermark, due = held.rows.seq, held.rows.tail.size >= FLUSH
        if not due and base is not None:
            self._scrub(folder, identity, base, source, held.scope, {s.part.name for s in segments})
            with held.lock:
                held.rows.erased_in_segments = False
            return
        shards = [*segments, tail]
        start = first_to_merge([shard.alive for shard in shards])
        kept, merged = shards[:start], shards[start:]
        shard = _written(folder, identity, merged, watermark)
        if base is not None:
            self._scrub(folder, identity, base, source, held.scope, {s.part.name for s in kept})
        manifest = folder.write(identity, watermark, [*kept, shard])
        with held.lock:
            # Deaths since are applied again, by the next search: the scope is back at the watermark.
            held.rows = Scope(identity.dimension, [*kept, shard], watermark)
            held.manifest = manifest
        self._weigh(held)

    def _catch_up(self, held: _Held, source: Source, folder: ScopeFolder) -> None:
        """With the folder's lock: take over what another process made of the scope meanwhile."""
        identity = self._identity(source)
        try:
            manifest, shards = _opened(folder, identity, _known(held, identity), None)
            if manifest is None:
                raise Damaged("the files are gone")
            rows = Scope(identity.dimension, shards, manifest.watermark)
            rows.advance(source, held.scope)
            if rows.view.count != source.count(held.scope):
                raise Damaged(f"{rows.view.count} rows, not {source.count(held.scope)}")
        except (Damaged, OSError) as error:
            log.warning("index of scope %d is rebuilt: %s", held.scope, error)
            self.rebuilds += 1
            self._rebuild(held, source, alone=True)
        else:
            held.identity, held.rows, held.manifest = identity, rows, manifest

    def _scrub(
        self,
        folder: ScopeFolder,
        identity: Identity,
        manifest: Manifest,
        source: Source,
        scope: int,
        names: set[str],
    ) -> None:
        erased = list(source.erasures(scope, manifest.watermark))
        for name in names:
            scrub(folder.path / name, identity, erased)

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


def _opened(
    folder: ScopeFolder, identity: Identity, known: dict[str, Segment], foreseen: bytes | None
) -> tuple[Manifest | None, list[Shard]]:
    """The manifest and its segments; again when another process replaces them at this very moment."""
    for attempt in range(_RETRIES):
        raw = foreseen if foreseen is not None and attempt == 0 else folder.raw()
        manifest = folder.parse(raw, identity) if raw is not None else None
        try:
            return manifest, folder.shards(manifest, identity, known) if manifest else []
        except Damaged:
            if folder.raw() == raw:
                raise
    raise Damaged("the manifest never stood still")


def _written(folder: ScopeFolder, identity: Identity, shards: Sequence[Shard], last_seq: int) -> Shard:
    path = folder.path / folder.new_name("seg")
    write_segment(path, shards, identity, last_seq)
    segment = Segment(path, identity)
    live = np.ones(segment.size + 1, bool)
    live[-1] = False
    return Shard(segment, live, segment.size)


def _spill(rows: Scope, folder: ScopeFolder, identity: Identity) -> None:
    if rows.tail.size >= _SPILL:
        rows.settle(_written(folder, identity, [rows.tail_shard()], rows.seq))
