"""Answer the agents of others in comments and through a folder; vouch for them.

\b
Example:
  commonplace mrp comment "@assistant memory_request: What do you know about pruning? max:3" --from Babel
  commonplace mrp watch ./exchange --agent assistant
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import uuid
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from commonplace.cli.support import options, values
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, emit, flat, line, note, plural
from commonplace.cli.support.peers import request_to
from commonplace.wire.errors import Conflict, Fault, ValidationError
from commonplace.wire.record import ALL_AGENTS, Principal, system_clock
from commonplace.wire.times import iso

if TYPE_CHECKING:
    from commonplace.dialects.mrp.comments import CommentRequest
    from commonplace.engine import Engine
    from commonplace.serve.mrp_files import AnswerSummary

_LEVELS = ("learning", "competent", "expert", "authority")

commands = Commands(__doc__)


@commands.add("comment", agent="Answer only for this agent [whichever one here is addressed].")
def comment(
    run: Session,
    text: Annotated[list[str] | None, argument("TEXT", "The comment; `-` or a pipe is stdin.")] = None,
    author: Annotated[
        str, option("--from NAME", "Who wrote the comment; the reply is addressed to them.")
    ] = "anonymous",
    trust_author: Annotated[
        bool, option("--trust-author", "Show them everything, not only what is everyone's.")
    ] = False,
) -> Answer:
    """Answer the requests in a comment, and print the reply.

    Requests to agents that are not here get no answer. A comment proves nobody's identity: what is shown is what is
    shared with everyone.

    \b
    Example:
      commonplace mrp comment "@assistant memory_request: What do you know about pruning? max:3" --from Babel
      cat comment.txt | commonplace mrp comment --from Babel --agent assistant
    """
    from commonplace.dialects.mrp import comments

    if not text and sys.stdin.isatty():
        raise ValidationError("give the comment, or `-` for stdin", field="text")
    written = " ".join(text) if text and text != ["-"] else values.text_file(Path("-"), "-")
    requests = comments.find_requests(written)
    engine = run.engine  # a store that is not there is said of, whatever the comment says
    answers = [run(_reply(engine, request, author, run.agent, trust_author)) for request in requests]
    replies = [reply for reply in answers if reply is not None]
    shown = "\n\n".join(reply["text"] for reply in replies)
    nothing = "no request to anyone here" if requests else "no request in this comment"
    return Answer({"replies": replies}, shown or None, notes=[] if replies else [nothing])


async def _reply(
    engine: Engine, asked: CommentRequest, author: str, agent: str | None, trusted: bool
) -> Document | None:
    """The reply to one request; none when it is to someone else."""
    from commonplace.dialects.mrp import Mrp, attestations, comments

    who = _caller(engine, trusted)
    name = engine.settings.mrp.name
    here = [agent] if agent is not None else [*await engine.agent_names(replace(who, agents=(ALL_AGENTS,))), name]
    named = [each for each in dict.fromkeys(here) if each.casefold() == asked.agent.casefold()]
    if not named:
        return None
    addressed = asked.agent if asked.agent in named else named[0]
    request = asked.request(requester=author, request_id=str(uuid.uuid4()), timestamp=iso(engine.clock()))
    reply: Document = {"agent": addressed, "request": request}
    try:
        if asked.problem is not None:
            raise Fault(asked.problem)
        if len(named) > 1 and asked.agent not in named:
            raise Conflict(f"{', '.join(sorted(named))} are different agents here: write the name in its own letters")
        answers = None if agent is None and addressed == name else addressed
        response = await Mrp(engine, who, agent=answers, authenticated=trusted).request(request)
        trust_context = await engine.peers.trust_context(who.tenant)

        def vouchers(attestation: Document) -> list[str]:
            own_key = engine.peers.identity.keypair().public
            own = attestations.signed_by(attestation, own_key)[1]
            vouched = attestations.vouched_for(trust_context, attestation, own_key if own else None)
            return vouched.vouchers if vouched is not None else []

        text = comments.render_reply(response, author, vouchers)
        reply["response"] = response
    except Fault as fault:
        text = comments.render_refusal(author, fault.message)
    return {**reply, "text": text}


def _caller(engine: Engine, trusted: bool) -> Principal:
    """Who is not trusted asks as a peer without a token does."""
    return OPERATOR if trusted else engine.peers.unauthenticated()


@commands.add("watch", agent="Who answers [`agent` of [mrp] in the settings, else everyone].")
def watch(
    run: Session,
    folder: Annotated[Path, argument("DIR", "The folder that requests are written to.")],
    once: Annotated[bool, option("--once", "Answer what is there, then end.")] = False,
    interval: Annotated[float, option("--interval SECONDS", "How often to look.")] = 0.5,
    trust_folder: Annotated[
        bool, option("--trust-folder", "Show everything to whoever can write there, not only what is shared.")
    ] = False,
) -> None:
    """Answer request-UUID.json with response-UUID.json in a folder.

    Also verify-UUID.json with verify-result-UUID.json. A folder proves nobody's identity: without --trust-folder what
    is shown is everyone's, and what is shared with who signs a request for this server. Stops at Ctrl-C or SIGTERM.

    \b
    Example:
      commonplace mrp watch ./exchange --agent assistant
      commonplace mrp watch ./exchange --once --json
    """
    if not 0.01 <= interval <= 3600:
        raise ValidationError("--interval takes 0.01 to 3600 seconds", field="interval")
    gc.enable()  # commands run without; this one lives longer
    from commonplace.dialects.mrp import Mrp
    from commonplace.serve.mrp_files import RequestFolder, watch as watch_folder

    engine, agent = run.engine, run.agent
    mrp = Mrp(engine, _caller(engine, trust_folder), agent=agent, authenticated=trust_folder)
    settings = engine.settings.mrp

    async def answer_requests() -> None:
        with RequestFolder(
            folder, mrp.handle, responder=agent or settings.agent or settings.name, report=note
        ) as requests:
            pause = _Pause(interval)
            if not once and not run.as_json:
                note(f"answering requests in {folder}; stop with Ctrl-C")
            await watch_folder(requests, pause, lambda answered: _report(answered, run.as_json), once=once)

    run(answer_requests(), endless=True)


class _Pause:
    """Until the next look is due or someone asks to stop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError, ValueError, RuntimeError):  # Windows, or not the main thread
                loop.add_signal_handler(number, self._stop.set)

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    async def wait(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), self._seconds)


