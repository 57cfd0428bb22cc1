"""One question put to the primary store: understood, searched, read in context, ranked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from commonplace.embedders.base import Encoding
from commonplace.embedders.text_queue import Lane
from commonplace.engine.core import Core, question_tokens, reads_speakers
from commonplace.engine.recall import multilingual
from commonplace.engine.recall.fan_out import FanOut, ask_replicas, resolve
from commonplace.engine.recall.features import searchable_text
from commonplace.engine.recall.fusion import OVERFETCH
from commonplace.engine.recall.ranking import CLOSELY, REACH, Blend, RankedCandidate, Shortlist, fit_name, fitted_blend
from commonplace.engine.recall.understanding import ALL, Question, RecallParts, analyse, is_telling
from commonplace.engine.types import Snapshot
from commonplace.stores.base import AgentContext, Candidate, EmbedderInfo, Primary, Reach, Search, Vectors
from commonplace.stores.optional import ReadView, Viewable

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


async def _search_once(
    core: Core, reach: Reach, text: str, k: int, parts: RecallParts, blend: Blend | None, asked_at: int, fan_out: bool
) -> SearchOutcome:
    asked, known = _RecallRequest(text, k, parts, blend, asked_at, core.second.known_generation), None
    if not reads_speakers(core.embedding) or core.second.ready:
        # What is embedded is without the names of those who speak, which the store knows.
        context = await core.primary.context(*_about(reach)) if _wants_context(reach, parts) else AgentContext()
        known = context, analyse(text, context, asked_at, parts)
    encoded = _QuestionVectors(None, core.embedder_info)
    if is_telling(text):
        encoded = await _encode(core, text, known[1].sought if known else text, reach.tenant)
    reads = _reads(reach, asked, encoded, known)
    if fan_out:
        outcome = await _read_with_replicas(core, reads, k)
    elif isinstance(core.primary, Viewable):
        second = encoded.second is not None
        outcome = await core.primary.view(reach, lambda view: _read_at_once(view, reads), second=second)
    else:
        outcome = await _read_waiting(core.primary, reads)
    core.second.foreign_questions += outcome.question.language not in (None, "en")
    return outcome


@dataclass(slots=True, frozen=True)
class _RecallRequest:
    text: str
    k: int
    parts: RecallParts
    blend: Blend | None
    at: int
    second_generation: int | None


class _QuestionVectors(NamedTuple):
    """A question by the store's embedder, what that is, and the question by the second one, if there is one."""

    first: Encoding | None
    info: EmbedderInfo | None
    second: Vectors | None = None


async def _encode(core: Core, text: str, sought: str, tenant: str) -> _QuestionVectors:
    # An embedder that reads who said something wants to read who is asked about.
    asked = text if reads_speakers(core.embedding) else sought
    encoding = core.encode_with_info([asked], tenant, Lane.QUERY, bounded=True)
    second = None
    if not core.second.ready:
        found, info = await encoding
    else:
        (found, info), second = await asyncio.gather(encoding, core.second.embed([sought], tenant, Lane.QUERY))
    return _QuestionVectors(found[0] if found else None, info, None if second is None else second[0])


#: A read of the store: the name it has there, and its arguments.
_Read = tuple[str, tuple[Any, ...]]
_Reads = Generator[_Read, Any, SearchOutcome]
_Ask = Callable[[Search], Awaitable[list[Candidate]]]


def _reads(
    reach: Reach, asked: _RecallRequest, encoded: _QuestionVectors, known: tuple[AgentContext, Question] | None
) -> _Reads:
    """All that is read of the store for one question, and what is made of it; sent the answer to each read.

    A generator, so that it is the same whether the store has it done in one go or is waited for at each read.
    """
    now, parts, info = reach.as_of is None, asked.parts, encoded.info
    if known is None:
        context = (yield "context", _about(reach)) if _wants_context(reach, parts) else AgentContext()
        question = analyse(asked.text, context, asked.at, parts)
    else:
        context, question = known
    wanted = Search(
        reach,
        question.sought,
        encoded.first.vector if encoded.first else None,
        max(FEWEST, OVERFETCH * asked.k // 2),  # four times as many as are wanted, over both legs
        info.generation if info else None,
        question_tokens(encoded.first) if encoded.first else None,
        second=encoded.second,
        second_generation=asked.second_generation,
    )
    candidates: list[Candidate] = yield "search", (wanted,)
    if not question.telling:
        candidates = [c for c in candidates if asked.text.casefold() in searchable_text(c.memory)]
    embedder = info.name if info and encoded.first else None
    fitted_as = None if embedder is None else fit_name(embedder, candidates)
    blend = asked.blend
    if blend is None:
        blend = fitted_blend(fitted_as)
        if encoded.second is not None:
            blend = blend._replace(weights=multilingual.extended(blend.weights, fitted_as))
    shortlist = Shortlist(candidates, question, context.replaced if now else {}, parts=parts, blend=blend)
    if now and (best := shortlist.promising(min(max(SURROUNDED, asked.k // 2 + 2), _MAX_SURROUNDED))):
        shortlist.add((yield "neighbours_in_session", (wanted, best, REACH)))
    return SearchOutcome(question, shortlist.ranked(max(CLOSELY, 2 * asked.k)), embedder, blend, fitted_as)


def _read_at_once(view: ReadView, reads: _Reads) -> SearchOutcome:
    answer: Any = None
    try:
        while True:
            read, arguments = reads.send(answer)
            answer = getattr(view, read)(*arguments)
    except StopIteration as done:
        outcome: SearchOutcome = done.value
        return outcome


async def _read_waiting(store: Primary, reads: _Reads, ask: _Ask | None = None) -> SearchOutcome:
    """`ask` is searched instead of the store, where others are asked with it."""
    answer: Any = None
    while True:
        try:
            read, arguments = reads.send(answer)
        except StopIteration as done:
            outcome: SearchOutcome = done.value
            return outcome
        answer = await (ask if ask is not None and read == "search" else getattr(store, read))(*arguments)


async def _read_with_replicas(core: Core, reads: _Reads, k: int) -> SearchOutcome:
    beside: FanOut | None = None

    async def ask(wanted: Search) -> list[Candidate]:
        nonlocal beside
        candidates, beside = await _candidates(core, wanted, k)
        return candidates

    return replace(await _read_waiting(core.primary, reads, ask), fan_out=beside)


async def _candidates(core: Core, wanted: Search, k: int) -> tuple[list[Candidate], FanOut]:
    """The primary's, and with those what the stores beside it found, asked at the same time."""
    asked = asyncio.create_task(ask_replicas(core, wanted, k))
    try:
        own = await core.primary.search(wanted)
    except BaseException:
        asked.cancel()
        raise
    own, beside = await resolve(core, wanted, *await asked, own, k)
    return own + beside.added, beside


def _wants_context(reach: Reach, parts: RecallParts) -> bool:
    """The past had other replacements, and its sessions are not indexed."""
    return reach.as_of is None or parts.names


def _about(reach: Reach) -> tuple[str, Sequence[str], int | None]:
    return reach.tenant, reach.agents, reach.now
