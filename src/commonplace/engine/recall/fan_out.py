"""One question to every store beside the primary, side by side, and what their answers are worth.

A replica proposes ids; the primary's rows decide. What a replica says of a memory (its text, its scope, whether it is
live) is never shown: an id that the primary does not have within the question's reach is dropped, and so is one whose
text is not the primary's.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest

from commonplace.engine.core import Core
from commonplace.engine.outbox.answers import read_candidates
from commonplace.engine.outbox.replicas import Replica, StoreSkipped, StoreTimeout
from commonplace.engine.outbox.resync_notices import resync_call
from commonplace.engine.recall.fusion import OVERFETCH, RRF_K, RankedList
from commonplace.engine.recall.replication_lag import ReplicationLag, is_untold, is_waiting, read_lag
from commonplace.stores.base import Candidate, Reach, Search, Store
from commonplace.stores.documents import OUR_TENANT, on_copied_fields
from commonplace.wire.errors import Unavailable
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import MEMORY_TYPES, Memory

log = logging.getLogger("commonplace.stores")
_MOST_RESOLVED = 1000
_PROBE_TEXT = "commonplace"
#: Many products are asked agent after agent. A search over more than these that is too slow says nothing of the store.
_FEW_AGENTS = 4


_failed: ContextVar[dict[str, Unavailable] | None] = ContextVar("stores_that_failed", default=None)


@contextmanager
def one_question() -> Iterator[None]:
    """However many searches are made for it within, a store that fails is asked by the first of them alone: one that
    hangs would delay the answer by its timeout each time, and be left alone for what was one question."""
    token = _failed.set({}) if _failed.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _failed.reset(token)


@dataclass(slots=True)
class FanOut:
    """What the replicas said. `lists` are by store; `added` are candidates that only they found, as the primary has
    them."""

    lists: dict[str, RankedList] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    added: list[Candidate] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    lags: dict[str, ReplicationLag] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)  # for explain


def skip_reason(replica: Replica, search: Search) -> str | None:
    """Why a store cannot answer this question, if it cannot."""
    if search.reach.as_of is not None:
        return "it has the present only"
    wanted = _types_asked(search)
    kept = replica.types()
    if not wanted & kept:
        return f"it does not keep {' or '.join(sorted(wanted))} memories"
    capabilities = replica.capabilities
    if capabilities and search.vector is None and "fts" not in capabilities:
        return "it finds by meaning only, and this question has no vector"
    return None


def asks_for_copies(where: Where) -> bool:
    """Whether it is another server that asks what we have of its memories: ours alone can say, and asking on would go
    round where two servers have copies of each other's."""
    return any(condition.path == ("metadata", OUR_TENANT) for condition in where)


def _types_asked(search: Search) -> frozenset[str]:
    wanted = frozenset(MEMORY_TYPES)
    for condition in search.reach.where:
        if condition.path == ("type",) and condition.op in ("eq", "in"):
            values = condition.value if condition.op == "in" else [condition.value]
            wanted &= frozenset(value for value in values if isinstance(value, str))
    return wanted


def rank(candidates: Sequence[Candidate], limit: int) -> RankedList:
    """One store's candidates as one list, best first; raw scores are held between 0 and 1, so that none can shout."""
    return [(c.memory.id, _raw(c, place)) for place, c in enumerate(best_first(candidates)[:limit])]


def best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """One store's, each once. Where it has two legs, by their ranks."""
    legs = [
        sorted((c for c in candidates if _given(getattr(c, leg), least)), key=lambda c: -getattr(c, leg))
        for leg, least in (("dense", -math.inf), ("keyword", 0.0))  # no word in common is no place in that list
    ]
    ordered: list[Candidate] = list(candidates)
    if any(legs):
        shares: dict[str, float] = {}
        for leg in legs:
            for place, candidate in enumerate(leg):
                shares[candidate.memory.id] = shares.get(candidate.memory.id, 0.0) + 1 / (RRF_K + place)
        ordered.sort(key=lambda c: -shares.get(c.memory.id, 0.0))
    once = {candidate.memory.id: candidate for candidate in reversed(ordered)}
    return [once.pop(c.memory.id) for c in ordered if c.memory.id in once]


def _given(score: float | None, least: float) -> bool:
    return score is not None and math.isfinite(score) and score > least


