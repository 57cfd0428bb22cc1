"""What our own tools do: arguments become memorywire requests, and their responses come back as documents."""

from __future__ import annotations

from commonplace.dialects.memorywire import Memorywire
from commonplace.serve.mcp.requests import (
    GetArguments,
    GraphArguments,
    HistoryArguments,
    ListArguments,
    ReviewArguments,
)
from commonplace.serve.mcp.table import Document, Session
from commonplace.wire.models import (
    AssertRequest,
    ExpireRequest,
    ForgetRequest,
    MergeRequest,
    Message,
    RecallRequest,
    RememberRequest,
    UpdateRequest,
    dump,
)
from commonplace.wire.validate import parse


async def remember(session: Session, arguments: Document) -> Document:
    given = {"type": "semantic", **_given(session, arguments)}
    return _answer(await (await _wire(session)).remember(parse(RememberRequest, given)))


async def recall(session: Session, arguments: Document) -> Document:
    return _answer(await (await _wire(session)).recall(parse(RecallRequest, _given(session, arguments))))


async def forget(session: Session, arguments: Document) -> Document:
    return _answer(await (await _wire(session)).forget(parse(ForgetRequest, _given(session, arguments))))


async def merge(session: Session, arguments: Document) -> Document:
    return _answer(await (await _wire(session)).merge(parse(MergeRequest, _given(session, arguments))))


async def expire(session: Session, arguments: Document) -> Document:
    return _answer(await (await _wire(session)).expire(parse(ExpireRequest, _given(session, arguments))))


async def get(session: Session, arguments: Document) -> Document:
    given = parse(GetArguments, _given(session, arguments))
    return await (await _wire(session)).get(given.agent_id, given.id, as_of=given.as_of)


async def listing(session: Session, arguments: Document) -> Document:
    given = parse(ListArguments, _given(session, arguments))
    page = await (await _wire(session)).list(
        given.agent_id, type=given.type, tag=given.tag, user_id=given.user_id,
        filter=given.filter, limit=given.limit, cursor=given.cursor, as_of=given.as_of,
    )  # fmt: skip
    return _without_nulls(page)


async def update(session: Session, arguments: Document) -> Document:
    given = _given(session, arguments)
    which = parse(HistoryArguments, {name: given[name] for name in ("agent_id", "id") if name in given})
    change = {name: value for name, value in given.items() if name != "id"}
    return await (await _wire(session)).update(which.id, parse(UpdateRequest, change))


async def history(session: Session, arguments: Document) -> Document:
    given = parse(HistoryArguments, _given(session, arguments))
    return {"versions": await (await _wire(session)).history(given.agent_id, given.id)}


async def graph_assert(session: Session, arguments: Document) -> Document:
    request = parse(AssertRequest, _given(session, arguments))
    return _without_nulls(await (await _wire(session)).graph_assert(request))


async def graph_query(session: Session, arguments: Document) -> Document:
    given = parse(GraphArguments, _given(session, arguments))
    found = await (await _wire(session)).graph_query(
        given.agent_id, given.subject, predicate=given.predicate,
        as_of=given.as_of,
    )  # fmt: skip
    return {**found, "triples": [_without_nulls(triple) for triple in found["triples"]]}


async def review_pending(session: Session, arguments: Document) -> Document:
    given = parse(ReviewArguments, _without_nulls(arguments))
    reviews = await (await session.engine()).reviews.list(session.who)
    return {"reviews": [review for review in reviews if given.agent_id in (None, review["agent_id"])]}


def _given(session: Session, arguments: Document) -> Document:
    """Models say null for what they leave out, and seldom name the agent."""
    return {"agent_id": session.agent, **_without_nulls(arguments)}


async def _wire(session: Session) -> Memorywire:
    return Memorywire(await session.engine(), session.who)


def _answer(message: Message) -> Document:
    return _without_nulls(dump(message))


def _without_nulls(document: Document) -> Document:
    return {name: value for name, value in document.items() if value is not None}
