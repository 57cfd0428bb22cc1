"""What `commonplace mcp` was told, read without loading the command line's own libraries.

Clients spawn this command once per conversation and wait for its first answer, so arguments as clients write them
are taken here; help, mistakes and everything unusual are left to the full command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_FLAGS = {"--tools": "tools", "--palace": "palace", "--http": "http", "--agent": "agent", "--data": "data"}


@dataclass(slots=True)
class Spawned:
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
        for flag, value in (("--palace", self.palace), ("--http", self.http)):
            if value is not None and "palace_list" not in names:
                raise ValidationError(
                    f"{flag} is for trusty-memory's tools, and --tools {self.tools} has none of them: "
                    f"add --tools trusty or --tools all, or leave {flag} out",
                    field=flag.removeprefix("--"),
                )

    def client_configuration(self, env: dict[str, str]) -> dict[str, Any]:
        given = [("--tools", self.tools if self.tools != "commonplace" else None), ("--palace", self.palace),
                 ("--http", self.http), ("--agent", self.agent), ("--data", self.data)]  # fmt: skip
        args = ["mcp", *(word for flag, value in given if value is not None for word in (flag, value))]
        return {
            "mcpServers": {"commonplace": {"command": "commonplace", "args": args, **({"env": env} if env else {})}}
        }


def read(args: Sequence[str]) -> Spawned | None:
    """The arguments after `mcp`; None when they are not plainly flags with values."""
    found = Spawned()
    words = iter(args)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in _FLAGS:
            return None
        if not equals:
            value = next(words, "")
        if not value or value.startswith("-"):
            return None
        setattr(found, _FLAGS[flag], value)
    return found


def start(spawned: Spawned) -> int:
    from commonplace import config as configuration
    from commonplace.serve.mcp import stdio
    from commonplace.serve.protocols import load_tool_set
    from commonplace.wire.palace_names import check_name

    # One client asks one question at a time: a thread per core for linear algebra costs more than it gives.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    spawned.check()
    if spawned.palace is not None:
        check_name(spawned.palace)
    config = configuration.load(data=spawned.data, agent=spawned.agent)
    if sys.stdin is not None and sys.stdin.isatty():
        print("commonplace mcp is spoken to by an MCP client; see `commonplace mcp --help`. Ctrl-D ends it.",
              file=sys.stderr)  # fmt: skip
    return stdio.run(config, load_tool_set(spawned.tools), stdio.Options(spawned.palace, spawned.http))
