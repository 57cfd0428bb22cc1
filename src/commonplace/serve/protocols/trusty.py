"""trusty-memory: its ten tools, listed as trusty-memory lists them, and the HTTP routes of its companion server.

The routes are not served by `commonplace serve`: `serve.companion` runs them beside an MCP process on stdio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.dialects.trusty.tools import NAME, TOOLS as PUBLISHED, VERSION, input_schema
from commonplace.serve.json_rpc import INTERNAL_ERROR
from commonplace.serve.mcp import tools as mcp
from commonplace.serve.mcp.tools import ADDS, CHANGES, ENSURES, READS, Document, McpSession
from commonplace.serve.mcp.versions import HANDSHAKE_VERSIONS
from commonplace.serve.query import Parameter
from commonplace.serve.routes import Call, Handler, ProtocolRoutes, Reply, Route
from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.plain import MAX_INTEGER
from commonplace.wire.record import LOCAL_TENANT, Principal
from commonplace.wire.validate import check

if TYPE_CHECKING:
    from commonplace.dialects.trusty.operations import Trusty
    from commonplace.engine import Palace
    from commonplace.serve.companion import Events

POSITION = 6


# tools

#: Clients of the first version are shown no hints: trusty-memory gives them none.
_READING = ("memory_recall", "memory_recall_deep", "palace_list", "kg_query", "memory_list", "palace_info")
_HINTS = {"memory_remember": ADDS, "palace_create": ENSURES, "kg_assert": CHANGES, "memory_forget": CHANGES}
_HINTS |= dict.fromkeys(_READING, READS)


def _tool(name: str, description: str) -> mcp.Tool:
    def arguments(session: McpSession) -> Document:
        return input_schema(name, palace=session.palace is None)

    async def call(session: McpSession, arguments: Document) -> Document:
        from commonplace.dialects.trusty.operations import Trusty  # which loads the engine: not before the first call

        return await Trusty(await session.engine(), session.who, session.palace).call(name, arguments)

    response = mcp.result_schema(f"trusty/tools/{name}.response")
    return mcp.Tool(name, description, arguments, _HINTS[name], call, response, faults="error")


def _server_info(session: McpSession) -> Document:
    """Name and version are trusty-memory's own, because its clients may look at them."""
    info: Document = {"name": NAME, "version": VERSION}
    return info if session.palace is None else info | {"default_palace": session.palace}


TOOLS = mcp.ToolSet(
    "trusty",
    tuple(_tool(name, description) for name, (description, _, _) in PUBLISHED.items()),
    _server_info,
    versions=HANDSHAKE_VERSIONS,  # its methods are a closed list, without the stateless versions' `server/discover`
    fallback=HANDSHAKE_VERSIONS[0],
    unknown_tool=lambda name: (INTERNAL_ERROR, f"unknown tool: {name}"),
    invalid_params=INTERNAL_ERROR,
    in_order=True,
    finish_seconds=None,  # its guide has the process gone within two seconds, also at the end of stdin
)


# the companion server


