"""A Dockerfile as its instructions, and its steps taken in a folder instead of a container.

There is no Docker where the tests run. What cannot be shown so: the base image, its layers, and that the container's
limits (a read-only root, no capabilities) let the server run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Instruction(NamedTuple):
    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """Of the exec form, which is JSON, or separated by spaces."""
        found: list[str] = json.loads(self.text) if self.text.startswith("[") else self.text.split()
        return found


def parse(text: str) -> list[list[Instruction]]:
    """One list for each stage."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    stages: list[list[Instruction]] = []
    for line in filter(None, map(str.strip, joined.splitlines())):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stages.append([])
        stages[-1].append(Instruction(name, rest.strip()))
    return stages


@dataclass
class Container:
    """A folder that stands for the root of one stage's file system."""

    folder: Path
    python: str
    stages: Mapping[str, Path] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    working: str = "/"
    user: str = "0:0"
    command: dict[str, list[str]] = field(default_factory=dict)

    def inside(self, path: str) -> Path:
        return self.folder / path.lstrip("/")

    def run(self, instructions: list[Instruction]) -> None:
        for each in instructions:
            getattr(self, f"_{each.name.lower()}")(each)

    def _from(self, each: Instruction) -> None:
        self.folder.mkdir(parents=True)

    def _workdir(self, each: Instruction) -> None:
        self.working = each.text
        self.inside(each.text).mkdir(parents=True, exist_ok=True)

    def _copy(self, each: Instruction) -> None:
        *sources, target = [word for word in each.words if not word.startswith("--")]
        stage = next((word.removeprefix("--from=") for word in each.words if word.startswith("--from=")), None)
        base = self.stages[stage] if stage is not None else ROOT
        to = self.inside(target if target.startswith("/") else f"{self.working}/{target}")
        for source in sources:
            found = base / source.lstrip("/")
            place = to / found.name if target.endswith("/") else to
            place.parent.mkdir(parents=True, exist_ok=True)
            if found.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(found, place, symlinks=True, dirs_exist_ok=True, ignore=ignored)
            else:
                shutil.copy2(found, place)

    def _run(self, each: Instruction) -> None:
        """With the paths of the image leading into this folder, and its Python standing for the image's."""
        script = re.sub(r"(?<![\w.])/(opt|data)\b", lambda found: str(self.inside(found[0])), each.text)
        script = re.sub(r"^python ", f"{self.python} ", script)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("COMMONPLACE_", "PYTHON"))}
        done = subprocess.run(
            ["sh", "-euc", script],
            cwd=self.inside(self.working),
            env=clean,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{each.text}\n{done.stdout}\n{done.stderr}"

    def _env(self, each: Instruction) -> None:
        name, _, value = each.text.partition("=")
        self.environment[name] = re.sub(r"(?<![\w.])/(opt|data)\b", lambda found: str(self.inside(found[0])), value)

    def _user(self, each: Instruction) -> None:
        self.user = each.text

    def _healthcheck(self, each: Instruction) -> None:
        self.command["HEALTHCHECK"] = Instruction("CMD", each.text.partition("CMD ")[2]).words

    def _entrypoint(self, each: Instruction) -> None:
        self.command[each.name] = each.words

    _cmd = _volume = _expose = _stopsignal = _entrypoint
