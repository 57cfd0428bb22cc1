"""`commonplace ask`: what another agent remembers."""

from __future__ import annotations

import re
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.cli import trust
from commonplace.cli.support import options, values
from commonplace.cli.support.output import emit, flat, line, note, plural
from commonplace.cli.support.progress import PATIENCE_SECONDS
from commonplace.cli.support.session import Session
from commonplace.wire.errors import Unauthenticated, ValidationError
from commonplace.wire.record import system_clock

if TYPE_CHECKING:
    from commonplace.asking import Heard
    from commonplace.engine import Engine

AgentUrl = Annotated[str, typer.Argument(metavar="AGENT_URL", help="The server to ask, such as http://127.0.0.1:8420.")]
Token = Annotated[
    str | None,
    typer.Option("--token", metavar="TOKEN", envvar="COMMONPLACE_TOKEN", show_envvar=False,
                 help="A token of that server [COMMONPLACE_TOKEN]."),
]  # fmt: skip
Asker = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="Who asks, and keeps [COMMONPLACE_AGENT, else `default`].")
]


_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z")


def register(app: typer.Typer) -> None:
    app.command("ask", rich_help_panel="Other agents")(ask)


def ask(
    url: AgentUrl,
    question: Annotated[list[str] | None, typer.Argument(metavar="QUESTION", help="What you want to know.")] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", metavar="NAME", help="Only memories of this project, or with this tag.")
    ] = None,
    keyword: Annotated[
        list[str] | None, typer.Option("--keyword", metavar="WORD", help="Only what holds one of these; repeat it.")
    ] = None,
    most: Annotated[int, typer.Option("--max", metavar="N", help="How many memories at most.")] = 10,
    after: Annotated[
        str | None, typer.Option("--after", metavar="TIME", help="Only what was written since: an ISO time or an age.")
    ] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="TIME", help="Only what was written until: an ISO time or an age.")
    ] = None,
    trust: Annotated[
        int | None, typer.Option("--trust", metavar="0–3", help="Only authors the responder trusts this far.")
    ] = None,
    evidence: Annotated[bool, typer.Option("--evidence", help="Only what names its evidence.")] = False,
    vouched: Annotated[bool, typer.Option("--vouched", help="Only authors that someone vouches for.")] = False,
    responder_agent: Annotated[
        str | None, typer.Option("--responder-agent", metavar="NAME", help="Which agent of that server is asked.")
    ] = None,
    key_pin: Annotated[
        str | None,
        typer.Option("--key-pin", metavar="BASE64", help="The responder's key; else what `commonplace trust` knows."),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Have the responder verify each memory again.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep what is verified among the memories of --agent.")] = False,
    share: Annotated[
        list[str] | None,
        typer.Option("--share-with", metavar="NAME", help="With --keep: whom it may be passed on to; `*` is everyone."),
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="How long to wait at most.")] = 60.0,
    token: Token = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: Asker = None,
) -> None:
    """Ask another agent what it remembers; check its answer, keep what you want.

    The request is signed with the key of this installation (`commonplace identity` shows it), and every signature and
    hash in the answer is checked. An answer that was changed on its way is neither shown nor kept.

    \b
    Example:
      commonplace ask http://127.0.0.1:8420 "what do you know about pruning strategies?"
      commonplace ask https://memory.example.org "deployment" --responder-agent ops --domain atlas --verify --keep
    """
    from commonplace import asking
    from commonplace.wire import keys

    now = system_clock()
    times = {name: _time(name, text, now) for name, text in (("after", after), ("before", before)) if text is not None}
    filters = {"min_trust_level": trust, "require_evidence": evidence or None, "require_vouches": vouched or None}
    filters = {name: value for name, value in filters.items() if value is not None}
    conditions = {"domain": domain, "keywords": keyword, "time_range": times or None, "filters": filters or None}
    structured = {name: value for name, value in conditions.items() if value is not None}

    if not question and not structured:
        raise ValidationError(f'say what you want to know: commonplace ask {url} "what about …?"', field="question")
    if not 0 < timeout <= 3600:
        raise ValidationError("--timeout takes a number of seconds up to 3600", field="timeout")
    if key_pin is not None:
        keys.check_public(key_pin)

    async def converse(engine: Engine, me: str) -> tuple[Heard, list[str]]:
        from commonplace.dialects.mrp import Mrp
        from commonplace.wire.record import Principal

        who = Principal()
        private = engine.peers.identity.keypair().private
        peers = (await engine.peers.trust_context(who.tenant)).peers
        known = {name: peer.key for name, peer in peers.items() if peer.key}
        request = asking.question(
            me, " ".join(question or ()), now=system_clock(), structured=structured, preferences={"max_results": most}
        )
        async with asking.Peer(url, token, agent=responder_agent, timeout=timeout) as peer:
            heard = await asking.ask(peer, request, private=private, pin=key_pin, known_keys=known)
            if verify:
                await asking.verify(peer, heard, private=private)
        reasons = await asking.keep(Mrp(engine, who), heard, agent=me, share_with=share) if keep else []
        return heard, reasons

    with Session(data, agent) as run, waiting(url), admitted(url, token):
        heard, reasons = run(converse(run(run.memory.engine()), run.memory.agent_id))
    if as_json:
        emit(heard.to_wire() | ({"not_kept": reasons} if keep else {}))
    else:
        _show(heard, reasons, share or [])


