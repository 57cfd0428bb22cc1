"""The options that the verbs of `amp` share. Few lines, but every verb needs some of them."""

from __future__ import annotations

from typing import Annotated

from commonplace.cli.support.command import argument, option
from commonplace.cli.support.options import token_option

Url = Annotated[str | None, option("--url URL", "A server, such as http://127.0.0.1:8420 [the local store].")]
Token = Annotated[str | None, token_option("The server's token [COMMONPLACE_TOKEN].")]
Type = Annotated[
    str | None, option("--type TYPE", "lesson, checkpoint, snippet or any other.", "lesson", "checkpoint", "snippet")
]
Tags = Annotated[list[str] | None, option("--tags A,B", "Comma-separated tags; to find, all must be there.")]
Agent = Annotated[str | None, option("--agent NAME", "The agent whose it is.")]
Project = Annotated[str | None, option("--project NAME", "The project or repository.")]
Id = Annotated[str, argument("ID", "The record's id.")]
