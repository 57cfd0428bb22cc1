"""The API page in a real Chromium: every operation is there, calls are really made, and nothing leaves the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from chromium import Requests
from playwright.sync_api import Page, expect
from server_process import PROTOCOLS, ServerProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Team = tuple[ServerProcess, dict[str, str]]
_CELLS = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


@pytest.fixture
def open_page(browser: Browser, team: Team) -> Iterator[Callable[..., Page]]:
    """The page of a server that asks for tokens; whatever a test does, no request goes elsewhere."""
    server, _ = team
    watched = Requests()
    contexts = []

    def visit(path: str = "/docs", **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        watched.watch(context)
        page = context.new_page()
        page.goto(server.url + path)
        expect(page.locator("#api")).to_have_attribute("aria-busy", "false")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert watched.urls
    assert [url for url in watched.urls if not url.startswith((f"{server.url}/", "data:"))] == []
    # A refusal is what some tests are about, and the console repeats it; a policy that was broken is not.
    told = [line for line in watched.console if line.startswith(("error", "warning"))]
    assert [line for line in told if "Failed to load resource" not in line] == []


def _send(page: Page, operation: str, body: dict[str, Any] | None = None, **inputs: str) -> Any:
    """What an operation answers when it is tried on the page."""
    box = page.locator(f"details[id='{operation}']")
    if box.get_attribute("open") is None:
        box.locator("summary").click()
    for name, value in inputs.items():
        box.locator(f"[id='{operation}-{name}']").fill(value)
    if body is not None:
        box.locator("textarea").fill(json.dumps(body))
    box.get_by_role("button", name="Send").click()
    expect(box.get_by_role("button", name="Send")).to_be_enabled()
    expect(box.locator(".status")).to_contain_text("ms")
    return json.loads(box.locator(".answer").text_content() or "null")


def test_every_operation_is_on_the_page(open_page: Callable[..., Page]) -> None:
    page = open_page()
    shown = page.locator("details").evaluate_all("boxes => boxes.map(box => box.id)")
    assert sorted(shown) == sorted(route.operation for protocol in PROTOCOLS for route in protocol.routes)


def test_every_parameter_and_field_is_explained(open_page: Callable[..., Page], team: Team) -> None:
    """As the server describes it, with what it is by default and at most."""
    page = open_page()
    described = team[0].get("/openapi.json").json
    for path, methods in described["paths"].items():
        for operation in methods.values():
            box = page.locator(f"details[id='{operation['operationId']}']")
            box.evaluate("box => { box.open = true; }")
            expect(box.get_by_role("button", name="Send")).to_be_visible()
            told = box.locator(".fields tr").evaluate_all(
                "rows => rows.map(row => [...row.cells].map(c => c.textContent))"
            )
            for parameter in operation.get("parameters", ()):
                shown = [text for name, _, text in told if name == parameter["name"]]
                assert any(text.startswith(parameter["description"]) for text in shown), (path, parameter["name"])
            assert [row for row in told if not row[2]] == [], path
            box.evaluate("box => { box.open = false; }")
    page.locator("details[id='list']").evaluate("box => { box.open = true; }")
    expect(page.locator("details[id='list'] tr", has_text="limit").first).to_contain_text("1 to 1000")


def test_a_memory_is_kept_and_found_by_trying(open_page: Callable[..., Page], team: Team) -> None:
    page = open_page("/docs#remember")
    box = page.locator("details[id='remember']")
    expect(box).to_have_attribute("open", "")
    suggested = json.loads(box.locator("textarea").input_value())
    assert suggested.keys() >= {"agent_id", "type", "content"}, "what must be given is there already"
    assert _send(page, "remember")["error"]["code"] == "unauthenticated"
    expect(box.locator(".status")).to_have_class("status bad")

    page.get_by_label("Token").fill(team[1]["agent"])
    kept = _send(page, "remember", {"agent_id": "trier", "type": "semantic", "content": HOSTILE})
    expect(box.locator(".status")).to_have_class("status good")
    assert "$COMMONPLACE_TOKEN" in (box.locator(".curl").text_content() or "")
    assert team[1]["agent"] not in (box.locator(".curl").text_content() or ""), "a token is not there to be copied"

    found = _send(page, "recall", {"agent_id": "trier", "query": "img src onerror document title", "min_score": 0})
    assert [hit["content"] for hit in found["results"]] == [HOSTILE], "as text, not as markup"
    assert page.title() == "Commonplace API"
    assert _send(page, "get", id=kept["id"], agent_id="trier")["content"] == HOSTILE


def test_what_cannot_be_sent_is_said(open_page: Callable[..., Page]) -> None:
    page = open_page("/docs#recall")
    box = page.locator("details[id='recall']")
    box.locator("textarea").fill("{nonsense")
    box.get_by_role("button", name="Send").click()
    expect(box.locator(".status")).to_contain_text("Not sent: ")
    page.locator("details[id='get'] summary").click()
    other = page.locator("details[id='get']")
    other.get_by_role("button", name="Send").click()
    expect(other.locator(".status")).to_contain_text("id is a part of the address and must be given")


def test_operations_are_found_by_words(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.get_by_label("Find").fill("audit verify")
    expect(page.locator("details:visible")).to_have_count(1)
    expect(page.get_by_role("status").first).to_have_text("1 operation")
    page.get_by_label("Find").fill("no operation is called so")
    expect(page.get_by_role("status").first).to_have_text("0 operations")
    page.get_by_label("Find").fill("")
    expect(page.locator("details:visible").nth(50)).to_be_visible()


def test_it_fits_a_phone(open_page: Callable[..., Page]) -> None:
    page = open_page("/docs#remember", viewport={"width": 390, "height": 780})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
