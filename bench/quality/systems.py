"""What is compared, over one store: plain ways to search, the shipped recall, and that recall without one part."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields

from bench.quality.datasets import Question, Space
from bench.quality.measures import Outcome
from bench.quality.stocked import WHO, Stocked, label
from commonplace.engine.recall import fusion, names
from commonplace.engine.recall.ranking import fitted_blend
from commonplace.engine.recall.recall import recall
from commonplace.engine.recall.search import search
from commonplace.engine.recall.understanding import ALL, RecallParts
from commonplace.engine.types import Query
from commonplace.stores.base import Search

K = 10
_LIMIT = 4 * K

#: Weighted by hand: meaning, words, the memory before, and who is speaking.
_LINEAR = {"dense": 1.0, "keyword": 0.5, "before_gain": 0.4, "speaker": 0.3}

System = Callable[[Stocked, Space, Question], Awaitable[list[str]]]


async def _leg(held: Stocked, space: Space, question: Question, text: str, leg: str) -> list[str]:
    reach = held.reach(space, question)
    encoded, _ = await held.core.encode_with_info([text], reach.tenant) if leg == "dense" else (None, None)
    wanted = Search(reach, None if leg == "dense" else text, encoded[0].vector if encoded else None, _LIMIT)
    found = await held.core.primary.search(wanted)
    found.sort(key=lambda c: (-(getattr(c, leg) or 0.0), c.memory.id))
    return [label(c.memory) for c in found]


async def dense_only(held: Stocked, space: Space, question: Question) -> list[str]:
    return await _leg(held, space, question, question.text, "dense")


async def keywords_only(held: Stocked, space: Space, question: Question) -> list[str]:
    return await _leg(held, space, question, question.text, "keyword")


async def naive_rrf(held: Stocked, space: Space, question: Question) -> list[str]:
    lists = {
        leg: [(id, 0.0) for id in await _leg(held, space, question, question.text, leg)] for leg in ("dense", "keyword")
    }
    return [id for id, _ in fusion.fuse(lists)]


async def names_out(held: Stocked, space: Space, question: Question) -> list[str]:
    known = await held.core.primary.context(WHO.tenant, (space.name,))
    text = names.without_names(question.text, names.match_names(question.text, known.speakers))
    return await _leg(held, space, question, text, "dense")


async def linear_blend(held: Stocked, space: Space, question: Question) -> list[str]:
    parts = RecallParts(**{f.name: f.name in ("names", "context") for f in fields(RecallParts)})
    reach = held.reach(space, question)
    found = await search(
        held.core, reach, question.text, K, parts=parts, blend=fitted_blend()._replace(weights=_LINEAR)
    )
    return [label(r.memory) for r in found.ranked]


def shipped(parts: RecallParts = ALL) -> System:
    async def ask(held: Stocked, space: Space, question: Question) -> list[str]:
        reach = held.reach(space, question)
        query = Query((space.name,), question.text, k=K, where=reach.where, min_score=0.0)
        return [label(hit.memory) for hit in (await recall(held.core, WHO, query, parts)).hits]

    return ask


BASELINES: dict[str, System] = {
    "dense only": dense_only,
    "keywords only": keywords_only,
    "naive RRF": naive_rrf,
    "dense, names out": names_out,
    "linear blend": linear_blend,
}
ABLATIONS: dict[str, System] = {
    f"without {f.name}": shipped(RecallParts(**{f.name: False})) for f in fields(RecallParts)
}


async def outcomes(held: Stocked, spaces: Sequence[Space], system: System) -> list[Outcome]:
    """Questions are embedded beforehand, so that the time is that of recall."""
    done = []
    for space in spaces:
        for question in space.questions:
            start = time.perf_counter()
            found = await system(held, space, question)
            done.append(Outcome(question, found, time.perf_counter() - start))
    return done
