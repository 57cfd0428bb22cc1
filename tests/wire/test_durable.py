"""Bytes on the disk itself: what each platform is asked for."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

import commonplace
from commonplace.wire import durable


class Kernel:
    """Notes what it is asked for, as the system calls would be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, refuses: bool = False) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._refuses = refuses
        monkeypatch.setattr(durable.os, "fsync", lambda handle: self.asked.append(("fsync", handle)))
        monkeypatch.setattr(durable, "fcntl", self)

    def fcntl(self, handle: int, command: int) -> None:
        self.asked.append(("fcntl", handle, command))
        if self._refuses:
            raise OSError("not here")


def test_elsewhere_a_file_is_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch)
    monkeypatch.setattr(durable, "FULL_SYNC", None)
    durable.sync_file(7)
    assert kernel.asked == [("fsync", 7)]


@pytest.mark.parametrize(("refuses", "then"), [(False, []), (True, [("fsync", 7)])])
def test_on_macos_the_drive_is_asked_to_write_its_cache(
    monkeypatch: pytest.MonkeyPatch, refuses: bool, then: list[Any]
) -> None:
    kernel = Kernel(monkeypatch, refuses=refuses)
    monkeypatch.setattr(durable, "FULL_SYNC", 51)
    durable.sync_file(7)
    assert kernel.asked == [("fcntl", 7, 51), *then]


def test_a_folder_is_synced_by_its_handle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = Kernel(monkeypatch)
    durable.sync_folder(tmp_path)
    assert len(kernel.asked) == (os.name == "posix")


def test_nothing_else_syncs_on_its_own() -> None:
    source = Path(commonplace.__file__).parent
    found = [str(p) for p in source.rglob("*.py") if re.search(r"os\.fsync\(", p.read_text("utf-8"))]
    assert found == [str(source / "wire" / "durable.py")]
