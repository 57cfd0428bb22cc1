"""`commonplace model`: the embedding model on this machine."""

from __future__ import annotations

import typer

from commonplace.cli import FAILURE, show
from commonplace.cli.support import options
from commonplace.cli.support.output import emit, line, note, size
from commonplace.cli.support.progress import Bar


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("build")(build)
    group.command("verify")(verify)
    group.command("list")(listing)
    app.add_typer(group, name="model", rich_help_panel="The data", help=_ABOUT)


_ABOUT = """Install, check and list the embedding model.

\b
Example:
  commonplace model build
  commonplace model verify
"""


def build(as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None) -> None:
    """Install the default model, if it is missing, from the network.

    \b
    Example:
      commonplace model build
    """
    from commonplace.embedders import model_files

    with Bar("model") as progress:

        def tell(what: str, step: int, steps: int) -> None:
            progress(step, steps)
            if not as_json:
                note(what)

        path = model_files.build(tell)
    if as_json:
        emit({"path": str(path), "ok": True})
    else:
        line(f"the model is in {path}")


def verify(as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None) -> None:
    """Check that the model's files are whole; exits 2 when they are not.

    \b
    Example:
      commonplace model verify
    """
    from commonplace.embedders import model_files

    problems = model_files.verify()
    if as_json:
        emit({"ok": not problems, "path": str(model_files.model_dir()), "problems": problems})
    elif problems:
        for problem in problems:
            line(problem)
    else:
        line(f"the model in {model_files.model_dir()} is whole")
    if problems:
        raise typer.Exit(FAILURE)


def listing(as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None) -> None:
    """List the models that work offline.

    \b
    Example:
      commonplace model list
    """
    from commonplace.embedders import model_files

    found = model_files.listing()
    if as_json:
        emit({"models": found})
        return
    show.table(
        ["model", "state", "size", "dimension", "path"],
        [[m["spec"], _state(m), size(m["bytes"]), m["dimension"], m["path"]] for m in found],
    )


def _state(model: dict[str, object]) -> str:
    if not model["installed"]:
        return "not installed"
    return "ok" if model["ok"] else "damaged"
