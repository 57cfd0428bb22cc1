"""Memory as something to read: the resources `memory://…`."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

from commonplace.__about__ import __version__
from commonplace.serve.mcp import ours
from commonplace.serve.mcp.table import Document, Session
from commonplace.wire.errors import ValidationError

_ASKED = ("q", "k", "user_id")


async def status(session: Session, uri: str) -> Document:
    found = await (await session.engine()).upkeep.status(session.who)
    answer: Document = {"version": __version__, "agent": session.agent}
    answer |= {name: found[name] for name in ("agents", "memories", "pending_reviews")}
    if found["embedder"]:
        answer["embedder"] = found["embedder"]["name"]
    return answer


async def memory(session: Session, uri: str) -> Document:
    agent, id = _parts(uri)
    return await ours.get(session, {"agent_id": agent, "id": id})


async def recall(session: Session, uri: str) -> Document:
    """The paper's resource mode: the URI carries the query, the body is the whole response."""
    agent, _ = _parts(uri)
    asked = dict(parse_qsl(urlsplit(uri).query, keep_blank_values=True))
    if unknown := sorted(asked.keys() - set(_ASKED)):
        raise ValidationError(f"recall takes {', '.join(_ASKED)}, not {unknown[0]!r:.80}")
    arguments: Document = {"agent_id": agent, "query": asked.get("q", "")}
    if "k" in asked:
        arguments["k"] = int(asked["k"]) if asked["k"].isdecimal() and len(asked["k"]) < 6 else asked["k"]
    if "user_id" in asked:
        arguments["user_id"] = asked["user_id"]
    return await ours.recall(session, arguments)


async def complete(session: Session, ref: Document, name: str, typed: str) -> list[str]:
    """Agents by name, where an address of ours wants one."""
    if ref.get("type") != "ref/resource" or not str(ref.get("uri")).startswith("memory://") or name != "agent":
        return []
    names = await (await session.engine()).agent_names(session.who)
    mine = {session.agent} if session.who.may_use(session.agent) else set()
    return sorted(agent for agent in mine.union(names) if agent.startswith(typed))


def _parts(uri: str) -> tuple[str, str]:
    """Agent and what follows it. The agent is no host name, so its letters keep their case."""
    agent, _, rest = uri.removeprefix("memory://").partition("?")[0].partition("/")
    return unquote(agent), unquote(rest)
