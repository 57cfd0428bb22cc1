"""AMP's operations for one caller: documents in, documents out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from commonplace.__about__ import __version__
from commonplace.dialects.amp.records import NAME, TYPES, id_of, minted_id, to_draft, to_record
from commonplace.engine import Engine, Query, draft_document, shown_score, tagged
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import MAX_CONTENT_CHARS, Memory, Principal
from commonplace.wire.validate import check

Document = dict[str, Any]

PROTOCOL = "AMP/0.1"
SEARCH_LIMIT = 10
LIST_LIMIT = 20
MAX_TAGS = 64


class Amp:
    """Each operation takes its request, with or without `operation`, and gives its response."""

    def __init__(self, engine: Engine, who: Principal) -> None:
        self._engine = engine
        self._who = replace(who, dialect=NAME)

    async def store(self, request: Any) -> Document:
        check("amp/operations/store", request)
        record = request["record"]
        draft = to_draft(record)
        approval = draft_document(draft) if request.get("approval_required") else None
        stored = await self._engine.upsert(self._who, draft, record.get("id"), record.get("agent"), approval)
        memory, receipt = stored.receipt.memory, stored.receipt
        shown = id_of(memory) if memory else record.get("id") or minted_id(draft.kind, receipt.id)
        answer: Document = {"success": True, "id": shown, "created": stored.created}
        return answer | self._engine.pending_fields(receipt.review_id)

    async def search(self, request: Any) -> Document:
        check("amp/operations/search", request)
        agent = request.get("agent")
        agents = await self._all_agents() if agent is None else (agent,)
        query = Query(agents, request["query"], where=_where(request), include_shared=agent is not None)
        found = await self._engine.search(
            self._who, query, limit=int(request.get("limit", SEARCH_LIMIT)), at_least=request.get("min_score")
        )
        results = []
        for hit in found.hits:
            record = to_record(hit.memory)
            results.append({"id": record["id"], "score": shown_score(hit), "record": record})
        answer: Document = {"success": True, "results": results, "total": found.total}
        if found.note:
            answer["note"] = found.note
        return answer

    async def get(self, request: Any) -> Document:
        check("amp/operations/get", request)
        memory = await self._engine.find(self._who, request["id"], request.get("agent"))
        return {"success": True, "record": to_record(memory)}

    async def delete(self, request: Any) -> Document:
        check("amp/operations/delete", request)
        done = await self._engine.delete(self._who, request["id"], request.get("agent"))
        return {"success": True, "deleted": bool(done.ids), **self._engine.pending_fields(done.review_id)}

    async def list(self, request: Any) -> Document:
        check("amp/operations/list", request)
        agent = request.get("agent")
        agents = await self._all_agents() if agent is None else (agent,)
        limit, offset = int(request.get("limit", LIST_LIMIT)), int(request.get("offset", 0))
        newest_first = request.get("order", "desc") == "desc"
        page = await self._engine.page(
            self._who, agents, _where(request), limit=limit, offset=offset, newest_first=newest_first
        )
        records = [to_record(memory) for memory in page.memories]
        has_more = offset + len(records) < page.total and bool(records)
        return {"success": True, "records": records, "total": page.total, "has_more": has_more}

    async def status(self, request: Any = None) -> Document:
        check("amp/operations/status", {} if request is None else request)
        health = await self._engine.health(self._who)
        agents = await self._all_agents()
        counts = {
            f"{kind}s": await self._engine.count(self._who, agents, (Condition(("kind",), "eq", kind),))
            for kind in TYPES
        }
        total = await self._engine.count(self._who, agents)
        model = health["embedder"]
        limits = {"max_content_length": MAX_CONTENT_CHARS, "supported_types": [*TYPES]}
        return {
            "success": True,
            "healthy": health["status"] == "ok",
            "version": __version__,
            "protocol": PROTOCOL,
            "stats": {**counts, "total_records": total, "embedding_model": model},
            "capabilities": {"embedding_model": model, **limits},
        }

    async def agent_status(self, request: Any) -> Document:
        check("amp/operations/agent_status", request)
        agent = request["agent"]
        checkpoints = await self._engine.page(self._who, (agent,), (Condition(("kind",), "eq", "checkpoint"),), limit=1)
        newest = checkpoints.memories[0] if checkpoints.memories else None
        return {
            "success": True,
            "agent": agent,
            "status": agent_state(newest),
            "checkpoint_count": checkpoints.total,
            "current_task": _task(newest),
            "last_updated": newest.updated_at if newest else None,
        }

    async def _all_agents(self) -> tuple[str, ...]:
        return tuple(await self._engine.agent_names(self._who))


def _where(request: Document) -> Where:
    tags = request.get("tags", ())
    if len(tags) > MAX_TAGS:
        raise ValidationError(f"tags has {len(tags)} entries; at most {MAX_TAGS} are looked for at once", field="tags")
    where = tuple(tagged(tag) for tag in dict.fromkeys(tags))
    if "type" in request:
        where += (Condition(("kind",), "eq", request["type"]),)
    if "project" in request:
        where += (Condition(("project",), "eq", request["project"]),)
    return where


def agent_state(checkpoint: Memory | None) -> str:
    """What an agent is doing, by its newest checkpoint: blocked before in progress before idle."""
    if checkpoint is None:
        return "idle"
    state = checkpoint.metadata.get("state")
    state = state if isinstance(state, dict) else {}
    flags = state.get("flags")
    said = {re.sub("[- ]", "_", str(flag).upper()) for flag in flags} if isinstance(flags, list) else set()
    if "BLOCKED" in said or state.get("blockers"):
        return "blocked"
    # A checkpoint says what is being worked on, so without a flag that is what goes on.
    return "idle" if "IDLE" in said and "IN_PROGRESS" not in said else "in_progress"


def _task(checkpoint: Memory | None) -> str | None:
    if checkpoint is None:
        return None
    task = checkpoint.metadata.get("working_on")
    return task if isinstance(task, str) else checkpoint.title or checkpoint.content


def envelope(fault: Fault) -> Document:
    """What goes wrong, as AMP says it."""
    return {"success": False, "error": {"code": fault.code, "message": fault.message}}
