"""Reviewing in a real Chromium: by keyboard, with an edit, and in a race."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from server_process import ServerProcess

Team = tuple[ServerProcess, dict[str, str]]


def review_of(team: Team, id: str) -> dict[str, Any]:
    server, tokens = team
    found: dict[str, Any] = server.get(f"/v0/reviews/{id}", token=tokens["operator"]).json
    return found


def clear(team: Team) -> None:
    """Whatever other tests have left waiting."""
    server, tokens = team
    waiting = server.get("/v0/reviews", token=tokens["operator"]).json["reviews"]
    if waiting:
        ids = [review["id"] for review in waiting]
        server.post("/v0/reviews", {"ids": ids, "approved": False}, token=tokens["operator"])


def focused_link(page: Page) -> str:
    return str(page.evaluate("document.activeElement.getAttribute('href')"))


def test_reviews_are_decided_by_keyboard_alone(team: Team, visit: Any, stage: Any) -> None:
    clear(team)
    first, second, third = (stage(f"Bob likes {what}") for what in ("tea", "coffee", "milk"))
    page = visit("alice")
    page.keyboard.press("j")
    assert focused_link(page) == f"/ui/inbox/{first}"
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert focused_link(page) == f"/ui/inbox/{first}"
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{first}")
    expect(page.get_by_role("main")).to_contain_text("Bob likes tea")
    page.keyboard.press("a")
    page.wait_for_url(f"**/{second}?said=approved")
    expect(page.get_by_role("status")).to_have_text("Approved.")
    page.keyboard.press("r")
    page.wait_for_url(f"**/{third}?said=rejected")
    page.keyboard.press("u")
    page.wait_for_url("**/ui/inbox")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("a")
    expect(page.get_by_role("status")).to_have_text("Approved 1 of 1.")
    assert [review_of(team, id)["status"] for id in (first, second, third)] == ["approved", "rejected", "approved"]
    assert review_of(team, first)["decision"]["reviewer"] == "alice"


def test_keys_are_letters_where_one_types(team: Team, visit: Any, stage: Any) -> None:
    id = stage("Bob has a cat")
    page = visit("alice", f"/ui/inbox/{id}")
    reason = page.get_by_label("Reason")
    reason.focus()
    page.keyboard.type("rather a guess")
    expect(reason).to_have_value("rather a guess")
    assert review_of(team, id)["status"] == "pending"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("r")  # the dialog is in front
    assert review_of(team, id)["status"] == "pending"
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    page.wait_for_url("**said=rejected**")
    assert review_of(team, id)["decision"]["reason"] == "rather a guess"


def test_edit_then_approve(team: Team, visit: Any, stage: Any) -> None:
    server, tokens = team
    id = stage("Bob lives in Osol", metadata={"tags": ["home"], "room": 3})
    page = visit("alice", f"/ui/inbox/{id}")
    page.keyboard.press("e")
    content = page.get_by_label("Content")
    expect(content).to_be_focused()
    content.fill("Bob lives in Oslo")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**said=approved**")
    decided = review_of(team, id)
    assert (decided["status"], decided["request"]["content"]) == ("approved", "Bob lives in Oslo")
    path = f"/v0/memories/{decided['memory_id']}?agent_id=assistant"
    kept = server.get(path, token=tokens["operator"]).json
    assert (kept["content"], kept["metadata"]) == ("Bob lives in Oslo", {"tags": ["home"], "room": 3})


def test_of_two_who_decide_one_wins_and_the_other_is_told(team: Team, visit: Any, stage: Any) -> None:
    id = stage("Bob sold the house")
    alice, bob = visit("alice", f"/ui/inbox/{id}"), visit("bob", f"/ui/inbox/{id}")
    # Both requests are on their way before either is answered.
    pages, waiting = (alice, bob), []
    for page, name in zip(pages, ("Approve", "Reject"), strict=True):
        page.route(f"**/ui/inbox/{id}", lambda route: waiting.append(route))
        page.get_by_role("button", name=name, exact=True).click(no_wait_after=True)
    while len(waiting) < 2:
        alice.wait_for_timeout(20)  # lets the requests come in
    for route in waiting:
        route.continue_()
    for page in pages:
        expect(page.locator("[role=status], [role=alert]")).to_have_count(1)
    told = [page.locator("[role=alert]") for page in pages]
    losers = [page for page, alert in zip(pages, told, strict=True) if alert.count()]
    assert len(losers) == 1
    decided = review_of(team, id)
    winner = "alice" if losers == [bob] else "bob"
    assert decided["decision"]["reviewer"] == winner
    assert decided["status"] == ("approved" if winner == "alice" else "rejected")
    expect(losers[0].get_by_role("alert")).to_contain_text(f"was {decided['status']} already by {winner}")


def test_what_has_moved_on_is_shown_anew_instead_of_approved(team: Team, visit: Any) -> None:
    server, tokens = team
    base = {"agent_id": "assistant"}
    made = server.post(
        "/v0/remember", {**base, "type": "semantic", "content": "the door is red"}, token=tokens["operator"]
    ).json["id"]
    change = {**base, "content": "the door is blue", "approval_required": True}
    review = server.call("PATCH", f"/v0/memories/{made}", change, token=tokens["agent"]).json["review_id"]
    page = visit("alice", f"/ui/inbox/{review}")
    expect(page.locator("del")).to_have_text("red")
    expect(page.locator("ins")).to_have_text("blue")
    now = {**base, "content": "the door is green"}
    assert server.call("PATCH", f"/v0/memories/{made}", now, token=tokens["operator"]).status == 200
    page.keyboard.press("a")
    expect(page.get_by_role("alert")).to_contain_text("look again")
    expect(page.locator("del")).to_have_text("green")
    assert review_of(team, review)["status"] == "pending"
    page.keyboard.press("a")
    page.wait_for_url("**said=approved**")


def test_everything_ticked_is_decided_together(team: Team, visit: Any, stage: Any) -> None:
    clear(team)
    ids = [stage(f"note {i}") for i in range(3)]
    page = visit("bob")
    page.get_by_label("all on this page").check()
    page.get_by_role("button", name="Reject ticked").click()
    expect(page.get_by_role("status")).to_have_text("Rejected 3 of 3.")
    assert {review_of(team, id)["status"] for id in ids} == {"rejected"}


def test_it_works_without_scripts(team: Team, visit: Any, stage: Any) -> None:
    clear(team)
    id = stage("Bob plays chess")
    page = visit("alice", java_script_enabled=False)
    page.get_by_role("link", name="Bob plays chess").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Content").fill("Bob plays go")
    page.get_by_role("button", name="Approve as edited").click()
    expect(page.get_by_role("status")).to_have_text("Approved.")
    assert review_of(team, id)["request"]["content"] == "Bob plays go"
    expect(page.get_by_role("button", name="?")).to_have_count(0)


def test_a_link_from_another_site_opens_the_review(team: Team, visit: Any, stage: Any, requests: Any) -> None:
    """Although the cookie is SameSite=Strict: an approval URL is clicked in a chat or a mail."""
    id = stage("Bob runs")
    page = visit("alice")
    other = page.context.new_page()
    other.route("http://chat.example/", lambda route: route.fulfill(
        content_type="text/html", body=f'<a href="{team[0].url}/ui/inbox/{id}">review</a>'))  # fmt: skip
    other.goto("http://chat.example/")
    other.get_by_role("link", name="review").click()
    expect(other.get_by_role("main")).to_contain_text("Bob runs")
    requests.urls.remove("http://chat.example/")


def test_a_form_without_the_sessions_own_token_decides_nothing(team: Team, visit: Any, stage: Any) -> None:
    id = stage("Bob has a boat")
    page = visit("alice", f"/ui/inbox/{id}")
    page.evaluate("document.querySelectorAll('[name=csrf]').forEach((field) => { field.value = '0'.repeat(64); })")
    page.keyboard.press("a")
    expect(page.get_by_role("alert")).to_contain_text("load the page and try again")
    assert review_of(team, id)["status"] == "pending"


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:9"], ids=["another site", "another port"])
def test_a_form_of_another_origin_decides_nothing(browser: Browser, team: Team, stage: Any, origin: str) -> None:
    """Of the same site, which another port is, the browser even sends the cookie along."""
    server, tokens = team
    id = stage("Bob has a plane")
    button = '<button name="decision" value="approve">Go</button>'
    form = f'<form method="post" action="{server.url}/ui/inbox/{id}">{button}'
    context = browser.new_context()
    context.route(f"{origin}/**", lambda route: route.fulfill(content_type="text/html", body=form))
    page = context.new_page()
    page.goto(f"{server.url}/ui/inbox")
    page.get_by_label("Token").fill(tokens["alice"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/inbox")
    page.goto(f"{origin}/")
    page.get_by_role("button").click()
    page.wait_for_url(f"{server.url}/**")
    expect(page.locator("body")).to_contain_text("may not call this server")
    assert review_of(team, id)["status"] == "pending"
    context.close()