def _time(name: str, text: str, now: int) -> str:
    """As the wire says it; a bare day as --before means all of it."""
    from commonplace.wire.times import DAY_MS, iso

    at = values.instant(text, f"--{name}", now, direction=-1)
    return iso(at + DAY_MS - 1 if name == "before" and _DAY.match(text.strip()) else at)


@contextmanager
def waiting(url: str) -> Iterator[None]:
    """Says that an answer is being waited for, once it takes long and where someone is watching."""
    timer = threading.Timer(PATIENCE_SECONDS, lambda: note(f"waiting for {url} …"))
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def admitted(url: str, token: str | None) -> Iterator[None]:
    """Says whose token is wanted: a server speaks to its owner, and a token made here would close our own server."""
    try:
        yield
    except Unauthenticated as refusal:
        how = "pass it with --token or COMMONPLACE_TOKEN"
        if token:
            raise Unauthenticated(
                f"{url} refuses this token ({refusal.message}): ask the owner of that server for another, and {how}"
            ) from None
        why = "asks for a token" if "Bearer" in refusal.message else f"refuses the request ({refusal.message})"
        raise Unauthenticated(f"{url} {why}: the owner of that server must give you a token; {how}") from None


def _show(heard: Heard, reasons: list[str], shared: list[str]) -> None:
    response, examined = heard.response, heard.examined
    status, results = response["status"], response["results"]
    meta: dict[str, Any] = response.get("meta", {})
    if not results:
        note(f"answer of {flat(heard.responder)}: {status['code']}, {flat(status['message'])}")
    for place, (result, verdict) in enumerate(zip(results, examined.verdicts, strict=True)):
        attestation = result["attestation"]
        if place:
            line()
        line(f"{place + 1}. [{result['relevance_score']:.2f}] {attestation['claim']['content']}")
        line(f"   by {flat(attestation['agent'])}, {flat(attestation['created_at'])}, {flat(result['memory_id'])}")
        unknown = ", which is our own" if verdict.key == _own_key(heard) else ", not known here"
        whose = f", known as {verdict.known_as}'s" if verdict.known_as else unknown if verdict.key else ""
        line(f"   {verdict.state}: {flat(verdict.detail + whose)}")
        if heard.verifications:
            line(f"   responder: {_advice(heard.verifications[place])}")
        if heard.kept:
            line(f"   {_kept(heard.kept[place], reasons[place], shared)}")
    if results:
        found = plural(meta.get("total_matches", len(results)), "memory")
        signed = "signed" if examined.signed else "NOT signed"
        level = f", at trust level {meta['trust_level_used']}" if meta else ""
        note(f"answer of {flat(heard.responder)}: {status['code']}, {found}{level}, {signed}{_key(heard)}")
        if status["code"] == "partial":
            note(f"partial: {flat(status['message'])}")


def _kept(kept: dict[str, Any] | None, reason: str, shared: list[str]) -> str:
    if kept is None:
        return f"not kept: {reason}"
    id = kept["memory_id"]
    if kept.get("own"):
        how = f"; to share it: `commonplace update {id} --share-with NAME`" if shared else ""
        return f"not kept: it is our own memory, {id}, and was not changed{how}"
    now = f", now shared with {', '.join(shared)}" if shared else ""
    return f"kept as {id}" if kept["created"] else f"kept before as {id}{now}"


def _advice(verification: dict[str, Any]) -> str:
    if "error" in verification:
        return f"would not verify it: {verification['error']['message']}"
    aggregate = verification["aggregate"]
    failed = [name for name, found in verification["results"].items() if found["status"] == "fail"]
    return f"{aggregate['recommendation']}, trust {aggregate['trust_score']}" + (
        f", failed: {', '.join(failed)}" if failed else ""
    )


def _own_key(heard: Heard) -> str | None:
    key: str | None = heard.request["requester"].get("public_key")
    return key


def _key(heard: Heard) -> str:
    if not heard.examined.signed:
        return ""
    if heard.examined.known:
        return " with its known key"
    key = heard.response["responder"].get("public_key")
    if key == _own_key(heard):
        return " with our own key"
    name = shlex.quote(flat(heard.responder))
    known = f" with a key not known here; `commonplace trust add {name} --level 1 --key {key}` binds it"
    warning = trust.ambiguous(heard.responder)
    return known if warning is None else f"{known}\n{warning}, or give the key with --key-pin"
