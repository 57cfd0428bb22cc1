"""The files of one scope: segments, which of their rows are dead, and the manifest that says what counts.

Only the manifest makes a file count, and it is replaced in one step; whatever it does not name is swept away.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from commonplace.stores.sqlite.index.query import Flags
from commonplace.stores.sqlite.index.scope import Shard
from commonplace.stores.sqlite.index.segment import FORMAT, IndexDamage, OtherVersion, Segment, SegmentIdentity
from commonplace.stores.text import ANALYSER
from commonplace.wire.durable import sync_file, sync_folder

_MANIFEST = "manifest.json"
_RETRIES = 5


@dataclass(slots=True, frozen=True)
class SegmentEntry:
    name: str
    rows: int
    dead: str | None = None
    dead_crc: int = 0


@dataclass(slots=True, frozen=True)
class Manifest:
    """Every change up to `watermark` is in these segments."""

    watermark: int
    segments: tuple[SegmentEntry, ...]
    raw: bytes

    @property
    def files(self) -> set[str]:
        named = {entry.name for entry in self.segments}
        return named | {entry.dead for entry in self.segments if entry.dead} | {_MANIFEST}


def _made_for(identity: SegmentIdentity) -> dict[str, Any]:
    """What a manifest says of where it comes from; one that says otherwise is of no use."""
    store = {"store": identity.store_id, "generation": identity.generation, "dimension": identity.dimension}
    return {"format": FORMAT, "analyser": ANALYSER, **store}


class ScopeFolder:
    def __init__(self, root: Path, scope: int) -> None:
        self.scope = scope
        self._root = root
        self.path = root / str(scope)
        self._lock_path = root / f"{scope}.lock"

    def raw(self) -> bytes | None:
        try:
            return (self.path / _MANIFEST).read_bytes()
        except FileNotFoundError:
            return None

    def read(self, identity: SegmentIdentity) -> Manifest | None:
        raw = self.raw()
        return None if raw is None else self.parse(raw, identity)

    def parse(self, raw: bytes, identity: SegmentIdentity) -> Manifest:
        try:
            body, crc = raw.rsplit(b"\n", 1)
            if zlib.crc32(body) != int(crc, 16):
                raise IndexDamage("manifest: wrong checksum")
            held = json.loads(body)
            segments = tuple(SegmentEntry(*entry) for entry in held["segments"])
            manifest = Manifest(int(held["watermark"]), segments, raw)
            fits = all(held[key] == value for key, value in _made_for(identity).items())
        except (ValueError, KeyError, TypeError) as error:
            raise IndexDamage(f"manifest: {error}") from None
        if not fits:
            raise OtherVersion("manifest: made for another store, embedder or version")
        return manifest

    def open(
        self, identity: SegmentIdentity, opened: Mapping[str, Segment], prefetched: bytes | None = None
    ) -> tuple[Manifest | None, list[Shard]]:
        """The manifest (first as `prefetched`) and its segments; again when it is replaced at this very moment."""
        for attempt in range(_RETRIES):
            raw = prefetched if prefetched is not None and attempt == 0 else self.raw()
            manifest = self.parse(raw, identity) if raw is not None else None
            try:
                return manifest, self.shards(manifest, identity, opened) if manifest else []
            except IndexDamage:
                if self.raw() == raw:
                    raise
        raise IndexDamage("the manifest never stood still")

    def shards(self, manifest: Manifest, identity: SegmentIdentity, opened: Mapping[str, Segment]) -> list[Shard]:
        """The segments of a manifest, those in `opened` without opening them again."""
        shards = []
        for entry in manifest.segments:
            try:
                part = opened.get(entry.name) or Segment(self.path / entry.name, identity)
            except FileNotFoundError:
                raise IndexDamage(f"{entry.name}: missing") from None
            if part.size != entry.rows:
                raise IndexDamage(f"{entry.name}: {part.size} rows, not {entry.rows}")
            shards.append(Shard.of(part, self._live_flags(entry)))
        return shards

    def _live_flags(self, entry: SegmentEntry) -> Flags:
        if not entry.dead:
            return np.ones(entry.rows, bool)
        try:
            raw = (self.path / entry.dead).read_bytes()
        except FileNotFoundError:
            raise IndexDamage(f"{entry.dead}: missing") from None
        if len(raw) != -(-entry.rows // 8) or zlib.crc32(raw) != entry.dead_crc:
            raise IndexDamage(f"{entry.dead}: not what the manifest says")
        live: Flags = np.unpackbits(np.frombuffer(raw, np.uint8), count=entry.rows) == 0
        return live

    def new_name(self, kind: str) -> str:
        self._make_root()
        self.path.mkdir(mode=0o700, exist_ok=True)
        return f"{os.urandom(8).hex()}.{kind}"

    def write(self, identity: SegmentIdentity, watermark: int, shards: Sequence[Shard]) -> Manifest:
        """Make these what counts, and remove the rest."""
        entries = tuple(self._entry_of(shard) for shard in shards)
        content = {**_made_for(identity), "watermark": watermark, "segments": [astuple(entry) for entry in entries]}
        body = json.dumps(content).encode()
        raw = body + b"\n%08x" % zlib.crc32(body)
        draft = self.new_name("draft")
        self._write_durably(draft, raw)
        os.replace(self.path / draft, self.path / _MANIFEST)
        sync_folder(self.path)
        manifest = Manifest(watermark, entries, raw)
        self.sweep(manifest)
        return manifest

    def _entry_of(self, shard: Shard) -> SegmentEntry:
        if shard.alive == shard.part.size:
            return SegmentEntry(shard.part.name, shard.part.size)
        raw = np.packbits(~shard.live[:-1]).tobytes()
        name = self.new_name("dead")
        self._write_durably(name, raw)
        return SegmentEntry(shard.part.name, shard.part.size, name, zlib.crc32(raw))

    def _write_durably(self, name: str, raw: bytes) -> None:
        with (self.path / name).open("xb") as file:
            file.write(raw)
            file.flush()
            sync_file(file.fileno())

    def sweep(self, manifest: Manifest | None) -> None:
        """Remove what no manifest names; only with the lock."""
        keep = manifest.files if manifest else set()
        if self.path.is_dir():
            for path in self.path.iterdir():
                if path.name not in keep:
                    with contextlib.suppress(OSError):  # still mapped, on Windows: the next sweep gets it
                        path.unlink()

    def _make_root(self) -> None:
        # What can be found out from an index is as private as the database.
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextlib.contextmanager
    def lock(self, *, wait: bool = False) -> Iterator[bool]:
        """One builder at a time, whatever thread or process; False when another is at work."""
        try:
            self._make_root()
            file = self._lock_path.open("a+b")
        except OSError:
            if wait:
                raise
            yield False
            return
        with file:
            held = _acquire(file.fileno(), wait=wait)
            try:
                yield held
            finally:
                if held:  # not left to closing the file: a child that was forked meanwhile has it open, too
                    _release(file.fileno())


def disk_usage(root: Path) -> tuple[int, int]:
    """How many files lie below, and their bytes; one that is swept away meanwhile does not count."""
    files = size = 0
    for folder, _, names in os.walk(root):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                size += os.stat(os.path.join(folder, name)).st_size
                files += 1
    return files, size


if os.name == "posix":
    import fcntl

    def _acquire(handle: int, *, wait: bool) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _release(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)

else:
    import msvcrt

    def _acquire(handle: int, *, wait: bool) -> bool:
        os.lseek(handle, 0, os.SEEK_SET)
        while True:
            try:
                # LK_LOCK gives up after ten seconds; a long merge takes more.
                msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            except OSError:
                if not wait:
                    return False
            else:
                return True

    def _release(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
