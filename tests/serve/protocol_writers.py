"""Every way into the memory, and every way to take something out of it again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from protocol_caller import EXTRA, IN_METADATA, Caller, Document, StoredMemory, kept_of, mint

from commonplace.wire.times import iso

_CLAIMS = ("event", "fact", "observation", "insight", "relationship")
_CLAIM_OF = {"semantic": "fact", "episodic": "event", "procedural": "insight", "emotional": "observation"}

# writers: each gives the memory's id and what must be found of it


def _request(at: Caller, said: Document, **more: Any) -> Document:
    metadata = {name: said[name] for name in IN_METADATA if name in said}
    if "metadata" in said:
        metadata[EXTRA] = said["metadata"]
    own = ("type", "content", "user_id", "confidence", "source", "expires_at")
    return {"agent_id": at.agent, **{n: said[n] for n in own if n in said}, "metadata": metadata, **more}


def _memorywire(said: Document) -> Document:
    return kept_of("memorywire", said, kind=said["type"])


def memorywire(at: Caller, said: Document, **more: Any) -> StoredMemory:
    answer = at.call("POST", "/v0/remember", _request(at, said, **more))
    return StoredMemory(answer.json["id"], _memorywire(said))


def memorywire_batch(at: Caller, said: Document) -> StoredMemory:
    answer = at.call("POST", "/v0/remember/batch", {"items": [_request(at, said)]})
    return StoredMemory(answer.json["results"][0]["id"], _memorywire(said))


def memorywire_rpc(at: Caller, said: Document, **more: Any) -> StoredMemory:
    return StoredMemory(at.rpc("remember", _request(at, said, **more))["id"], _memorywire(said))


def mcp_http(at: Caller, said: Document, **more: Any) -> StoredMemory:
    return StoredMemory(at.tool("/mcp/full", "remember", _request(at, said, **more))["id"], _memorywire(said))


def mcp_stdio(at: Caller, said: Document, **more: Any) -> StoredMemory:
    return StoredMemory(at.tool("stdio", "remember", _request(at, said, **more))["id"], _memorywire(said))


def _record(at: Caller, said: Document, **more: Any) -> Document:
    fields = {name: value for name, value in said.items() if name not in ("type", "metadata")}
    extra = {EXTRA: said["metadata"]} if "metadata" in said else {}
    return {"type": "lesson", "agent": at.agent, **fields, **extra, **more}


def _amp(said: Document, kind: str, type: str) -> Document:
    return kept_of("AMP", {**said, "kind": kind}, type=type)


def _stored(at: Caller, shown: str, kept: Document) -> StoredMemory:
    """A minted id holds ours; of one that was chosen memorywire knows the memory."""
    found = re.search(r"[0-9a-f-]{36}$", shown)
    id = found[0] if found else at.call("GET", f"/v0/memories/{quote(shown)}?agent_id={at.agent}").json.get("id", "")
    return StoredMemory(id, {**kept, "amp_id": shown})


def amp_lesson(at: Caller, said: Document, **more: Any) -> StoredMemory:
    answer = at.call("POST", "/amp/store", {"record": _record(at, said), **more})
    return _stored(at, answer.json["id"], _amp(said, "lesson", "semantic"))


def amp_checkpoint(at: Caller, said: Document, **more: Any) -> StoredMemory:
    record = _record(at, said, type="checkpoint", working_on="the timetable")
    answer = at.call("POST", "/amp/store", {"record": record, **more})
    return _stored(at, answer.json["id"], _amp(said, "checkpoint", "episodic"))


def amp_named(at: Caller, said: Document, **more: Any) -> StoredMemory:
    record = _record(at, said, id=f"lesson/{mint()[:8]}")
    answer = at.call("POST", "/amp/store", {"record": record, **more})
    return _stored(at, answer.json["id"], _amp(said, "lesson", "semantic"))


def amp_mcp(at: Caller, said: Document, **more: Any) -> StoredMemory:
    answer = at.tool("/mcp/amp", "amp_store", {"record": _record(at, said), **more})
    return _stored(at, answer["id"], _amp(said, "lesson", "semantic"))


def amp_stdio(at: Caller, said: Document, **more: Any) -> StoredMemory:
    answer = at.tool("stdio", "amp_store", {"record": _record(at, said), **more})
    return _stored(at, answer["id"], _amp(said, "lesson", "semantic"))


def openwop(at: Caller, said: Document) -> StoredMemory:
    ref = at.call("POST", "/openwop/refs", {"agent": at.agent, "namespace": said["project"]}).json["memoryRef"]
    tags = [*said["tags"], f"source:{said['source']}"]
    entry = {"content": said["content"], "tags": tags, "expiresAt": iso(said["expires_at"])}
    answer = at.call("POST", "/openwop/memory", {"memoryRef": ref, "entry": entry})
    return StoredMemory(answer.json["entry"]["id"], kept_of("OpenWOP", said, tags=tags, type="semantic", kind="entry"))


def _drawer(said: Document) -> Document:
    return kept_of("trusty-memory", said, type="semantic", kind="drawer")


def trusty_http(at: Caller, said: Document) -> StoredMemory:
    arguments = {"palace": at.agent, "text": said["content"], "tags": said["tags"], "room": said["room"]}
    at.tool("/mcp/trusty", "palace_create", {"name": at.agent})
    return StoredMemory(at.tool("/mcp/trusty", "memory_remember", arguments)["drawer_id"], _drawer(said))


def trusty_stdio(at: Caller, said: Document) -> StoredMemory:
    arguments = {"palace": at.agent, "text": said["content"], "tags": said["tags"], "room": said["room"]}
    at.tool("stdio", "palace_create", {"name": at.agent})
    return StoredMemory(at.tool("stdio", "memory_remember", arguments)["drawer_id"], _drawer(said))


def trusty_companion(at: Caller, said: Document) -> StoredMemory:
    at.call("POST", "/api/v1/palaces", {"name": at.agent}, at.companion)
    body = {"content": said["content"], **{name: said[name] for name in ("tags", "room", "importance")}}
    answer = at.call("POST", f"/api/v1/palaces/{at.agent}/drawers", body, at.companion)
    return StoredMemory(answer.json["id"], {**_drawer(said), "importance": said["importance"]})


def attestation(said: Document, **claim: Any) -> Document:
    """As another agent makes one, of a day when it was not here yet."""
    return {
        "id": mint(), "agent": "Babel", "created_at": "2025-06-01T12:00:00Z",
        "claim": {"type": "event", "content": said["content"], "references": [], **claim},
        "salience": {
            "why_kept": "someone will ask", "category": "operational", "confidence": said["confidence"],
            "expected_decay": {"type": "time-bound", "until": iso(said["expires_at"])},
            "supersedes": said["supersedes"],
        },
        "provenance": {"source": "inference", "witnesses": [], "chain": []},
    }  # fmt: skip


def mrp_kept(at: Caller, said: Document) -> StoredMemory:
    assert at.keep is not None
    made = attestation(said)
    answer = at.keep(at.agent, made)
    if "memory_id" not in answer:
        return StoredMemory("", {"content": said["content"]}, refused=answer["code"])
    kept = kept_of("MRP", said, type="episodic", kind="event", source="inference", attested_at=made["created_at"])
    return StoredMemory(answer["memory_id"], kept)


#: name → (writer, whether its protocol has a way to ask for approval)
WRITERS: dict[str, tuple[Callable[..., StoredMemory], bool]] = {
    "memorywire": (memorywire, True), "memorywire batch": (memorywire_batch, False),
    "memorywire JSON-RPC": (memorywire_rpc, True), "MCP over HTTP": (mcp_http, True), "MCP on stdio": (mcp_stdio, True),
    "AMP lesson": (amp_lesson, True), "AMP checkpoint": (amp_checkpoint, True), "AMP, id chosen": (amp_named, True),
    "AMP tool over HTTP": (amp_mcp, True), "AMP tool on stdio": (amp_stdio, True), "OpenWOP": (openwop, False),
    "trusty over HTTP": (trusty_http, False), "trusty on stdio": (trusty_stdio, False),
    "trusty companion": (trusty_companion, False), "MRP kept": (mrp_kept, False),
}  # fmt: skip


def complete(at: Caller, kept: StoredMemory) -> StoredMemory:
    """With what follows from the rest, under names of its own where a protocol has another word for it."""
    said = kept.said
    said.setdefault("created_at", at.call("GET", f"/v0/memories/{kept.id}?agent_id={at.agent}").json["created_at"])
    said.setdefault("amp_id", f"{said['kind']}_{kept.id}")
    said.setdefault("attested_at", iso(said["created_at"]))
    said["claim"] = said["kind"] if said["kind"] in _CLAIMS else _CLAIM_OF[said["type"]]
    tags, source = said.get("tags", []), said.get("source")
    said |= {"attested_source": source} if source and "attested_source" not in said else {}
    sourced = not source or any(tag.startswith("source:") for tag in tags)
    said["entry_tags"] = tags if sourced else [*tags, f"source:{source}"]
    return kept


# removers: each takes a memory away


def forget(at: Caller, kept: StoredMemory, **more: Any) -> None:
    request = {"agent_id": at.agent, "ids": [kept.id], **more}
    assert at.call("POST", "/v0/forget", request).json["forgotten_ids"] == [kept.id]


def erase(at: Caller, kept: StoredMemory) -> None:
    forget(at, kept, hard_delete=True)


def forget_rpc(at: Caller, kept: StoredMemory) -> None:
    assert at.rpc("forget", {"agent_id": at.agent, "ids": [kept.id]})["forgotten_ids"] == [kept.id]


def forget_mcp(at: Caller, kept: StoredMemory, path: str = "/mcp/full") -> None:
    assert at.tool(path, "forget", {"agent_id": at.agent, "ids": [kept.id]})["forgotten_ids"] == [kept.id]


def forget_reviewed(at: Caller, kept: StoredMemory) -> None:
    """Staged first, while which everyone still finds it."""
    at.call("POST", "/v0/forget", {"agent_id": at.agent, "ids": [kept.id], "approval_required": True})
    assert at.call("GET", f"/v0/memories/{kept.id}?agent_id={at.agent}").status == 200
    reviews = at.call("GET", "/v0/reviews?status=pending").json["reviews"]
    (review,) = [each for each in reviews if each["agent_id"] == at.agent]
    assert at.call("POST", f"/v0/reviews/{review['id']}", {"approved": True}).status == 200


def merge_away(at: Caller, kept: StoredMemory) -> None:
    other = memorywire(at, {"type": "semantic", "content": "another timetable"})
    request = {"agent_id": at.agent, "canonical": other.id, "duplicates": [kept.id]}
    assert at.call("POST", "/v0/merge", request).json["merged_count"] == 1


def amp_delete(at: Caller, kept: StoredMemory) -> None:
    assert at.call("DELETE", f"/amp/records/{quote(kept.said['amp_id'], safe='')}").json["deleted"] is True


def amp_tool_delete(at: Caller, kept: StoredMemory) -> None:
    assert at.tool("/mcp/amp", "amp_delete", {"id": kept.said["amp_id"], "agent": at.agent})["deleted"] is True


def openwop_delete(at: Caller, kept: StoredMemory) -> None:
    assert at.call("DELETE", f"/openwop/memory/{kept.id}?memoryRef={at.agent}").json["removed"] is True


def trusty_forget(at: Caller, kept: StoredMemory, path: str = "/mcp/trusty") -> None:
    assert at.tool(path, "memory_forget", {"palace": at.agent, "drawer_id": kept.id})["status"] == "deleted"


def companion_delete(at: Caller, kept: StoredMemory) -> None:
    path = f"/api/v1/palaces/{at.agent}/drawers/{kept.id}"
    assert at.call("DELETE", path, server=at.companion).status == 204


REMOVERS: dict[str, Callable[[Caller, StoredMemory], None]] = {
    "memorywire forget": forget, "memorywire JSON-RPC forget": forget_rpc, "memorywire hard delete": erase,
    "memorywire forget after review": forget_reviewed, "memorywire merge": merge_away, "MCP forget": forget_mcp,
    "MCP forget on stdio": lambda at, kept: forget_mcp(at, kept, "stdio"), "AMP delete": amp_delete,
    "AMP delete tool": amp_tool_delete, "OpenWOP delete": openwop_delete, "trusty forget": trusty_forget,
    "trusty forget on stdio": lambda at, kept: trusty_forget(at, kept, "stdio"),
    "trusty companion delete": companion_delete,
}  # fmt: skip
