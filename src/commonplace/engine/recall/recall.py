"""Recall: one question from its text to the hits that are shown, with its rate limit and its entry in the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from commonplace.engine import rate_limit
from commonplace.engine.core import Core
from commonplace.engine.memory.read import instant, with_shared
from commonplace.engine.outbox.shown_problems import shown_problems
from commonplace.engine.recall import fusion, hops, relevance
from commonplace.engine.recall.fan_out import FanOut, asks_for_copies, one_question
from commonplace.engine.recall.fusion import OVERFETCH
from commonplace.engine.recall.ranking import Blend, RankedCandidate, with_verdicts
from commonplace.engine.recall.recall_log import RecallEntry, RecallLog
from commonplace.engine.recall.replication_lag import lacking
from commonplace.engine.recall.search import search
from commonplace.engine.recall.understanding import ALL, RecallParts
from commonplace.engine.types import Hit, Query, RecallResult, SearchResult
from commonplace.stores.base import Reach, Transaction
from commonplace.wire.errors import ValidationError
from commonplace.wire.plain import check_not_blank
from commonplace.wire.record import ALL_AGENTS, Memory, Principal
from commonplace.wire.words import plural

MAX_QUERY_CHARS = 32_768
#: From this relevance on a hit is taken to answer: our tools tell models so, and only such hits count as recalled.
ANSWERS = 0.1
MAX_COUNTED = 1000  # hits of one counted search
_WIDER = 8


async def recall(core: Core, who: Principal, query: Query, parts: RecallParts = ALL) -> RecallResult:
    """The answer, neither paid for nor logged: that is `Recaller`'s."""
    with core.recall_priority.answering():
        return await _recall(core, who, query, parts)


async def _recall(core: Core, who: Principal, query: Query, parts: RecallParts) -> RecallResult:
    started = time.perf_counter()
    for agent in query.agents:
        core.require(who, agent, "reader")
    text = query.text.strip()
    check_not_blank(text, "query")
    if len(text) > MAX_QUERY_CHARS:
        raise ValidationError(
            f"query has {len(text):,} characters; at most {MAX_QUERY_CHARS:,} are searched for", field="query"
        )
    at = await instant(core, who, query.as_of, query.snapshot)
    reach = Reach(who.tenant, query.agents, query.where, now=core.clock(), as_of=at)
    routing = core.settings.routing.recall
    fans_out = bool(core.outbox.replicas) and routing != "primary_only"
    asks_all = fans_out and not asks_for_copies(query.where)
    found = await search(core, reach, text, query.k, parts=parts, snapshot=query.snapshot, fan_out=asks_all)
    beside = found.fan_out or FanOut()
    store = core.primary.name
    blend = found.blend
    signals = await relevance.gather_signals(core.judge, found.question, found.ranked, query, found.fit_name)
    ranked = with_verdicts(found.ranked, signals.logits, blend)
    only_beside = {candidate.memory.id for candidate in beside.added}
    lists = {store: [(r.memory.id, r.score) for r in ranked if r.memory.id not in only_beside]} | beside.lists
    missing = await _missing(core, beside, [r.memory for r in ranked], lists, query.k, reach.now or 0)
    counted: dict[str, fusion.RankedPlaces] = {
        **lists,
        **{
            name: fusion.with_missing(lists[name], lists[store], ids, OVERFETCH * query.k)
            for name, ids in missing.items()
        },
    }
    fused = fusion.fuse(counted, query.fusion, weights=beside.weights, quorum=query.quorum)
    if routing == "rerank":  # what the others name counts, and not where they put it
        agreed = {id for id, _ in fused}
        own = [(r.memory.id, r.score) for r in ranked if r.memory.id in agreed]
        fused = fusion.fuse({store: own}, query.fusion)
    near = await hops.nearest_distances(core, reach, query, [id for id, _ in fused])
    fused = fusion.boost_hops(fused, near) if near else fused
    by_id = {r.memory.id: (place, r) for place, r in enumerate(ranked)}
    # Replicas may name memories that ranking has left out; only what was ranked is shown.
    fused = [(id, score) for id, score in fused if id in by_id]
    ordered = [by_id[id][1] for id, _ in fused]
    demoted = {id: score * _demotion(by_id[id][1].memory, query) for id, score in fused}
    best = sorted(range(len(ordered)), key=lambda place: -demoted[ordered[place].memory.id])[: query.k]
    # Relevance is of the order before demotion, which says nothing of what a memory answers.
    assessed = relevance.assess(signals, ordered, query, sorted(best))
    for hit in assessed.hits:
        hit.score = demoted[hit.found.memory.id]
    assessed.hits.sort(key=lambda hit: -hit.score)
    tied = await hops.supporting_ids(core, reach, query, [h.found.memory.id for h in assessed.hits])
    hits = []
    # Of another time what it is now is asked, too; of now it is what was found.
    memories = [h.found.memory for h in assessed.hits]
    shown = await (core.policies.shown if at is None else core.policies.shown_versions)(who, memories)
    seen_by_id = {memory.id: memory for memory in shown}
    named = {h.found.same_as for h in assessed.hits if h.found.same_as is not None}.union(*tied.values())
    withheld = await core.policies.withheld(who, named)
    for hit in assessed.hits:
        id = hit.found.memory.id
        if (seen := seen_by_id.get(id)) is None:
            continue
        why: dict[str, Any] | None = None
        if query.explain:
            hop = {"hop": near[id]} if id in near else {}
            why = {**_why(store, *by_id[id], blend, fused=hit.score), **hop, **(hit.explain or {})}
            if hit.found.same_as in withheld:
                del why["same_as"]
            if beside.lists:
                why["stores"] = _places(counted, missing, id)
        support = [other for other in tied.get(id, ()) if other not in withheld]
        hits.append(Hit(seen, hit.score, _source(lists, store, id), hit.relevance, support, why))
    explain: dict[str, Any] | None = None
    if query.explain:
        explain = {"candidates": len(found.ranked), "dense": found.dense, "as_of_seq": at}
        explain |= {"understood": found.question.explain(), "left_out": parts.left_out()}
        explain |= {"relevance": assessed.explain} if assessed.explain else {}
        explain |= {"stores": beside.counts, "skipped": beside.skipped} if found.fan_out else {}
    latency = (time.perf_counter() - started) * 1000
    keywords_only = core.note if not found.dense and found.question.telling else None
    # Whoever asked for a least relevance must hear that it was not applied, whatever else there is to say.
    second_note = core.second.note if core.second.ready else None
    note: str | None = "; ".join(filter(None, (keywords_only, second_note, assessed.note)))
    note = note or (assessed.reason if not hits else None) or hops.hops_unavailable(core, query)
    skipped = [f"{name} was not asked: {why}" for name, why in beside.skipped.items()]
    answered = 1 + len(beside.lists)
    if query.quorum > answered:
        told = plural(answered, "store")
        skipped.append(
            f"quorum_k {query.quorum} leaves nothing, because only {told} answered; ask for at most {answered}"
        )
    note = "; ".join(filter(None, (note, *skipped))) or None
    return RecallResult(
        hits, [store, *beside.asked], latency, note=note, explain=explain, errors=shown_problems(who, beside.errors)
    )


