"""`commonplace mrp`: answering in comments and through folders, and vouching."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.cli.ask import AgentUrl, Token, admitted, waiting
from commonplace.cli.support import options, values
from commonplace.cli.support.output import emit, line, note, plural
from commonplace.cli.support.session import Session

if TYPE_CHECKING:
    from commonplace.dialects.mrp.comments import Asked
    from commonplace.engine import Engine
    from commonplace.serve.mrp_files import Answered
    from commonplace.wire.record import Principal

_ABOUT = """Answer the agents of others in comments and through a folder; vouch for them.

\b
Example:
  commonplace mrp comment "@assistant memory_request: What do you know about pruning? max:3" --from Babel
  commonplace mrp watch ./exchange --agent assistant
"""


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("comment")(comment)
    group.command("watch")(watch)
    group.command("vouch")(vouch)
    app.add_typer(group, name="mrp", rich_help_panel="Other agents", help=_ABOUT)


def comment(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="The comment; `-` or a pipe is stdin.")
    ] = None,
    author: Annotated[
        str, typer.Option("--from", metavar="NAME", help="Who wrote the comment; the reply is addressed to them.")
    ] = "anonymous",
    trust_author: Annotated[
        bool, typer.Option("--trust-author", help="Show them everything, not only what is shared with them.")
    ] = False,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="Answer only for this agent [whichever one here is addressed]."),
    ] = None,
) -> None:
    """Answer the requests in a comment, and print the reply.

    Requests to agents that are not here get no answer. A comment proves nobody's identity: what is shown is what is
    shared with its author or with everyone.

    \b
    Example:
      commonplace mrp comment "@assistant memory_request: What do you know about pruning? max:3" --from Babel
      cat comment.txt | commonplace mrp comment --from Babel --agent assistant
    """
    from commonplace.dialects.mrp import comments

    if not text and sys.stdin.isatty():
        from commonplace.wire.errors import ValidationError

        raise ValidationError("give the comment, or `-` for stdin", field="text")
    written = " ".join(text) if text and text != ["-"] else values.text_file(Path("-"), "-")
    found = comments.find(written)
    replies: list[dict[str, Any]] = []
    with Session(data, agent, existing=True) as run:
        engine = run(run.memory.engine())
        for asked in found:
            replies += run(_reply(engine, asked, author, agent, trust_author))
    if as_json:
        emit({"replies": replies})
    elif not replies:
        note("no request to anyone here" if found else "no request in this comment")
    else:
        line("\n\n".join(reply["text"] for reply in replies))


async def _reply(
    engine: Engine, asked: Asked, author: str, agent: str | None, author_is_trusted: bool
) -> list[dict[str, Any]]:
    """The reply to one request; none when it is to someone else."""
    import uuid

    from commonplace.dialects.mrp import Mrp, authors, replies
    from commonplace.wire.errors import Fault
    from commonplace.wire.times import iso

    who = _caller(engine, author_is_trusted)
    name = engine.settings.mrp.name
    here = [agent] if agent is not None else [*await engine.agent_names(replace(who, agents=("*",))), name]
    addressed = next((each for each in here if each.casefold() == asked.agent.casefold()), None)
    if addressed is None:
        return []
    request = asked.request(requester=author, request_id=str(uuid.uuid4()), timestamp=iso(engine.clock()))
    reply: dict[str, Any] = {"agent": addressed, "request": request}
    try:
        if asked.problem is not None:
            raise Fault(asked.problem)
        answers = None if agent is None and addressed == name else addressed
        mrp = Mrp(engine, who, agent=answers, authenticated=author_is_trusted)
        response = await mrp.request(request)
        trust_context = await engine.peers.trust_context(who.tenant)

        def vouchers(attestation: dict[str, Any]) -> list[str]:
            trusted = authors.vouched_for(trust_context, attestation)
            return trusted.vouchers if trusted is not None else []

        shown = replies.reply_of(response, author, vouchers)
        reply["response"] = response
    except Fault as fault:
        shown = replies.refusal(author, fault.message)
    return [{**reply, "text": replies.render(shown)}]


def _caller(engine: Engine, trusted: bool) -> Principal:
    """Whoever can read the data directory looks after it; anyone else asks as a peer without a token does."""
    from commonplace.wire.record import Principal

    return Principal() if trusted else engine.peers.unauthenticated()


def watch(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that requests are written to.")],
    once: Annotated[bool, typer.Option("--once", help="Answer what is there, then end.")] = False,
    interval: Annotated[float, typer.Option("--interval", metavar="SECONDS", help="How often to look.")] = 0.5,
    trust_folder: Annotated[
        bool,
        typer.Option("--trust-folder", help="Show everything to whoever can write there, not only what is shared."),
    ] = False,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="Who answers [`agent` of [mrp] in the settings, else everyone]."),
    ] = None,
) -> None:
    """Answer request-UUID.json with response-UUID.json in a folder.

    Also verify-UUID.json with verify-result-UUID.json. A folder proves nobody's identity: without --trust-folder what
    is shown is what is shared with the requester or with everyone. Stops at Ctrl-C or SIGTERM.

    \b
    Example:
      commonplace mrp watch ./exchange --agent assistant
      commonplace mrp watch ./exchange --once --json
    """
    import gc

    from commonplace.wire.errors import ValidationError

    if not 0.01 <= interval <= 3600:
        raise ValidationError("--interval takes 0.01 to 3600 seconds", field="interval")
    gc.enable()  # commands run without; this one lives longer
    with Session(data, agent, existing=True) as run:
        run(_watch(run(run.memory.engine()), folder, agent, once, interval, trust_folder, as_json))


async def _watch(
    engine: Engine, path: Path, agent: str | None, once: bool, interval: float, trusted: bool, as_json: bool
) -> None:
    from commonplace.dialects.mrp import Mrp
    from commonplace.serve.mrp_files import Folder, watch

    mrp = Mrp(engine, _caller(engine, trusted), agent=agent, authenticated=trusted)
    settings = engine.settings.mrp
    with Folder(path, mrp.handle, responder=agent or settings.agent or settings.name, report=note) as folder:
        pause = _Pause(interval)
        if not once and not as_json:
            note(f"answering requests in {path}; stop with Ctrl-C")
        await watch(folder, pause, _told_json if as_json else _told, once=once)


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


def _told(answered: Answered) -> None:
    many = f", {plural(answered.results, 'memory')}" if answered.results else ""
    why = f": {answered.message}" if answered.status in ("error", "declined", "partial", "reject") else ""
    line(f"{answered.request} → {answered.response}  {answered.status}{many}{why}")
    sys.stdout.flush()


def _told_json(answered: Answered) -> None:
    from dataclasses import asdict

    emit(asdict(answered))
    sys.stdout.flush()


def vouch(
    url: AgentUrl,
    subject: Annotated[str, typer.Option("--subject", metavar="AGENT", help="Whom you vouch for.")],
    domain: Annotated[str, typer.Option("--domain", metavar="NAME", help="In which domain.")],
    statement: Annotated[str, typer.Option("--statement", metavar="TEXT", help="What you vouch for, in words.")],
    level: Annotated[
        str,
        typer.Option("--level", metavar="LEVEL", help="learning, competent, expert or authority.",
                     autocompletion=options.offering("learning", "competent", "expert", "authority")),
    ] = "competent",
    subject_key: Annotated[
        str | None, typer.Option("--subject-key", metavar="BASE64", help="The key you know them by.")
    ] = None,
    context: Annotated[str | None, typer.Option("--context", metavar="TEXT", help="How you know.")] = None,
    ref: Annotated[
        list[str] | None, typer.Option("--ref", metavar="ID", help="Where you met: a request or memory; repeat it.")
    ] = None,
    confidence: Annotated[
        str | None, typer.Option("--confidence", metavar="LEVEL", help="How sure you are: high, medium or low.")
    ] = None,
    until: options.Expires = None,
    token: Token = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="Who vouches [COMMONPLACE_AGENT, else `default`]."),
    ] = None,
) -> None:  # fmt: skip
    """Tell a server, in a signed statement, that another agent is good at something.

    It counts there when that server's operator has bound our key to our name as a voucher:
    `commonplace trust add NAME --level 2 --key KEY --voucher`.

    \b
    Example:
      commonplace mrp vouch http://127.0.0.1:8420 --subject assistant --domain memory --statement "Found what I needed"
    """
    from commonplace import asking
    from commonplace.wire.record import system_clock
    from commonplace.wire.times import iso

    now = system_clock()
    ends = None if until is None else iso(values.instant(until, "--expires", now, direction=1))

    async def send(engine: Engine, me: str) -> tuple[dict[str, Any], Any]:
        made = asking.vouch_for(
            me, subject, domain=domain, statement=statement, level=level, now=now,
            private=engine.peers.identity.keypair().private, subject_key=subject_key,
            context=context, refs=ref or (), confidence=(confidence, "") if confidence else None,
            valid_until=ends,
        )  # fmt: skip
        async with asking.Peer(url, token) as peer:
            return made, await peer.vouch(made)

    with Session(data, agent) as run, waiting(url), admitted(url, token):
        made, answer = run(send(run(run.memory.engine()), run.memory.agent_id))
    if as_json:
        emit({"vouch": made, **answer})
        return
    counts = "it counts there" if answer.get("counted") else "it does not count there: our key is no voucher's"
    line(f"vouched for {subject} ({level}, {domain}) as {answer.get('vouch_id')}; {counts}")
