"""What every command is made of: its shared options, a session on the memory, an answer that is printed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer
from typer.core import TyperCommand, TyperGroup

from commonplace.cli import OK
from commonplace.cli.support import output
from commonplace.cli.support.session import Session as Session  # which commands take from here
from commonplace.cli.support.tables import Table, memories_table
from commonplace.wire.errors import NotFound, ValidationError
from commonplace.wire.record import Principal

if TYPE_CHECKING:
    from commonplace.wire.models import Message

Body = TypeVar("Body", bound=Callable[..., "Answer | None"])

#: Whoever can read the data directory looks after it.
OPERATOR = Principal()

_MAX_PURPOSE = 90  # characters of a command's first sentence, which no list of commands cuts


def option(declaration: str, help: str, *words: str, **settings: Any) -> Any:
    """An option, declared as its help shows it, such as `--limit N` or `--yes -y`.

    The shell offers `words` for it. What is allowed is checked, and explained, where every protocol checks it.
    """
    parts = declaration.split()
    names = [part for part in parts if part.startswith("-")]
    metavar = None if len(names) == len(parts) else parts[-1]
    if words:
        settings["autocompletion"] = lambda incomplete: [word for word in words if word.startswith(incomplete)]
    return typer.Option(*names, metavar=metavar, help=help, **settings)


def argument(metavar: str, help: str, **settings: Any) -> Any:
    return typer.Argument(metavar=metavar, help=help, **settings)


def _offer_agents(ctx: Any, incomplete: str) -> list[str]:
    from commonplace.cli.support.agent_names import agent_names

    return [name for name in agent_names(ctx.params.get("data")) if name.startswith(incomplete)]


def agent_option(help: str) -> Any:
    """--agent, for which the shell offers those that there are."""
    return option("--agent NAME", help, autocompletion=_offer_agents, parser=_agent_name)


def _agent_name(text: str) -> str:
    # An unset variable in a script must not mean an agent that nobody can write as.
    if not text:
        raise ValidationError("--agent names no agent; give one, or leave --agent out", field="agent_id")
    return text


#: The help of --agent, but where a command gives it a meaning of its own.
AGENT = "Whose memory [COMMONPLACE_AGENT, else `default`]."
#: Why --agent means nothing to a command that looks after the store itself.
WHOLE_STORE = "a store holds every agent"
Agent = Annotated[str | None, agent_option(AGENT)]
Json = Annotated[bool, option("--json", "Print the answer as JSON on stdout.")]


def _folder(text: str) -> Path:
    # An unset variable in a script must not mean the folder that the shell happens to be in.
    if not text.strip():
        raise ValidationError("--data names no folder; give one, or leave --data out", field="data")
    return Path(text)


_DATA_HELP = "Data directory [COMMONPLACE_DATA, else the platform's own]."
Data = Annotated[Path | None, option("--data DIR", _DATA_HELP, parser=_folder)]


@dataclass(slots=True)
class Answer:
    """What a command says: the document for --json, or what people see.

    That is a line, a table, the fields of a mapping one under the other, or whatever a function prints.
    """

    document: dict[str, Any] | Message
    shown: str | Table | Mapping[str, Any] | Callable[[], None] | None = None
    remarks: Iterable[str | None] = ()  # for people, after it: each once, marked as a note
    exit_code: int = OK
    notes: Iterable[str] = ()  # for people, after it: on stderr as they are
    nothing: bool = False  # whether an agent without memories would explain it

    @classmethod
    def preview(cls, verb: str, memories: list[dict[str, Any]], **more: Any) -> Answer:
        """What a --dry-run shows."""
        changed = f"would {verb} {output.plural(len(memories), 'memory')}; nothing was changed"
        return cls({"dry_run": True, **more, "memories": memories}, memories_table(memories, more=changed))

    def tell_store_problems(self, problems: Mapping[str, str]) -> None:
        """Says of each store that did not do its part why, to programs and to people, unless they are told already."""
        document = self.document if isinstance(self.document, dict) else _dump(self.document)
        said = [each for name in ("errors", "stores", "results") for each in document.get(name) or ()]
        said += [each for result in document.get("results") or () for each in result.get("errors") or ()]
        told = {each["store"] for each in said if isinstance(each, dict) and each.get("error") and "store" in each}
        errors = [{"store": name, "error": why} for name, why in problems.items() if name not in told]
        if errors:
            self.document = {**document, "errors": [*(document.get("errors") or ()), *errors]}
        self.remarks, self.notes = list(self.remarks), list(self.notes)
        shown = [text for text in (*self.remarks, *self.notes) if text]
        self.remarks += [f"{n}: {why}" for n, why in problems.items() if not any(why in text for text in shown)]

    def tell(self, notes: Iterable[str]) -> None:
        """Adds what people are to know, unless they are told already."""
        self.remarks, self.notes = list(self.remarks), list(self.notes)
        self.remarks += [text for text in notes if text not in (*self.remarks, *self.notes)]

    def print(self, as_json: bool) -> None:
        if as_json:
            output.emit(self.document if isinstance(self.document, dict) else _dump(self.document))
            return
        if isinstance(self.shown, str):
            output.line(self.shown)
        elif isinstance(self.shown, Table):
            self.shown.print()
        elif isinstance(self.shown, Mapping):
            output.print_fields(self.shown)
        elif self.shown is not None:
            self.shown()
        for text in self.notes:
            output.note(text)
        output.remarks(self.remarks)


class HeadedGroup(TyperGroup):
    """Lists commands under their headings, each with the whole sentence that says what it is for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, commands in groupby(self.commands.items(), lambda item: _heading(item[1])):
            with formatter.section(heading):
                formatter.write_dl([(name, each.get_short_help_str(limit=_MAX_PURPOSE)) for name, each in commands])


