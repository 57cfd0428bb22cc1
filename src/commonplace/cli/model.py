"""Install, check and list the embedding model.

\b
Example:
  commonplace model build
  commonplace model verify
"""

from __future__ import annotations

from commonplace.cli import FAILURE
from commonplace.cli.support.command import Answer, Commands, Session
from commonplace.cli.support.output import Document, Table, note, size
from commonplace.cli.support.progress import ProgressBar

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
    from commonplace.embedders import model_files

    problems, folder = model_files.verify(), model_files.model_dir()
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
    from commonplace.embedders import model_files

    found = model_files.listing()
    headers = ["model", "state", "size", "dimension", "path"]
    rows = [[m["spec"], _state(m), size(m["bytes"]), m["dimension"], m["path"]] for m in found]
    return Answer({"models": found}, Table(headers, rows))


def _state(model: Document) -> str:
    if not model["installed"]:
        return "not installed"
    return "ok" if model["ok"] else "damaged"