def _raw(candidate: Candidate, place: int) -> float:
    for score in (candidate.dense, candidate.score):
        if score is not None and math.isfinite(score):
            return min(max(float(score), 0.0), 1.0)
    return 1 / (1 + place)


#: By store: what it found, or why it failed, or why it was not asked.
Answers = Mapping[str, list[Candidate] | Unavailable | str]


async def ask_replicas(core: Core, search: Search, k: int) -> tuple[Answers, dict[str, ReplicationLag]]:
    """The answers, and of each store that found something what it had not been told when it was asked."""
    # A copy knows nothing of some fields: what is asked of those the primary asks again of whatever is named.
    reach = replace(search.reach, where=on_copied_fields(search.reach.where))
    wanted = replace(
        search, reach=reach, limit=OVERFETCH * k, generation=None, tokens=None, second=None, second_generation=None
    )
    found: dict[str, list[Candidate] | Unavailable | str] = {}
    asked: list[Replica] = []
    for replica in core.outbox.replicas:
        if (why := skip_reason(replica, search)) is not None:
            found[replica.name] = why
        else:
            asked.append(replica)

    lags = {replica.name: ReplicationLag(all=False) for replica in asked}
    failed = _failed.get()
    failed = {} if failed is None else failed

    async def ask(replica: Replica) -> list[Candidate] | Unavailable:
        if replica.name in failed:
            return failed[replica.name]
        if not replica.is_search_paused:
            lags[replica.name] = await read_lag(core, search.reach.tenant, replica)
        try:
            is_wide = len(wanted.reach.agents) > _FEW_AGENTS
            if is_wide and not replica.is_search_paused and replica.search_breaker.try_call():
                return await _ask_widely(replica, wanted)
            return await replica.search(lambda store: _search(store, wanted), _probe(wanted))
        except Unavailable as fault:
            failed[replica.name] = fault
            return fault

    answers = await asyncio.gather(*(ask(replica) for replica in asked))
    return found | {replica.name: answer for replica, answer in zip(asked, answers, strict=True)}, lags


async def _search(store: Store, wanted: Search) -> list[Candidate]:
    return read_candidates(await store.search(wanted))


def _probe(asked: Search) -> Callable[[Store], Awaitable[list[Candidate]]]:
    """A question of as many agents, to be kept while searches fail: without what was asked, and what was the reason
    if it was one that no store could answer."""
    reach = Reach(asked.reach.tenant, asked.reach.agents, now=asked.reach.now)
    plain = Search(reach, _PROBE_TEXT, vector=asked.vector, limit=1)
    return lambda store: _search(store, plain)


async def _ask_widely(replica: Replica, wanted: Search) -> list[Candidate]:
    """As `Replica.search`, but that it takes too long is not held against it: its breaker would open for every
    agent."""
    try:
        return await replica.attempt_search(lambda store: _search(store, wanted))
    except StoreTimeout as fault:
        missing = f"for all of {len(wanted.reach.agents)} agents, so what it would find is missing; ask of fewer"
        raise Unavailable(f"{fault.summary} {missing}") from None
    except Unavailable as fault:
        replica.search_failed(fault, _probe(wanted))
        raise


async def resolve(
    core: Core, search: Search, answers: Answers, lags: dict[str, ReplicationLag], own: Sequence[Candidate], k: int
) -> tuple[list[Candidate], FanOut]:
    """The primary's candidates as they are now, and the answers by its rows: lists of ids that are really there, in
    reach, and say what the row says."""
    out = FanOut(lags=lags)
    asked_at = search.reach.now or 0
    before = {candidate.memory.id: candidate.memory.content for candidate in own}
    changed: list[str] = []
    if any(not isinstance(said, str | StoreSkipped) for said in answers.values()):
        # Somebody was waited for: what was erased or changed meanwhile must not be shown as it was.
        search = replace(search, reach=replace(search.reach, now=core.clock()))
        own, changed = await _reread(core, search, own)
    # So many by each of its two legs is what it was asked for; the rest of what it may say is not looked at.
    named = {name: best_first(said)[: 2 * OVERFETCH * k] for name, said in answers.items() if isinstance(said, list)}
    # Each store's best in turn: one that names thousands must not take the places of what others found.
    in_turn = dict.fromkeys(c.memory.id for row in zip_longest(*named.values()) for c in row if c is not None)
    # Then in an order that is nobody's, because equals keep it.
    missing = sorted([id for id in in_turn if id not in before][:_MOST_RESOLVED])
    there = await _score(core, search, [*changed, *missing])
    own = [*own, *(there[id] for id in changed if id in there)]
    out.added = [there[id] for id in missing if id in there]
    rows = {candidate.memory.id: candidate.memory for candidate in (*own, *out.added)}
    for name, answer in answers.items():
        if isinstance(answer, str):
            out.skipped[name] = answer
            continue
        if not isinstance(answer, StoreSkipped):
            out.asked.append(name)
        if isinstance(answer, Unavailable):
            out.errors[name] = answer.summary
            continue
        looked_at = {candidate.memory.id for candidate in named[name]}
        await _admit(core, name, [c for c in answer if c.memory.id in looked_at], rows, before, asked_at, out, k)
        out.counts[name]["found"] = len(answer)
    kept = {id for listed in out.lists.values() for id, _ in listed}
    out.added = [candidate for candidate in out.added if candidate.memory.id in kept]
    return own, out


