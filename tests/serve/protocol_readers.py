"""Every way to find a memory: each reader gives one memory in our words, or None."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from protocol_caller import EXTRA, FIDELITY, IN_METADATA, Caller, Document, StoredMemory, mint
from server_process import Answer

from commonplace.wire.times import iso

MANY = 100

# what a reader shows, in our words


def of_memorywire(found: Document) -> Document:
    own = ("id", "type", "content", "user_id", "confidence", "source", "expires_at", "created_at")
    metadata = found["metadata"]
    seen = {name: found[name] for name in own if name in found}
    seen |= {name: metadata[name] for name in IN_METADATA if name in metadata}
    seen["kind"] = metadata.get("kind", found["type"])
    return seen | ({"metadata": metadata[EXTRA]} if EXTRA in metadata else {})


def of_record(record: Document) -> Document:
    own = (*IN_METADATA, "content", "user_id", "confidence", "source", "expires_at", "created_at")
    seen = {name: record[name] for name in own if name in record}
    seen |= {"amp_id": record["id"], "kind": record["type"]}
    return seen | ({"metadata": record[EXTRA]} if EXTRA in record else {})


def of_entry(entry: Document) -> Document:
    seen = {"id": entry["id"], "content": entry["content"], "entry_tags": entry["tags"]}
    seen["created_at"] = ms(entry["createdAt"])
    seen |= {"expires_at": ms(entry["expiresAt"])} if "expiresAt" in entry else {}
    source = [tag.removeprefix("source:") for tag in entry["tags"] if tag.startswith("source:")]
    return seen | ({"source": source[0]} if source else {})


def of_drawer(drawer: Document) -> Document:
    seen = {"id": drawer.get("drawer_id", drawer.get("id")), "content": drawer["content"], "tags": drawer["tags"]}
    seen |= {"created_at": ms(drawer["created_at"])} if "created_at" in drawer else {}
    return seen | {"worth": drawer["importance"]}


def of_result(result: Document) -> Document:
    made = result["attestation"]
    claim, salience = made["claim"], made["salience"]
    seen = {
        "id": result["memory_id"], "content": claim["content"], "claim": claim["type"],
        "confidence": salience["confidence"], "supersedes": salience["supersedes"], "attested_at": made["created_at"],
    }  # fmt: skip
    if until := salience["expected_decay"]["until"]:
        seen["expires_at"] = ms(until)
    if claim.get("context"):
        seen["title"] = claim["context"]
    said = made["provenance"]["source"]
    source = claim["references"][-1] if claim["references"] else said if said != "direct-experience" else None
    return seen | ({"attested_source": source} if source else {})


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


# readers: each finds one memory, or None


def _one(found: Any, kept: StoredMemory, shape: Callable[[Document], Document]) -> Document | None:
    """That memory among others; found by its id, so that a copy under another id is not taken for it."""
    for each in found or ():
        seen = shape(each)
        if seen.get("id", seen.get("amp_id")) in (kept.id, kept.said.get("amp_id", "")):
            return seen
    return None


def _only(answer: Answer, name: str | None, shape: Callable[[Document], Document]) -> Document | None:
    return shape(answer.json[name] if name else answer.json) if answer.status == 200 else None


def _recalling(at: Caller, kept: StoredMemory) -> Document:
    return {"agent_id": at.agent, "query": kept.content, "k": MANY, "min_score": 0}


def recalled(at: Caller, kept: StoredMemory) -> Document | None:
    answer = at.call("POST", "/v0/recall", _recalling(at, kept))
    return _one(answer.json.get("results"), kept, of_memorywire)


def recalled_rpc(at: Caller, kept: StoredMemory) -> Document | None:
    return _one((at.rpc("recall", _recalling(at, kept)) or {}).get("results"), kept, of_memorywire)


def got(at: Caller, kept: StoredMemory) -> Document | None:
    return _only(at.call("GET", f"/v0/memories/{kept.id}?agent_id={at.agent}"), None, of_memorywire)


def listed(at: Caller, kept: StoredMemory) -> Document | None:
    answer = at.call("GET", f"/v0/memories?agent_id={at.agent}&limit={MANY}")
    return _one(answer.json.get("memories"), kept, of_memorywire)


def mcp_recall(at: Caller, kept: StoredMemory, path: str = "/mcp/full") -> Document | None:
    return _one((at.tool(path, "recall", _recalling(at, kept)) or {}).get("results"), kept, of_memorywire)


def mcp_get(at: Caller, kept: StoredMemory, path: str = "/mcp/full") -> Document | None:
    found = at.tool(path, "get", {"agent_id": at.agent, "id": kept.id})
    return None if found is None else of_memorywire(found)


def mcp_list(at: Caller, kept: StoredMemory) -> Document | None:
    found = at.tool("/mcp/full", "list", {"agent_id": at.agent, "limit": MANY})
    return _one((found or {}).get("memories"), kept, of_memorywire)


def _resource(at: Caller, uri: str) -> Any:
    result = at.mcp("/mcp", "resources/read", uri=uri).get("result")
    return None if result is None else json.loads(result["contents"][0]["text"])


def resource(at: Caller, kept: StoredMemory) -> Document | None:
    found = _resource(at, f"memory://{at.agent}/{kept.id}")
    return None if found is None else of_memorywire(found)


def resource_recall(at: Caller, kept: StoredMemory) -> Document | None:
    found = _resource(at, f"memory://{at.agent}/recall?{urlencode({'q': kept.content, 'k': MANY})}")
    return _one((found or {}).get("results"), kept, of_memorywire)


def _amp_search(at: Caller, kept: StoredMemory) -> Document:
    return {"query": kept.content, "agent": at.agent, "limit": MANY}


def amp_search(at: Caller, kept: StoredMemory) -> Document | None:
    found = at.call("POST", "/amp/search", _amp_search(at, kept)).json.get("results")
    return _one([hit["record"] for hit in found or ()], kept, of_record)


def amp_search_all(at: Caller, kept: StoredMemory) -> Document | None:
    """Of every agent one may read."""
    found = at.call("POST", "/amp/search", {"query": kept.content, "limit": MANY, "min_score": 0}).json["results"]
    return _one([hit["record"] for hit in found], kept, of_record)


def amp_get(at: Caller, kept: StoredMemory) -> Document | None:
    id = kept.said.get("amp_id", kept.id)
    return _only(at.call("GET", f"/amp/records/{quote(id, safe='')}"), "record", of_record)


def amp_get_uuid(at: Caller, kept: StoredMemory) -> Document | None:
    return _only(at.call("GET", f"/amp/records/{kept.id}?agent={at.agent}"), "record", of_record)


def amp_list(at: Caller, kept: StoredMemory) -> Document | None:
    answer = at.call("GET", f"/amp/records?agent={at.agent}&limit={MANY}")
    return _one(answer.json.get("records"), kept, of_record)


def amp_tool_search(at: Caller, kept: StoredMemory, path: str = "/mcp/amp") -> Document | None:
    found = (at.tool(path, "amp_search", _amp_search(at, kept)) or {}).get("results")
    return _one([hit["record"] for hit in found or ()], kept, of_record)


def openwop_list(at: Caller, kept: StoredMemory, **asked: Any) -> Document | None:
    answer = at.call("GET", f"/openwop/memory?{urlencode({'memoryRef': at.agent, **asked})}")
    return _one(answer.json.get("entries"), kept, of_entry)


def openwop_get(at: Caller, kept: StoredMemory) -> Document | None:
    return _only(at.call("GET", f"/openwop/memory/{kept.id}?memoryRef={at.agent}"), "entry", of_entry)


def openwop_relevant(at: Caller, kept: StoredMemory) -> Document | None:
    return openwop_list(at, kept, rank="relevance", query=kept.content)


def trusty_recall(
    at: Caller, kept: StoredMemory, path: str = "/mcp/trusty", tool: str = "memory_recall"
) -> Document | None:
    found = at.tool(path, tool, {"palace": at.agent, "query": kept.content, "top_k": MANY})
    return _one((found or {}).get("results"), kept, of_drawer)


def trusty_list(at: Caller, kept: StoredMemory, path: str = "/mcp/trusty") -> Document | None:
    found = at.tool(path, "memory_list", {"palace": at.agent, "limit": MANY})
    return _one((found or {}).get("drawers"), kept, of_drawer)


def companion_recall(at: Caller, kept: StoredMemory) -> Document | None:
    asked = urlencode({"q": kept.content, "top_k": MANY})
    answer = at.call("GET", f"/api/v1/palaces/{at.agent}/recall?{asked}", server=at.companion)
    return _one([hit["drawer"] for hit in answer.json] if answer.status == 200 else (), kept, of_drawer)


def companion_list(at: Caller, kept: StoredMemory) -> Document | None:
    answer = at.call("GET", f"/api/v1/palaces/{at.agent}/drawers?limit={MANY}", server=at.companion)
    return _one(answer.json if answer.status == 200 else (), kept, of_drawer)


def asked(at: Caller, kept: StoredMemory, agent: str | None = None, **query: Any) -> Document | None:
    """MRP: of one agent unless told otherwise."""
    body = {
        "type": "memory_request", "version": "0.1", "header": {"request_id": mint(), "timestamp": iso(at.now())},
        "requester": {"agent_id": "Babel"}, "query": query or {"natural": kept.content},
        "response_preferences": {"max_results": MANY},
    }  # fmt: skip
    name = at.agent if agent is None else agent
    answer = at.call("POST", f"/mrp/request?agent={name}" if name else "/mrp/request", body)
    return _one(answer.json.get("results"), kept, of_result)


def asked_everyone(at: Caller, kept: StoredMemory) -> Document | None:
    return asked(at, kept, agent="")


def asked_keywords(at: Caller, kept: StoredMemory) -> Document | None:
    return asked(at, kept, structured={"keywords": ["ferry", "unheard-of"]})


#: name → (protocol, reader, fields of the protocol that this reader leaves out)
READERS: dict[str, tuple[str, Callable[[Caller, StoredMemory], Document | None], tuple[str, ...]]] = {
    "memorywire recall": ("memorywire", recalled, ()),
    "memorywire JSON-RPC recall": ("memorywire", recalled_rpc, ()),
    "memorywire get": ("memorywire", got, ()),
    "memorywire list": ("memorywire", listed, ()),
    "MCP recall": ("memorywire", mcp_recall, ()),
    "MCP get": ("memorywire", mcp_get, ()),
    "MCP list": ("memorywire", mcp_list, ()),
    "MCP resource": ("memorywire", resource, ()),
    "MCP recall as a resource": ("memorywire", resource_recall, ()),
    "MCP recall on stdio": ("memorywire", lambda at, kept: mcp_recall(at, kept, "stdio"), ()),
    "MCP get on stdio": ("memorywire", lambda at, kept: mcp_get(at, kept, "stdio"), ()),
    "AMP search": ("AMP", amp_search, ()),
    "AMP search of all agents": ("AMP", amp_search_all, ()),
    "AMP get": ("AMP", amp_get, ()),
    "AMP get by our id": ("AMP", amp_get_uuid, ()),
    "AMP list": ("AMP", amp_list, ()),
    "AMP search tool": ("AMP", amp_tool_search, ()),
    "AMP search tool on stdio": ("AMP", lambda at, kept: amp_tool_search(at, kept, "stdio"), ()),
    "OpenWOP list": ("OpenWOP", openwop_list, ()),
    "OpenWOP get": ("OpenWOP", openwop_get, ()),
    "OpenWOP list by relevance": ("OpenWOP", openwop_relevant, ()),
    "trusty recall": ("trusty-memory", trusty_recall, ("created_at",)),
    "trusty deep recall": (
        "trusty-memory", lambda at, kept: trusty_recall(at, kept, tool="memory_recall_deep"), ("created_at",)
    ),
    "trusty list": ("trusty-memory", trusty_list, ()),
    "trusty recall on stdio": ("trusty-memory", lambda at, kept: trusty_recall(at, kept, "stdio"), ("created_at",)),
    "trusty list on stdio": ("trusty-memory", lambda at, kept: trusty_list(at, kept, "stdio"), ()),
    "trusty companion recall": ("trusty-memory", companion_recall, ()),
    "trusty companion list": ("trusty-memory", companion_list, ()),
    "MRP request": ("MRP", asked, ()),
    "MRP request to the whole server": ("MRP", asked_everyone, ()),
    "MRP request by keywords": ("MRP", asked_keywords, ()),
}  # fmt: skip
#: Those that find an archived memory, too: they look up or list, and do not recall.
SHOW_ARCHIVED = frozenset({
    "memorywire get", "memorywire list", "MCP get", "MCP list", "MCP resource", "MCP get on stdio", "AMP get",
    "AMP get by our id", "AMP list", "trusty list", "trusty list on stdio", "trusty companion list",
})  # fmt: skip
#: How a field is called in what a protocol's readers give, where that is not its own name.
_CALLED = {
    ("AMP", "id"): "amp_id", ("AMP", "type"): "kind", ("OpenWOP", "tags"): "entry_tags", ("MRP", "kind"): "claim",
    ("MRP", "type"): "claim", ("MRP", "created_at"): "attested_at", ("MRP", "source"): "attested_source",
    ("trusty-memory", "importance"): "worth",
}  # fmt: skip
#: What is shown of a field that nobody wrote.
_UNSAID: Document = {"confidence": 1.0, "supersedes": [], "tags": [], "entry_tags": []}


def amiss(reader: str, kept: StoredMemory, seen: Document) -> list[str]:
    """What a reader shows otherwise than it was said, and what it should show and does not."""
    protocol, _, without = READERS[reader]
    said = {**kept.said, "id": kept.id}
    wrong = [f"{name}: {value!r} is not {said.get(name)!r}" for name, value in seen.items()
             if name != "worth" and value != said.get(name, _UNSAID.get(name))]  # fmt: skip
    base = said.get("importance", 0.5)
    # Recalls raise it, age lowers it; nothing here is old.
    if "worth" in seen and not base - 0.001 <= seen["worth"] <= min(base + 0.3, 1) + 0.001:
        wrong.append(f"importance: {seen['worth']} does not come of {base}")
    for name, cell in FIDELITY[protocol].items():
        called = _CALLED.get((protocol, name), name)
        if cell.shown and name in said and name not in without and called not in seen:
            wrong.append(f"{name} is not shown")
    return wrong
