"""trusty-memory over HTTP: the routes of its companion server."""

from __future__ import annotations

from typing import Any

from commonplace.dialects.trusty import drawers
from commonplace.dialects.trusty.operations import LIST_LIMIT, TOP_K, Trusty
from commonplace.dialects.trusty.published import VERSION
from commonplace.engine import Palace
from commonplace.serve.errors import STATUS
from commonplace.serve.events import Events
from commonplace.serve.routes import Call, Protocol, Reply, Route
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.plain import MAX_INTEGER
from commonplace.wire.record import LOCAL_TENANT, Principal
from commonplace.wire.validate import check

TAG = "trusty-memory"
_API = "/api/v1"
_PALACE = f"{_API}/palaces/{{id}}"
_WHOLE = {"type": "integer", "minimum": 0, "maximum": MAX_INTEGER}
_SUBJECT = {"type": "string", "minLength": 1, "required": True, "description": "What is asked about."}


class NothingToRun(Fault):
    """A background task of trusty-memory that has no counterpart here."""

    code = "not_implemented"


def error_reply(fault: Fault) -> Reply:
    return Reply({"error": fault.message}, STATUS[fault.code])


class Routes:
    """Every handler of the companion server; `palace` is the one that need not be there before it is written to."""

    def __init__(self, palace: str | None, events: Events) -> None:
        self._palace = palace
        self._events = events

    def _trusty(self, call: Call) -> Trusty:
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
        told = [await self._info(call, palace) for palace in await trusty.every_palace()]
        totals = {f"total_{name}s": sum(each[f"{name}_count"] for each in told) for name in
                  ("drawer", "vector", "kg_triple")}  # fmt: skip
        return Reply({
            "version": VERSION, "palace_count": len(told), "default_palace": self._default(call.who),
            "data_root": trusty.data_dir, **totals,
        })  # fmt: skip

    async def config(self, call: Call) -> Reply:
        """No model writes or answers here, so none is configured."""
        return Reply({"openrouter_configured": False, "model": "", "data_root": self._trusty(call).data_dir})

    async def dream_status(self, call: Call) -> Reply:
        if "id" in call.path:
            await self._trusty(call).open(call.path["id"])
        idle = dict.fromkeys(("merged", "pruned", "compacted", "closets_updated", "duration_ms"), 0)
        return Reply({"last_run_at": None, **idle})

    async def dream_run(self, call: Call) -> Reply:
        raise NothingToRun(
            "there is no background consolidation to run: importance fades by itself, and duplicates are merged with "
            "`commonplace merge`; nothing was changed"
        )

    # palaces

    async def palaces(self, call: Call) -> Reply:
        return Reply([await self._info(call, palace) for palace in await self._trusty(call).every_palace()])

    async def create_palace(self, call: Call) -> Reply:
        body = _body(call, "palace")
        name = body["name"].strip()
        if not name:
            raise ValidationError("name is required", field="name")
        await call.engine.palaces.create(call.who, name, body.get("description"))
        self._events.tell(call.who, name, {"type": "palace_created", "id": name, "name": name})
        return Reply({"id": name})

    async def palace(self, call: Call) -> Reply:
        return Reply(await self._info(call, await self._trusty(call).open(call.path["id"])))

    async def _info(self, call: Call, palace: Palace) -> dict[str, Any]:
        name = palace.name
        count = await call.engine.count(call.who, (name,))
        vectors = count if call.engine.embedder is not None else 0
        facts = (await call.engine.graph.counts(call.who, name))["active"]
        return {
            "id": name, "name": name, "description": palace.description, "drawer_count": count,
            "vector_count": vectors, "kg_triple_count": facts, "wing_count": 0,
            "created_at": drawers.moment(palace.created_at),
        }  # fmt: skip

    # drawers

    async def listing(self, call: Call) -> Reply:
        trusty, asked = self._trusty(call), call.query
        limit = int(asked.get("limit", LIST_LIMIT))
        found = await trusty.listing(call.path["id"], asked.get("room"), asked.get("tag"), limit)
        return Reply([drawers.whole(memory, trusty.now) for memory in found])

    async def create_drawer(self, call: Call) -> Reply:
        body, palace = _body(call, "drawer"), call.path["id"]
        await self._trusty(call).open_to_write(palace)
        draft = drawers.to_draft(
            palace, body["content"], body.get("room"), body.get("tags", []), body.get("importance")
        )
        receipt = await call.engine.remember(call.who, draft)
        if receipt.review_id is not None:
            return Reply({"id": receipt.id, "status": "pending"}, 202)
        await self._told(call, palace, "drawer_added")
        return Reply({"id": receipt.id})

    async def delete_drawer(self, call: Call) -> Reply:
        await self._trusty(call).forget(call.path["id"], call.path["drawer_id"])
        await self._told(call, call.path["id"], "drawer_deleted")
        return Reply(None, 204)

    async def _told(self, call: Call, palace: str, what: str) -> None:
        if self._events.heard:
            count = await call.engine.count(call.who, (palace,))
            self._events.tell(call.who, palace, {"type": what, "palace_id": palace, "drawer_count": count})

    async def recall(self, call: Call) -> Reply:
        trusty, asked = self._trusty(call), call.query
        deep = asked.get("deep", "false") == "true"
        found = await trusty.recall(call.path["id"], asked["q"], int(asked.get("top_k", TOP_K)), deep=deep)
        now = trusty.now
        first = [{"drawer": drawers.identity(found.identity, now), "score": 1.0, "layer": 0}] if found.identity else []
        rest = [{"drawer": drawers.whole(place.memory, now), "score": round(place.score, 4), "layer": place.layer}
                for place in found.hits]  # fmt: skip
        return Reply(first + rest)

    # the graph

    async def facts(self, call: Call) -> Reply:
        return Reply(await self._trusty(call).facts(call.path["id"], call.query["subject"]))

    async def assert_fact(self, call: Call) -> Reply:
        body = _body(call, "triple")
        confidence = body.get("confidence")
        await self._trusty(call).assert_fact(
            call.path["id"], body["subject"], body["predicate"], body["object"],
            1.0 if confidence is None else confidence, body.get("provenance"),
        )  # fmt: skip
        return Reply(None, 204)


