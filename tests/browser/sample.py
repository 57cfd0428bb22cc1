"""Something to show: a small team's memories, statements, rules and reviews. Made over HTTP, as agents would."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from server_process import ServerProcess, cli

MEMORIES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("assistant", "semantic", "Alice is allergic to peanuts and carries an EpiPen", {"tags": ["health", "alice"]}),
    ("assistant", "semantic", "Bob lives in Rome and likes green tea", {"tags": ["home"], "entity_name": "Bob"}),
    ("assistant", "semantic", "Alice prefers meetings before noon", {"tags": ["calendar"]}),
    ("assistant", "episodic", "Alice and Bob agreed to ship the pilot on Friday", {"tags": ["pilot"]}),
    ("assistant", "emotional", "Alice was relieved that the migration went well", {"sentiment": "positive"}),
    ("coder", "semantic", "The deploy needs the feature flag PILOT_ROLLOUT before the workers restart",
     {"title": "Deploy order", "tags": ["deploy", "lesson"]}),
    ("coder", "semantic", "Run the migrations with a lock timeout of five seconds", {"tags": ["deploy", "database"]}),
    ("coder", "semantic", "The billing service answers 429 above forty requests a second", {"tags": ["billing"]}),
)  # fmt: skip
PROCEDURE = (
    '{"name": "release", "initial": "drafted", "states": ["drafted", "reviewed", "staged", "live", "rolled_back"], '
    '"transitions": [{"trigger": "review", "source": "drafted", "dest": "reviewed"}, '
    '{"trigger": "stage", "source": "reviewed", "dest": "staged", "conditions": ["tests_pass"]}, '
    '{"trigger": "release", "source": "staged", "dest": "live"}, '
    '{"trigger": "roll_back", "source": "live", "dest": "rolled_back"}], "current": "staged"}'
)
STATEMENTS = (
    ("Bob", "lives in", "Rome"), ("Bob", "works with", "Alice"), ("Bob", "maintains", "billing service"),
    ("Alice", "leads", "pilot"), ("Alice", "works with", "Carol"), ("pilot", "ships on", "Friday"),
    ("billing service", "is written in", "Go"), ("billing service", "is limited to", "40 requests/s"),
    ("Rome", "is in", "Italy"), ("pilot", "depends on", "billing service"),
)  # fmt: skip
RULES = (
    {"name": "salaries", "action": "review", "when": {"content": "(?i)salary|wage"}, "note": "payroll decides"},
    {"name": "other agents", "action": "review", "when": {"dialect": ["mrp"]}},
    {"name": "hidden characters", "action": "reject", "when": {"findings": ["bidi", "zero_width"]}},
)
#: Short-term notes of last week: the first is sure and becomes long-term memory, the second is put away.
NOTES = (("Alice takes the early train on Tuesdays", 1.0), ("Bob wondered whether it would rain", 0.2))


def fill(server: ServerProcess, token: str | None = None) -> dict[str, str]:
    """The ids of what was made, by what it is."""

    def post(path: str, body: Any) -> Any:
        answer = server.post(path, body, token=token)
        assert answer.status == 200, answer.body
        return answer.json

    ids: dict[str, str] = {}
    for agent, kind, content, metadata in MEMORIES:
        made = post("/v0/remember", {"agent_id": agent, "type": kind, "content": content, "metadata": metadata})
        ids.setdefault(agent, made["id"])
        if metadata.get("entity_name") == "Bob":
            ids["bob"] = made["id"]
    ids["procedure"] = post("/v0/remember", {"agent_id": "coder", "type": "procedural", "content": PROCEDURE})["id"]
    for subject, predicate, object in STATEMENTS:
        fact = {"agent_id": "assistant", "subject": subject, "predicate": predicate, "object": object}
        post("/v0/kg/assert", fact)
    change = {"agent_id": "assistant", "content": "Alice is allergic to peanuts and cashews and carries an EpiPen"}
    assert server.call("PATCH", f"/v0/memories/{ids['assistant']}", change, token=token).status == 200
    assert server.call("PUT", "/v0/policies", {"rules": list(RULES)}, token=token).status == 200
    stage = {"agent_id": "assistant", "type": "semantic", "approval_required": True}
    ids["review"] = post("/v0/remember", {
        **stage, "content": "Bob lives in Oslo and likes green tea", "metadata": {"tags": ["home"]},
        "reasoning": "He said on the phone that he has moved.",
    })["review_id"]  # fmt: skip
    later = {**change, "content": "Alice is allergic to peanuts, cashews and sesame", "approval_required": True,
             "reasoning": "From the new doctor's letter."}  # fmt: skip
    answer = server.call("PATCH", f"/v0/memories/{ids['assistant']}", later, token=token)
    ids["update"] = answer.json["review_id"]
    post("/v0/remember", {**stage, "approval_required": False, "content": "Bob's salary was raised in March"})
    post(
        "/v0/forget",
        {"agent_id": "coder", "ids": [ids["coder"]], "approval_required": True, "reasoning": "The flag is gone."},
    )
    fact = {
        "agent_id": "assistant",
        "subject": "Bob",
        "predicate": "lives in",
        "object": "Oslo",
        "approval_required": True,
    }
    post("/v0/kg/assert", fact)
    ids["run"] = consolidate(server, token)
    for question in ("what must I not cook for Alice?", "where does Bob live?"):
        post("/v0/recall", {"agent_id": "assistant", "query": question})
    return ids


def consolidate(server: ServerProcess, token: str | None = None, agent: str = "journal", notes: Any = NOTES) -> str:
    """Notes that have gone cold, imported with their own time, and the run of the job that decided about them."""
    then = (datetime.now(UTC) - timedelta(days=8)).isoformat()
    file = server.data / f"notes-{len(list(server.data.glob('notes-*')))}.json"
    told = [
        {"id": f"{file.stem}-{i}", "memory": text, "agent_id": agent, "created_at": then,
         "metadata": {"short_term": True}} for i, (text, _) in enumerate(notes)
    ]  # fmt: skip
    file.write_text(json.dumps(told), "utf-8")
    cli(server.data, "import", "--format", "mem0", str(file))
    for i, (_, confidence) in enumerate(notes):
        change = {"agent_id": agent, "confidence": confidence}
        assert server.call("PATCH", f"/v0/memories/{file.stem}-{i}", change, token=token).status == 200
    answer = server.post("/v0/lifecycle/consolidate/run", {}, token=token)
    assert answer.status == 200, answer.body
    run_id: str = answer.json["run_id"]
    return run_id


def pages(ids: dict[str, str]) -> dict[str, str]:
    """Every page, by the name of its picture."""
    return {
        "inbox": "/ui/inbox", "review": f"/ui/inbox/{ids['review']}", "edit": f"/ui/inbox/{ids['update']}?edit=1",
        "memories": "/ui/memories", "search": "/ui/memories?q=what+must+I+not+cook+for+Alice",
        "memory": f"/ui/memories/{ids['assistant']}", "procedure": f"/ui/memories/{ids['procedure']}",
        "graph": "/ui/graph?agent=assistant&about=Bob", "subjects": "/ui/graph?agent=assistant",
        "lifecycle": "/ui/lifecycle", "run": f"/ui/lifecycle/{ids['run']}", "audit": "/ui/audit",
        "proofs": "/ui/audit/proofs?entry=1",
        "health": "/ui/health", "policies": "/ui/policies", "tokens": "/ui/tokens",
    }  # fmt: skip
