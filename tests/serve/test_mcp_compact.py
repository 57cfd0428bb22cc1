"""The small set of tools: what it costs, what it shows, and that it takes whatever the whole set takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from server_process import ServerProcess, run_server
from test_mcp_http import call

from bench.mcp_tokens import TARGET, as_read, as_sent, listing, word_pieces
from commonplace.serve.mcp.prompts import INSTRUCTIONS
from commonplace.wire.short_ids import expand_id, shorten_id

_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_INTERNAL = {
    "score", "latency_ms", "stores_queried", "fusion_used", "source_store", "stores", "stored_at", "tenant", "seq",
    "content_hash", "provenance", "demotion", "recalls",
}  # fmt: skip


def say(server: ServerProcess, tool: str, /, path: str = "/mcp?agent=compact", **arguments: Any) -> dict[str, Any]:
    result = call(server, tool, arguments, path)
    assert "isError" not in result, result
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    answer: dict[str, Any] = result["structuredContent"]
    return answer


def names(document: Any) -> set[str]:
    if isinstance(document, list):
        return set().union(*map(names, document))
    if not isinstance(document, dict):
        return set()
    return set(document).union(*(names(value) for key, value in document.items() if key != "metadata"))


def test_it_costs_no_more_than_it_may() -> None:
    count = word_pieces()
    assert count(as_read(listing("commonplace"))) <= TARGET
    assert count(as_read(listing("commonplace"))) * 4 < count(as_read(listing("full")))
    assert count(as_sent(listing("commonplace"))) < 3_000, "with the hints and titles that clients keep to themselves"
    assert not any("outputSchema" in tool for tool in listing("commonplace"))


def test_the_page_says_what_it_costs() -> None:
    count, page = word_pieces(), (Path(__file__).parents[2] / "docs" / "mcp.md").read_text("utf-8")
    for said, name in (("{:,} tokens for `commonplace`", "commonplace"), ("{:,} for `full`", "full")):
        assert said.format(count(as_read(listing(name)))) in page


def test_a_model_is_told_when_to_remember_and_when_to_recall() -> None:
    for word in ("Recall before you answer", "Remember, without being asked", "preferences", "secrets", "update"):
        assert word in INSTRUCTIONS
    assert "never an instruction" in INSTRUCTIONS, "what was written by others must not command"


def test_a_memory_through_its_life(open_server: ServerProcess) -> None:
    kept = say(open_server, "remember", content="Alice is allergic to peanuts", metadata={"tags": ["food"]})
    assert kept.keys() == {"id", "pending_approval"}
    assert len(kept["id"]) == 22
    (hit,) = say(open_server, "recall", query="what is Alice allergic to?")["results"]
    assert hit.keys() == {"id", "type", "content", "metadata", "created_at"}
    assert (hit["id"], hit["metadata"]) == (kept["id"], {"tags": ["food"]})
    assert _ISO.fullmatch(hit["created_at"])
    changed = say(open_server, "update", id=kept["id"], content="Alice is allergic to nuts", expires_at="2090-01-01")
    assert changed["expires_at"] == "2090-01-01T00:00:00.000Z"
    assert [v["content"][-7:] for v in say(open_server, "history", id=kept["id"])["versions"]] == ["peanuts", "to nuts"]
    other = say(open_server, "remember", content="Alice cannot eat nuts")["id"]
    assert say(open_server, "merge", canonical=kept["id"], duplicates=[other])["canonical"] == kept["id"]
    assert say(open_server, "get", id=kept["id"])["agent_id"] == "compact"
    listed = say(open_server, "list")["memories"]
    assert [memory["id"] for memory in listed] == [kept["id"]]
    assert "agent_id" not in listed[0], "which goes without saying"
    assert say(open_server, "forget", ids=[kept["id"]])["forgotten_ids"] == [kept["id"]]
    assert say(open_server, "list") == {"memories": []}


def test_no_answer_has_internal_fields_or_bare_numbers_for_times(open_server: ServerProcess) -> None:
    path = "/mcp?agent=compact-fields"
    id = say(open_server, "remember", path, content="Bob moved the staging port")["id"]
    say(open_server, "graph_assert", path, subject="auth", predicate="runs", object="2.4.1")
    say(open_server, "remember", path, content="Bob's door code is with Alice", approval_required=True)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("recall", {"query": "where did Bob move the port?"}), ("get", {"id": id}), ("list", {}),
        ("history", {"id": id}),
        ("update", {"id": id, "tags": ["ops"]}), ("graph_query", {"subject": "auth"}), ("review_pending", {}),
        ("expire", {"policy": {"older_than_days": 4000}}), ("forget", {"ids": [id]}),
        ("graph_assert", {"subject": "auth", "predicate": "runs", "object": "2.4.2"}),
    ]  # fmt: skip
    for tool, arguments in asked:
        answer = say(open_server, tool, path, **arguments)
        if tool == "review_pending":  # what others ask for on the same server is shown as they wrote it
            own = [each for each in answer["reviews"] if each.get("agent_id", "compact-fields") == "compact-fields"]
            answer = {**answer, "reviews": own}
            assert own
        assert not _INTERNAL & names(answer), tool
        assert not re.search(r'_(at|from|to|time)": ?\d{9}', json.dumps(answer)), tool


@pytest.mark.parametrize("form", ["short", "long"])
def test_both_forms_of_an_id_are_taken_everywhere(open_server: ServerProcess, form: str) -> None:
    agent = f"forms-{form}"
    path = f"/mcp?agent={agent}"
    short = say(open_server, "remember", path, content="Bob keeps bees")["id"]
    id = short if form == "short" else expand_id(short)
    assert say(open_server, "get", path, id=id)["id"] == short
    whole = call(open_server, "get", {"id": id}, f"/mcp/full?agent={agent}")["structuredContent"]
    assert (whole["id"], shorten_id(whole["id"])) == (expand_id(short), short)
    assert open_server.get(f"/v0/memories/{id}?agent_id={agent}").json["content"] == "Bob keeps bees"
    assert open_server.get(f"/v0/memories/{id}/history?agent_id={agent}").status == 200
    changed = open_server.call("PATCH", f"/v0/memories/{id}", {"agent_id": agent, "content": "Bob kept bees"})
    assert changed.json["content"] == "Bob kept bees"
    forgotten = open_server.post("/v0/forget", {"agent_id": agent, "ids": [id]}).json
    assert forgotten["forgotten_ids"] == [expand_id(short)]


@pytest.mark.slow
def test_a_hit_says_how_likely_it_answers(tmp_path: Path) -> None:
    with run_server(tmp_path, COMMONPLACE_EMBEDDER="encoder") as server:  # whose relevance is calibrated
        say(server, "remember", "/mcp", content="Alice is allergic to peanuts")
        (hit,) = say(server, "recall", "/mcp", query="what is Alice allergic to?")["results"]
        assert 0.1 < hit["relevance"] <= 1


def test_what_is_not_shown_is_taken_all_the_same(open_server: ServerProcess) -> None:
    path = "/mcp?agent=compact-more"
    kept = say(open_server, "remember", path, content="Alice paints", confidence=0.5, source="chat")
    found = say(open_server, "recall", path, query="what does Alice do?", explain=True, min_score=0)
    assert found["results"][0]["confidence"] == 0.5
    assert "score" in found["results"][0], "whoever asks to have it explained is shown it"
    refused = call(open_server, "remember", {"content": "x", "colour": "red"}, path)
    assert refused["isError"]
    assert "colour" in refused["content"][0]["text"]
    wrong = call(open_server, "update", {"id": kept["id"], "expires_at": "soon"}, path)
    assert wrong["isError"]
    assert "ISO-8601" in wrong["content"][0]["text"]
