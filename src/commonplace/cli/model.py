"""Install, check and list the embedding model.

\b
Example:
  commonplace model build
  commonplace model verify
  commonplace model add multilingual
"""

from __future__ import annotations

from typing import Annotated

from commonplace.cli import FAILURE
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, Table, note, plural, size
from commonplace.cli.support.progress import ProgressBar
from commonplace.wire.errors import ValidationError

Optional = Annotated[str, argument("NAME", "Which: multilingual.")]

commands = Commands(__doc__)


@commands.add("build")
def build(run: Session) -> Answer:
    """Install the default model, if it is missing, from the network.

    \b
    Example:
      commonplace model build
    """
    from commonplace.embedders import model_files

    with ProgressBar("model") as progress:

        def tell(what: str, step: int, steps: int) -> None:
            progress(step, steps)
            if not run.as_json:
                note(what)

        path = model_files.build(tell)
    return Answer({"path": str(path), "ok": True}, f"the model is in {path}")


@commands.add("verify")
def verify(run: Session) -> Answer:
    """Check that the model's files are whole; exits 2 when they are not.

    \b
    Example:
      commonplace model verify
    """
    from commonplace.embedders import model_files, multilingual_files

    problems, folder = model_files.verify(), model_files.model_dir()
    problems += multilingual_files.listing()["problems"]
    document = {"ok": not problems, "path": str(folder), "problems": problems}
    if problems:
        return Answer(document, "\n".join(problems), exit_code=FAILURE)
    return Answer(document, f"the model in {folder} is whole")


@commands.add("list")
def list_models(run: Session) -> Answer:
    """List the models that work offline.

    \b
    Example:
      commonplace model list
    """
    from commonplace.embedders import model_files, multilingual_files

    found = [*model_files.listing(), multilingual_files.listing()]
    headers = ["model", "state", "size", "dimension", "path"]
    rows = [[m["spec"], _state(m), size(m["bytes"]), m["dimension"], m["path"]] for m in found]
    return Answer({"models": found}, Table(headers, rows))


@commands.add("add")
def add(run: Session, name: Optional) -> Answer:
    """Have recall find other languages: fetch a second model, give every memory its vector.

    \b
    Example:
      commonplace model add multilingual
    """
    from commonplace.embedders import multilingual_files
    from commonplace.embedders.registry import open_embedder

    _check(name)
    with ProgressBar("model") as progress:

        def tell(what: str, step: int, steps: int) -> None:
            progress(step, steps)
            if not run.as_json:
                note(what)

        path = multilingual_files.install(tell)
    embedder = open_embedder(name)
    assert embedder is not None
    with ProgressBar("embedding") as progress:
        done = run(run.engine.upkeep.add_second(OPERATOR, embedder, progress))
    resumed = " (went on where it had stopped)" if done["resumed"] and done["indexed"] else ""
    said = f"{plural(done['indexed'], 'memory')} given a second vector by {done['embedder']}{resumed}"
    return Answer({**done, "path": str(path)}, f"{said}; recall finds other languages from now on")


@commands.add("remove")
def remove(
    run: Session,
    name: Optional,
    files: Annotated[bool, option("--files", "Delete the model's files from this machine as well.")] = False,
) -> Answer:
    """Take the second model's vectors out of the store again.

    \b
    Example:
      commonplace model remove multilingual
      commonplace model remove multilingual --files
    """
    from commonplace.embedders import multilingual_files

    _check(name)
    removed = run(run.engine.upkeep.remove_second(OPERATOR))
    deleted = files and multilingual_files.remove()
    said = "the second vectors are gone" if removed else "this store had no second vectors"
    if deleted:
        said += "; the model's files are deleted"
    return Answer({"removed": removed, "files_deleted": deleted}, said)


def _check(name: str) -> None:
    if name != "multilingual":
        raise ValidationError(f"there is no model {name!r} to add; there is: multilingual", field="name")


def _state(model: Document) -> str:
    if not model["installed"]:
        return "not installed"
    return "ok" if model["ok"] else "damaged"
