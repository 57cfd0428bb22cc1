"""OpenWOP's requests for one caller: documents in, documents out."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex
from typing import Any

from commonplace.config import RedactionConfig
from commonplace.dialects.openwop.adapter import LONG_TERM, ScopedEntries, backends
from commonplace.dialects.openwop.entries import MAX_ENTRY_BYTES
from commonplace.engine import Engine, check_secrets
from commonplace.wire.errors import Fault, NotFound, ValidationError
from commonplace.wire.record import Principal, Role
from commonplace.wire.validate import check

Document = dict[str, Any]
_OPTIONS = ("limit", "tag", "tokenBudget", "rank", "query")


class OpenWop:
    def __init__(self, engine: Engine, who: Principal) -> None:
        self._engine = engine
        self._who = who

    async def issue_ref(self, request: Any) -> Document:
        check("openwop/operations/ref", request)
        ref = await self._engine.refs.issue(self._who, request["agent"], request.get("namespace"))
        return {"memoryRef": ref}

    async def start_run(self, request: Any) -> Document:
        if isinstance(request, dict) and "secrets" in request:
            check_secrets(request["secrets"])  # first, because a schema's refusal would show the value
        check("openwop/operations/run", request)
        ref = request.get("memoryRef")
        scope = None if ref is None else await self._engine.refs.resolve(self._who, ref)
        run = await self._engine.runs.start(self._who, ref=ref, scope=scope, secrets=request.get("secrets"))
        return {"runId": run.id, "snapshot": f"snap_{token_hex(12)}"}

    async def end_run(self, run_id: str) -> Document:
        await self._engine.runs.end(self._who, run_id)
        return {"runId": run_id, "ended": True}

    async def list(self, request: Any) -> Document:
        check("openwop/operations/list", request)
        entries, ref = await self._entries(request)
        options = {name: request[name] for name in _OPTIONS if name in request}
        return {"memoryRef": ref, "entries": await entries.list(options)}

    async def get(self, request: Any) -> Document:
        check("openwop/operations/get", request)
        entries, ref = await self._entries(request)
        entry = await entries.get(request["id"])
        if entry is None:
            raise NotFound(f"no entry {request['id']:.80} in this memory")
        return {"memoryRef": ref, "entry": entry}

    async def put(self, request: Any) -> Document:
        entry = request.get("entry") if isinstance(request, dict) else None
        if isinstance(entry, dict) and "id" in entry:
            raise ValidationError("entry.id is given by the host; leave it out", field="entry.id")
        check("openwop/operations/put", request)
        entries, ref = await self._entries(request, "writer")
        return {"memoryRef": ref, "entry": await entries.put(request["entry"]), **self._pending(entries)}

    async def delete(self, request: Any) -> Document:
        check("openwop/operations/delete", request)
        entries, ref = await self._entries(request, "writer")
        removed = await entries.delete(request["id"])
        return {"memoryRef": ref, "memoryId": request["id"], "removed": removed, **self._pending(entries)}

    def _pending(self, entries: ScopedEntries) -> Document:
        """That what was asked for last waits for a person, and where they decide."""
        if entries.review_id is None:
            return {}
        url = self._engine.approval_url(entries.review_id)
        return {"pendingApproval": True} | ({"approvalUrl": url} if url else {})

    async def _entries(self, request: Document, role: Role = "reader") -> tuple[ScopedEntries, str]:
        """What is meant, by the run and the handle that are named. Here, unlike within a run, a memory that is not the
        caller's is refused."""
        run = await self._engine.runs.use(self._who, request["runId"]) if "runId" in request else None
        ref = request.get("memoryRef") or (run.ref if run else None)
        if ref is None:
            raise ValidationError("memoryRef is required, unless the run was started with one", field="memoryRef")
        scope = await self._engine.refs.resolve(self._who, ref, role)
        backend = str(request.get("backend", LONG_TERM[0]))
        return ScopedEntries(self._engine, self._who, scope, run, backend), ref


def discovery_document(redaction: RedactionConfig, fixtures: Sequence[str] = ()) -> Document:
    """What `/.well-known/openwop` says."""
    said: Document = {
        "agents": {"supported": True, "memoryBackends": backends(redaction)},
        "memory": {
            "supported": True,
            "maxEntrySizeBytes": MAX_ENTRY_BYTES,
            "ttlSupported": True,
            "injectionBudget": {"supported": True, "tokenCounter": "chars"},  # of which a token is four
        },
    }
    return {**said, "capabilities": said, **({"fixtures": list(fixtures)} if fixtures else {})}


def envelope(fault: Fault) -> Document:
    """What goes wrong, as OpenWOP says it: flat."""
    details = {"details": fault.details} if fault.details else {}
    return {"error": fault.code, "message": fault.message, **details}
