"""What strangers write is shown as text, on every page and in every field: nothing runs, nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from chromium import Requests
from hostile_texts import EVERYTHING, HOSTILE, MARK
from playwright.sync_api import Browser
from server_process import ServerProcess, run_server

NAMES = [text for text in HOSTILE if text.isprintable() and len(text) <= 200]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, list[str]]]:
    """A store in which every field of everything holds such texts, and the pages that show them."""
    data = tmp_path_factory.mktemp("hostile")
    (data / "commonplace.toml").write_text('[lifecycle]\ninterval = 0\nexpire = ["type=emotional"]\n', "utf-8")
    with run_server(data, COMMONPLACE_REDACTION_MODE="off") as server:
        yield server, list(dict.fromkeys(fill(server)))


def ok(answer: Any) -> Any:
    assert answer.status == 200, answer.body
    return answer.json


def fill(server: ServerProcess) -> Iterator[str]:
    text = EVERYTHING
    metadata = {
        "title": text, "tags": NAMES[:10], "project": NAMES[0], "session_id": NAMES[1], "speaker": NAMES[2],
        "entity_name": NAMES[3], "kind": NAMES[4], **dict.fromkeys(NAMES[:6], text),
    }  # fmt: skip
    for agent in NAMES[:6]:
        base = {"agent_id": agent, "type": "semantic", "content": text, "metadata": metadata}
        base |= {"source": text, "user_id": NAMES[0]}
        ids = [ok(server.post("/v0/remember", {**base, "content": f"{i} {text}"}))["id"] for i in range(3)]
        change = {"agent_id": agent, "content": f"changed {text}"}
        ok(server.call("PATCH", f"/v0/memories/{ids[0]}", change))
        fact = {
            "agent_id": agent,
            "subject": NAMES[3],
            "predicate": NAMES[4],
            "object": NAMES[5],
            "provenance": NAMES[6],
        }
        ok(server.post("/v0/kg/assert", fact))
        ok(server.post("/v0/kg/assert", {**fact, "subject": NAMES[5], "object": NAMES[7]}))
        wait: dict[str, Any] = {"approval_required": True, "reasoning": text}
        for answer in (
            server.post("/v0/remember", {**base, **wait}),
            server.call("PATCH", f"/v0/memories/{ids[1]}", {**change, **wait}),
            server.post("/v0/forget", {"agent_id": agent, "ids": [ids[2]], "reason": text, **wait}),
            server.post("/v0/merge", {"agent_id": agent, "canonical": ids[0], "duplicates": [ids[1]], **wait}),
            server.post("/v0/kg/assert", {**fact, "object": NAMES[8], **wait}),
        ):
            review = ok(answer)["review_id"]
            yield f"/ui/inbox/{review}"
            yield f"/ui/inbox/{review}?edit=1"
        rejected = ok(server.post("/v0/remember", {**base, **wait}))["review_id"]
        ok(server.post(f"/v0/reviews/{rejected}", {"approved": False, "reviewer": NAMES[0], "reason": text}))
        yield f"/ui/inbox/{rejected}"
        yield from (f"/ui/memories/{id}" for id in ids)
        ok(server.post("/v0/remember", {**base, "type": "emotional"}))
        yield f"/ui/lifecycle/{ok(server.post('/v0/lifecycle/expire/run', {}))['run_id']}"
        yield f"/ui/memories?agent={quote(agent)}&q={quote(text[:300])}"
        yield f"/ui/memories?agent={quote(agent)}&tag={quote(NAMES[0])}"
        yield f"/ui/graph?agent={quote(agent)}"
        yield f"/ui/graph?agent={quote(agent)}&about={quote(NAMES[3])}"
        yield f"/ui/inbox?agent={quote(agent)}&status=all"
        yield f"/ui/audit?agent={quote(agent)}&operation={quote(NAMES[1])}"
    rules = [
        {"name": NAMES[i], "action": "review", "note": text[:500], "when": {"agent": [f"none{NAMES[i]}"]}}
        for i in range(3)
    ]
    ok(server.call("PUT", "/v0/policies", {"rules": rules}))
    for wrong in (NAMES[0], NAMES[1]):
        yield f"/ui/{quote(wrong)}"
        yield f"/ui/inbox/{quote(wrong, safe='')}"
        yield f"/ui/memories/{quote(wrong, safe='')}"
        yield f"/ui/lifecycle/{quote(wrong, safe='')}"
        yield f"/ui/lifecycle?job={quote(wrong)}&before={quote(wrong)}"
        yield f"/ui/memories?since={quote(wrong)}"
        yield f"/ui/memories?forgotten={quote(wrong)}&of={quote(wrong)}"
        yield f"/ui/audit/proofs?entry={quote(wrong)}&size={quote(wrong)}&from={quote(wrong)}"
        yield f"/ui/login?next={quote(wrong)}"
        yield f"/ui/inbox?said={quote(wrong)}"
    tabs = ("inbox", "memories", "graph", "lifecycle", "audit", "health", "policies", "tokens")
    yield from (f"/ui/{path}" for path in tabs)


def test_nothing_runs_and_nothing_is_loaded(browser: Browser, hostile: tuple[ServerProcess, list[str]]) -> None:
    server, paths = hostile
    watched = Requests()
    context = browser.new_context()
    watched.watch(context)
    page = context.new_page()
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    assert len(paths) > 100
    for path in paths:
        page.goto(server.url + path)
        assert page.evaluate(f"window.{MARK}") is None, path
        strange = "img[src='x'], iframe, video, base, meta[http-equiv], [onerror], [onload], [ontoggle], style, mglyph"
        assert page.locator(strange).count() == 0, path
        assert page.locator("a[href^='javascript:']").count() == 0, path
        assert page.evaluate("document.scripts.length") == 2, path
    context.close()
    assert watched.elsewhere(server) == []
    blocked = [line for line in watched.console if "Content Security Policy" in line]
    assert blocked == [], "nothing had to be blocked: it was never there"


def test_a_picture_of_a_procedure_runs_nothing_either(
    browser: Browser, hostile: tuple[ServerProcess, list[str]]
) -> None:
    server, _ = hostile
    machine = (
        '{"name": "<script>window.__ran=1</script>", "initial": "a", "states": ["a", "b"], '
        '"transitions": [{"trigger": "go", "source": "a", "dest": "b"}]}'
    )
    request = {"agent_id": "drawn", "type": "procedural", "content": machine}
    answer = server.post("/v0/remember", request)
    if answer.status != 200:  # such a name is refused
        request["content"] = machine.replace("<script>window.__ran=1</script>", "door")
        answer = server.post("/v0/remember", request)
    id = ok(answer)["id"]
    context = browser.new_context()
    watched = Requests()
    watched.watch(context)
    page = context.new_page()
    page.goto(f"{server.url}/ui/memories/{id}")
    assert page.evaluate("document.querySelector('.picture img').naturalWidth") > 0, "the picture is shown"
    page.goto(f"{server.url}/ui/memories/{id}/drawing.svg")
    assert page.evaluate("window.__ran") is None
    context.close()
    assert watched.elsewhere(server) == []
