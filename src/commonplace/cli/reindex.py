"""`commonplace reindex`. Short, as one command is one file."""

from __future__ import annotations

from typing import Annotated

from commonplace.cli.support.command import WHOLE_STORE, Answer, Commands, Session, option
from commonplace.cli.support.output import plural
from commonplace.cli.support.progress import ProgressBar

_EMBEDDERS = ("encoder", "minilm", "hashing", "openai", "sentence-transformers", "static")

commands = Commands()


@commands.add("reindex", unused=WHOLE_STORE)
def reindex(
    run: Session,
    embedder: Annotated[
        str | None, option("--embedder SPEC", "Change to this embedder: encoder, minilm, openai:…", *_EMBEDDERS)
    ] = None,
) -> Answer:
    """Embed what has no vector yet, or everything anew with another embedder.

    \b
    Example:
      commonplace reindex
      commonplace reindex --embedder encoder
    """
    with ProgressBar("embedding") as progress:
        done = run(run.memory.reindex(embedder, progress=progress))
    resumed = " (went on where it had stopped)" if done.get("resumed") else ""
    said = f"reindexed {plural(done['reindexed'], 'memory')} with {done['embedder']}{resumed}"
    return Answer(done, said, run.warnings)
