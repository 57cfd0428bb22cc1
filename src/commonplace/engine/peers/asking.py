"""Questions by words, by keywords, or by conditions alone: found, counted, and the best of them first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commonplace.engine.core import Core
from commonplace.engine.memory.passages import indexed_text
from commonplace.engine.recall import recall
from commonplace.engine.recall.fan_out import one_question
from commonplace.engine.types import Hit, Query
from commonplace.stores import text as analysis
from commonplace.stores.base import Reach, Search
from commonplace.wire.filters import Condition, Where, any_of
from commonplace.wire.record import Memory, Principal

MAX_ASKED = recall.MAX_COUNTED  # memories looked at closely for one question
MIN_SHARE_OF_BEST = 0.1  # of the best one's relevance: what has less does not answer the question


@dataclass(slots=True, frozen=True)
class PeerQuery:
    """`text` in plain words, `keywords` of which one must occur, `where` what must hold; each may be absent."""

    agents: tuple[str, ...]
    text: str | None = None
    keywords: tuple[str, ...] = ()
    where: Where = ()


@dataclass(slots=True)
class Match:
    memory: Memory
    relevance: float
    keywords: tuple[str, ...] = ()  # of those asked for, which it has
    answers: bool = True  # or it is only shown, and does not count as recalled


@dataclass(slots=True)
class PeerAnswer:
    matches: list[Match]
    total: int
    cut: str | None = None  # what kept the answer from being complete


def in_domain(domain: str) -> Condition:
    """A project's memories, and those tagged with its name."""
    return any_of(Condition(("project",), "eq", domain), Condition(("tags",), "contains", domain))


def keywords_in(memory: Memory, keywords: Sequence[str]) -> tuple[str, ...]:
    """Which of the keywords occur in a memory: every word of them, in any form of it."""
    present = frozenset(analysis.decode(analysis.terms(indexed_text(memory)))[0].tolist())
    found = []
    for keyword in keywords:
        wanted = analysis.query_terms(keyword)
        if wanted and all(term in present for term in wanted):
            found.append(keyword)
    return tuple(found)


async def ask(core: Core, who: Principal, asked: PeerQuery, limit: int) -> PeerAnswer:
    for agent in asked.agents:
        core.require(who, agent, "reader")
    if asked.keywords:
        return await _by_keywords(core, who, asked, limit)
    if asked.text is not None:
        with one_question():
            return await _by_words(core, who, Query(asked.agents, asked.text, where=asked.where), limit)
    reach = Reach(who.tenant, asked.agents, asked.where, now=core.clock())
    page = await core.primary.scan(reach, limit=limit)
    return PeerAnswer([Match(memory, 1.0) for memory in page.memories], await core.primary.count(reach))


def least_relevance(hits: Sequence[Hit]) -> float:
    """What a hit must have beside these: by meaning everything is found, nearer or further. Nothing where relevance is
    not calibrated and so cannot be compared."""
    known = [hit.relevance for hit in hits if hit.relevance is not None]
    return MIN_SHARE_OF_BEST * max(known) if known and len(known) == len(hits) else 0.0


def _match(hit: Hit, keywords: tuple[str, ...] = ()) -> Match:
    return Match(hit.memory, recall.shown_score(hit), keywords, recall.answers(hit))


async def _by_words(core: Core, who: Principal, query: Query, limit: int) -> PeerAnswer:
    found = await recall.counted(core, who, query, limit, None)
    least = least_relevance(found.hits)
    matches = [_match(hit) for hit in found.hits if recall.shown_score(hit) >= least]
    total = found.total
    if len(matches) < len(found.hits):
        total = len(matches)
    elif least and total > len(matches):
        total = (await recall.counted(core, who, query, limit, least)).total
    return PeerAnswer(matches, total)


async def _by_keywords(core: Core, who: Principal, asked: PeerQuery, limit: int) -> PeerAnswer:
    """The keyword index finds the holders; words, where there are some, then put those that hold as many in order."""
    reach = Reach(who.tenant, asked.agents, asked.where, now=core.clock())
    candidates = await core.primary.search(Search(reach, " ".join(asked.keywords), limit=MAX_ASKED))
    cut = f"only the best {MAX_ASKED:,} that hold a keyword were looked at" if len(candidates) >= MAX_ASKED else None
    candidates.sort(key=lambda c: (-(c.keyword or 0.0), -c.memory.created_at, c.memory.id))
    holders = {c.memory.id: keywords_in(c.memory, asked.keywords) for c in candidates}
    holders = {id: words for id, words in holders.items() if words}
    if asked.text is not None and holders:
        only = Condition(("id",), "in", list(holders))
        query = Query(asked.agents, asked.text, where=(*asked.where, only))
        found = await recall.counted(core, who, query, len(holders), None)
        matches = [_match(hit, holders[hit.memory.id]) for hit in found.hits]
    else:
        share = {id: len(words) / len(asked.keywords) for id, words in holders.items()}
        matches = [
            Match(c.memory, share[c.memory.id], holders[c.memory.id]) for c in candidates if c.memory.id in holders
        ]
    matches.sort(key=lambda match: -len(match.keywords))
    return PeerAnswer(matches[:limit], len(matches), cut)
