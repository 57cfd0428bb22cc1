"""The peers' own environment: a virtual environment and a folder for node, never the project's."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.systems import SYSTEMS
from bench.peers.systems.mcp_memory import SCRIPT
from commonplace import __about__ as about
from commonplace.embedders.registry import DEFAULT

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
NODE_PACKAGE, NODE_VERSION = "@modelcontextprotocol/server-memory", "2026.8.31"
_INSTALL_SECONDS = 900


@dataclass(slots=True)
class Environment:
    folder: Path
    versions: dict[str, str] = field(default_factory=dict)  # by the name of the system
    missing: dict[str, str] = field(default_factory=dict)  # why a system cannot be measured
    embedder: str = DEFAULT  # which one Commonplace has, and those that have none of their own

    @property
    def python(self) -> Path:
        return self.folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"

    @property
    def script(self) -> Path:
        return self.folder / "node" / "node_modules" / NODE_PACKAGE / "dist" / "index.js"

    def interpreter(self, system: str) -> str:
        return sys.executable if SYSTEMS[system].ours else str(self.python)

    def variables(self, system: str) -> dict[str, str]:
        """Both interpreters read the same Commonplace: the one this file belongs to."""
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        # Whoever runs this may have settings of their own; measured is what Commonplace does without any.
        kept = {k: v for k, v in kept.items() if not k.startswith("COMMONPLACE_") or k == "COMMONPLACE_MODELS"}
        paths = os.pathsep.join((str(ROOT), str(ROOT / "src")))
        set_here = {"PYTHONPATH": paths, SCRIPT: str(self.script), "COMMONPLACE_EMBEDDER": self.embedder}
        if SYSTEMS[system].ours:
            set_here["OPENBLAS_NUM_THREADS"] = "1"  # as the commands do
        return {**kept, **set_here, "TOKENIZERS_PARALLELISM": "false"}


def pinned(text: str) -> dict[str, str]:
    """The lines of a requirements file, by the name of the package."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {line.partition("==")[0]: line for line in lines}


def prepare(folder: Path, systems: list[str], embedder: str = DEFAULT) -> Environment:
    """Installed once; a change of what is pinned installs again."""
    made = Environment(folder, embedder=embedder)
    folder.mkdir(parents=True, exist_ok=True)
    if any(not SYSTEMS[name].ours and name != "mcp-memory" for name in systems):
        _install_python(made)
    if "mcp-memory" in systems:
        _install_node(made)
    for name in systems:
        if name not in made.missing:
            version, why = _version(made, name)
            made.versions[name] = version
            if why:
                made.missing[name] = why
    return made


def _install_python(made: Environment) -> None:
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    wanted = pinned(REQUIREMENTS.read_text("utf-8"))
    mark = hashlib.sha256(repr((wanted, sorted(ours), sys.version)).encode()).hexdigest()
    stamp = made.folder / "venv" / "installed"
    if stamp.exists() and stamp.read_text() == mark:
        return
    print(f"installing the peers into {made.folder} (once, a few minutes; about 1 GB) …", flush=True)
    shutil.rmtree(made.folder / "venv", ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(made.folder / "venv")], check=True)
    if why := _pip(made, [*wanted.values(), *ours]):
        print(f"not all together ({why}); one by one", flush=True)
        for each in ([*ours], *([line] for line in wanted.values())):
            if why := _pip(made, each):
                print(f"  {', '.join(each)}: {why}", flush=True)
    stamp.write_text(mark)


def _pip(made: Environment, packages: list[str]) -> str:
    """Why it failed, or nothing."""
    command = [str(made.python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--prefer-binary"]
    return _ran([*command, *packages])


def _install_node(made: Environment) -> None:
    place = made.folder / "node"
    if not (shutil.which("node") and shutil.which("npm")):
        made.missing["mcp-memory"] = "node and npm are not installed"
    elif not made.script.exists() or _node_version(made) != NODE_VERSION:
        place.mkdir(parents=True, exist_ok=True)
        wanted = f"{NODE_PACKAGE}@{NODE_VERSION}"
        why = _ran(["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(place), wanted])
        if why or not made.script.exists():
            made.missing["mcp-memory"] = f"npm could not install it: {why}"


def _node_version(made: Environment) -> str:
    import json

    return str(json.loads((made.script.parents[1] / "package.json").read_text("utf-8"))["version"])


def _version(made: Environment, name: str) -> tuple[str, str]:
    """(version, why it cannot run)."""
    entry = SYSTEMS[name]
    if name == "mcp-memory":
        return _node_version(made), ""
    if entry.ours:
        return f"{about.__version__}{_revision()}", ""
    ask = f"from importlib.metadata import version; print(version({entry.package!r}))"
    done = subprocess.run([str(made.python), "-c", ask], capture_output=True, text=True, timeout=60)
    return (done.stdout.strip(), "") if done.returncode == 0 else ("", f"{entry.package} could not be installed")


def _revision() -> str:
    """What a version number does not say while it is worked on; nothing outside a repository."""
    try:
        done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return f" ({done.stdout.strip()})" if done.returncode == 0 else ""


def _ran(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    last = [line for line in done.stderr.splitlines() if line.strip() and "WARNING" not in line]
    return "" if done.returncode == 0 else (last or ["it failed without a word"])[-1][:200]