class _Handlers:
    """Every handler of the companion server; `palace` is the one that need not be there before it is written to."""

    def __init__(self, palace: str | None, events: Events) -> None:
        self._palace = palace
        self._events = events

    def _trusty(self, call: Call) -> Trusty:
        from commonplace.dialects.trusty.operations import Trusty

        return Trusty(call.engine, call.who, self._default(call.who))

    def _default(self, who: Principal) -> str | None:
        """The operator's own default palace is nothing that another tenant, or a token not for it, learns of."""
        known = self._palace is not None and who.tenant == LOCAL_TENANT and who.may_use(self._palace)
        return self._palace if known else None

    # the server

    async def health(self, call: Call) -> Reply:
        return Reply(b"ok", headers={"Content-Type": "text/plain; charset=utf-8"})

    async def status(self, call: Call) -> Reply:
        trusty = self._trusty(call)
        palaces = [await _palace_document(call, palace) for palace in await trusty.every_palace()]
        answer = {"version": VERSION, "palace_count": len(palaces), "default_palace": self._default(call.who)}
        answer["data_root"] = trusty.data_dir
        for name in ("drawer", "vector", "kg_triple"):
            answer[f"total_{name}s"] = sum(palace[f"{name}_count"] for palace in palaces)
        return Reply(answer)

    async def config(self, call: Call) -> Reply:
        """No model writes or answers here, so none is configured."""
        return Reply({"openrouter_configured": False, "model": "", "data_root": self._trusty(call).data_dir})

    async def dream_status(self, call: Call) -> Reply:
        from commonplace.dialects.trusty.records import timestamp

        if "id" in call.path:
            await self._trusty(call).open(call.path["id"])
        (dream,) = [job for job in await call.engine.lifecycle.status(call.who) if job["job"] == "dream"]
        last = dream["last_run"] or {"at": None, "counts": {}, "duration_ms": 0}
        answer = {"running": dream["running"], "last_run_at": None if last["at"] is None else timestamp(last["at"])}
        done = {name: last["counts"].get(name, 0) for name in ("merged", "decayed", "pruned")}
        # There is no closet, nor anything to compact: what is derived from drawers is made when it is read.
        return Reply({**answer, **done, "compacted": 0, "closets_updated": 0, "duration_ms": last["duration_ms"]})

    async def dream_run(self, call: Call) -> Reply:
        report = await call.engine.lifecycle.run(call.who, "dream")
        if report.error is not None:
            raise Unavailable(report.error)
        return Reply({**report.counts, "duration_ms": report.duration_ms})

    # palaces

    async def palaces(self, call: Call) -> Reply:
        return Reply([await _palace_document(call, palace) for palace in await self._trusty(call).every_palace()])

    async def create_palace(self, call: Call) -> Reply:
        body = _body(call, "palace")
        name = body["name"].strip()
        if not name:
            raise ValidationError("name is required", field="name")
        await call.engine.palaces.create(call.who, name, body.get("description"))
        self._events.publish(call.who, name, {"type": "palace_created", "id": name, "name": name})
        return Reply({"id": name})

    async def palace(self, call: Call) -> Reply:
        return Reply(await _palace_document(call, await self._trusty(call).open(call.path["id"])))

    # drawers

    async def listing(self, call: Call) -> Reply:
        from commonplace.dialects.trusty import records
        from commonplace.dialects.trusty.operations import LIST_LIMIT

        trusty, given = self._trusty(call), call.query
        limit = given.get("limit", LIST_LIMIT)
        found = await trusty.listing(call.path["id"], given.get("room"), given.get("tag"), limit)
        return Reply([records.drawer(memory, trusty.now) for memory in found])

    async def create_drawer(self, call: Call) -> Reply:
        from commonplace.dialects.trusty import records

        body, palace = _body(call, "drawer"), call.path["id"]
        await self._trusty(call).open_to_write(palace)
        importance = body.get("importance")
        draft = records.to_draft(palace, body["content"], body.get("room"), body.get("tags", []), importance)
        receipt = await call.engine.remember(call.who, draft)
        if receipt.review_id is not None:
            waiting = self._trusty(call).approval(receipt.review_id)
            return Reply({"id": receipt.id, "status": "pending", **waiting}, 202)
        await self._publish(call, palace, "drawer_added")
        return Reply({"id": receipt.id})

    async def delete_drawer(self, call: Call) -> Reply:
        done = await self._trusty(call).memory_forget(call.path["id"], call.path["drawer_id"])
        if done["status"] == "pending":
            return Reply(_waiting(done), 202)
        await self._publish(call, call.path["id"], "drawer_deleted")
        return Reply(None, 204)

    async def _publish(self, call: Call, palace: str, what: str) -> None:
        if self._events.has_listeners:
            count = await call.engine.count(call.who, (palace,))
            self._events.publish(call.who, palace, {"type": what, "palace_id": palace, "drawer_count": count})

    async def recall(self, call: Call) -> Reply:
        from commonplace.dialects.trusty import records
        from commonplace.dialects.trusty.operations import TOP_K

        trusty, given = self._trusty(call), call.query
        deep = given.get("deep") == "true"
        found = await trusty.recall(call.path["id"], given["q"], given.get("top_k", TOP_K), deep=deep)
        results = []
        if found.identity:
            results.append({"drawer": records.identity_drawer(found.identity, trusty.now), "score": 1.0, "layer": 0})
        for hit in found.hits:
            drawer = records.drawer(hit.memory, trusty.now)
            results.append({"drawer": drawer, "score": round(hit.score, 4), "layer": hit.layer})
        return Reply(results)

    # the graph

    async def facts(self, call: Call) -> Reply:
        found = await self._trusty(call).kg_query(call.path["id"], call.query["subject"], call.query.get("as_of"))
        return Reply(found["triples"])

    async def assert_fact(self, call: Call) -> Reply:
        body = _body(call, "triple")
        confidence = 1.0 if body.get("confidence") is None else body["confidence"]
        fact = (body["subject"], body["predicate"], body["object"])
        done = await self._trusty(call).kg_assert(call.path["id"], *fact, confidence, body.get("provenance"))
        return Reply(_waiting(done), 202) if done["status"] == "pending" else Reply(None, 204)


