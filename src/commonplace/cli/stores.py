"""`commonplace stores`: where memories lie, how far each store is behind, and making one equal again."""

from __future__ import annotations

from typing import Annotated

from commonplace.cli import FAILURE
from commonplace.cli.support.command import WHOLE_STORE, Answer, Commands, Session, argument
from commonplace.cli.support.interruption import RUN_AGAIN, report_interrupt
from commonplace.cli.support.output import Document, plural
from commonplace.cli.support.progress import ProgressBar
from commonplace.cli.support.tables import Table
from commonplace.wire.errors import ValidationError

commands = Commands()


@commands.add("stores", unused=WHOLE_STORE)
def stores(
    run: Session,
    action: Annotated[str | None, argument("[resync]", "What to do; nothing lists them.")] = None,
    name: Annotated[
        str | None, argument("[NAME]", "The store to make equal to the first, as the list names it.")
    ] = None,
) -> Answer:
    """List the stores with what waits for each, or make one equal to the first and prove it.

    \b
    Example:
      commonplace stores
      commonplace stores resync mem0
    """
    if action is None:
        return _listed(run(run.memory.stores()))
    if action != "resync" or name is None:
        raise ValidationError("write `commonplace stores`, or `commonplace stores resync NAME`", field="action")
    bar = ProgressBar(f"comparing {name}")
    with report_interrupt(lambda: _stopped(name, bar.percent)), bar as progress:
        done = run(run.memory.resync(name, progress=progress))
    said = f"{name} was sent {plural(done['sent'], 'memory')} and lost {plural(done['deleted'], 'memory')}; "
    if done["equal"]:
        said += f"both have the same {done['memories']:,} (sha256 {done['hash'][:16]}…)"
        said += (
            "" if done["all_tenants"] else "; it cannot say whether it has tenants that the first store does not have"
        )
        return Answer(done, said)
    if doubtful := done.get("unreadable"):
        named = "; ".join(
            f"{each['id']} of agent {each['agent_id']}, tenant {each['tenant']}" for each in doubtful[:10]
        )
        more = f", and {len(doubtful) - 10:,} more (--json has all)" if len(doubtful) > 10 else ""
        said += f"{plural(len(doubtful), 'memory')} there cannot be read, or not be deleted from here, "
        said += f"and may be its own, so they were left: {named}"
        return Answer(done, f"{said}{more}; delete them there, and repeat it", exit_code=FAILURE)
    said += f"they still differ ({done['memories']:,} and {done['copies']:,}): something was written meanwhile, or was "
    said += "not taken, and then `commonplace stores` shows why; repeat it"
    return Answer(done, said, exit_code=FAILURE)


def _stopped(name: str, percent: int) -> str:
    return f" at about {percent} %: what {name} was sent stays there, and nothing is lost; {RUN_AGAIN}"


def _listed(found: list[Document]) -> Answer:
    rows = [
        [
            each["name"],
            each["role"],
            each["status"],
            f"{each['waiting']:,}",
            f"{each['failing']:,}",
            _age(each.get("behind_ms")),
            each.get("last_error") or each.get("error") or "",
        ]
        for each in found
    ]
    columns = ["store", "role", "status", "waiting", "failing", "behind", "why"]
    # A process counts altered copies of its own recalls (`altered`): this one has asked nothing, so none are shown.
    shown = [{name: value for name, value in each.items() if name != "altered"} for each in found]
    return Answer({"stores": shown}, Table(columns, rows))


def _age(ms: int | None) -> str:
    if ms is None:
        return ""
    seconds = ms // 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
