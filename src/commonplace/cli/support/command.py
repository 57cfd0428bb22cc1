"""What every command is made of: its shared options, a session on the memory, an answer that is printed."""

from __future__ import annotations

import inspect
import logging
import os
import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, wraps
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer
from typer.core import TyperCommand, TyperGroup

from commonplace.cli import OK
from commonplace.cli.support import output
from commonplace.cli.support.tables import Table, memories_table
from commonplace.wire.errors import Conflict, NotFound, ValidationError
from commonplace.wire.record import Principal

if TYPE_CHECKING:
    import asyncio

    from commonplace.engine import Engine
    from commonplace.sdk import Memory
    from commonplace.wire.models import Message

T = TypeVar("T")
Body = TypeVar("Body", bound=Callable[..., "Answer | None"])

#: Whoever can read the data directory looks after it.
OPERATOR = Principal()

_PART_OF_ID = re.compile(r"[0-9a-f-]{6,35}\Z")
_MAX_PURPOSE = 90  # characters of a command's first sentence, which no list of commands cuts
_MAX_AGENTS = 10  # named in a hint
_PAGES = 5  # of 1,000: where there are more memories than this, shortened ids are not looked for


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


def argument(metavar: str, help: str) -> Any:
    return typer.Argument(metavar=metavar, help=help)


def _offer_agents(ctx: Any, incomplete: str) -> list[str]:
    from commonplace.cli.support.agent_names import agent_names

    return [name for name in agent_names(ctx.params.get("data")) if name.startswith(incomplete)]


def agent_option(help: str) -> Any:
    """--agent, for which the shell offers those that there are."""
    return option("--agent NAME", help, autocompletion=_offer_agents)


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
        """Says of each store that did not do its part why, unless the answer does so itself."""
        document = self.document if isinstance(self.document, dict) else _dump(self.document)
        said = [each for name in ("errors", "stores", "results") for each in document.get(name) or ()]
        said += [each for result in document.get("results") or () for each in result.get("errors") or ()]
        told = {each["store"] for each in said if isinstance(each, dict) and each.get("error") and "store" in each}
        errors = [{"store": name, "error": why} for name, why in problems.items() if name not in told]
        if errors:
            self.document = {**document, "errors": [*(document.get("errors") or ()), *errors]}
            self.remarks = [*self.remarks, *output.store_problems({"errors": errors})]

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


