"""*Graph*: what is stated, as a picture that one walks by its names."""

from __future__ import annotations

from typing import Any

from commonplace.ui.graph_drawing import draw
from commonplace.ui.page import Answer, PageRequest, PageRoute, TemplatePage

_AROUND = 24  # statements about the thing in the middle
_FURTHER = 5  # and about each of its neighbours
_NEIGHBOURS = 12
_SUBJECTS = 60


async def show_graph(call: PageRequest) -> Answer:
    graph, who = call.engine.graph, call.who
    names = await call.engine.agent_names(who)
    agent = call.query.get("agent", "") or (names[0] if names else "")
    about = call.query.get("about", "").strip()
    values: dict[str, Any] = {
        "names": names, "agent": agent, "about": about, "drawing": None, "statements": [], "subjects": [],
        "counts": None, "empty_store": not names,
    }  # fmt: skip
    if not agent:
        return TemplatePage("graph.html", values)
    values["counts"] = await graph.counts(who, agent)
    if not about:
        values["subjects"] = await graph.subjects(who, agent, _SUBJECTS)
        return TemplatePage("graph.html", values)
    statements = list(await graph.around(who, agent, about, limit=_AROUND))
    known = {triple.id for triple in statements}
    others = dict.fromkeys(name for t in statements for name in (t.subject, t.object) if name != about)
    further = []
    for name in list(others)[:_NEIGHBOURS]:
        for triple in await graph.around(who, agent, name, limit=_FURTHER):
            if triple.id not in known:
                known.add(triple.id)
                further.append(triple)
    values |= {"statements": statements, "drawing": draw(about, [*statements, *further]) if statements else None}
    return TemplatePage("graph.html", values)


ROUTES = (PageRoute("GET", "graph", show_graph, "page_graph"),)
