"""List, check, switch and install the models that make vectors.

The default, `encoder`, is in the package and needs nothing.

\b
Example:
  commonplace model list
  commonplace model verify
  commonplace model switch encoder
  commonplace model add multilingual
"""

from __future__ import annotations

from typing import Annotated, Any

from commonplace.cli import FAILURE, OK
from commonplace.cli.support import options
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.output import note, plural, size
from commonplace.cli.support.progress import ProgressBar
from commonplace.cli.support.tables import Table
from commonplace.config import DATABASE
from commonplace.wire.errors import ValidationError

_MODELS = ("encoder", "minilm")
_BESIDE = ("multilingual",)  # what may make a second vector beside the store's own
Beside = Annotated[str, argument("NAME", "Which: multilingual.")]
_UNUSED = "a store has one embedder for every agent"

commands = Commands(__doc__)


@commands.add("list", unused=_UNUSED)
def list_models(run: Session) -> Answer:
    """List the models that work offline, and which one made the store's vectors.

    \b
    Example:
      commonplace model list
      commonplace model list --json
    """
    used = _embedder(run)
    found = [{**model, "used": model["name"] == used} for model in _listing()]
    headers = ["model", "state", "size", "dimension", "this store's", "path"]
    rows = [
        [m["spec"], _state(m), size(m["bytes"]), m["dimension"], "yes" if m["used"] else "", m["path"]] for m in found
    ]
    return Answer({"models": found, "embedder": used}, Table(headers, rows))


@commands.add("verify", unused=_UNUSED)
def verify(
    run: Session,
    name: Annotated[str | None, argument("NAME", "encoder, minilm or multilingual; by default all.")] = None,
) -> Answer:
    """Check that the models' files are whole; exits 2 when they are not.

    \b
    Example:
      commonplace model verify
      commonplace model verify minilm
    """
    from commonplace.embedders import packaged_files
    from commonplace.judges.minilm import FILE as JUDGE

    by_name = {model["spec"]: model for model in _listing()}
    chosen = (
        [by_name[_known(name, (*_MODELS, *_BESIDE))]]
        if name
        else [m for m in by_name.values() if m["installed"] or m["default"]]
    )
    problems = [problem for model in chosen for problem in model["problems"]]
    names = [model["spec"] for model in chosen]
    if name is None:
        problems += packaged_files.problems(JUDGE)
        names.append("judge")
    document = {"ok": not problems, "models": names, "path": chosen[0]["path"], "problems": problems}
    said = "\n".join(problems) if problems else f"whole: {', '.join(names)}"
    return Answer(document, said, exit_code=FAILURE if problems else OK)


@commands.add("switch", unused=_UNUSED)
def switch(
    run: Session,
    name: Annotated[str, argument("NAME", "encoder, minilm or any other embedder, such as openai:…")],
    dry_run: options.DryRun = False,
) -> Answer:
    """Make every vector anew with another model; recall works by the old ones meanwhile.

    Stopped halfway it goes on from where it was.

    \b
    Example:
      commonplace model switch encoder --dry-run
      commonplace model switch encoder
    """
    from commonplace.embedders.registry import open_embedder

    chosen = open_embedder(name)
    if chosen is None:
        raise ValidationError('a store\'s vectors cannot be switched off; set embedder = "none" instead', field="name")
    status = run(run.memory.status())
    before, count = (status["embedder"] or {}).get("name"), status["memories"]
    plan = f"embed {plural(count, 'memory')} anew with {chosen.name}; {before or 'nothing'} made the vectors so far"
    if dry_run:
        document = {"dry_run": True, "from": before, "to": chosen.name, "memories": count}
        return Answer(document, f"would {plan}; nothing was changed")
    if not run.as_json:
        note(plan)
    with ProgressBar("embedding") as progress:
        done = run(run.memory.reindex(chosen, progress=progress))
    said = f"this store's vectors are made by {done['embedder']} now ({plural(done['reindexed'], 'memory')} embedded)"
    remarks = [*run.warnings]
    if run.memory.config.embedder not in (name, chosen.name):
        remarks.append(f'set embedder = "{name}" in commonplace.toml, or new stores and `reindex` use another')
    return Answer({"from": before, "to": done["embedder"], **done}, said, remarks)


