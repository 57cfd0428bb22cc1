"""The memories nearest to one that is proposed, and how each stands to it, for a reviewer to see."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

from commonplace.engine.core import Core, reads_speakers
from commonplace.engine.memory.passages import passages
from commonplace.engine.memory.read import readable
from commonplace.stores import text
from commonplace.stores.base import Reach, Search
from commonplace.wire.record import Memory

NEAREST = 5
LEAST = 0.2  # of similarity: what is further away only distracts a reviewer
_SHARED = 0.5  # of the words of two memories, from which on a difference between them is one of opinion
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NEGATIONS = re.compile(r"\b(?:not|no|never|none|nobody|nothing|cannot|without)\b|n['’]t\b", re.IGNORECASE)


def relation(proposed: Memory, other: Memory) -> str:
    """How a proposed memory stands to one that is there: it supersedes it by name, says the same (duplicate), says most
    of the same but for a negation or a number (contradicts), or is merely similar. A hint, found without a model."""
    if {other.id, *other.aliases} & set(proposed.supersedes):
        return "supersedes"
    one, two = _folded(proposed.content), _folded(other.content)
    if one == two:
        return "duplicate"
    negated = bool(_NEGATIONS.search(one)) != bool(_NEGATIONS.search(two))
    numbers = {*_NUMBER.findall(one)}, {*_NUMBER.findall(two)}
    differs = negated or (all(numbers) and numbers[0] != numbers[1])
    return "contradicts" if differs and shared_words(_NUMBER.sub(" ", one), _NUMBER.sub(" ", two)) else "similar"


def shared_words(one: str, two: str) -> bool:
    return overlap(_NEGATIONS.sub(" ", one), _NEGATIONS.sub(" ", two)) >= _SHARED


def overlap(one: str, two: str) -> float:
    """How much of the words of both stands in both, from 0 to 1."""
    return share(words(one), words(two))


def words(content: str) -> frozenset[int]:
    return frozenset(text.decode(text.terms(content))[0].tolist())


def share(one: frozenset[int], two: frozenset[int]) -> float:
    in_both = len(one & two)
    every = len(one) + len(two) - in_both
    return in_both / every if every else 0.0


def _folded(content: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", content).casefold().split())


class Neighbour(NamedTuple):
    memory: Memory
    similarity: float
    relation: str

    @property
    def document(self) -> dict[str, Any]:
        """As a review keeps it: without its text, so that erasing it concerns no review but those about it."""
        return {"id": self.memory.id, "similarity": self.similarity, "relation": self.relation}


async def nearest(core: Core, proposed: Memory, beside: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The neighbours of a proposed memory, as a review keeps them."""
    return [each.document for each in await neighbours(core, proposed, beside)]


async def neighbours(core: Core, proposed: Memory, beside: Sequence[str] = (), most: int = NEAREST) -> list[Neighbour]:
    """At most so many live memories of the same agent that are near it, the most similar first, and all that it says it
    supersedes. Of `beside`, which the review shows anyway, none."""
    sought, tenant = passages(proposed)[0], proposed.tenant
    reach = Reach(tenant, (proposed.agent_id,), now=core.clock())

    async def search() -> list[tuple[float, Memory]]:
        embedded = passages(proposed, speakers=reads_speakers(core.embedding))[0]
        encoded, info = await core.encode_with_info([embedded], tenant)
        wanted = Search(
            reach,
            sought,
            encoded[0].vector if encoded else None,
            most + len(beside) + 1,
            info.generation if info else None,
        )
        return [(_similarity(c.dense, sought, c.memory), c.memory) for c in await core.primary.search(wanted)]

    hidden = {proposed.id, *beside}
    found = [(score, m) for score, m in await core.retry_on_conflict(search) if m.id not in hidden and score >= LEAST]
    found.sort(key=lambda pair: (-pair[0], pair[1].id))
    named = [ref for ref in proposed.supersedes if ref not in hidden]
    shown = found[:most]
    known = {m.id for _, m in shown}
    for memory in await _named(core, proposed, named):
        if memory.id not in known:
            shown.append((_similarity(None, sought, memory), memory))
    return [Neighbour(m, round(score, 4), relation(proposed, m)) for score, m in shown]


def _similarity(dense: float | None, sought: str, memory: Memory) -> float:
    """The cosine where vectors are compared, else the share of words in common."""
    return min(max(dense, 0.0), 1.0) if dense is not None else overlap(sought, passages(memory)[0])


async def _named(core: Core, proposed: Memory, refs: Sequence[str]) -> list[Memory]:
    found = await core.primary.get(proposed.tenant, refs) if refs else []
    for ref in refs:
        found += await core.primary.find_alias(proposed.tenant, [proposed.agent_id], ref)
    own = {m.id: m for m in found if m.agent_id == proposed.agent_id and readable(m, core.clock())}
    return list(own.values())


async def with_text(core: Core, tenant: str, near: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """With what they say now; those that nobody can read any more are left out."""
    ids = [each["id"] for each in near]
    now = {m.id: m for m in await core.primary.get(tenant, ids) if readable(m, core.clock())} if ids else {}
    return [{**each, "type": m.type, "content": m.content} for each in near if (m := now.get(each["id"])) is not None]
