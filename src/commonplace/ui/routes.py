"""Every page: which address leads to it, and what the bar at the top offers to whom."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from commonplace.ui import audit, audit_proofs, graph, health, inbox, lifecycle, memories, policies, tokens
from commonplace.ui.page import Answer, PageRequest, PageRoute, Redirect
from commonplace.wire.record import Role


async def home(call: PageRequest) -> Answer:
    return Redirect(call.link("inbox"))


ROUTES: tuple[PageRoute, ...] = (
    PageRoute("GET", "", home, "page_home"),
    *inbox.ROUTES,
    *memories.ROUTES,
    *graph.ROUTES,
    *lifecycle.ROUTES,
    *audit.ROUTES,
    *audit_proofs.ROUTES,
    *health.ROUTES,
    *policies.ROUTES,
    *tokens.ROUTES,
)


class Tab(NamedTuple):
    path: str
    label: str
    key: str  # after "g", as people who keep to the keyboard type it
    role: Role = "reader"
    operator: bool = False


TABS = (
    Tab("inbox", "Inbox", "i"),
    Tab("memories", "Memories", "m"),
    Tab("graph", "Graph", "g"),
    Tab("lifecycle", "Lifecycle", "l"),
    Tab("audit", "Audit", "a", "reviewer"),
    Tab("health", "Health", "h"),
    Tab("policies", "Policies", "p", "reviewer"),
    Tab("tokens", "Tokens", "t", operator=True),
)


def tabs(call: PageRequest) -> list[Tab]:
    return [tab for tab in TABS if call.may(tab.role) and (call.who.is_operator or not tab.operator)]


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], PageRoute], ...]:
    made = []
    for route in ROUTES:
        parts = [
            f"(?P<{part[1:-1]}>[^/]+)" if part.startswith("{") else re.escape(part) for part in route.path.split("/")
        ]
        made.append((re.compile("/".join(parts) + r"\Z"), route))
    return tuple(made)


def find_route(method: str, path: str) -> tuple[PageRoute, dict[str, str]] | list[str]:
    """The route and what its path names; else the methods that this path has."""
    methods: list[str] = []
    for pattern, route in _patterns():
        if found := pattern.match(path):
            if route.method == method:
                return route, found.groupdict()
            methods.append(route.method)
    return methods
