"""`commonplace stores`: where memories lie, how far each store is behind, and making one equal again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from commonplace.cli import FAILURE
from commonplace.cli.support import options
from commonplace.cli.support.command import WHOLE_STORE, Answer, Commands, Session, argument, option
from commonplace.cli.support.interruption import RUN_AGAIN, report_interrupt
from commonplace.cli.support.output import Document, ask, confirm, plural
from commonplace.cli.support.progress import ProgressBar
from commonplace.cli.support.tables import Table
from commonplace.wire.errors import Conflict, NotFound, ValidationError

if TYPE_CHECKING:
    from commonplace.serve.running_server import RunningServer

commands = Commands()


@commands.add("stores", unused=WHOLE_STORE)
def stores(
    run: Session,
    action: Annotated[str | None, argument("[ACTION]", "resync or discard; nothing lists them.")] = None,
    name: Annotated[str | None, argument("[NAME]", "The store, as the list names it.")] = None,
    store: Annotated[
        list[str] | None, option("--store URL", "The stores, the first of which the others have copies of; repeatable.")
    ] = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
) -> Answer:
    """List the stores and what waits for each, make one equal to the first, or drop what waits.

    A server that runs on the data directory is asked for its own. `resync` leaves what the first store never had,
    unless somebody at a terminal, or --yes, says that it is to go. `discard` is for a store that is configured no more:
    it is never told what waited for it.

    \b
    Example:
      commonplace stores
      commonplace stores resync mem0 --dry-run
      commonplace stores resync mem0
      commonplace stores discard mem0 --dry-run
    """
    run.stores = tuple(store or ())
    if action is None and (dry_run or yes):
        raise ValidationError(
            "--dry-run and --yes are of resync and discard: leave them out", field="dry_run" if dry_run else "yes"
        )
    if action is None:
        return _list(run)
    if action not in ("resync", "discard") or name is None:
        raise ValidationError(
            "write `commonplace stores`, `commonplace stores resync NAME` or `commonplace stores discard NAME`",
            field="action",
        )
    if action == "resync":
        return _resync(run, name, dry_run, yes)
    return _discard(run, name, dry_run, yes)


def _list(run: Session) -> Answer:
    server = None if run.stores else _server_to_ask(run)
    if server is None:
        found = run(run.memory.stores())
        answer = _listed(found)
        if run.stores and any(map(_why, found)):
            answer.remarks = ["these are the stores of --store: give `stores resync` and `stores discard` the same"]
        return answer
    try:
        found = _stores_of_server(server)
    except (OSError, ValueError) as error:
        answer = _listed(run(run.memory.stores()))
        answer.remarks = [
            f"the server at {server.url} does not answer ({error}): this is what this command sees itself"
        ]
        return answer
    answer = _listed(found, server.url)
    answer.remarks = [f"as the server at {server.url} has them; --store names others"]
    return answer


def _resync(run: Session, name: str, dry_run: bool, yes: bool) -> Answer:
    # Whoever runs this by the clock may do so where the first store has just been lost.
    done = _run_resync(run, name, dry_run=dry_run, keep_unknown=not (yes or dry_run))
    if dry_run:
        return Answer(done, _dry_run_summary(done))
    kept = not yes and bool(done.get("unknown"))
    if kept and run.interactive and ask(f"{name} has {_unknown(done)}; {_ONLY_COPIES}. Delete them?"):
        before, done = done, _run_resync(run, name, dry_run=False, keep_unknown=False)
        done |= {count: before[count] + done[count] for count in ("sent", "deleted")}
        kept = False
    said, exit_code = _summary(done, kept=kept)
    return Answer(done, said, exit_code=exit_code)


_ONLY_COPIES = "where the first store was lost or is older, they are nowhere else"


def _summary(done: Document, *, kept: bool) -> tuple[str, int]:
    """What is said of a resync that came to its end, and the exit code; `kept` is whether what the first store never
    had was left."""
    said = f"{done['store']} was sent {plural(done['sent'], 'memory')} and lost {plural(done['deleted'], 'memory')}"
    if "unknown" in done and not kept:
        said += f", {len(done['unknown']):,} of which the first store never had"
    if done["equal"]:
        said += f"; both have the same {done['memories']:,} (sha256 {done['hash'][:16]}…)"
        said += (
            "" if done["all_tenants"] else "; it cannot say whether it has tenants that the first store does not have"
        )
        return said, 0
    left = [f"{_unknown(done)}, which were left; {_ONLY_COPIES}, --yes deletes them"] if kept else []
    if unreadable := done.get("unreadable"):
        left.append(f"{_unreadable(unreadable)}, so they were left; delete them there, and repeat it")
    if errors := done.get("errors"):
        untaken = [f"{plural(each['count'], 'memory')} not taken: {each['error']}" for each in errors]
        left.append(f"{'; '.join(untaken)}; then repeat it")
    if not left:
        left.append("something was written meanwhile; repeat it")
    return f"{said}; they still differ ({done['memories']:,} and {done['copies']:,}): {'; '.join(left)}", FAILURE


def _run_resync(run: Session, name: str, *, dry_run: bool, keep_unknown: bool) -> Document:
    bar = ProgressBar(f"comparing {name}")
    try:
        with report_interrupt(lambda: _stopped(name, bar.percent, dry_run)), bar as progress:
            return run(run.memory.resync(name, progress=progress, dry_run=dry_run, keep_unknown=keep_unknown))
    except NotFound as fault:
        server = _server(run)
        try:
            is_there = server is not None and name in _configured(server)
        except Conflict:  # a mistyped name stays one, whatever the server does
            raise fault from None
        if server is None or not is_there:
            raise
        raise NotFound(
            f"{fault.message}; the server at {server.url} has it: give this command the same --store as the server"
        ) from None


def _dry_run_summary(found: Document) -> str:
    if found["equal"]:
        return f"{found['store']} has the same {found['memories']:,} already; nothing was changed"
    said = f"would send {found['store']} {plural(found['sent'], 'memory')} and delete {found['deleted']:,} there"
    if unknown := found.get("unknown"):
        said += f", {len(unknown):,} of which the first store never had: {_listed_ids(unknown)}"
    if unreadable := found.get("unreadable"):
        said += f"; {_unreadable(unreadable)}, so they would be left"
    return f"{said}; nothing was changed"


def _unreadable(found: list[Document]) -> str:
    named = f"{plural(len(found), 'memory')} there ({_listed_ids(found)})"
    return f"{named} cannot be read, or not be deleted from here, and may be its own"


def _unknown(found: Document) -> str:
    return f"{plural(len(found['unknown']), 'memory')} that the first store never had: {_listed_ids(found['unknown'])}"


def _listed_ids(found: list[Document]) -> str:
    named = "; ".join(f"{each['id']} of agent {each['agent_id']}, tenant {each['tenant']}" for each in found[:10])
    return named + (f", and {len(found) - 10:,} more (--json has all)" if len(found) > 10 else "")


def _stopped(name: str, percent: int, dry_run: bool) -> str:
    if dry_run:
        return ": nothing was changed"
    return f" at about {percent} %: what {name} was sent stays there, and nothing is lost; {RUN_AGAIN}"


def _discard(run: Session, name: str, dry_run: bool, yes: bool) -> Answer:
    server = _server(run)
    if server is not None and name in _configured(server):
        raise Conflict(f"the server at {server.url} has the store {name} and delivers to it: remove it there first")
    seen = run(run.memory.discard_deliveries(name, dry_run=True))
    lost = _lost(seen)
    if dry_run:
        return Answer(seen, f"would discard {lost}; nothing was changed")
    if not yes:
        if not run.interactive:
            raise ValidationError(f"this would discard {lost}: look with --dry-run first, then add --yes", field="yes")
        confirm(f"Discard {lost}?")
    with ProgressBar(f"discarding what waits for {name}") as progress:
        done = run(run.memory.discard_deliveries(name, progress=progress))
    return Answer(done, f"discarded {_lost(done)}")


def _lost(found: Document) -> str:
    lost = f"{plural(found['waiting'], 'change')}, of which {found['store']} is never told; "
    if not found["deletions"]:
        return lost + "no deletion is among them"
    return lost + f"{plural(found['deletions'], 'deletion')} among them, so it may keep what was erased or forgotten"


def _server_to_ask(run: Session) -> RunningServer | None:
    """The one on the data directory, unless a setting names another first store than it has."""
    from commonplace import config

    server, named = _server(run), config.load(data=run.data)
    return server if server is not None and (named.store is None or server.has_store_of(named)) else None


def _server(run: Session) -> RunningServer | None:
    from commonplace import config
    from commonplace.serve.running_server import running_server

    return running_server(config.load(data=run.data).data)


def _stores_of_server(server: RunningServer) -> list[Document]:
    from commonplace.serve.running_server import stores_of

    return stores_of(server)


def _configured(server: RunningServer) -> set[str]:
    """The names of those that it has beside the first."""
    try:
        return {each["name"] for each in _stores_of_server(server) if "timeout" in each}
    except (OSError, ValueError) as error:
        raise Conflict(f"the server at {server.url} does not say which stores it has ({error}): stop it") from None


def _listed(found: list[Document], server: str | None = None) -> Answer:
    rows = [
        [
            each["name"],
            each["role"],
            each["status"],
            f"{each['waiting']:,}",
            f"{each['failing']:,}",
            _age(each.get("behind_ms")),
            _why(each),
        ]
        for each in found
    ]
    columns = ["store", "role", "status", "waiting", "failing", "behind", "why"]
    if server is not None:
        return Answer({"stores": found, "server": server}, Table(columns, rows))
    # A process counts altered copies of its own recalls (`altered`): this one has asked nothing, so none are shown.
    shown = [{name: value for name, value in each.items() if name != "altered"} for each in found]
    return Answer({"stores": shown}, Table(columns, rows))


def _why(store: Document) -> str:
    # What failed last was maybe tried before something was put right: what is wrong now is what there is to do.
    now, last = store.get("error", ""), store.get("last_error", "")
    return f"{now}; at the last delivery: {last}" if now and last and now not in last else last or now


def _age(ms: int | None) -> str:
    if ms is None:
        return ""
    seconds = ms // 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
