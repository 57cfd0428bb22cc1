"""The documentation's site in a real Chromium: pages, navigation and search, and not one request to another machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chromium import Requests
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SITE = Path(os.environ.get("COMMONPLACE_DOCS_SITE") or Path(__file__).parents[2] / "site")


class _QuietFiles(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not (SITE / "index.html").exists():
        pytest.skip("THE SITE IS NOT BUILT, SO NOBODY WALKED IT: run `make docs`")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietFiles, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context()
    watched = Requests()
    watched.watch(context)
    found = context.new_page()
    found.goto(f"{address}/index.html")
    yield found
    context.close()
    assert watched.urls
    assert [url for url in watched.urls if not url.startswith((address, "data:", "blob:"))] == []
    assert [line for line in watched.console if line.startswith("error")] == []


def test_a_reader_walks_from_the_first_page_to_a_recipe(page: Page) -> None:
    expect(page.get_by_role("heading", level=1).first).to_contain_text("Commonplace")
    page.get_by_role("link", name="Ten minutes").first.click()
    page.wait_for_url("**/tutorial.html")
    for picture in page.locator("article img").all():
        picture.scroll_into_view_if_needed()
        expect(picture).to_have_js_property("complete", True)
        assert picture.evaluate("node => node.naturalWidth") > 0
    page.get_by_role("link", name="a recipe").click()
    page.wait_for_url("**/recipes/index.html")
    page.locator("article").get_by_role("link", name="Deleting a person").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Deleting a person")


@pytest.mark.parametrize(
    ("asked", "found"),
    [("erase a person", "gdpr-deletion.html"), ("typescript client", "typescript.html"), ("nginx", "deployment.html")],
)
def test_search_finds_a_page_without_another_machine(page: Page, asked: str, found: str) -> None:
    page.locator("input.md-search__input").click()
    page.keyboard.type(asked)
    expect(page.locator(f".md-search-result__link[href*='{found}']").first).to_be_visible(timeout=20_000)


def test_every_part_leads_to_what_people_look_for(page: Page) -> None:
    for part, name, heading in (
        ("Use it", "TypeScript", "commonplace-memory"), ("Run it", "Deployment", "Deployment"),
        ("Run it", "Configuration", "Configuration"), ("Trust it", "Threats", "Threats"),
    ):  # fmt: skip
        page.locator(".md-tabs").get_by_role("link", name=part, exact=True).click()
        page.locator(".md-sidebar--primary").get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)


def test_the_python_page_is_made_from_docstrings(page: Page, address: str) -> None:
    page.goto(f"{address}/python.html")
    expect(page.locator("article")).to_contain_text("Safe to share between threads")
    assert page.locator(".doc-function, .doc-method").count() > 30


def test_every_page_of_the_navigation_is_there(page: Page, address: str) -> None:
    links = page.locator("nav a[href$='.html']").evaluate_all("nodes => [...new Set(nodes.map(node => node.href))]")
    assert len(links) > 40
    for link in links:
        answer = page.request.get(link)
        assert answer.status == 200, link
