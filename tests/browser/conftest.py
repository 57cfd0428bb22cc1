"""A browser, and servers with something to show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from chromium import Requests, launched
from server_process import ServerProcess, run_server, token
from system_packages import NotInstalled

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

REVIEWERS = ("alice", "bob")


@pytest.fixture(scope="module")  # while Playwright runs, no other test of this process could run an event loop
def browser() -> Iterator[Browser]:
    pytest.importorskip("playwright", reason="playwright is not installed: pip install -e '.[test]'")
    from playwright.sync_api import expect

    expect.set_options(timeout=60_000)  # of its own it gives a page five seconds, however busy the machine is
    try:
        with launched() as found:
            yield found
    except NotInstalled as why:
        pytest.skip(f"NOT TESTED IN A BROWSER: {why}")


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, dict[str, str]]]:
    """A server that asks for tokens, and those of two reviewers and of an agent."""
    data = tmp_path_factory.mktemp("team")
    made = {"operator": token(data, "--role", "admin", "--name", "operator")}
    made |= {name: token(data, "--role", "reviewer", "--name", name) for name in REVIEWERS}
    made["agent"] = token(data, "--role", "writer", "--name", "agent")
    with run_server(data) as server:
        yield server, made


@pytest.fixture
def requests(team: tuple[ServerProcess, dict[str, str]]) -> Iterator[Requests]:
    """Whatever a test does: no request leaves the page, and the browser has nothing to complain about."""
    watched = Requests()
    yield watched
    assert watched.urls
    assert watched.elsewhere(team[0]) == []
    # A refusal is a page with another status, which the console repeats.
    wrong = [line for line in watched.console if line.startswith(("error", "warning"))]
    told = [line for line in wrong if not line.startswith("error: Failed to load resource")]
    assert told == []


Visit = Callable[..., "Page"]


@pytest.fixture
def visit(browser: Browser, team: tuple[ServerProcess, dict[str, str]], requests: Requests) -> Iterator[Visit]:
    """Someone at the page, logged in by hand; each has a browser of their own."""
    server, tokens = team
    contexts: list[BrowserContext] = []

    def begin(name: str, path: str = "/ui/inbox", **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        requests.watch(context)
        page = context.new_page()
        page.goto(server.url + path)
        page.get_by_label("Token").fill(tokens[name])
        page.keyboard.press("Enter")
        page.wait_for_url("**" + path)
        return page

    yield begin
    for context in contexts:
        context.close()


Stage = Callable[..., str]


@pytest.fixture
def stage(team: tuple[ServerProcess, dict[str, str]]) -> Stage:
    """Ask for a memory that waits for a reviewer; the id of its review."""
    server, tokens = team

    def remember(content: str, **fields: Any) -> str:
        request = {"agent_id": "assistant", "type": "semantic", "content": content, "approval_required": True, **fields}
        review: str = server.post("/v0/remember", request, token=tokens["agent"]).json["review_id"]
        return review

    return remember
