"""The knowledge graph as memorywire shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from commonplace.engine import Engine
from commonplace.engine.graph.statements import Triple
from commonplace.wire.knowledge import AssertRequest, EraseRequest, RetractRequest
from commonplace.wire.record import Principal


async def state(engine: Engine, who: Principal, request: AssertRequest) -> dict[str, Any]:
    stated = await engine.graph_state(
        who, request.agent_id, subject=request.subject, predicate=request.predicate, object=request.object,
        confidence=request.confidence, provenance=request.provenance, valid_from=request.valid_from,
    )  # fmt: skip
    replaced = {} if stated.replaced is None else {"replaced": to_wire(stated.replaced)}
    return {**to_wire(stated.triple), **replaced}


async def query(
    engine: Engine, who: Principal, agent_id: str, subject: str, *, predicate: str | None = None,
    as_of: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    found = await engine.graph_query(who, agent_id, subject, predicate=predicate, as_of=as_of)
    return _about(subject, found)


async def history(
    engine: Engine, who: Principal, agent_id: str, subject: str, *, predicate: str | None = None
) -> dict[str, Any]:
    return _about(subject, await engine.graph_history(who, agent_id, subject, predicate))


async def path(
    engine: Engine, who: Principal, agent_id: str, start: str, end: str, *, max_hops: int = 3, as_of: int | None = None
) -> dict[str, Any]:
    found = await engine.graph_path(who, agent_id, start, end, max_hops=max_hops, as_of=as_of)
    return {"start": start, "end": end, "triples": [to_wire(t) for t in found]}


async def retract(engine: Engine, who: Principal, request: RetractRequest) -> dict[str, Any]:
    return to_wire(await engine.graph_retract(who, request.agent_id, (request.subject, request.predicate)))


async def erase(engine: Engine, who: Principal, request: EraseRequest) -> dict[str, Any]:
    gone = await engine.graph_erase(who, request.agent_id, request.subject, mentions=request.mentions)
    answer: dict[str, Any] = {"subject": request.subject, "erased": gone.ids}
    if gone.backup_count:
        answer |= {"backups": gone.backups, "backup_count": gone.backup_count}
    return answer


async def preview_erase(engine: Engine, who: Principal, request: EraseRequest) -> dict[str, Any]:
    found = await engine.preview_graph_erase(who, request.agent_id, request.subject, mentions=request.mentions)
    return _about(request.subject, found)


async def neighbors(engine: Engine, who: Principal, agent_id: str, id: str, *, hops: int = 1) -> dict[str, Any]:
    found = await engine.neighbors(who, agent_id, id, hops)
    return {"id": id, "neighbors": [{"id": other, "distance": distance} for other, distance in found.items()]}


def _about(subject: str, triples: Iterable[Triple]) -> dict[str, Any]:
    return {"subject": subject, "triples": [to_wire(t) for t in triples]}


def to_wire(triple: Triple) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": triple.id, "agent_id": triple.agent_id, "subject": triple.subject, "predicate": triple.predicate,
        "object": triple.object, "valid_from": triple.valid_from, "valid_to": triple.valid_to,
        "confidence": triple.confidence, "asserted_by": triple.asserted_by,
    }  # fmt: skip
    if triple.provenance is not None:
        document["provenance"] = triple.provenance
    return document
