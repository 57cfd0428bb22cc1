"""*Memories*: finding them, with the reasons why; and all there is to know about one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from commonplace.engine import Engine, Forget, Hit, Query, Update, shown_score, tagged
from commonplace.ui.page import Answer, Download, PageRequest, PageRoute, Redirect, TemplatePage
from commonplace.ui.review_view import fields_of, text_of
from commonplace.ui.templating import segment
from commonplace.ui.text_diff import side_by_side
from commonplace.wire.canonical import is_uuid
from commonplace.wire.errors import Fault, NotFound, ValidationError
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import MEMORY_TYPES, Memory, Principal
from commonplace.wire.times import DAY_MS

PAGE = 50
FOUND = 20  # hits of a search
_MONTHS = 12  # of the timeline
_NEIGHBOURS = 12
_SHARES = 4  # of a score that are told
_DAY = timedelta(days=1)
_UNCUT = "; min_score 0 shows what was found"  # of a recall's note: here it is a link
_SAID = {"restored": "It is back.", "unchanged": "There was nothing to undo.", "kept": "It no longer expires."}
#: Fields of a memory in the order people look for them; those that are empty are left out.
_SHOWN = ("title", "kind", "user_id", "project", "tags", "entity_name", "confidence", "importance", "source",
          "event_time", "expires_at", "session_id", "speaker", "supersedes", "merged_into", "aliases",
          "recalls", "last_recalled_at", "demotion", "metadata", "privacy")  # fmt: skip


async def show_memories(call: PageRequest) -> Answer:
    query = call.query
    names = await call.engine.agent_names(call.who)
    chosen = query.get("agent", "")
    agents = (chosen,) if chosen else tuple(names)
    text = query.get("q", "").strip()
    where = _where(query)
    kept = {name: query.get(name) for name in ("agent", "type", "tag", "since", "until")}
    values: dict[str, Any] = {
        "names": names, "agent": chosen, "q": text, "types": MEMORY_TYPES, "kind_of": query.get("type", ""),
        "tag": query.get("tag", ""), "since": query.get("since", ""), "until": query.get("until", ""),
        "hits": [], "days": [], "following": None, "note": None, "uncut": None, "months": [],
        "forgotten": query.get("forgotten", ""), "empty_store": not agents,
    }  # fmt: skip
    if agents and text:
        least = 0.0 if query.get("min_score") == "0" else None
        asked = Query(agents, text, k=FOUND, where=where, explain=True, min_score=least)
        found = await call.engine.recall(call.who, asked)
        values |= {"hits": [_explained(hit) for hit in found.hits], "took": found.latency_ms}
        values["note"] = found.remarks and found.remarks.replace(_UNCUT, "")
        if values["note"] != found.remarks:
            values["uncut"] = call.link("memories", q=text, **kept, min_score=0)
    elif agents:
        cursor = query.get("cursor") or None
        page = await call.engine.list(call.who, agents, where, limit=PAGE, cursor=cursor)
        following = call.link("memories", **kept, cursor=page.next_cursor) if page.next_cursor else None
        values |= {"days": _by_day(page.memories), "following": following}
        if cursor is None and not call.fragment:
            values["months"] = await _timeline(call.engine, call.who, agents, call, kept)
    return TemplatePage("memory_list.html" if call.fragment else "memories.html", values)


def _where(query: Mapping[str, str]) -> Where:
    found: list[Condition] = []
    if kind := query.get("type"):
        if kind not in MEMORY_TYPES:
            raise ValidationError(f"type is one of {', '.join(MEMORY_TYPES)}, not {kind!r:.80}", field="type")
        found.append(Condition(("type",), "eq", kind))
    if tag := query.get("tag", "").strip():
        found.append(tagged(tag))
    if since := day_start("since", query.get("since", "")):
        found.append(Condition(("created_at",), "gte", since))
    if until := day_start("until", query.get("until", "")):
        found.append(Condition(("created_at",), "lt", until + DAY_MS))
    return tuple(found)


def day_start(name: str, text: str) -> int | None:
    """2026-11-16 as the first millisecond of it in UTC; None where nothing is given."""
    if not text.strip():
        return None
    try:
        return int(datetime.strptime(text.strip(), "%Y-%m-%d").replace(tzinfo=UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise ValidationError(f"{name} must be a day, such as 2026-11-16", field=name) from None


def _explained(hit: Hit) -> dict[str, Any]:
    why = hit.explain or {}
    legs = [(name, why[name]) for name in ("dense", "keyword", "late") if why.get(name) is not None]
    shares = sorted((why.get("shares") or {}).items(), key=lambda share: -abs(share[1]))
    return {
        "memory": hit.memory, "score": shown_score(hit), "relevance": hit.relevance, "rank": why.get("rank"),
        "legs": legs, "shares": [share for share in shares if share[1]][:_SHARES], "hop": why.get("hop"),
    }  # fmt: skip


def _by_day(memories: Sequence[Memory]) -> list[tuple[str, list[Memory]]]:
    days: dict[str, list[Memory]] = {}
    for memory in memories:
        days.setdefault(text_of("created_at", memory.created_at)[:10], []).append(memory)
    return list(days.items())


async def _timeline(
    engine: Engine, who: Principal, agents: tuple[str, ...], call: PageRequest, kept: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """How many were written in each of the last months, by what else is chosen; the height of its bar in percent."""
    now = datetime.fromtimestamp(engine.clock() / 1000, UTC)
    first = datetime(now.year, now.month, 1, tzinfo=UTC)
    months: list[dict[str, Any]] = []
    fixed = tuple(c for c in _where(call.query) if c.path != ("created_at",))
    for _ in range(_MONTHS):
        end = (first + timedelta(days=32)).replace(day=1)
        span = (("gte", first), ("lt", end))
        inside = tuple(Condition(("created_at",), op, int(at.timestamp() * 1000)) for op, at in span)
        last = (end - _DAY).strftime("%Y-%m-%d")
        link = call.link("memories", **{**kept, "since": first.strftime("%Y-%m-%d"), "until": last})
        count = await engine.count(who, agents, (*fixed, *inside))
        months.append({"label": first.strftime("%b %Y"), "count": count, "link": link})
        first = (first - _DAY).replace(day=1)
    most = max(month["count"] for month in months)
    for month in months:
        month["height"] = round(100 * month["count"] / most) if most else 0
    return months[::-1] if most else []


# one memory


async def show_memory(call: PageRequest) -> Answer:
    memory = await call.engine.find(call.who, call.path["id"])
    versions = await call.engine.history(call.who, memory.agent_id, memory.id)
    drawn = False
    if memory.type == "procedural":
        try:
            await call.engine.procedures.show(call.who, memory.id, memory.agent_id)
            drawn = True
        except Fault:
            pass  # a how-to in words, which has no states to draw
    values = {
        "memory": memory, "fields": _fields(memory), "provenance": _provenance(memory),
        "versions": _changes(versions), "neighbours": await _neighbours(call, memory), "drawn": drawn,
        "statements": await _statements(call, memory), "may_write": call.may("writer"),
        "said": _SAID.get(call.query.get("said", "")), "undoable": _undoable(memory),
        "parts": [name for name in memory.provenance.get("merged", ()) if is_uuid(name)],
    }  # fmt: skip
    return TemplatePage("memory.html", values)


def _undoable(memory: Memory) -> str | None:
    """What an undo would take back, in a word."""
    return "archived" if memory.status == "archived" else "demoted" if memory.demotion != 1.0 else None


def _fields(memory: Memory) -> dict[str, str]:
    given = {name: getattr(memory, name) for name in _SHOWN}
    told = {name: value for name, value in given.items() if value not in (None, "", [], {}, 0)}
    if memory.demotion == 1.0:
        told.pop("demotion", None)
    return fields_of(told)


def _provenance(memory: Memory) -> dict[str, str]:
    return {name: text_of(name, value) for name, value in memory.provenance.items() if value not in (None, "", [], {})}


def _changes(versions: Sequence[Memory]) -> list[dict[str, Any]]:
    """Newest first, each with what it changed of the one before."""
    told = []
    for before, after in zip([None, *versions[:-1]], versions, strict=True):
        old = None if before is None else before.content
        left, right = side_by_side(old or "", after.content)
        fields = []
        if before is not None:
            was, now = _fields(before) | {"status": before.status}, _fields(after) | {"status": after.status}
            fields = [
                (n, was.get(n, ""), now.get(n, "")) for n in dict.fromkeys((*was, *now)) if was.get(n) != now.get(n)
            ]
        same = old == after.content
        told.append({"version": after.version, "at": after.updated_at, "same": same, "before": left, "after": right,
                     "first": before is None, "status": after.status, "fields": fields})  # fmt: skip
    return told[::-1]


async def _neighbours(call: PageRequest, memory: Memory) -> list[dict[str, Any]]:
    near = await call.engine.graph.neighbours(call.who, memory.agent_id, memory.id, 1)
    told = []
    for id, distance in list(near.items())[:_NEIGHBOURS]:
        try:
            told.append({"memory": await call.engine.get(call.who, memory.agent_id, id), "distance": distance})
        except NotFound:
            continue  # a rule withholds it
    return told


async def _statements(call: PageRequest, memory: Memory) -> Sequence[Any]:
    if not memory.entity_name:
        return []
    return await call.engine.graph.query(call.who, memory.agent_id, memory.entity_name)


async def draw_procedure(call: PageRequest) -> Answer:
    picture = await call.engine.procedures.draw(call.who, call.path["id"])

    async def chunks() -> AsyncIterator[bytes]:
        yield picture.encode("utf-8", "replace")

    return Download("", "image/svg+xml", chunks())


async def forget(call: PageRequest) -> Answer:
    """Softly: it can be brought back until the retention job erases it."""
    memory = await call.engine.find(call.who, call.path["id"])
    request = Forget(memory.agent_id, [memory.id], reason=call.value("reason") or None)
    done = await call.engine.forget(call.who, request)
    if done.review_id is not None:
        return Redirect(call.link(f"inbox/{done.review_id}"))
    return Redirect(call.link("memories", forgotten=memory.id))


async def undo(call: PageRequest) -> Answer:
    """Whatever was done to it short of erasing: forgetting, archiving, demoting, merging, promoting."""
    id = call.path["id"]
    done = await call.engine.undo(call.who, [id], reason=call.value("reason") or None)
    return Redirect(call.link(f"memories/{segment(id)}", said="restored" if done.restored else "unchanged"))


async def keep(call: PageRequest) -> Answer:
    """Without an expiry; what was promised to be gone stays promised."""
    memory = await call.engine.find(call.who, call.path["id"])
    done = await call.engine.update(call.who, Update(memory.agent_id, memory.id, remove_expiry=True))
    if done.review_id is not None:
        return Redirect(call.link(f"inbox/{done.review_id}"))
    return Redirect(call.link(f"memories/{memory.id}", said="kept"))


ROUTES = (
    PageRoute("GET", "memories", show_memories, "page_memories"),
    PageRoute("GET", "memories/{id}", show_memory, "page_memory"),
    PageRoute("GET", "memories/{id}/drawing.svg", draw_procedure, "page_drawing"),
    PageRoute("POST", "memories/{id}/forget", forget, "page_forget"),
    PageRoute("POST", "memories/{id}/keep", keep, "page_keep"),
    PageRoute("POST", "memories/{id}/undo", undo, "page_undo"),
)
