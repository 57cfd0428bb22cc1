"""What AMP's tools do: the arguments are the request, the response is the answer."""

from __future__ import annotations

from typing import Any

from commonplace.dialects.amp import Amp
from commonplace.serve.mcp.table import Document, Session


async def store(session: Session, arguments: Document) -> Document:
    return await _perform(session, "store", arguments)


async def search(session: Session, arguments: Document) -> Document:
    return await _perform(session, "search", arguments)


async def get(session: Session, arguments: Document) -> Document:
    return await _perform(session, "get", arguments)


async def delete(session: Session, arguments: Document) -> Document:
    return await _perform(session, "delete", arguments)


async def list(session: Session, arguments: Document) -> Document:
    return await _perform(session, "list", arguments)


async def status(session: Session, arguments: Document) -> Document:
    answer = await _perform(session, "status", arguments)
    return {name: _without_nulls(value) if isinstance(value, dict) else value for name, value in answer.items()}


async def agent_status(session: Session, arguments: Document) -> Document:
    return await _perform(session, "agent_status", arguments)


async def _perform(session: Session, operation: str, arguments: Document) -> Document:
    amp = Amp(await session.engine(), session.who)
    answer: Document = await getattr(amp, operation)(_without_nulls(arguments))
    return _without_nulls(answer)


def _without_nulls(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None}
