"""`commonplace ask`: what another agent remembers."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Annotated, Any

from commonplace.cli.support import options, values
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, flat, indented, line, note, plural
from commonplace.cli.support.peers import ambiguous_name, request_to
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import system_clock

if TYPE_CHECKING:
    from commonplace.dialects.mrp.client import CheckedAnswer

_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z")
_MAX_SECONDS = 3600

commands = Commands()


@commands.add("ask", existing=False, agent="Who asks, and keeps [COMMONPLACE_AGENT, else `default`].")
def ask(
    run: Session,
    url: options.AgentUrl,
    question: Annotated[list[str] | None, argument("QUESTION", "What you want to know.")] = None,
    domain: Annotated[str | None, option("--domain NAME", "Only memories of this project, or with this tag.")] = None,
    keyword: Annotated[list[str] | None, option("--keyword WORD", "Only what holds one of these; repeat it.")] = None,
    most: Annotated[int, option("--max N", "How many memories at most.")] = 10,
    after: Annotated[str | None, option("--after TIME", "Only what was written since: an ISO time or an age.")] = None,
    before: Annotated[
        str | None, option("--before TIME", "Only what was written until: an ISO time or an age.")
    ] = None,
    trust: Annotated[int | None, option("--trust 0–3", "Only authors the responder trusts this far.")] = None,
    evidence: Annotated[bool, option("--evidence", "Only what names its evidence.")] = False,
    vouched: Annotated[bool, option("--vouched", "Only authors that someone vouches for.")] = False,
    responder_agent: Annotated[
        str | None, option("--responder-agent NAME", "Which agent of that server is asked.")
    ] = None,
    key_pin: Annotated[
        str | None, option("--key-pin BASE64", "The responder's key; else what `commonplace trust` knows.")
    ] = None,
    verify: Annotated[bool, option("--verify", "Have the responder verify each memory again.")] = False,
    keep: Annotated[bool, option("--keep", "Keep what is signed among the memories of --agent.")] = False,
    share: Annotated[
        list[str] | None, option("--share-with NAME", "With --keep: whom it may be passed on to; `*` is everyone.")
    ] = None,
    approval: Annotated[bool, option("--approval", "With --keep: hold it back until someone approves it.")] = False,
    timeout: Annotated[float, option("--timeout SECONDS", "How long to wait at most.")] = 60.0,
    token: options.PeerToken = None,
) -> Answer:
    """Ask another agent what it remembers; check its answer, keep what you want.

    The request is signed with the key of this installation (`commonplace identity` shows it), and every signature and
    hash in the answer is checked. An answer that was changed on its way is neither shown nor kept.

    \b
    Example:
      commonplace ask http://127.0.0.1:8420 "what do you know about pruning strategies?"
      commonplace ask https://memory.example.org "deployment" --responder-agent ops --domain atlas --verify --keep
    """
    times = _given({"after": _time("--after", after), "before": _time("--before", before)})
    filters = {"min_trust_level": trust, "require_evidence": evidence or None, "require_vouches": vouched or None}
    conditions = {"domain": domain, "keywords": keyword, "time_range": times, "filters": _given(filters)}
    structured = _given(conditions)
    if not question and not structured:
        raise ValidationError(f'say what you want to know: commonplace ask {url} "what about …?"', field="question")
    if not 0 < timeout <= _MAX_SECONDS:
        raise ValidationError(f"--timeout takes a number of seconds up to {_MAX_SECONDS}", field="timeout")
    from commonplace.dialects.mrp import Mrp, client
    from commonplace.wire import keys

    if key_pin is not None:
        keys.check_public(key_pin)

    async def converse() -> tuple[CheckedAnswer, list[str]]:
        private = engine.peers.identity.keypair().private
        peers = (await engine.peers.trust_context(OPERATOR.tenant)).peers
        known = {name: peer.key for name, peer in peers.items() if peer.key}
        words, preferences = " ".join(question or ()), {"max_results": most}
        request = client.question(me, words, now=system_clock(), structured=structured, preferences=preferences)
        async with client.PeerServer(url, token, agent=responder_agent, timeout=timeout) as peer:
            answer = await client.ask(peer, request, private=private, pin=key_pin, known_keys=known)
            if verify:
                await client.verify(peer, answer, private=private)
        if not keep:
            return answer, []
        mrp = Mrp(engine, OPERATOR)
        return answer, await client.keep(mrp, answer, agent=me, share_with=share, approval_required=approval)

    engine, me = run.engine, run.memory.agent_id
    with request_to(url, token):
        answer, reasons = run(converse())
    document = answer.to_wire() | ({"not_kept": reasons} if keep else {})
    return Answer(document, lambda: _show(answer, reasons, share or []))


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, {})}


def _time(option: str, text: str | None) -> str | None:
    """As the wire says it; a bare day as --before means all of it."""
    from commonplace.wire.times import DAY_MS, iso

    if text is None:
        return None
    at = values.instant(text, option, system_clock(), direction=-1)
    return iso(at + DAY_MS - 1 if option == "--before" and _DAY.match(text.strip()) else at)


def _show(answer: CheckedAnswer, reasons: list[str], shared: list[str]) -> None:
    response, examined = answer.response, answer.examined
    status, results = response["status"], response["results"]
    meta: dict[str, Any] = response.get("meta", {})
    if not results:
        note(f"answer of {flat(answer.responder)}: {status['code']}, {flat(status['message'])}")
        return
    for place, (result, verdict) in enumerate(zip(results, examined.verdicts, strict=True)):
        attestation = result["attestation"]
        if place:
            line()
        said = indented(attestation["claim"]["content"], "   │ ")
        line(f"{place + 1}. [{result['relevance_score']:.2f}] {said}")
        line(f"   by {flat(attestation['agent'])}, {flat(attestation['created_at'])}, {flat(result['memory_id'])}")
        unknown = ", which is our own" if verdict.key == _own_key(answer) else ", not known here"
        whose = f", known as {verdict.known_as}'s" if verdict.known_as else unknown if verdict.key else ""
        line(f"   {verdict.state}: {flat(verdict.detail + whose)}")
        if answer.verifications:
            line(f"   responder: {_advice(answer.verifications[place])}")
        if answer.kept:
            line(f"   {_kept(answer.kept[place], reasons[place], shared)}")
    found = plural(meta.get("total_matches", len(results)), "memory")
    signed = "signed" if examined.signed else "NOT signed"
    level = f", at trust level {meta['trust_level_used']}" if meta else ""
    note(f"answer of {flat(answer.responder)}: {status['code']}, {found}{level}, {signed}{_key(answer)}")
    if status["code"] == "partial":
        note(f"partial: {flat(status['message'])}")


def _kept(kept: Document | None, reason: str, shared: list[str]) -> str:
    if kept is None:
        return f"not kept: {flat(reason)}"
    id = kept["memory_id"]
    if kept.get("own"):
        how = f"; to share it: `commonplace update {id} --share-with NAME`" if shared else ""
        return f"not kept: it is our own memory, {id}, and was not changed{how}"
    now = f", now shared with {', '.join(shared)}" if shared else ""
    return f"kept as {id}" if kept["created"] else f"kept before as {id}{now}"


def _advice(verification: Document) -> str:
    if "error" in verification:
        return f"would not verify it: {flat(verification['error']['message'])}"
    aggregate = verification["aggregate"]
    failed = [name for name, found in verification["results"].items() if found["status"] == "fail"]
    return f"{aggregate['recommendation']}, trust {aggregate['trust_score']}" + (
        f", failed: {', '.join(failed)}" if failed else ""
    )


def _own_key(answer: CheckedAnswer) -> str | None:
    key: str | None = answer.request["requester"].get("public_key")
    return key


def _key(answer: CheckedAnswer) -> str:
    if not answer.examined.signed:
        return ""
    if answer.examined.known:
        return " with its known key"
    key = answer.response["responder"].get("public_key")
    if key == _own_key(answer):
        return " with our own key"
    name = shlex.quote(flat(answer.responder))
    known = f" with a key not known here; `commonplace trust add {name} --level 1 --key {flat(key)}` binds it"
    warning = ambiguous_name(answer.responder)
    return known if warning is None else f"{known}\n{warning}, or give the key with --key-pin"