def _waiting(done: Document) -> Document:
    return {name: done[name] for name in ("status", "approval_url") if name in done}


async def _palace_document(call: Call, palace: Palace) -> Document:
    from commonplace.dialects.trusty import records

    name = palace.name
    count = await call.engine.count(call.who, (name,))
    facts = (await call.engine.graph.counts(call.who, name))["active"]
    vectors = count if call.engine.embedder is not None else 0
    counts = {"drawer_count": count, "vector_count": vectors, "kg_triple_count": facts, "wing_count": 0}
    document: Document = {"id": name, "name": name, "description": palace.description, **counts}
    return document | {"created_at": records.timestamp(palace.created_at)}


def _body(call: Call, schema: str) -> Document:
    check(f"trusty/http/{schema}", call.document)
    body: Document = call.document
    return body


def companion_protocol(palace: str | None, events: Events) -> ProtocolRoutes:
    handlers = _Handlers(palace, events)
    api, one = "/api/v1", "/api/v1/palaces/{id}"
    text, count = Parameter({"type": "string"}), Parameter({"type": "integer", "minimum": 0, "maximum": MAX_INTEGER})
    subject = Parameter({"type": "string", "minLength": 1, "description": "What is asked about."}, required=True)
    question = {"q": Parameter({"type": "string"}, required=True), "top_k": count}
    question["deep"] = Parameter({"enum": ["true", "false"]})

    def route(method: str, path: str, handler: Handler, summary: str, **more: Any) -> Route:
        if "request" in more:
            more["needs_body"] = "a JSON object is needed as the body"
        return Route(method, path, handler, f"trusty_{handler.__name__}", summary, "trusty-memory", **more)

    routes = (
        route("GET", "/health", handlers.health, "Whether it is alive.", role=None),
        route("GET", f"{api}/status", handlers.status, "What there is in all."),
        route("GET", f"{api}/config", handlers.config, "How it is configured."),
        route("GET", f"{api}/dream/status", handlers.dream_status, "When memories were last consolidated."),
        route("POST", f"{api}/dream/run", handlers.dream_run, "Consolidate memories now.", role="writer"),
        route("GET", f"{api}/palaces", handlers.palaces, "Every palace."),
        route("POST", f"{api}/palaces", handlers.create_palace, "Make a palace.", role="writer",
              request="trusty/http/palace"),
        route("GET", one, handlers.palace, "One palace."),
        route("GET", f"{one}/dream/status", handlers.dream_status, "When it was last consolidated."),
        route("GET", f"{one}/drawers", handlers.listing, "Its drawers, the most important first.",
              query={"room": text, "tag": text, "limit": count}),
        route("POST", f"{one}/drawers", handlers.create_drawer, "Store a memory.", role="writer",
              request="trusty/http/drawer"),
        route("DELETE", f"{one}/drawers/{{drawer_id}}", handlers.delete_drawer, "Delete one.", role="writer",
              status=204),
        route("GET", f"{one}/recall", handlers.recall, "Find memories.", query=question, embeds=True),
        route("GET", f"{one}/kg", handlers.facts, "What holds of a subject, or held.",
              query={"subject": subject, "as_of": text}),
        route("POST", f"{one}/kg", handlers.assert_fact, "State a fact.", role="writer", status=204,
              request="trusty/http/triple"),
    )  # fmt: skip
    return ProtocolRoutes("", routes, lambda fault: {"error": fault.message})
