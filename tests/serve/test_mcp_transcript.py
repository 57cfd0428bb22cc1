"""One conversation over stdio and over HTTP, for every set and every era: the answers must be equal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp_process import MODERN, enveloped, greeting, run_mcp
from server_process import ServerProcess, run_server

from commonplace.serve.mcp.versions import HANDSHAKE_VERSIONS
from commonplace.serve.protocols import tool_set_names

_UUID = re.compile(  # long or short
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b1[1-9A-HJ-NP-Za-km-z]{21}\b"
)
_TIME = re.compile(r"\b1[789]\d{11}\b|\d{4}-\d\d-\d\dT[\d:.]+Z")
_HASH = re.compile(r"\b[0-9a-f]{64}\b")
_LATENCY = re.compile(r'("latency_ms\\*":\s*)\d+')
#: Only a server has an address at which reviews can be looked at.
_ADDRESS = r'\\*"approval_url\\*":\s*\\*"[^"\\]*\\*"'
_REVIEW = re.compile(rf",?\s*{_ADDRESS}(?=\s*}})|{_ADDRESS},\s*")
_SCORE = re.compile(r'("(?:score|relevance|importance)\\*":\s*)[\d.e-]+')

#: What each set is asked; `{0}` stands for the first id that came back.
ASKED: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "commonplace": [
        ("remember", {"content": "Alice is allergic to peanuts", "metadata": {"tags": ["food"]}}),
        ("recall", {"query": "peanuts Alice", "k": 3}),
        ("get", {"id": "{0}"}),
        ("list", {"tag": "food"}),
        ("update", {"id": "{0}", "content": "Alice is allergic to nuts"}),
        ("history", {"id": "{0}"}),
        ("graph_assert", {"subject": "auth", "predicate": "runs", "object": "2.4.1"}),
        ("graph_query", {"subject": "auth"}),
        ("remember", {"content": "waits", "approval_required": True}),
        ("review_pending", {}),
        ("merge", {"canonical": "{0}", "duplicates": ["nothing"]}),
        ("expire", {"policy": {"type": "emotional"}}),
        ("forget", {}),
        ("forget", {"ids": ["{0}"]}),
        ("get", {"id": "{0}"}),
        ("remember", {"content": 5}),
        ("nothing", {}),
    ],
    "amp": [
        ("amp_store", {"record": {"type": "lesson", "title": "Mocks", "content": "Mocked tests hid a bug"}}),
        ("amp_search", {"query": "mocked tests"}),
        ("amp_list", {"type": "lesson"}),
        ("amp_status", {}),
        ("amp_agent_status", {"agent": "nobody"}),
        ("amp_get", {"id": "nothing"}),
        ("amp_delete", {"id": "nothing"}),
        ("amp_store", {"record": {"type": "lesson"}}),
        ("nothing", {}),
    ],
    "trusty": [
        ("palace_create", {"name": "atlas"}),
        ("memory_remember", {"palace": "atlas", "text": "The gateway validates tokens", "room": "Backend"}),
        ("memory_recall", {"palace": "atlas", "query": "how are tokens validated", "top_k": 3}),
        ("memory_list", {"palace": "atlas"}),
        ("palace_list", {}),
        ("kg_assert", {"palace": "atlas", "subject": "auth", "predicate": "runs", "object": "2.4.1"}),
        ("kg_query", {"palace": "atlas", "subject": "auth"}),
        ("memory_recall", {"query": "no palace"}),
        ("memory_forget", {"palace": "atlas", "drawer_id": "not a uuid"}),
        ("nothing", {}),
    ],
}
ASKED["full"] = [
    ("remember", {"type": "procedural", "content": '{"name": "tea", "states": ["cold", "hot"], "transitions": '
                  '[{"trigger": "boil", "source": "cold", "dest": "hot", "conditions": "has_water"}]}'}),
    ("procedure_show", {"id": "{0}"}),
    ("procedure_fire", {"id": "{0}", "trigger": "boil"}),
    ("procedure_fire", {"id": "{0}", "trigger": "boil", "facts": {"has_water": True}}),
    ("procedure_fire", {"id": "{0}", "trigger": "boil", "facts": {"has_water": True}}),
    ("procedure_draw", {"id": "{0}"}),
    ("procedure_reset", {"id": "{0}", "approval_required": True}),
    ("procedure_reset", {"id": "{0}"}),
    ("nothing", {}),
]  # fmt: skip
ASKED["all"] = [*ASKED["commonplace"][:-1], *ASKED["amp"][:-1], *ASKED["trusty"][1:]]
OTHERS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "commonplace": [
        ("tools/list", {}), ("resources/list", {}), ("resources/templates/list", {}), ("prompts/list", {}),
        ("resources/read", {"uri": "memory://default/recall?q=peanuts"}), ("resources/read", {"uri": "memory://x/y"}),
        ("prompts/get", {"name": "recall_about", "arguments": {"topic": "tea"}}), ("prompts/get", {"name": "x"}),
        ("ping", {}), ("completion/complete", {}), ("logging/setLevel", {"level": "info"}),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "memory://{agent}/{id}"},
                                 "argument": {"name": "agent", "value": "d"}}),
        ("tools/list", {"cursor": "x"}), ("tools/call", {}),
    ],
    "amp": [("tools/list", {}), ("resources/list", {}), ("ping", {})],
    "trusty": [("tools/list", {}), ("resources/list", {}), ("ping", {}), ("tools/call", {})],
}  # fmt: skip
OTHERS["all"] = OTHERS["full"] = OTHERS["commonplace"]
PATHS = {"commonplace": "/mcp", "full": "/mcp/full", "amp": "/mcp/amp", "trusty": "/mcp/trusty", "all": "/mcp/all"}


def _alike(answer: Any) -> str:
    """The answer with everything that differs between two runs of the same thing put aside."""
    text = json.dumps({key: value for key, value in answer.items() if key != "id"}, sort_keys=True)
    text = _REVIEW.sub("", text)
    for pattern, stands in ((_UUID, "ID"), (_TIME, "TIME"), (_HASH, "HASH"), (_LATENCY, r"\1 0"), (_SCORE, r"\1 1")):
        text = pattern.sub(stands, text)
    return text


def _conversation(name: str, era: str, ask: Any) -> list[Any]:
    answers = [ask("server/discover", {}) if era == MODERN else ask("initialize", greeting(era))]
    first = "none"
    for tool, arguments in ASKED[name]:
        given = json.loads(json.dumps(arguments).replace("{0}", first))
        answer = ask("tools/call", {"name": tool, "arguments": given})
        if first == "none" and (found := _UUID.search(json.dumps(answer.get("result", {})))):
            first = found[0]
        answers.append(answer)
    return [*answers, *(ask(method, params) for method, params in OTHERS[name])]


def _over_http(server: ServerProcess, name: str, era: str) -> Any:
    ids = iter(range(1, 1000))

    def ask(method: str, params: dict[str, Any]) -> Any:
        given = enveloped(params) if era == MODERN else params
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if era == MODERN:
            named = params.get("name", params.get("uri"))
            headers |= {"Mcp-Method": method, **({"Mcp-Name": named} if isinstance(named, str) else {})}
        if method != "initialize":
            headers["Mcp-Protocol-Version"] = era
        message = {"jsonrpc": "2.0", "id": next(ids), "method": method, "params": given}
        return server.post(PATHS[name], message, headers=headers).json

    return ask


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "era"),
    [
        *(("commonplace", era) for era in (*HANDSHAKE_VERSIONS, MODERN)),
        *(
            (name, era)
            for name in tool_set_names()
            if name != "commonplace"
            for era in (HANDSHAKE_VERSIONS[-1], MODERN)
        ),
    ],
)
def test_stdio_and_http_say_the_same(tmp_path: Path, name: str, era: str) -> None:
    with run_mcp(tmp_path / "stdio", "--tools", name) as one:
        one.era = era
        told = _conversation(name, era, one.ask)
    data = tmp_path / "http"
    with run_server(data) as server:
        served = _conversation(name, era, _over_http(server, name, era))
    for here, there in zip(told, served, strict=True):
        assert _without_place(_alike(here), tmp_path) == _without_place(_alike(there), tmp_path)
    # trusty-memory's methods are a closed list, which has nothing of the stateless era.
    assert any("result" in answer for answer in told) == ((name, era) != ("trusty", MODERN))


def _without_place(answer: str, folder: Path) -> str:
    return answer.replace(f"{folder}/stdio", "DATA").replace(f"{folder}/http", "DATA")
