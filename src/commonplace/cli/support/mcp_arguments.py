"""What `commonplace mcp` is given, read without loading the command line's own libraries.

Clients spawn this command once per conversation and wait for its first answer, so arguments as clients write them
are parsed here; help, mistakes and everything unusual are left to the full command. Imports as little as it can.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

TOOL_SETS = ("commonplace", "full", "amp", "trusty", "all")

_ON_TERMINAL = "commonplace mcp is spoken to by an MCP client; see `commonplace mcp --help`. Ctrl-D ends it."


@dataclass(slots=True, frozen=True)
class McpArguments:
    """Each field is the flag of its name."""

    tools: str = "commonplace"
    palace: str | None = None
    http: str | None = None
    agent: str | None = None
    data: str | None = None

    def check(self) -> None:
        """Whether the set of tools is one, and has those that the other options are about."""
        from commonplace.serve.protocols import load_tool_set
        from commonplace.wire.errors import ValidationError

        names = {tool.name for tool in load_tool_set(self.tools).tools}
        for name in ("palace", "http"):
            if getattr(self, name) is not None and "palace_list" not in names:
                raise ValidationError(
                    f"--{name} is for trusty-memory's tools, and --tools {self.tools} has none of them: "
                    f"add --tools trusty or --tools all, or leave --{name} out",
                    field=name,
                )

    def words(self) -> tuple[str, ...]:
        """The command line after `commonplace`, without what is the default."""
        given = [(f"--{field.name}", getattr(self, field.name), field.default) for field in fields(self)]
        return ("mcp", *(word for flag, value, default in given if value != default for word in (flag, value)))

    def for_client(self, environment: Mapping[str, str] = os.environ) -> McpArguments:
        """With the agent and the data directory that this shell means, because a client inherits none of it.

        A data directory that everyone on this machine finds unasked is not named, nor one beside stores that a variable
        names: `client_variables` has it then.
        """
        agent = self.agent or environment.get("COMMONPLACE_AGENT") or None
        data = _folder(environment, self.data) if self.data or not store_variables(environment) else None
        return replace(self, agent=agent, data=data)


def client_variables(environment: Mapping[str, str] = os.environ, *, data: str | None) -> tuple[tuple[str, str], ...]:
    """What a client must be told that has no flag: the stores, where variables name them and are used, and the data
    directory beside those where no flag names it."""
    names = store_variables(environment)
    if not names or (data and ignores_store_variables(data)):
        return ()
    found = [(name, " ".join(_from_anywhere(store, name) for store in environment[name].split())) for name in names]
    folder = None if data else _folder(environment)
    return (*found, ("COMMONPLACE_DATA", folder)) if folder else tuple(found)


def ignores_store_variables(data: str) -> bool:
    """Whether a server that is started with this folder uses its own store instead of those that variables name."""
    from commonplace import config

    return not config.load(data=data).uses_store_variables


def unwritten_variable_notes(data: str | None) -> list[str]:
    """A sentence for each that names stores and that a client is not told, because of this folder."""
    names = store_variables() if data and ignores_store_variables(data) else []
    return [f"{name} is not written: --data names a folder, whose own store is meant" for name in names]


def store_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Which of them name stores."""
    return [name for name in ("COMMONPLACE_STORE", "COMMONPLACE_STORES") if environment.get(name, "").split()]


def _folder(environment: Mapping[str, str], given: str | None = None) -> str | None:
    from pathlib import Path

    from commonplace.config import standard_folder

    data = given or environment.get("COMMONPLACE_DATA")
    if not data and environment.get("XDG_DATA_HOME"):
        data = str(standard_folder())
    return str(Path(data).expanduser().absolute()) if data else None


def _from_anywhere(store: str, variable: str) -> str:
    """The URL as it is right in any folder; refused where it holds a secret."""
    from pathlib import Path

    from commonplace.stores.urls import FILE_SCHEMES, absolute_url, holds_secret
    from commonplace.wire.errors import ValidationError

    if store.partition("://")[0] not in FILE_SCHEMES and holds_secret(store):
        raise ValidationError(
            f"{variable} has a password or a token in it, which does not belong into a client's settings: write it as "
            "`store` into commonplace.toml in the data directory, unset the variable, and run this again",
            field="store",
        )
    return absolute_url(store, Path.cwd())


def parse(args: Sequence[str]) -> McpArguments | None:
    """The arguments after `mcp`; None when they are not plainly flags with values."""
    flags = {f"--{field.name}": field.name for field in fields(McpArguments)}
    given: dict[str, Any] = {}
    words = iter(args)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in flags:
            return None
        if not equals:
            value = next(words, "")
        if not value or value.startswith("-"):
            return None
        given[flags[flag]] = value
    return McpArguments(**given)


def start(arguments: McpArguments) -> int:
    from commonplace import config as configuration
    from commonplace.serve.mcp import stdio
    from commonplace.serve.protocols import load_tool_set
    from commonplace.wire.palace_names import check_name

    # One client asks one question at a time: a thread per core for linear algebra costs more than it gives.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arguments.check()
    if arguments.palace is not None:
        check_name(arguments.palace)
    config = configuration.load(data=arguments.data, agent=arguments.agent)
    if sys.stdin.isatty():
        print(_ON_TERMINAL, file=sys.stderr)
    return stdio.run(config, load_tool_set(arguments.tools), stdio.Options(arguments.palace, arguments.http))
