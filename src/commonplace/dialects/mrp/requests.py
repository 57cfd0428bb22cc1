"""MEMORY_REQUEST → MEMORY_RESPONSE."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

from commonplace.dialects.mrp import attestations, messages, signatures
from commonplace.dialects.mrp.messages import Document, Responder
from commonplace.engine import MAX_ASKED, Match, PeerQuery, Requester, RequestIdReused, in_domain
from commonplace.wire import keys
from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.filters import Condition, Where
from commonplace.wire.plain import check_not_blank
from commonplace.wire.record import Memory
from commonplace.wire.times import iso, milliseconds
from commonplace.wire.validate import check

MAX_RESULTS = 10
MAX_CHARS = 2_000_000  # of memories in one response
_SUMMARY_CHARS = 300
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n")
_FOUND = {"success": "found {n}", "partial": "found {n}, but {why}", "no_match": "no memory matches"}
DECLINED = "this request is declined"
FAILED = "this could not be processed; try again later"


@dataclass(slots=True, frozen=True)
class ParsedRequest:
    """One request, as it was understood, and who answers it."""

    responder: Responder
    document: Document
    query: PeerQuery
    until: int  # when the request is over
    started: float

    @property
    def preferences(self) -> Document:
        return self.document.get("response_preferences") or {}

    @property
    def structured(self) -> Document:
        return self.document["query"].get("structured") or {}


@dataclass(slots=True)
class RequestOutcome:
    """What there is to say: results with the memories they show, and how complete they are."""

    code: str
    message: str
    results: list[Document] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    total: int = 0


async def answer(responder: Responder, document: Any) -> Document:
    started = time.perf_counter()
    check("mrp/request", document)
    header = document["header"]
    messages.check_id(header["request_id"], "header.request_id")
    until = messages.check_time(header, responder.engine.clock())
    parsed = ParsedRequest(responder, document, _query(document["query"]), until, started)
    requester: Requester | None = None
    try:
        requester = await responder.requester(document)
        return await _answer_once(parsed, requester)
    except Unavailable as fault:
        # What is wrong with this installation is the business of whom it belongs to.
        theirs = requester is not None and requester.trust.sees == "all"
        return _blank(parsed, "error", fault.message if theirs else FAILED)


async def _answer_once(parsed: ParsedRequest, requester: Requester) -> Document:
    """The answer, or the one given to the very same request a moment ago."""
    if requester.declined:
        return _response(parsed, requester, RequestOutcome("declined", DECLINED))
    body = keys.bytes_of({"request": parsed.document, "agent": parsed.responder.agent})
    message = ("request", parsed.document["header"]["request_id"], body)

    async def found() -> tuple[Document, list[Memory]]:
        outcome = await _outcome(parsed, requester)
        return _response(parsed, requester, outcome), outcome.memories

    try:
        return await parsed.responder.engine.peers.answer_once(requester, message, parsed.until, found)
    except RequestIdReused:
        return _response(parsed, requester, RequestOutcome("declined", DECLINED))


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
    if text is not None:
        check_not_blank(text, "query.natural")
    return PeerQuery((), text, keywords, where)


async def _outcome(parsed: ParsedRequest, requester: Requester) -> RequestOutcome:
    peers = parsed.responder.engine.peers
    wanted = int(parsed.preferences.get("max_results", MAX_RESULTS))
    filters = parsed.structured.get("filters", {})
    limit = MAX_ASKED if filters else wanted
    found = await peers.ask(requester, parsed.query, limit=limit, show=wanted)
    matches, total = found.matches, found.total
    cut = [found.cut] if found.cut else []
    pair = peers.identity.keypair()
    if filters:
        passing = [match for match in matches if _passes(match, filters, requester, pair.public)]
        left_out, matches, total = len(matches) - len(passing), passing, len(passing)
        if left_out:
            cut.append(f"{left_out:,} {'more ' if passing else ''}did not pass the filters")
        if found.total >= limit:
            cut.append(f"only the best {limit:,} were looked at")
    chosen: list[Match] = []
    room = MAX_CHARS
    for match in matches[:wanted]:
        room -= len(match.memory.content)
        if room < 0 and chosen:
            cut.append("the rest would have made the response too large")
            break
        chosen.append(match)
    results = [_result(match, attestations.signed(match.memory, pair.private), parsed) for match in chosen]
    code = "no_match" if not results else "partial" if cut else "success"
    counted = f"{len(results)} of {total:,}" if total > len(results) else f"{len(results)}"
    noun = "memory" if max(total, len(results)) == 1 else "memories"
    message = _FOUND[code].format(n=f"{counted} {noun}", why=" and ".join(cut))
    if code == "no_match" and cut:
        message += f": {' and '.join(cut)}"
    return RequestOutcome(code, message, results, [match.memory for match in chosen], max(total, len(results)))


def _passes(match: Match, filters: Document, requester: Requester, key: str) -> bool:
    attestation = attestations.to_attestation(match.memory)
    own_key = key if attestations.verbatim(match.memory) is None else None
    if filters.get("require_evidence") and not attestations.has_evidence(
        attestation, requester.context.peers, own=own_key is not None
    ):
        return False
    if filters.get("require_vouches") and attestations.vouched_for(requester.context, attestation, own_key) is None:
        return False
    least = float(filters.get("min_trust_level", 0))
    return least <= 0 or attestations.author_trust(requester.context, attestation, own_key) >= least


# what is answered


def _result(match: Match, attestation: Document, parsed: ParsedRequest) -> Document:
    memory = match.memory
    result: Document = {
        "memory_id": memory.id,
        "attestation": attestation,
        "relevance_score": round(min(max(match.relevance, 0.0), 1.0), 4),
        "match_context": _why(match, parsed),
    }
    form = parsed.preferences.get("format", "attestation")
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


def _why(match: Match, parsed: ParsedRequest) -> str:
    why, structured = [], parsed.structured
    if parsed.query.text is not None:
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


def _response(parsed: ParsedRequest, requester: Requester, outcome: RequestOutcome) -> Document:
    pair = parsed.responder.engine.peers.identity.keypair()
    response = _blank(parsed, outcome.code, outcome.message)
    response["results"] = outcome.results
    response["responder"]["public_key"] = pair.public
    signing = parsed.preferences.get("sign_response", False)
    if signing or parsed.preferences.get("include_meta", True):
        response["meta"] = {
            "total_matches": outcome.total,
            "returned": len(outcome.results),
            "processing_time_ms": round((time.perf_counter() - parsed.started) * 1000, 2),
            "trust_level_used": requester.trust.level,
        }
    return signatures.sign_response(response, pair.private) if signing else response


def _blank(parsed: ParsedRequest, code: str, message: str) -> Document:
    header = {
        "request_id": parsed.document["header"]["request_id"],
        "response_id": messages.new_id(),
        "timestamp": iso(parsed.responder.engine.clock()),
    }
    responder, status = {"agent_id": parsed.responder.name}, {"code": code, "message": message}
    return messages.message("memory_response", header, responder=responder, status=status, results=[])