def protocol(palace: str | None, events: Events) -> Protocol:
    routes = Routes(palace, events)
    text = {"type": "string"}

    def route(method: str, path: str, handler: Any, summary: str, **more: Any) -> Route:
        return Route(method, path, handler, f"trusty_{handler.__name__}", summary, TAG, **more)

    return Protocol(
        "",
        (
            route("GET", "/health", routes.health, "Whether it is alive.", role=None),
            route("GET", f"{_API}/status", routes.status, "What there is in all."),
            route("GET", f"{_API}/config", routes.config, "How it is configured."),
            route("GET", f"{_API}/dream/status", routes.dream_status, "When memories were last consolidated."),
            route("POST", f"{_API}/dream/run", routes.dream_run, "Consolidate memories now.", role="writer"),
            route("GET", f"{_API}/palaces", routes.palaces, "Every palace."),
            route("POST", f"{_API}/palaces", routes.create_palace, "Make a palace.", role="writer",
                    request="trusty/http/palace"),
            route("GET", _PALACE, routes.palace, "One palace."),
            route("GET", f"{_PALACE}/dream/status", routes.dream_status, "When it was last consolidated."),
            route("GET", f"{_PALACE}/drawers", routes.listing, "Its drawers, the most important first.",
                    query={"room": text, "tag": text, "limit": _WHOLE}),
            route("POST", f"{_PALACE}/drawers", routes.create_drawer, "Store a memory.", role="writer",
                    request="trusty/http/drawer"),
            route("DELETE", f"{_PALACE}/drawers/{{drawer_id}}", routes.delete_drawer, "Delete one.", role="writer",
                    status=204),
            route("GET", f"{_PALACE}/recall", routes.recall, "Find memories.",
                    query={"q": {**text, "required": True}, "top_k": _WHOLE,
                           "deep": {"enum": ["true", "false"]}}),
            route("GET", f"{_PALACE}/kg", routes.facts, "What holds of a subject.", query={"subject": _SUBJECT}),
            route("POST", f"{_PALACE}/kg", routes.assert_fact, "State a fact.", role="writer", status=204,
                    request="trusty/http/triple"),
        ),
        error_reply,
    )  # fmt: skip


def _body(call: Call, what: str) -> dict[str, Any]:
    if call.body is None:
        raise ValidationError("a JSON object is needed as the body")
    check(f"trusty/http/{what}", call.body)
    body: dict[str, Any] = call.body
    return body