def _report(answered: AnswerSummary, as_json: bool) -> None:
    if as_json:
        emit(asdict(answered))
    else:
        many = f", {plural(answered.results, 'memory')}" if answered.results else ""
        why = f": {flat(answered.message)}" if answered.status in ("error", "declined", "partial", "reject") else ""
        line(f"{answered.request} → {answered.response}  {answered.status}{many}{why}")
    sys.stdout.flush()


@commands.add("vouch", existing=False, agent="Who vouches [COMMONPLACE_AGENT, else `default`].")
def vouch(
    run: Session,
    url: options.AgentUrl,
    subject: Annotated[str, option("--subject AGENT", "Whom you vouch for.")],
    domain: Annotated[str, option("--domain NAME", "In which domain.")],
    statement: Annotated[str, option("--statement TEXT", "What you vouch for, in words.")],
    level: Annotated[str, option("--level LEVEL", "learning, competent, expert or authority.", *_LEVELS)] = "competent",
    subject_key: Annotated[
        str | None,
        option("--subject-key BASE64", "The key you know them by; by name alone it counts only where one is bound."),
    ] = None,
    context: Annotated[str | None, option("--context TEXT", "How you know.")] = None,
    ref: Annotated[list[str] | None, option("--ref ID", "Where you met: a request or memory; repeat it.")] = None,
    confidence: Annotated[str | None, option("--confidence LEVEL", "How sure you are: high, medium or low.")] = None,
    until: options.Expires = None,
    token: options.PeerToken = None,
) -> Answer:
    """Tell a server, in a signed statement, that another agent is good at something.

    It counts there when that server's operator has bound our key to our name as a voucher:
    `commonplace trust add NAME --level 2 --key KEY --voucher`.

    \b
    Example:
      commonplace mrp vouch http://127.0.0.1:8420 --subject assistant --domain memory --statement "Found what I needed"
    """
    from commonplace.dialects.mrp import client

    ends = values.future(until, "--expires")
    claim: dict[str, Any] = {"domain": domain, "statement": statement, "level": level}
    claim |= {"subject_key": subject_key, "context": context, "refs": ref or ()}
    claim["confidence"] = (confidence, "") if confidence else None
    claim["valid_until"] = iso(ends) if ends is not None else None
    private = run.engine.peers.identity.keypair().private

    async def send() -> tuple[Document, Any]:
        made = client.vouch_for(run.memory.agent_id, subject, now=system_clock(), private=private, **claim)
        async with client.PeerServer(url, token) as peer:
            return made, await peer.vouch(made)

    with request_to(url, token):
        made, answer = run(send())
    counts = (
        "it counts there"
        if answer.get("counted")
        else "it does not count there: our key is no voucher's, or they know no key of it (--subject-key)"
    )
    said = f"vouched for {subject} ({level}, {domain}) as {flat(answer.get('vouch_id'))}; {counts}"
    return Answer({"vouch": made, **answer}, said)
