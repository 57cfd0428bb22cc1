"""The tables of tools: what a client is shown, and what a model gets back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from commonplace.config import load as configure
from commonplace.embedders.hashing import open_embedder
from commonplace.engine_factory import open_engine
from commonplace.serve.json_rpc import JsonRpcError
from commonplace.serve.mcp.handler import McpHandler, advice
from commonplace.serve.mcp.sessions import RequestSession
from commonplace.serve.mcp.tools import Hints, Tool, ToolSet
from commonplace.serve.mcp.versions import VERSIONS
from commonplace.serve.protocols import load_tool_set, tool_set_names
from commonplace.wire.errors import OperatorActionRequired, Unavailable, UnusableStore, internal_error
from commonplace.wire.record import Principal

OURS = ["remember", "recall", "forget", "merge", "expire", "get", "list", "update", "history", "graph_assert",
        "graph_query", "review_pending"]  # fmt: skip
AMP = ["amp_store", "amp_search", "amp_get", "amp_delete", "amp_list", "amp_status", "amp_agent_status"]
TRUSTY = ["memory_remember", "memory_recall", "memory_recall_deep", "palace_create", "palace_list", "kg_assert",
          "kg_query", "memory_list", "memory_forget", "palace_info"]  # fmt: skip
MORE = ["procedure_show", "procedure_fire", "procedure_reset", "undo", "procedure_draw"]
EXPECTED = {"commonplace": OURS, "full": [*OURS, *MORE], "amp": AMP, "trusty": TRUSTY}
EXPECTED["all"] = [*OURS, *MORE, *AMP, *TRUSTY]
UNIONS = {"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref", "$defs"}


class ToolSession:
    """One set over a real engine, without any transport."""

    def __init__(self, data: Path, name: str = "full", who: Principal | None = None) -> None:
        self.data, self.name, self.who = data, name, who or Principal()
        self.bugs: list[str] = []

    def ask(self, method: str, params: Any = None, version: str = "2025-11-25") -> Any:
        return self.several([(method, params)], version)[0]

    def several(self, asked: list[tuple[str, Any]], version: str = "2025-11-25") -> list[Any]:
        async def run() -> list[Any]:
            config = configure(data=self.data, embedder="hashing")
            engine = await open_engine(config, embedder=open_embedder("hashing"))
            try:
                session = RequestSession(engine, self.who, "default")
                handler = McpHandler(load_tool_set(self.name), lambda operation, error: self.bugs.append(repr(error)))
                return [await handler.answer(session, version, method, params) for method, params in asked]
            finally:
                await engine.close()

        return asyncio.run(run())

    def call(self, tool: str, /, **arguments: Any) -> Any:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})


@pytest.fixture
def talk(tmp_path: Path) -> ToolSession:
    return ToolSession(tmp_path)


def _listed(name: str) -> list[tuple[Tool, dict[str, Any], dict[str, Any] | None]]:
    session: Any = RequestSession(None, Principal(), "default")  # type: ignore[arg-type]
    return [
        (t, t.input_schema(session), t.output_schema(session) if t.output_schema else None)
        for t in load_tool_set(name).tools
    ]


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for key, value in node.items():
            yield from _nodes(list(value.values()) if key == "properties" else value)
    elif isinstance(node, list):
        for item in node:
            yield from _nodes(item)


@pytest.mark.parametrize("name", tool_set_names())
def test_each_set_has_its_tools(name: str) -> None:
    assert [tool.name for tool in load_tool_set(name).tools] == EXPECTED[name]


@pytest.mark.parametrize("name", tool_set_names())
def test_schemas_are_ones_that_deployed_clients_accept(name: str) -> None:
    for tool, inputs, outputs in _listed(name):
        for schema in (inputs, outputs):
            if schema is None:
                continue
            assert schema["type"] == "object", tool.name
            jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
            for node in _nodes(schema):
                assert not UNIONS & node.keys(), (tool.name, node)
                assert not isinstance(node.get("type"), list), (tool.name, node)
        assert set(inputs.get("required", ())) <= set(inputs["properties"])


@pytest.mark.parametrize("name", ["full", "amp"])
def test_every_argument_and_every_answer_is_described(name: str) -> None:
    for tool, inputs, outputs in _listed(name):
        assert outputs is not None
        assert len(tool.description) > 60, tool.name
        assert "Comes back" in tool.description, tool.name
        assert all(rule.get("description") for rule in inputs["properties"].values()), tool.name


@pytest.mark.parametrize("name", tool_set_names())
def test_every_tool_says_all_four_hints(talk: ToolSession, tmp_path: Path, name: str) -> None:
    listed = ToolSession(tmp_path, name).ask("tools/list")["tools"]
    keys = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    for tool in listed:
        hints = {key: value for key, value in tool["annotations"].items() if key != "title"}
        assert set(hints) == keys, tool["name"]
        assert all(isinstance(value, bool) for value in hints.values())
        assert not (hints["readOnlyHint"] and hints["destructiveHint"])


def test_agent_id_may_be_left_out_of_our_tools() -> None:
    for tool, inputs, _ in _listed("commonplace"):
        assert "agent_id" in inputs["properties"], tool.name
        assert "agent_id" not in inputs.get("required", ()), tool.name


# our tools at work


def _valid(tool: str, structured: dict[str, Any], name: str = "full") -> None:
    outputs = {t.name: schema for t, _, schema in _listed(name)}[tool]
    assert outputs is not None
    jsonschema_rs.Draft202012Validator(outputs).validate(structured)
    assert None not in structured.values()


def test_a_memory_through_its_whole_life(talk: ToolSession) -> None:
    def call(tool: str, /, **arguments: Any) -> Any:
        result = talk.call(tool, **arguments)
        assert "isError" not in result, result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        _valid(tool, result["structuredContent"])
        return result["structuredContent"]

    first = call("remember", content="Alice is allergic to peanuts", metadata={"tags": ["food"], "note": None})["id"]
    assert call("recall", query="peanuts for Alice")["results"][0]["id"] == first
    found = call("get", id=first)
    assert (found["agent_id"], found["type"]) == ("default", "semantic")
    assert found["metadata"]["note"] is None, "what was written as null stays as it was written"
    assert call("list", tag="food")["memories"][0]["id"] == first
    assert call("update", id=first, content="Alice is allergic to all nuts")["version"] == 2
    assert [m["version"] for m in call("history", id=first)["versions"]] == [1, 2]
    second = call("remember", content="Alice cannot eat nuts", agent_id="default", type="semantic", user_id=None)["id"]
    assert call("merge", canonical=first, duplicates=[second])["merged_count"] == 1
    waiting = call("remember", content="Bob moved to Porto", approval_required=True)
    assert waiting["pending_approval"] is True
    assert call("review_pending")["reviews"][0]["memory_id"] == waiting["id"]
    assert call("review_pending", agent_id="other")["reviews"] == []
    assert call("expire", policy={"type": "emotional"})["matched_count"] == 0
    fact = call("graph_assert", subject="auth", predicate="runs", object="2.4.1")
    assert (fact["object"], "valid_to" in fact) == ("2.4.1", False)
    newer = call("graph_assert", subject="auth", predicate="runs", object="2.5.0")
    assert ("replaced" in fact, newer["replaced"]) == (False, {**fact, "valid_to": newer["valid_from"]})
    assert [t["object"] for t in call("graph_query", subject="auth")["triples"]] == ["2.5.0"]
    assert call("graph_query", subject="auth", as_of=fact["valid_from"])["triples"][0]["object"] == "2.4.1"
    assert call("forget", ids=[first])["forgotten_ids"] == [first]
    assert call("list")["memories"] == []
    assert talk.bugs == []


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("remember", {}, ["content", "call remember again"]),
        ("remember", {"content": "x", "type": "vague"}, ["type", "semantic", "call remember again"]),
        ("remember", {"content": "x", "colour": "red"}, ["colour"]),
        ("recall", {"query": "x", "k": 0}, ["k", "1"]),
        ("forget", {}, ["ids or filter", "call forget again"]),
        ("forget", {"ids": []}, ["ids or filter"]),
        ("expire", {"policy": {}}, ["policy"]),
        ("get", {"id": "nothing"}, ["no memory nothing for agent default. Call list or recall"]),
        ("get", {}, ["id is required"]),
        ("update", {"content": "x"}, ["id is required"]),
        ("list", {"limit": "many"}, ["limit"]),
        ("history", {"id": "nothing"}, ["nothing"]),
        ("graph_query", {}, ["subject"]),
    ],
)
def test_a_mistake_is_explained_to_the_model(
    talk: ToolSession, tool: str, arguments: dict[str, Any], says: list[str]
) -> None:
    result = talk.call(tool, **arguments)
    assert result["isError"] is True
    assert "structuredContent" not in result
    text = result["content"][0]["text"]
    assert text.endswith(".")
    for piece in says:
        assert piece in text
    assert "commonplace" not in text, "a model has tools, not a shell"
    assert talk.bugs == []


def test_a_model_tries_again_only_where_that_can_help() -> None:
    assert "Try recall once more" in advice("recall", Unavailable("locked"))
    for fault in (UnusableStore("damaged"), OperatorActionRequired("read-only")):
        assert "Do not try again" in advice("recall", fault)
        assert "`commonplace doctor`" in advice("recall", fault)


def test_a_reader_is_told_that_it_may_not_write(tmp_path: Path) -> None:
    reader = ToolSession(tmp_path, who=Principal("r", role="reader"))
    result = reader.call("remember", content="x")
    assert result["isError"] is True
    assert "tell the user" in result["content"][0]["text"]


def test_whoever_may_use_one_agent_means_that_one() -> None:
    def meant(*agents: str) -> str:
        return RequestSession(None, Principal("x", agents=agents), "default").agent  # type: ignore[arg-type]

    assert meant("ada") == "ada"
    assert meant("*") == meant("default") == meant("ada", "bea") == meant("team-*") == "default"


def test_a_failure_of_ours_is_reported_and_not_quoted() -> None:
    async def breaks(session: Any, arguments: Any) -> Any:
        raise RuntimeError("a secret text")

    hints = Hints(read_only=True, destructive=False, idempotent=True)
    one = ToolSet(
        "x",
        (Tool("breaks", "", lambda s: {"type": "object"}, hints, breaks, lambda s: {"type": "object"}),),
        lambda s: {"name": "x", "version": "1"},
    )
    seen: list[str] = []
    handler = McpHandler(one, lambda operation, error: seen.append(f"{operation} {type(error).__name__}"))
    session: Any = RequestSession(None, Principal(), "default")  # type: ignore[arg-type]
    result = asyncio.run(handler.answer(session, "2025-11-25", "tools/call", {"name": "breaks"}))
    assert result["isError"] is True
    assert internal_error("breaks").message in json.dumps(result)
    assert "secret" not in json.dumps(result)
    assert seen == ["breaks RuntimeError"]


# AMP's tools


def test_amp_through_its_tools(tmp_path: Path) -> None:
    talk = ToolSession(tmp_path, "amp")

    def call(tool: str, /, **arguments: Any) -> Any:
        result = talk.call(tool, **arguments)
        assert "isError" not in result, result
        _valid(tool, result["structuredContent"], "amp")
        return result["structuredContent"]

    id = call("amp_store", record={"type": "lesson", "title": "Mocks", "content": "Mocked tests hid a bug"})["id"]
    assert call("amp_search", query="mocked tests")["results"][0]["id"] == id
    assert call("amp_get", id=id)["record"]["title"] == "Mocks"
    assert call("amp_list", type="lesson", limit=None)["total"] == 1
    assert call("amp_status")["stats"]["lessons"] == 1
    assert call("amp_agent_status", agent="nobody") == {
        "success": True, "agent": "nobody", "status": "idle", "checkpoint_count": 0,
    }  # fmt: skip
    assert call("amp_delete", id=id)["deleted"] is True
    missing = talk.call("amp_get", id=id)
    assert missing["isError"] is True
    assert json.loads(missing["content"][0]["text"])["error"]["code"] == "not_found"


# resources and prompts


def test_memory_can_be_read_as_resources(talk: ToolSession) -> None:
    id = talk.call("remember", content="Alice is allergic to peanuts")["structuredContent"]["id"]
    other = talk.call("remember", content="The staging port is 5433")["structuredContent"]["id"]

    def read(uri: str) -> Any:
        content = talk.ask("resources/read", {"uri": uri})["contents"]
        assert (len(content), content[0]["uri"], content[0]["mimeType"]) == (1, uri, "application/json")
        return json.loads(content[0]["text"])

    assert read(f"memory://default/{id}")["content"] == "Alice is allergic to peanuts"
    found = read("memory://default/recall?q=peanuts%20for%20Alice&k=3")
    assert (found["results"][0]["id"], found["fusion_used"]) == (id, "rrf")
    assert {"results", "fusion_used", "stores_queried", "latency_ms"} <= found.keys()
    assert [hit["id"] for hit in read("memory://default/recall?q=staging%20port&k=2")["results"]] == [other, id]
    assert [hit["id"] for hit in read("memory://default/recall?q=staging%20port&k=1")["results"]] == [other]
    assert read("memory://status")["memories"] == 2
    listed = talk.ask("resources/list")["resources"]
    assert [each["uri"] for each in listed] == ["memory://status"]
    templates = talk.ask("resources/templates/list")["resourceTemplates"]
    assert [each["uriTemplate"] for each in templates] == ["memory://{agent}/{id}", "memory://{agent}/recall{?q}"]


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("memory://default/no-such-memory", -32002),
        ("memory://default/recall", -32002),
        ("memory://default", -32002),
        ("memory://default/a/b", -32002),
        ("https://example.org/", -32002),
        ("memory://default/recall?q=", -32602),
        ("memory://default/recall?q=x&colour=red", -32602),
        ("memory://default/recall?q=x&k=many", -32602),
    ],
)
def test_what_is_not_there_cannot_be_read(talk: ToolSession, uri: str, code: int) -> None:
    with pytest.raises(JsonRpcError) as problem:
        talk.ask("resources/read", {"uri": uri})
    assert problem.value.code == code
    with pytest.raises(JsonRpcError) as problem:
        talk.ask("resources/read", {"uri": uri}, "2026-07-28")
    assert problem.value.code == -32602


def test_another_agents_memory_cannot_be_read(talk: ToolSession, tmp_path: Path) -> None:
    id = talk.call("remember", content="private", agent_id="ada")["structuredContent"]["id"]
    stranger = ToolSession(tmp_path, who=Principal("bea", agents=("bea",)))
    with pytest.raises(JsonRpcError):
        stranger.ask("resources/read", {"uri": f"memory://ada/{id}"})
    assert json.loads(stranger.ask("resources/read", {"uri": "memory://status"})["contents"][0]["text"])["agents"] == {}


def test_prompts_say_what_to_do(talk: ToolSession) -> None:
    listed = talk.ask("prompts/list")["prompts"]
    assert [each["name"] for each in listed] == ["recall_about", "keep_this", "weekly_review"]

    def text(name: str, **arguments: str) -> str:
        got = talk.ask("prompts/get", {"name": name, "arguments": arguments})
        assert got["messages"][0]["role"] == "user"
        found: str = got["messages"][0]["content"]["text"]
        return found

    assert "peanuts" in text("recall_about", topic="peanuts")
    assert "food, allergy" in text("keep_this", what="no peanuts", tags="food, allergy,")
    assert "last 7 days" in text("weekly_review")
    assert "last 30 days" in text("weekly_review", days="30")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recall_about", {}),
        ("recall_about", {"topic": "  "}),
        ("recall_about", {"topic": 5}),
        ("recall_about", {"topic": "x", "colour": "red"}),
        ("recall_about", ["x"]),
        ("weekly_review", {"days": "0"}),
        ("weekly_review", {"days": "soon"}),
        ("nothing", {}),
    ],
)
def test_prompts_refuse_what_they_cannot_use(talk: ToolSession, name: str, arguments: Any) -> None:
    with pytest.raises(JsonRpcError) as problem:
        talk.ask("prompts/get", {"name": name, "arguments": arguments})
    assert problem.value.code == -32602


def test_agents_are_offered_where_an_address_wants_one(talk: ToolSession, tmp_path: Path) -> None:
    for agent in ("ada", "bea", "default"):
        talk.call("remember", content="x", agent_id=agent)

    def offered(who: ToolSession, value: str, uri: str = "memory://{agent}/{id}", name: str = "agent") -> Any:
        params = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": name, "value": value}}
        return who.ask("completion/complete", params)["completion"]

    assert offered(talk, "") == {"values": ["ada", "bea", "default"], "total": 3, "hasMore": False}
    assert offered(talk, "b")["values"] == ["bea"]
    assert offered(talk, "", name="id")["values"] == offered(talk, "", "file:///{agent}")["values"] == []
    assert offered(ToolSession(tmp_path, who=Principal("x", agents=("bea",))), "")["values"] == ["bea"]
    with pytest.raises(JsonRpcError):
        talk.ask("completion/complete", {"ref": "memory://", "argument": {}})


@pytest.mark.parametrize("name", ["amp", "trusty"])
@pytest.mark.parametrize("method", ["resources/list", "prompts/list", "completion/complete", "logging/setLevel"])
def test_what_a_set_does_not_declare_it_does_not_have(tmp_path: Path, name: str, method: str) -> None:
    with pytest.raises(JsonRpcError) as problem:
        ToolSession(tmp_path, name).ask(method)
    assert problem.value.code == -32601


@pytest.mark.parametrize("version", VERSIONS)
def test_no_version_is_shown_a_null_in_a_list(talk: ToolSession, version: str) -> None:
    methods = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
    for result in talk.several([(method, {}) for method in methods], version):
        for node in _nodes(result):
            assert None not in node.values()