def _source(lists: Mapping[str, fusion.RankedList], store: str, id: str) -> str:
    """Who found it: the primary if it did, else the first beside it; what is shown is the primary's row either way."""
    return next((name for name, listed in lists.items() if any(each == id for each, _ in listed)), store)


async def _missing(
    core: Core, beside: FanOut, ranked: Sequence[Memory], lists: Mapping[str, fusion.RankedList], k: int, asked_at: int
) -> dict[str, frozenset[str]]:
    """By store: what of the primary's best it could not name. Its silence is no vote against that."""
    best = {id for id, _ in lists[core.primary.name][: OVERFETCH * k]} if beside.lists else set()
    found = {}
    for name, listed in beside.lists.items():
        replica = core.outbox.replicas.named(name)
        assert replica is not None
        unnamed = best.difference(id for id, _ in listed)
        memories = [memory for memory in ranked if memory.id in unnamed]
        found[name] = await lacking(core, replica, beside.lags[name], memories, asked_at)
    return found


def _places(
    lists: Mapping[str, fusion.RankedPlaces], missing: Mapping[str, Set[str]], id: str
) -> dict[str, dict[str, float]]:
    """Of each store that found it, where it stands there and what that store says of it; `assumed` is the primary's."""
    return {
        name: {"rank": rank, "score": place[1]} | ({"assumed": True} if id in missing.get(name, ()) else {})
        for name, listed in lists.items()
        for rank, place in enumerate(listed)
        if place is not None and place[0] == id
    }


def _demotion(memory: Memory, query: Query) -> float:
    """Of demotions only today's are known, so a snapshot leaves them out of account."""
    return 1.0 if query.snapshot is not None else memory.demotion


def _why(store: str, place: int, r: RankedCandidate, blend: Blend, fused: float) -> dict[str, Any]:
    shares = {name: round(blend.weights.get(name, 0.0) * value, 4) for name, value in r.features.items()}
    features = {name: round(value, 4) for name, value in r.features.items()}
    why = {"store": store, "rank": place, "dense": r.dense, "keyword": r.keyword, "late": r.late, "blend": r.score}
    why |= {"fused": fused}
    why |= {"stores": {store: {"rank": place, "score": r.score}}}
    why |= {"demotion": r.memory.demotion, "features": features, "shares": shares}
    return why | ({"same_as": r.same_as} if r.same_as else {})


def shown_relevance(hit: Hit) -> float:
    """0 to 1, and higher for the more relevant: the calibrated figure, else the share ranking gave it."""
    if hit.relevance is not None:
        return hit.relevance
    blended = (hit.explain or {}).get("blend", hit.score)
    return min(max(float(blended), 0.0), 1.0)


