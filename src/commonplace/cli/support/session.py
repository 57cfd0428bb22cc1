"""One command's hold on the memory: which store is meant, how work on it is waited for, which id a part stands for."""

from __future__ import annotations

import inspect
import logging
import os
import re
import sys
from collections.abc import Coroutine
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.cli.support import output
from commonplace.wire.errors import Conflict, NotFound, ValidationError
from commonplace.wire.record import Principal

if TYPE_CHECKING:
    import asyncio

    from commonplace.engine import Engine
    from commonplace.sdk import Memory

T = TypeVar("T")

_PART_OF_ID = re.compile(r"[0-9a-f-]{6,35}\Z")
_MAX_AGENTS = 10  # named in a hint
_PAGES = 5  # of 1,000: where there are more memories than this, shortened ids are not looked for


class Session:
    """Opened when first used, closed before the answer is printed.

    `session(memory.recall(...))` waits for the answer. Between two calls Ctrl-C behaves as everywhere.
    """

    def __init__(self, data: Path | None, agent: str | None, *, as_json: bool = False, existing: bool = False) -> None:
        self.data, self.agent, self.as_json = data, agent, as_json
        self.existing = existing  # whether a store that is not there is the user's mistake
        self.dry_run = False  # whether, where it is none, it is looked at as an empty one and not begun
        self.stores: tuple[str, ...] = ()  # URLs, where the command was given some
        self.warnings: list[str] = []
        self.store_problems: dict[str, str] = {}  # why one did not do its part of what was written, by its name
        self.config_notes: tuple[str, ...] = ()  # settings that are not used, a sentence each
        self._log = _WarningLog(self.warnings)
        self._asked = False

    @cached_property
    def memory(self) -> Memory:
        data = self.data
        from commonplace import config as configuration, plugins

        config = configuration.load(data=data, agent=self.agent, stores=self.stores or None)
        self.config_notes = config.notes
        if self.existing and config.store is None and data is not None and not config.database.exists():
            raise NotFound(f"there is no store in {data}; `commonplace remember --data {data} …` would begin one")
        named = Path(os.environ.get("COMMONPLACE_DATA") or ".").expanduser()
        if self.existing and config.store is None and data is None and not named.exists():
            warning = f"{named}, which COMMONPLACE_DATA names, was not there: an empty store was begun in it"
            self.warnings.append(warning)
        # One command asks one question: starting a thread per core for linear algebra costs more than it gives.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from commonplace.sdk import Memory
        from commonplace.serve.running_server import running_server
        from commonplace.serve.shared_embedder import open_shared_embedder

        if self.existing and config.store is not None:
            _require_store(config.store)
        if self.dry_run and not plugins.store_exists(config.store_url):
            plugins.require_creatable(config.store_url)
            self.stores = ("memory://",)
        # A server on the same data has the model in memory; loading it again takes most of what a command does.
        server = running_server(config.data)
        if server is None:
            return Memory(self.agent, data=data, stores=self.stores or None)
        return Memory(
            self.agent,
            data=data,
            stores=self.stores or None,
            embedder=open_shared_embedder(config),
            server_url=server.url if server.has_store_of(config) else None,
        )

    @cached_property
    def engine(self) -> Engine:
        return self(self.memory.engine())

    @cached_property
    def _runner(self) -> asyncio.Runner:
        import asyncio

        return asyncio.Runner()

    @property
    def interactive(self) -> bool:
        """Whether there is a person to ask."""
        return not self.as_json and sys.stdin.isatty() and sys.stderr.isatty()

    def __call__(self, work: Coroutine[Any, Any, T], *, endless: bool = False) -> T:
        """`endless` work shows no bar, however long it takes. Nor does what is within another bar: that one knows how
        far it is."""
        try:
            from commonplace.cli.support.progress import ProgressBar, is_begun

            self._asked = True
            if endless or is_begun() or not sys.stderr.isatty():
                return self._wait(work)
            with ProgressBar("working"):
                return self._wait(work)
        finally:
            _close_unstarted(work)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        reported = self._reported(work) if "memory" in self.__dict__ else work
        try:
            return self._runner.run(reported)
        finally:
            _close_unstarted(reported)

    async def _reported(self, work: Coroutine[Any, Any, T]) -> T:
        """Notes what stores beside the primary made of it: whichever command it is, its answer says so."""
        try:
            engine = await self.memory.engine()
        except BaseException:
            work.close()
            raise
        with engine.reporting(Principal()) as report:
            try:
                return await work
            finally:
                self.store_problems = report.problems() | self.store_problems

    def __enter__(self) -> Session:
        logging.getLogger("commonplace").addHandler(self._log)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if "memory" in self.__dict__:
                runner, closing = self._runner, self.memory.close()
                try:
                    runner.run(closing)
                finally:
                    _close_unstarted(closing)
        finally:
            if "_runner" in self.__dict__:  # also where there was no store to open
                self._runner.close()
            logging.getLogger("commonplace").removeHandler(self._log)

    def agent_hint(self) -> str | None:
        """Which agents have memories, where the one that was named has none; whoever runs a command may know all."""
        from difflib import get_close_matches

        if not self._asked:  # a mistake that was noticed before a store was opened opens none
            return None
        memory = self.memory
        if self(memory.list(limit=1))["memories"]:
            return None
        named = self(memory.status())["agents"]  # without those whose name holds a secret
        if not named or memory.agent_id in named:  # among them: all it had was forgotten, and its name is right
            return None
        close = get_close_matches(memory.agent_id, named, 1)
        meant = f"did you mean {output.label(close[0])}? " if close else ""
        shown = ", ".join(output.label(name) for name in list(named)[:_MAX_AGENTS])
        rest = f" and {len(named) - _MAX_AGENTS:,} more" if len(named) > _MAX_AGENTS else ""
        return f"agent {output.label(memory.agent_id)} has no memories; {meant}those that have: {shown}{rest}"

    def id(self, ref: str) -> str:
        """The id a shortened one stands for; anything else as it is, for the engine to judge."""
        if not _PART_OF_ID.match(ref):
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


def _close_unstarted(work: Coroutine[Any, Any, Any]) -> None:
    """Of what Ctrl-C kept from being begun, Python would say on stderr that it was never awaited."""
    if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
        work.close()


def _require_store(url: str) -> None:
    from commonplace import plugins
    from commonplace.stores.file_checks import require_creatable_file
    from commonplace.stores.urls import FILE_SCHEMES, is_ephemeral
    from commonplace.wire.shown_urls import shown_url

    if not is_ephemeral(url) and not plugins.store_exists(url):
        if url in (f"{scheme}://" for scheme in FILE_SCHEMES):  # in which nothing could be begun either
            require_creatable_file(url)
        raise NotFound(
            f"there is no store at {shown_url(url)}; `commonplace remember …` with COMMONPLACE_STORE set to it would "
            "begin one"
        )


class _WarningLog(logging.Handler):
    """Keeps the warnings of the layers below, to be shown once in this command's own way."""

    def __init__(self, warnings: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._warnings = warnings
        if os.environ.get("COMMONPLACE_DEBUG"):
            logging.basicConfig(level=logging.DEBUG)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._warnings:
            self._warnings.append(text)
