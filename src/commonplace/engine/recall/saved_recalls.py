"""Recalls that a process could not write to the ledger before it ended, kept in files for the next one to write.

Nothing here knows the ledger; a file holds no question, only its salted hash.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.wire.canonical import mint_id
from commonplace.wire.durable import sync_file, sync_folder

_FOLDER = "unwritten-recalls"
#: Whoever took a file to write what it holds, and has not come back for so long, was killed.
_ABANDONED_SECONDS = 600

Document = dict[str, Any]


@dataclass(slots=True)
class SavedFile:
    """The recalls of one tenant that one process left. Another store may be used with the same folder, so it says whose
    they are: `ledger` is the hash of the first entry of theirs, and where that could not be read, `store` their key."""

    path: Path
    tenant: str
    ledger: str | None
    error: str
    failing_since: int
    attempts: int
    recalls: list[Document]
    store: str = ""  # which files of earlier versions do not say

    def belongs_to(self, ledger: str | None, store: str) -> bool:
        """A file that names neither belongs to nobody: no other store's people may read it in their ledger."""
        return self.ledger == ledger if self.ledger is not None else store != "" and self.store == store

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        with suppress(OSError):  # it holds others
            self.path.parent.rmdir()

    def give_back(self) -> None:
        """For another to try."""
        os.replace(self.path, self.path.with_suffix(".json"))


class SavedRecalls:
    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder / _FOLDER

    @property
    def exist(self) -> bool:
        """Whether anything may be there: asked at every flush, so it costs one look at a name."""
        return self._folder is not None and self._folder.is_dir()

    def save(self, now: int, **fields: Any) -> None:
        """Raises OSError where nothing can be written there either."""
        if self._folder is None:
            raise OSError("there is no folder to keep them in")
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = self._folder / mint_id(now)
        with os.fdopen(os.open(name.with_suffix(".part"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(fields, file)
            file.flush()
            sync_file(file.fileno())
        os.replace(name.with_suffix(".part"), name.with_suffix(".json"))
        sync_folder(self._folder)

    def list_for(self, tenant: str) -> list[SavedFile]:
        """What waits, whoever may be writing it."""
        found = (_read(path) for path in self._paths((".json", ".taken")))
        return [each for each in found if each is not None and each.tenant == tenant]

    def take(self) -> Iterator[SavedFile]:
        """Each file that nobody else has taken; whoever takes it removes it or gives it back."""
        for path in self._paths((".json", ".taken")):
            taken = path.with_suffix(".taken")
            try:
                if path.suffix == ".taken":
                    if time.time() - path.stat().st_mtime < _ABANDONED_SECONDS:
                        continue
                else:
                    os.rename(path, taken)  # of two who try one succeeds
                os.utime(taken)
            except OSError:
                continue
            found = _read(taken)
            if found is not None:
                yield found

    def _paths(self, suffixes: tuple[str, ...]) -> list[Path]:
        if self._folder is None or not self.exist:
            return []
        return sorted(path for path in self._folder.iterdir() if path.suffix in suffixes)


def _read(path: Path) -> SavedFile | None:
    try:
        return SavedFile(path, **json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):  # taken meanwhile, or damaged: it is left for a person to look at
        return None