async def _reread(core: Core, search: Search, own: Sequence[Candidate]) -> tuple[list[Candidate], list[str]]:
    """Those that are as they were found, and the ids of those that have changed and are to be scored anew; what is gone
    or out of reach is in neither."""
    rows = {row.id: row for row in await core.primary.get(search.reach.tenant, [c.memory.id for c in own])}
    same, changed = list[Candidate](), list[str]()
    for candidate in own:
        row = rows.get(candidate.memory.id)
        if row is None or not search.reach.admits(row):
            continue
        if row.seq == candidate.memory.seq:
            same.append(replace(candidate, memory=row))
        else:
            changed.append(row.id)
    return same, changed


async def _score(core: Core, search: Search, ids: Sequence[str]) -> dict[str, Candidate]:
    """The primary's candidates with these ids, as far as they are in reach."""
    if not ids:
        return {}
    only = (*search.reach.where, Condition(("id",), "in", list(ids)))
    wanted = replace(search, reach=replace(search.reach, where=only), limit=len(ids))
    there = {c.memory.id: c for c in await core.primary.search(wanted)}
    unscored = [id for id in ids if id not in there]
    if unscored:  # in reach, but with neither a word nor a vector of its own to be found by
        for memory in await core.primary.get(search.reach.tenant, unscored):
            if search.reach.admits(memory):
                there[memory.id] = Candidate(memory)
    return there


async def _admit(
    core: Core,
    name: str,
    found: list[Candidate],
    rows: Mapping[str, Memory],
    before: Mapping[str, str],
    asked_at: int,
    out: FanOut,
    k: int,
) -> None:
    """`before` is what the primary's own candidates said when it was asked."""
    known = [candidate for candidate in found if candidate.memory.id in rows]
    true = [candidate for candidate in known if candidate.memory.content == rows[candidate.memory.id].content]
    behind, altered = 0, 0
    for candidate in known:
        row, text = rows[candidate.memory.id], candidate.memory.content
        if text != row.content:
            # What it was not told yet is no lie, nor is what was so when it looked.
            if (
                before.get(row.id) == text
                or await _said_since(core, row, text, asked_at)
                or await is_waiting(core, name, out.lags[name], row)
                or await is_untold(core, out.lags[name], row, text)
            ):
                behind += 1
            else:
                altered += 1
    replica = core.outbox.replicas.named(name)
    assert replica is not None
    if altered:
        resync = resync_call(name, has_address=bool(replica.attachment.shown))
        if not replica.altered:  # once: not every protocol has a place to say it, and it may be so for every question
            log.warning(
                "%s has another text for memories than the first store; they were left out, and %s puts it right",
                name,
                resync,
            )
        replica.altered[rows[known[0].memory.id].tenant] += altered
        out.errors[name] = (
            f"it has another text for {altered} of the memories it named, which were left out; {resync} puts it right"
        )
    out.lists[name] = rank(true, OVERFETCH * k)
    out.weights[name] = replica.weight
    out.counts[name] = {"found": len(found), "unknown": len(found) - len(known), "behind": behind, "altered": altered}


async def _said_since(core: Core, row: Memory, text: str, asked_at: int) -> bool:
    """Whether it had this text at any moment since then."""
    if row.updated_at < asked_at:
        return False
    versions = await core.primary.history(row.tenant, row.id)
    return any(old.content == text and new.updated_at >= asked_at for old, new in pairwise(versions))