def _heading(command: Any) -> str:
    found = getattr(command, "rich_help_panel", None)
    return found if isinstance(found, str) else "Commands"


class LeafCommand(TyperCommand):
    """Says of a mistake which command it is in: click's parser does not, of an option without its value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            raise


class Commands:
    """The command of a module, or its group of commands, whose help is the module's docstring."""

    def __init__(self, help: str | None = None, *, wrap: Callable[..., Callable[..., None]] | None = None) -> None:
        self.typer = typer.Typer(help=help, cls=HeadedGroup, no_args_is_help=True, rich_markup_mode=None)
        self._wrap = wrap or session_command

    def add(self, name: str, **settings: Any) -> Callable[[Body], Body]:
        """Makes a body the command of this name; the settings are those of `session_command`."""

        def register(body: Body) -> Body:
            self.typer.command(name)(self._wrap(body, **settings))
            return body

        return register

    def join(self, root: typer.Typer, name: str, heading: str) -> None:
        commands = self.typer.registered_commands
        for command in commands:
            command.cls = LeafCommand
        if [command.name for command in commands] != [name]:
            root.add_typer(self.typer, name=name, rich_help_panel=heading)
            return
        commands[0].rich_help_panel = heading
        root.registered_commands.append(commands[0])


def session_command(
    body: Body, *, existing: bool = True, agent: str = AGENT, unused: str | None = None
) -> Callable[..., None]:
    """A command whose body takes a session; --json, --data and --agent follow the options of its own.

    `existing`: it does not begin a store. `agent`: the help of its --agent. `unused`: why that means nothing to it.
    """

    def start(as_json: bool, data: Path | None, agent: str | None) -> Session:
        return Session(data, agent, as_json=as_json, existing=existing)

    declared = option("--agent NAME", f"Not used: {unused}.") if unused else agent_option(agent)
    hinted = _with_agent_hint(body, by_default=agent == AGENT) if existing and not unused else body
    return with_options(
        hinted, start, as_json=(Json, False), data=(Data, None), agent=(Annotated[str | None, declared], None)
    )


def _with_agent_hint(body: Body, *, by_default: bool) -> Body:
    """A name that nobody wrote under is a typing mistake more often than not: say so where nothing else would.

    `by_default`: whether the command looks at one agent where none is named, which then is the mistake.
    """

    @wraps(body)
    def hinted(run: Session, **given: Any) -> Answer | None:
        try:
            answer = body(run, **given)
        except NotFound as fault:
            if (by_default or run.agent is not None) and (hint := run.agent_hint()):
                raise NotFound(f"{fault.message}; {hint}", **fault.details) from None
            raise
        if answer is not None and not run.as_json:
            empty_table = isinstance(answer.shown, Table) and not answer.shown.rows
            if answer.nothing or (empty_table and run.agent is not None):
                answer.remarks = [*answer.remarks, run.agent_hint()]
        return answer

    return cast(Body, hinted)


def with_options(
    body: Body, start: Callable[..., AbstractContextManager[Any]], **shared: tuple[Any, Any]
) -> Callable[..., None]:
    """The body as a callback of typer's. The shared options, each a type and a default, make its first argument."""

    def callback(**given: Any) -> None:
        with start(**{name: given.pop(name) for name in shared}) as context:
            answer = body(context, **given)
        if answer is not None:
            if problems := context.store_problems:
                answer.tell_store_problems(problems)
            answer.tell(context.config_notes)
            answer.print(context.as_json)
            if answer.exit_code != OK:
                raise typer.Exit(answer.exit_code)

    signature = inspect.signature(body, eval_str=True)
    own = list(signature.parameters.values())[1:]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    added = [inspect.Parameter(name, kind, default=value, annotation=type) for name, (type, value) in shared.items()]
    callback.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    callback.__annotations__ = {}  # typer would believe them rather than the signature
    callback.__name__, callback.__doc__ = body.__name__, body.__doc__
    return callback


def _dump(message: Message) -> dict[str, Any]:
    from commonplace.wire.models import dump

    return dump(message)
