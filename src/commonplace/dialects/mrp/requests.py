"""MEMORY_REQUEST → MEMORY_RESPONSE."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

from commonplace.dialects.mrp import attestations, authors, messages, signatures
from commonplace.dialects.mrp.messages import Document
from commonplace.engine import MOST_ASKED, Engine, Match, PeerQuery, Requester, RequestIdReused, in_domain, slot
from commonplace.wire import keys
from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import iso, milliseconds
from commonplace.wire.validate import check

MAX_RESULTS = 10
MOST_CHARS = 2_000_000  # of memories in one response
_KEPT_CHARS = 16_384  # of memories in a response to a requester nobody knows, for it to be kept for repetition
_SUMMARY_CHARS = 300
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n")
_FOUND = {"success": "found {n}", "partial": "found {n}, but {why}", "no_match": "no memory matches"}
_DECLINED = "this request is declined"
_FAILED = "this could not be processed; try again later"


@dataclass(slots=True)
class Outcome:
    """What there is to say: results with the memories they show, and how complete they are."""

    code: str
    message: str
    results: list[Document] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    total: int = 0


async def answer(engine: Engine, who: Principal, authenticated: bool, agent: str | None, document: Any) -> Document:
    started = time.perf_counter()
    check("mrp/request", document)
    header = document["header"]
    messages.check_id(header["request_id"], "header.request_id")
    until = messages.check_time(header, engine.clock())
    query = _query(document["query"])
    name = agent or engine.settings.mrp.name
    requester: Requester | None = None
    try:
        requester = await messages.requester(engine, who, authenticated, agent, document)
        return await _answered(engine, requester, agent, query, document, until, started)
    except Unavailable as fault:
        # What is wrong with this installation is the business of whom it belongs to.
        theirs = requester is not None and requester.trust.sees == "all"
        return _blank(engine, document, name, "error", fault.message if theirs else _FAILED)


async def _answered(
    engine: Engine, requester: Requester, agent: str | None, query: PeerQuery, document: Document, until: int,
    started: float,
) -> Document:  # fmt: skip
    """The answer, or the one given to the very same request a moment ago."""
    who, trust, dedup = requester.who, requester.trust, engine.peers.dedup
    # Whose request it is belongs to its id: what one may see is never another's to hear again.
    held = [who.name, *who.agents] if requester.authenticated else ["", trust.agent_id]
    key = slot(requester.authenticated, held, document["header"]["request_id"].lower())
    asked = keys.bytes_of({"request": document, "agent": agent})
    under = [trust.level, trust.named, trust.sees]
    try:
        if (earlier := await dedup.earlier(who.tenant, key, asked, under)) is not None:
            return earlier
        outcome = await _outcome(engine, requester, query, document)
        versions = {memory.id: memory.version for memory in outcome.memories}
        response = _response(engine, document, agent, requester, outcome, started)
        # Who is not known may ask for much and often; that much is found again instead of kept.
        room = trust.known or sum(len(memory.content) for memory in outcome.memories) <= _KEPT_CHARS
        return await dedup.keep(who.tenant, key, asked, under, until, response, versions if room else None)
    except RequestIdReused:
        return _response(engine, document, agent, requester, Outcome("declined", _DECLINED), started)


# what is asked


def _query(query: Document) -> PeerQuery:
    structured = query.get("structured", {})
    keywords = tuple(dict.fromkeys(word.strip() for word in structured.get("keywords", ()) if word.strip()))
    where: Where = ()
    if "domain" in structured:
        where += (in_domain(structured["domain"]),)
    span = structured.get("time_range", {})
    for end, op in (("after", "gte"), ("before", "lte")):
        if end in span:
            at = milliseconds(span[end], f"query.structured.time_range.{end}", end_of_day=end == "before")
            where += (Condition(("created_at",), op, at),)
    if "natural" not in query and not keywords and not where:
        raise ValidationError(
            "query needs natural, or structured with keywords, domain or time_range", field="query.natural"
        )
    text = query.get("natural")
    if text is not None and not text.strip():
        raise ValidationError("query.natural must not be blank", field="query.natural")
    return PeerQuery((), text, keywords, where)


async def _outcome(engine: Engine, requester: Requester, query: PeerQuery, document: Document) -> Outcome:
    preferences = document.get("response_preferences", {})
    wanted = int(preferences.get("max_results", MAX_RESULTS))
    filters = document["query"].get("structured", {}).get("filters", {})
    limit = MOST_ASKED if filters else wanted
    found = await engine.peers.ask(requester, query, limit=limit, show=wanted)
    kept = found.matches
    cut = [found.cut] if found.cut else []
    total = found.total
    pair = engine.peers.identity.keypair()
    if filters:
        passing = [match for match in kept if _passes(match, filters, requester, pair.public)]
        left_out, kept, total = len(kept) - len(passing), passing, len(passing)
        if left_out:
            cut.append(f"{left_out:,} {'more ' if passing else ''}did not pass the filters")
        if found.total >= limit:
            cut.append(f"only the best {limit:,} were looked at")
    chosen: list[Match] = []
    room = MOST_CHARS
    for match in kept[:wanted]:
        room -= len(match.memory.content)
        if room < 0 and chosen:
            cut.append("the rest would have made the response too large")
            break
        chosen.append(match)
    form = preferences.get("format", "attestation")
    results = [
        _result(match, attestations.signed(match.memory, pair.private), form, query, document) for match in chosen
    ]
    code = "no_match" if not results else "partial" if cut else "success"
    counted = f"{len(results)} of {total:,}" if total > len(results) else f"{len(results)}"
    noun = "memory" if (total if total > len(results) else len(results)) == 1 else "memories"
    message = _FOUND[code].format(n=f"{counted} {noun}", why=" and ".join(cut))
    if code == "no_match" and cut:
        message += f": {' and '.join(cut)}"
    return Outcome(code, message, results, [match.memory for match in chosen], max(total, len(results)))


def _passes(match: Match, filters: Document, requester: Requester, key: str) -> bool:
    attestation = attestations.to_attestation(match.memory)
    own_key = key if attestations.verbatim(match.memory) is None else None
    if filters.get("require_evidence") and not attestations.has_evidence(attestation):
        return False
    if filters.get("require_vouches") and authors.vouched_for(requester.context, attestation, own_key) is None:
        return False
    least = float(filters.get("min_trust_level", 0))
    return least <= 0 or authors.level(requester.context, attestation, own_key) >= least


# what is answered


def _result(match: Match, attestation: Document, form: str, query: PeerQuery, document: Document) -> Document:
    memory = match.memory
    result: Document = {
        "memory_id": memory.id,
        "attestation": attestation,
        "relevance_score": round(min(max(match.relevance, 0.0), 1.0), 4),
        "match_context": _why(match, query, document["query"].get("structured", {})),
    }
    if form != "attestation":
        result["text"] = memory.content if form == "raw" else summary(memory.content)
    return result


def summary(text: str) -> str:
    """How it begins: whole sentences, as many as fit."""
    text = text.strip()
    if len(text) <= _SUMMARY_CHARS:
        return text
    kept = ""
    for sentence in _SENTENCE.split(text):
        if len(kept) + len(sentence) + 1 > _SUMMARY_CHARS:
            break
        kept = f"{kept} {sentence}".strip()
    return kept or text[: _SUMMARY_CHARS - 1].rstrip() + "…"


def _why(match: Match, query: PeerQuery, structured: Document) -> str:
    why = []
    if query.text is not None:
        why.append(f"it answers the question with relevance {match.relevance:.2f}")
    if match.keywords:
        why.append(f"it holds {', '.join(match.keywords)}")
    if domain := structured.get("domain"):
        why.append(
            f"it belongs to the project {domain}" if match.memory.project == domain else f"it is tagged {domain}"
        )
    if "time_range" in structured:
        why.append(f"it was written on {iso(match.memory.created_at)[:10]}")
    if "from" in match.memory.provenance:
        why.append(f"it was received from {match.memory.provenance['from']}")
    return "; ".join(why)


def _response(
    engine: Engine, document: Document, agent: str | None, requester: Requester, outcome: Outcome, started: float
) -> Document:
    preferences = document.get("response_preferences", {})
    name = agent or engine.settings.mrp.name
    response = _blank(engine, document, name, outcome.code, outcome.message)
    response["results"] = outcome.results
    pair = engine.peers.identity.keypair()
    response["responder"]["public_key"] = pair.public
    signing = preferences.get("sign_response", False)
    if signing or preferences.get("include_meta", True):
        response["meta"] = {
            "total_matches": outcome.total, "returned": len(outcome.results),
            "processing_time_ms": round((time.perf_counter() - started) * 1000, 2),
            "trust_level_used": requester.trust.level,
        }  # fmt: skip
    return signatures.sign_response(response, pair.private) if signing else response


def _blank(engine: Engine, document: Document, name: str, code: str, message: str) -> Document:
    return {
        "$schema": f"{messages.SCHEMAS}response-v01.json",
        "type": "memory_response",
        "version": messages.VERSION,
        "header": {
            "request_id": document["header"]["request_id"], "response_id": messages.new_id(),
            "timestamp": iso(engine.clock()),
        },
        "responder": {"agent_id": name},
        "status": {"code": code, "message": message},
        "results": [],
    }  # fmt: skip
