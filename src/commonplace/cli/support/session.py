"""One command's hold on the memory: opened, used from ordinary code, closed."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.wire.errors import Conflict, NotFound, ValidationError

if TYPE_CHECKING:
    from commonplace.sdk import Memory

T = TypeVar("T")
_SHORTENED = re.compile(r"[0-9a-f-]{6,35}\Z")
_PAGES = 5  # of 1,000: where there are more memories than this, shortened ids are not looked for


class Session:
    """`session(memory.recall(...))` waits for the answer. Between two calls Ctrl-C behaves as everywhere."""

    def __init__(
        self, data: Path | None, agent: str | None, embedder: str | None = None, *, existing: bool = False
    ) -> None:
        if existing and data is not None and not data.is_file() and not _holds_store(data):
            raise NotFound(f"there is no store in {data}; `commonplace remember --data {data} …` would begin one")
        named = Path(os.environ.get("COMMONPLACE_DATA") or ".").expanduser()
        begun = existing and data is None and not named.exists()
        # One command asks one question: starting a thread per core for linear algebra costs more than it gives.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from commonplace.sdk import Memory

        self.heard = _Heard()
        if begun:
            self.heard.notes.append(
                f"{named}, which COMMONPLACE_DATA names, was not there: an empty store was begun in it"
            )
        self.memory: Memory = Memory(agent, data=data, embedder=embedder)
        self._runner = asyncio.Runner()

    def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._runner.run(self.memory.close())
        finally:
            self._runner.close()
            self.heard.stop()

    def id(self, ref: str) -> str:
        """The id a shortened one stands for; anything else as it is, for the engine to judge."""
        if not _SHORTENED.match(ref):
            return ref
        try:
            self(self.memory.get(ref))
            return ref  # an alias that happens to look like part of an id
        except NotFound:
            pass
        found, cursor = [], None
        for _ in range(_PAGES):
            page = self(self.memory.list(limit=1000, cursor=cursor))
            found += [m["id"] for m in page["memories"] if m["id"].startswith(ref) or m["id"].endswith(ref)]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        else:
            raise ValidationError(f"{self.memory.agent_id} has too many memories to look for {ref}; give the whole id")
        if len(found) > 1:
            shown = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")
            raise Conflict(f"{ref} could be {len(found)} memories ({shown}); give more of the id")
        return found[0] if found else ref


def _holds_store(data: Path) -> bool:
    # A store elsewhere, named by a setting, is not in the folder at all.
    elsewhere = bool(os.environ.get("COMMONPLACE_STORE")) or (data / "commonplace.toml").exists()
    return elsewhere or (data / "commonplace.db").exists()


class _Heard(logging.Handler):
    """Warnings of the layers below, kept to be shown once in this command's own way."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.notes: list[str] = []
        self._logger = logging.getLogger("commonplace")
        self._logger.addHandler(self)
        if os.environ.get("COMMONPLACE_DEBUG"):
            logging.basicConfig(level=logging.DEBUG)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self.notes:
            self.notes.append(text)

    def stop(self) -> None:
        self._logger.removeHandler(self)
