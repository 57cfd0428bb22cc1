"""What jobs did, looked at and taken back in a real Chromium."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect
from sample import consolidate
from server_process import ServerProcess

Team = tuple[ServerProcess, dict[str, str]]


def test_a_run_is_found_by_keyboard_and_undone_by_one_click(team: Team, visit: Any) -> None:
    server, tokens = team
    run = consolidate(server, tokens["operator"])
    page = visit("alice", "/ui/inbox")
    page.keyboard.press("g")
    page.keyboard.press("l")
    page.wait_for_url("**/ui/lifecycle")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/ui/lifecycle/{run}")
    expect(page.get_by_role("main")).to_contain_text("Alice takes the early train on Tuesdays")
    expect(page.get_by_label("Why").first).to_contain_text("recency")
    page.get_by_role("button", name="Undo", exact=True).last.click()
    expect(page.get_by_role("status")).to_have_text("1 memory brought back.")
    page.get_by_role("button", name="Undo all of it").click()
    expect(page.get_by_role("status")).to_have_text("1 memory brought back.")
    expect(page.get_by_role("main")).to_contain_text("Undone by")
    listed = server.get("/v0/memories?agent_id=journal", token=tokens["operator"]).json["memories"]
    assert sorted((each["content"], each["status"]) for each in listed) == [
        ("Alice takes the early train on Tuesdays", "live"),
        ("Bob wondered whether it would rain", "live"),
    ]


def test_a_procedure_is_drawn_as_it_is(team: Team, visit: Any) -> None:
    """In the page, under its policy: a picture that did not load has no size."""
    server, tokens = team
    machine = (
        '{"name": "door", "initial": "shut", "states": ["shut", "open", "locked"], "current": "open", "transitions": '
        '[{"trigger": "push", "source": "shut", "dest": "open"}, {"trigger": "pull", "source": "open", "dest": "shut"},'
        ' {"trigger": "lock", "source": "shut", "dest": "locked", "conditions": ["has_key"]}]}'
    )
    request = {"agent_id": "assistant", "type": "procedural", "content": machine}
    id = server.post("/v0/remember", request, token=tokens["operator"]).json["id"]
    page = visit("alice", f"/ui/memories/{id}")
    assert page.evaluate("document.querySelector('.picture img').naturalWidth") > 100
    page.goto(f"{server.url}/ui/memories/{id}/drawing.svg")
    states = page.evaluate(
        "[...document.querySelectorAll('g')].map(g => [g.getAttribute('class'), g.querySelector('text').textContent])"
    )
    assert sorted(states) == [["current", "open"], ["state", "locked"], ["state", "shut"]]
    labels = page.evaluate("[...document.querySelectorAll('text.label')].map(t => t.textContent)")
    assert sorted(labels) == ["lock [has_key]", "pull", "push"]
    assert page.evaluate("getComputedStyle(document.querySelector('.current rect')).fill") == "rgb(255, 243, 196)"
