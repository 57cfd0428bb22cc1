"""Counts what really reaches the disk: a layer under SQLite that passes everything on and counts xSync."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw


class Counter:
    def __init__(self) -> None:
        self.syncs = 0


@contextmanager
def counted() -> Iterator[Counter]:
    """Connections opened meanwhile go through the counting layer."""
    counter = Counter()
    base = apsw.vfs_names()[0]

    class File(apsw.VFSFile):
        def xSync(self, flags: int) -> None:
            counter.syncs += 1
            super().xSync(flags)

    class Layer(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("commonplace-counting", base, makedefault=True)

        def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
            return File(base, name, flags)

    layer = Layer()
    try:
        yield counter
    finally:
        layer.unregister()
        apsw.set_default_vfs(base)
