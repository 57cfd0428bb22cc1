"""Sessions: a process of its own on stdio, which opens the engine late; a request to a server, which has one."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from commonplace.wire.errors import Fault
from commonplace.wire.record import Principal

if TYPE_CHECKING:
    from commonplace.config import Config
    from commonplace.engine import Engine

#: How often an open session looks whether its embedding model has been idle for long enough to be unloaded.
IDLE_CHECK_SECONDS = 60.0


class StdioSession:
    """One client, one process: everything heavy is loaded and opened at the first need, in the background."""

    def __init__(self, config: Config, palace: str | None = None) -> None:
        self.who = Principal()
        self.agent = config.agent
        self.palace = palace
        self.config = config
        self._opening: asyncio.Task[Engine] | None = None
        self._engine: Engine | None = None
        self._idle: asyncio.Task[None] | None = None

    async def engine(self) -> Engine:
        if self._engine is not None:
            return self._engine
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._end_opening)
        # Several calls wait for it, and one that is cancelled must not stop it halfway.
        return await asyncio.shield(self._opening)

    def _end_opening(self, task: asyncio.Task[Engine]) -> None:
        """What failed is tried again by the next call; whoever waited has been told."""
        self._opening = None
        if not task.cancelled():
            task.exception()  # taken, or asyncio would log it as never retrieved

    async def _open(self) -> Engine:
        # Imports take longer than opening; in a thread of their own they leave the loop free to answer.
        await asyncio.to_thread(import_module, "commonplace.serve.shared_embedder")
        from commonplace.serve.shared_embedder import open_session_engine

        engine = await open_session_engine(self.config)
        if self.palace is not None:
            # Where it cannot be made it still reads as an empty one, and the first write says why.
            with suppress(Fault):
                await engine.palaces.ensure(self.who, self.palace)
        self._engine = engine
        self._idle = asyncio.create_task(self._unload_when_idle(engine))
        return engine

    async def _unload_when_idle(self, engine: Engine) -> None:
        while True:
            await asyncio.sleep(IDLE_CHECK_SECONDS)
            await engine.release_idle_models()

    async def close(self) -> None:
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._idle is not None:
            self._idle.cancel()
        if self._engine is not None:
            engine, self._engine = self._engine, None
            await engine.close()


class RequestSession:
    """One request to a server: the engine is its, the caller is whoever the token says."""

    def __init__(
        self, engine: Engine, who: Principal, agent: str, palace: str | None = None, named: bool = False
    ) -> None:
        self.who = who
        self.agent = agent
        self.palace = palace
        self._engine = engine
        # Whoever may use only one agent means that one, unless the address names another.
        if not named and not who.may_use(agent) and len(who.agents) == 1 and "*" not in who.agents[0]:
            self.agent = who.agents[0]

    async def engine(self) -> Engine:
        return self._engine