class Session:
    """One command's hold on the memory: opened when first used, closed before the answer is printed.

    `session(memory.recall(...))` waits for the answer. Between two calls Ctrl-C behaves as everywhere.
    """

    def __init__(self, data: Path | None, agent: str | None, *, as_json: bool = False, existing: bool = False) -> None:
        self.data, self.agent, self.as_json = data, agent, as_json
        self.existing = existing  # whether a store that is not there is the user's mistake
        self.warnings: list[str] = []
        self.store_problems: dict[str, str] = {}  # why one did not do its part of what was written, by its name
        self._log = _WarningLog(self.warnings)
        self._asked = False

    @cached_property
    def memory(self) -> Memory:
        data = self.data
        if self.existing and data is not None and not data.is_file() and not _holds_store(data):
            raise NotFound(f"there is no store in {data}; `commonplace remember --data {data} …` would begin one")
        named = Path(os.environ.get("COMMONPLACE_DATA") or ".").expanduser()
        if self.existing and data is None and not named.exists():
            warning = f"{named}, which COMMONPLACE_DATA names, was not there: an empty store was begun in it"
            self.warnings.append(warning)
        # One command asks one question: starting a thread per core for linear algebra costs more than it gives.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from commonplace import config as configuration
        from commonplace.sdk import Memory
        from commonplace.serve.shared_embedder import open_shared_embedder, running_server

        config = configuration.load(data=data, agent=self.agent)
        if self.existing and config.store is not None:
            _require_store(config.store)
        # A server on the same data has the model in memory; loading it again takes most of what a command does.
        server = running_server(config.data)
        if server is None:
            return Memory(self.agent, data=data)
        return Memory(self.agent, data=data, embedder=open_shared_embedder(config), server_url=server.url)

    @cached_property
    def engine(self) -> Engine:
        return self(self.memory.engine())

    @cached_property
    def _runner(self) -> asyncio.Runner:
        import asyncio

        return asyncio.Runner()

    @property
    def interactive(self) -> bool:
        """Whether there is a person to ask."""
        return not self.as_json and sys.stdin.isatty() and sys.stderr.isatty()

    def __call__(self, work: Coroutine[Any, Any, T], *, endless: bool = False) -> T:
        """`endless` work shows no bar, however long it takes."""
        self._asked = True
        reported = self._reported(work) if "memory" in self.__dict__ else work
        if endless or not sys.stderr.isatty():
            return self._runner.run(reported)
        from commonplace.cli.support.progress import ProgressBar

        with ProgressBar("working"):
            return self._runner.run(reported)

    async def _reported(self, work: Coroutine[Any, Any, T]) -> T:
        """Notes what stores beside the primary made of it: whichever command it is, its answer says so."""
        try:
            engine = await self.memory.engine()
        except BaseException:
            work.close()
            raise
        with engine.reporting() as report:
            try:
                return await work
            finally:
                self.store_problems = report.problems() | self.store_problems

    def __enter__(self) -> Session:
        logging.getLogger("commonplace").addHandler(self._log)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if "memory" in self.__dict__:
                self._runner.run(self.memory.close())
        finally:
            if "_runner" in self.__dict__:  # also where there was no store to open
                self._runner.close()
            logging.getLogger("commonplace").removeHandler(self._log)

    def agent_hint(self) -> str | None:
        """Which agents have memories, where the one that was named has none; whoever runs a command may know all."""
        from difflib import get_close_matches

        if not self._asked:  # a mistake that was noticed before a store was opened opens none
            return None
        memory = self.memory
        if self(memory.list(limit=1))["memories"]:
            return None
        named = self(memory.status())["agents"]  # without those whose name holds a secret
        if not named or memory.agent_id in named:  # among them: all it had was forgotten, and its name is right
            return None
        close = get_close_matches(memory.agent_id, named, 1)
        meant = f"did you mean {output.label(close[0])}? " if close else ""
        shown = ", ".join(output.label(name) for name in list(named)[:_MAX_AGENTS])
        rest = f" and {len(named) - _MAX_AGENTS:,} more" if len(named) > _MAX_AGENTS else ""
        return f"agent {output.label(memory.agent_id)} has no memories; {meant}those that have: {shown}{rest}"

    def id(self, ref: str) -> str:
        """The id a shortened one stands for; anything else as it is, for the engine to judge."""
        if not _PART_OF_ID.match(ref):
            return ref
        try:
            self(self.memory.get(ref))
            return ref  # an alias that happens to look like part of an id
        except NotFound:
            pass
        found, cursor = [], None
        for _ in range(_PAGES):
            page = self(self.memory.list(limit=1000, cursor=cursor))
            found += [m["id"] for m in page["memories"] if m["id"].startswith(ref) or m["id"].endswith(ref)]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        else:
            raise ValidationError(f"{self.memory.agent_id} has too many memories to look for {ref}; give the whole id")
        if len(found) > 1:
            shown = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")
            raise Conflict(f"{ref} could be {len(found)} memories ({shown}); give more of the id")
        return found[0] if found else ref


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


def _holds_store(data: Path) -> bool:
    # A store elsewhere, named by a setting, is not in the folder at all.
    named = os.environ.get("COMMONPLACE_STORE") or os.environ.get("COMMONPLACE_STORES")
    elsewhere = bool(named) or (data / "commonplace.toml").exists()
    return elsewhere or (data / "commonplace.db").exists()


def _require_store(url: str) -> None:
    from commonplace import plugins
    from commonplace.stores.urls import is_ephemeral, shown_url

    if not is_ephemeral(url) and not plugins.store_exists(url):
        raise NotFound(f"there is no store at {shown_url(url)}; `commonplace remember …` with it would begin one")


class _WarningLog(logging.Handler):
    """Keeps the warnings of the layers below, to be shown once in this command's own way."""

    def __init__(self, warnings: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._warnings = warnings
        if os.environ.get("COMMONPLACE_DEBUG"):
            logging.basicConfig(level=logging.DEBUG)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._warnings:
            self._warnings.append(text)