@commands.add("build", unused=_UNUSED)
def build(
    run: Session, name: Annotated[str | None, argument("NAME", "minilm; by default the configured embedder.")] = None
) -> Answer:
    """Install a model that is not in the package, from the network, if it is missing.

    \b
    Example:
      commonplace model build minilm
    """
    from commonplace.embedders import model_files

    configured = run.memory.config.embedder
    if _known(name or (configured if configured in _MODELS else "encoder")) == "encoder":
        return Answer({"path": _listing()[0]["path"], "ok": True}, "the encoder is in the package: nothing to install")
    with ProgressBar("model") as progress:
        path = model_files.build(_StepReporter(run, progress))
    return Answer({"path": str(path), "ok": True}, f"the model is in {path}")


@commands.add("add", unused=_UNUSED)
def add(run: Session, name: Beside) -> Answer:
    """Have recall find other languages: fetch a second model, give every memory its vector.

    \b
    Example:
      commonplace model add multilingual
    """
    from commonplace.embedders import multilingual_files
    from commonplace.embedders.registry import open_embedder

    _known(name, _BESIDE)
    with ProgressBar("model") as progress:
        path = multilingual_files.install(_StepReporter(run, progress))
    embedder = open_embedder(name)
    assert embedder is not None
    with ProgressBar("embedding") as progress:
        done = run(run.engine.upkeep.add_second(OPERATOR, embedder, progress))
    resumed = " (went on where it had stopped)" if done["resumed"] and done["indexed"] else ""
    said = f"{plural(done['indexed'], 'memory')} given a second vector by {done['embedder']}{resumed}"
    return Answer({**done, "path": str(path)}, f"{said}; recall finds other languages from now on")


@commands.add("remove", unused=_UNUSED)
def remove(
    run: Session,
    name: Beside,
    files: Annotated[bool, option("--files", "Delete the model's files from this machine as well.")] = False,
) -> Answer:
    """Take the second model's vectors out of the store again.

    \b
    Example:
      commonplace model remove multilingual
      commonplace model remove multilingual --files
    """
    from commonplace.embedders import multilingual_files

    _known(name, _BESIDE)
    removed = run(run.engine.upkeep.remove_second(OPERATOR))
    deleted = files and multilingual_files.remove()
    said = "the second vectors are gone" if removed else "this store had no second vectors"
    if deleted:
        said += "; the model's files are deleted"
    return Answer({"removed": removed, "files_deleted": deleted}, said)


class _StepReporter:
    """Says each step once, and has the bar follow it."""

    def __init__(self, run: Session, progress: ProgressBar) -> None:
        self._run, self._progress = run, progress
        self._said = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        self._progress(done, total)
        if what != self._said and not self._run.as_json:
            note(what)
        self._said = what


def _known(name: str, among: tuple[str, ...] = _MODELS) -> str:
    if name not in among:
        raise ValidationError(f"there is no model {name!r} here; there are: {', '.join(among)}", field="name")
    return name


def _listing() -> list[dict[str, Any]]:
    from commonplace.embedders import model_files, multilingual_files, packaged_files

    others = (model_files.listing(), multilingual_files.listing())
    return [{**packaged_files.listing(), "default": True}, *({**model, "default": False} for model in others)]


def _embedder(run: Session) -> str | None:
    """Of the store, where there is one: looking at models begins none."""
    if not (run.memory.config.data / DATABASE).is_file():
        return None
    embedder = run(run.memory.status())["embedder"]
    return embedder["name"] if embedder else None


def _state(model: dict[str, Any]) -> str:
    if not model["installed"]:
        return "not installed"
    return "ok" if model["ok"] else "damaged"
