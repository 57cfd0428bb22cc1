"""What happens, sent to whoever listens: server-sent events, each listener shown only what is its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from commonplace.wire.record import Principal
from commonplace.wire.strict_json import encode

Event = dict[str, Any]

CONNECTED: Event = {"type": "connected"}
_MOST_WAITING = 128  # events kept for a listener that does not read


@dataclass(slots=True, eq=False)
class _Listener:
    who: Principal
    queue: asyncio.Queue[Event | None] = field(default_factory=asyncio.Queue)
    missed: int = 0


class Events:
    def __init__(self) -> None:
        self._listeners: set[_Listener] = set()
        self._ended = False

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners)

    def publish(self, who: Principal, agent: str, event: Event) -> None:
        for listener in self._listeners:
            if listener.who.tenant != who.tenant or not listener.who.may_use(agent):
                continue
            if listener.queue.qsize() >= _MOST_WAITING:
                listener.missed += 1
                continue
            if listener.missed:
                listener.queue.put_nowait({"type": "lag", "skipped": listener.missed})
                listener.missed = 0
            listener.queue.put_nowait(event)

    async def frames(self, who: Principal) -> AsyncGenerator[bytes]:
        """The first at once, until the server stops."""
        listener = _Listener(who)
        self._listeners.add(listener)
        try:
            yield _frame(CONNECTED)
            while not self._ended and (event := await listener.queue.get()) is not None:
                yield _frame(event)
        finally:
            self._listeners.discard(listener)

    def end(self) -> None:
        self._ended = True
        for listener in self._listeners:
            listener.queue.put_nowait(None)


def _frame(event: Event) -> bytes:
    return b"data: " + encode(event) + b"\n\n"