def shown_score(hit: Hit) -> float:
    """The one number that people are shown and hits stand in order of: its relevance, a quarter of it once demoted."""
    return round(shown_relevance(hit) * hit.memory.demotion, 4)


async def counted(core: Core, who: Principal, query: Query, limit: int, at_least: float | None) -> SearchResult:
    """Looks no further than it must: past the limit only while what lies there could still count."""
    with one_question():
        return await _counted(core, who, query, limit, at_least)


async def _counted(core: Core, who: Principal, query: Query, limit: int, at_least: float | None) -> SearchResult:
    width = limit
    # A cut-off of the caller's own takes the place of the default one, and is applied to the score that is shown.
    query = replace(query, explain=True, min_score=None if at_least is None else 0.0)
    while True:
        found = await recall(core, who, replace(query, k=width))
        passing = [hit for hit in found.hits if at_least is None or shown_score(hit) >= at_least]
        total = len(passing)
        if total < width or width >= MAX_COUNTED:
            break
        if not at_least and (found.explain or {}).get("dense"):
            # By meaning everything is found, nearer or further, so counting it needs no search.
            total = await core.primary.count(Reach(who.tenant, query.agents, query.where, now=core.clock()))
            break
        width = min(width * _WIDER, MAX_COUNTED)
    best = sorted(passing[:limit], key=lambda hit: -shown_score(hit))
    return SearchResult(best, min(total, MAX_COUNTED), found.remarks)


def answers(hit: Hit) -> bool:
    """Whether it counts as recalled; where relevance is not calibrated nobody can tell, and everything does."""
    return hit.relevance is None or hit.relevance >= ANSWERS


def _tail(hits: Sequence[Hit]) -> frozenset[str]:
    return frozenset(hit.memory.id for hit in hits if not answers(hit))


class Recaller:
    """Every way in which callers search: what it costs the agent's budget, and what the log says of it."""

    def __init__(self, core: Core, log: RecallLog) -> None:
        self._core = core
        self._log = log
        self._limit = core.settings.recalls_per_minute
        self._budget = rate_limit.per_minute(self._limit)

    async def recall(self, who: Principal, query: Query) -> RecallResult:
        query = self._with_shared(who, query)
        self.spend(who, query.agents)
        result = await recall(self._core, who, query)
        ids = [hit.memory.id for hit in result.hits]
        await self.log(who, query.agents, query.text, ids, counted=query.snapshot is None, tail=_tail(result.hits))
        return result

    async def search(self, who: Principal, query: Query, limit: int, at_least: float | None) -> SearchResult:
        query = self._with_shared(who, query)
        if not query.agents:
            return SearchResult([], 0)
        self.spend(who, query.agents)
        found = await counted(self._core, who, query, limit, at_least)
        await self.log(who, query.agents, query.text, [hit.memory.id for hit in found.hits], tail=_tail(found.hits))
        return found

    def _with_shared(self, who: Principal, query: Query) -> Query:
        return replace(query, agents=with_shared(who, query.agents)) if query.include_shared else query

    def has_budget(self, who: Principal, agent: str) -> bool:
        return self._budget is None or not self._budget.wait((who.tenant, agent))

    def spend(self, who: Principal, agents: tuple[str, ...]) -> None:
        if self._budget is None:
            return
        for agent in agents:
            self._core.require(who, agent, "reader")  # nobody spends the budget of an agent that is not theirs
        for agent in agents:
            if wait := self._budget.wait((who.tenant, agent)):
                raise rate_limit.rate_limited(wait, f"agent {agent!r} has used up its {self._limit} recalls a minute")
        for agent in agents:  # only now that none refuses
            self._budget.spend((who.tenant, agent))

    async def log(
        self,
        who: Principal,
        agents: tuple[str, ...],
        text: str,
        ids: Sequence[str],
        *,
        counted: bool = True,
        tail: frozenset[str] = frozenset(),
    ) -> None:
        """`tail` are those of the ids that were shown and do not answer."""
        await self._log.note(replace(self._entry(who, agents, text, ids, counted), tail=tail))

    def log_with_next_write(
        self, who: Principal, agents: tuple[str, ...], text: str, ids: Sequence[str], tail: frozenset[str]
    ) -> None:
        """As `log`, for whoever writes something of its own before it answers: `flush_with`."""
        self._log.hold([replace(self._entry(who, agents, text, ids, True), tail=tail)])

    def flush_with(self, tenant: str) -> AbstractContextManager[Callable[[Transaction], None]]:
        return self._log.flush_with(tenant)

    def _entry(
        self, who: Principal, agents: tuple[str, ...], text: str, ids: Sequence[str], counted: bool
    ) -> RecallEntry:
        agent = agents[0] if len(agents) == 1 else ALL_AGENTS
        return RecallEntry(who, agent, text, list(ids), self._core.clock(), counted)
