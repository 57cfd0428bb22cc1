"""One question put to the primary store: understood, searched, read in context, ranked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from commonplace.embedders.base import Encoding
from commonplace.embedders.text_queue import Lane
from commonplace.engine.core import Core, question_tokens, reads_speakers
from commonplace.engine.recall import multilingual
from commonplace.engine.recall.fan_out import FanOut, ask_replicas, resolve
from commonplace.engine.recall.features import searchable_text
from commonplace.engine.recall.fusion import OVERFETCH
from commonplace.engine.recall.ranking import CLOSELY, REACH, Blend, RankedCandidate, Shortlist, fit_name, fitted_blend
from commonplace.engine.recall.understanding import ALL, Question, RecallParts, analyse
from commonplace.engine.types import Snapshot
from commonplace.stores.base import AgentContext, Candidate, EmbedderInfo, Reach, Search, Vectors

#: At least so many are taken from each leg, and so many of the best are read with what was said around them.
FEWEST = 20
SURROUNDED = 4
_MAX_SURROUNDED = 8


@dataclass(slots=True)
class SearchOutcome:
    question: Question
    ranked: list[RankedCandidate]
    embedder: str | None  # the one that made the question's vector; None when only words were searched
    blend: Blend  # what it was ranked by
    fit_name: str | None = None  # under which name weights and relevance were fitted for what it found
    fan_out: FanOut | None = None  # what the stores beside the primary said, where they were asked

    @property
    def dense(self) -> bool:
        return self.embedder is not None


async def search(
    core: Core,
    reach: Reach,
    text: str,
    k: int,
    *,
    parts: RecallParts = ALL,
    blend: Blend | None = None,
    snapshot: Snapshot | None = None,
    fan_out: bool = False,
) -> SearchOutcome:
    """Asked again when the store's embedder is replaced meanwhile: another one's vectors say nothing here."""
    if snapshot is not None:
        parts = replace(parts, names=False)  # who speaks is only known of today
    asked_at = snapshot.at if snapshot else core.clock()
    return await core.retry_on_conflict(lambda: _search_once(core, reach, text, k, parts, blend, asked_at, fan_out))


async def _encoded(
    core: Core, question: Question, tenant: str
) -> tuple[list[Encoding] | None, EmbedderInfo | None, Vectors | None]:
    """The question by the store's embedder, what that is, and the question by the second one, if there is one."""
    # An embedder that reads who said something wants to read who is asked about.
    asked = question.text if reads_speakers(core.embedding) else question.sought
    first = core.encode_with_info([asked], tenant, Lane.QUERY, bounded=True)
    if not core.second.ready:
        return *await first, None
    (encoded, info), second = await asyncio.gather(first, core.second.embed([question.sought], tenant, Lane.QUERY))
    return encoded, info, second


async def _search_once(
    core: Core, reach: Reach, text: str, k: int, parts: RecallParts, blend: Blend | None, asked_at: int, fan_out: bool
) -> SearchOutcome:
    # The past had other replacements, and its sessions are not indexed.
    now = reach.as_of is None
    wants_context = now or parts.names
    context = await core.primary.context(reach.tenant, reach.agents, reach.now) if wants_context else AgentContext()
    question = analyse(text, context, asked_at, parts)
    core.second.foreign_questions += question.language not in (None, "en")
    encoded, info, second = None, core.embedder_info, None
    known = core.second.known_generation
    if question.telling:
        encoded, info, second = await _encoded(core, question, reach.tenant)
    wanted = Search(
        reach,
        question.sought,
        encoded[0].vector if encoded else None,
        max(FEWEST, OVERFETCH * k // 2),  # four times as many as are wanted, over both legs
        info.generation if info else None,
        question_tokens(encoded[0]) if encoded else None,
        second=None if second is None else second[0],
        second_generation=known,
    )
    candidates, beside = await _candidates(core, wanted, k, fan_out)
    if not question.telling:
        candidates = [c for c in candidates if text.casefold() in searchable_text(c.memory)]
    embedder = info.name if info and encoded else None
    fitted_as = None if embedder is None else fit_name(embedder, candidates)
    if blend is None:
        blend = fitted_blend(fitted_as)
        if second is not None:
            blend = blend._replace(weights=multilingual.extended(blend.weights, fitted_as))
    shortlist = Shortlist(candidates, question, context.replaced if now else {}, parts=parts, blend=blend)
    if now and (best := shortlist.promising(min(max(SURROUNDED, k // 2 + 2), _MAX_SURROUNDED))):
        shortlist.add(await core.primary.neighbours_in_session(wanted, best, REACH))
    return SearchOutcome(question, shortlist.ranked(max(CLOSELY, 2 * k)), embedder, blend, fitted_as, beside)


async def _candidates(core: Core, wanted: Search, k: int, fan_out: bool) -> tuple[list[Candidate], FanOut | None]:
    """The primary's, and with those what the stores beside it found, asked at the same time."""
    if not fan_out:
        return await core.primary.search(wanted), None
    asked = asyncio.create_task(ask_replicas(core, wanted, k))
    try:
        own = await core.primary.search(wanted)
    except BaseException:
        asked.cancel()
        raise
    beside = await resolve(core, wanted, await asked, own, k)
    return own + beside.added, beside
