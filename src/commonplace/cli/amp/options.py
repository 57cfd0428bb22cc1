"""The options that the verbs of `amp` share."""

from __future__ import annotations

from typing import Annotated

import typer

from commonplace.cli.support.options import offering

TYPES = ("lesson", "checkpoint", "snippet")

Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="A server, such as http://127.0.0.1:8420 [the local store].")
]
Token = Annotated[
    str | None,
    typer.Option("--token", metavar="TOKEN", envvar="COMMONPLACE_TOKEN", show_envvar=False,
                 help="The server's token [COMMONPLACE_TOKEN]."),
]  # fmt: skip
Type = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="lesson, checkpoint, snippet or any other.",
                 autocompletion=offering(*TYPES)),
]  # fmt: skip
Tags = Annotated[
    list[str] | None, typer.Option("--tags", metavar="A,B", help="Tags parted by commas; to find, all must be there.")
]
Agent = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The agent whose it is.")]
Project = Annotated[str | None, typer.Option("--project", metavar="NAME", help="The project or repository.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The record's id.")]


def tags(given: list[str] | None) -> list[str] | None:
    """Every tag, however they were given."""
    return [tag for part in given or () for piece in part.split(",") if (tag := piece.strip())] or None
