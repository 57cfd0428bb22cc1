"""One run: every system is loaded, started afresh a few times, and then asked in turns with all the others."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers.child import ALICE
from bench.peers.conversation import Failed, Kept, Talk
from bench.peers.environment import ROOT, Environment
from bench.peers.processes import folder_bytes
from bench.peers.systems import SYSTEMS
from bench.speed.material import COMMON, Material
from bench.speed.measure import percentile
from bench.speed.report import Progress

BLOCK = 10
_LOAD_SECONDS = 1800.0
_START_SECONDS = 180


@dataclass(slots=True)
class Plan:
    environment: Environment
    systems: list[str]
    material: Material
    kept: Kept
    work: Path
    calls: int = 100  # of each measure
    cap: float = 12.0  # seconds of one measure of one system, once it has been called `least` times
    least: int = 10
    starts: int = 3
    embedded: int = 100_000  # ours is loaded from texts up to this size, and handed vectors above it


@dataclass(slots=True)
class Taken:
    seconds: list[float] = field(default_factory=list)
    cpu: float = 0.0
    hits: int = 0

    def add(self, answer: dict[str, Any]) -> None:
        self.seconds += answer["seconds"]
        self.cpu += answer["cpu"]
        self.hits += answer["hits"]

    def figures(self) -> dict[str, float]:
        count = len(self.seconds)
        return {
            "calls": count,
            "p50_ms": round(median(self.seconds) * 1e3, 4),
            "p95_ms": round(percentile(self.seconds, 0.95) * 1e3, 4),
            "cpu_ms": round(self.cpu / count * 1e3, 4),
            "hits": round(self.hits / count, 2),
        }


@dataclass(slots=True, frozen=True)
class Asked:
    """One measure: what the children are told to do with which items."""

    measure: str
    do: str
    field: str  # the argument that has the items
    items: list[int]
    arguments: dict[str, Any]
    ours: bool = False  # of ours alone


def questions_of(plan: Plan, size: int) -> list[Asked]:
    """Where no vector is given, questions are asked once only, so that nobody has embedded them before. No peer judges
    what it found, so a recall of ours that does is shown without it, too."""
    half = len(plan.material.questions) // 2
    known = list(range(min(plan.calls, half)))
    unseen, mixed = [half + n for n in known], [2 * half + n for n in known]
    new = [list(range(start, start + plan.calls)) for start in (size, size + plan.calls)]
    given, own = {"given": True}, {"given": False}
    plain = {"user": None, "before": False, "judge": False}
    return [
        Asked("recall_given", "recall", "questions", known, {**plain, **given, "before": True}),
        Asked("recall_filtered", "recall", "questions", known, {**plain, **given, "user": ALICE}),
        Asked("recall_unjudged", "recall", "questions", mixed, {**plain, **own}, ours=True),
        Asked("recall_own", "recall", "questions", unseen, {**plain, **own, "judge": True}),
        Asked("remember_given", "remember", "numbers", new[0], given),
        Asked("remember_own", "remember", "numbers", new[1], own),
    ]


Rows = dict[str, dict[str, Any]]  # by system: what was measured, or why not


def run_size(plan: Plan, size: int, say: Callable[[str], None], keep: Callable[[Rows], None]) -> Rows:
    """What was measured of each system, kept after every step."""
    rows: Rows = {name: {} for name in plan.systems}
    for name in plan.systems:
        if why := plan.environment.missing.get(name):
            rows[name] = {"failed": why}
    place = plan.work / str(size)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        _load_all(plan, size, place, rows, say)
        keep(rows)
        _start_all(plan, place, rows, say)
        keep(rows)
        _ask_all(plan, size, place, rows, say, keep)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return rows


def well(rows: Rows) -> list[str]:
    return [name for name, row in rows.items() if "failed" not in row]


def _load_all(plan: Plan, size: int, place: Path, rows: Rows, say: Callable[[str], None]) -> None:
    loaded_ours: Path | None = None
    for name in well(rows):
        folder = place / name
        if SYSTEMS[name].ours and loaded_ours is not None:
            shutil.copytree(loaded_ours, folder)  # the three are doors to the same store
            rows[name] = dict(rows[loaded_ours.name])
            continue
        say(f"loading {SYSTEMS[name].title} with {size:,}")
        talk = Talk(plan.environment, name, plan.kept, place / f"{name}.log")
        try:
            talk.ask("open", folder=str(folder))
            given = not (SYSTEMS[name].ours and size <= plan.embedded)
            progress = Progress(f"loading {SYSTEMS[name].title}", size)
            load = {"size": size, "vectors": given}
            took = talk.ask("load", seconds=_LOAD_SECONDS, progress=progress, **load)["seconds"]
            progress.close()
            rows[name] |= {"load_seconds": round(took, 3), "load_vectors": given}
        except Failed as failed:
            rows[name] = {"failed": str(failed)}
        finally:
            talk.end()
        if "failed" not in rows[name]:
            rows[name]["disk_bytes"] = folder_bytes(folder)
            if SYSTEMS[name].ours:
                loaded_ours = folder


def _start_all(plan: Plan, place: Path, rows: Rows, say: Callable[[str], None]) -> None:
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in well(rows)}
    for turn in range(plan.starts + 1):  # the first finds its files cold and is not counted
        say(f"starting each afresh, {turn + 1} of {plan.starts + 1}")
        for name in well(rows):
            try:
                found = start(plan, name, place / name)
            except Failed as failed:
                rows[name] = {"failed": str(failed)}
                continue
            if turn:
                taken[name].append(found)
    for name in well(rows):
        runs = taken[name]
        rows[name]["start"] = {
            "ms": round(median(run["answered"] - run["spawned"] for run in runs) * 1e3, 1),
            "cpu_ms": round(median(run["cpu"] for run in runs) * 1e3, 1),
            "resident_bytes": int(median(run["resident"] for run in runs)),
        }


def start(plan: Plan, name: str, folder: Path) -> dict[str, Any]:
    """A fresh process, until it has answered one question asked in words."""
    command = [plan.environment.interpreter(name), "-m", "bench.peers.first", name, str(folder)]
    command += [str(plan.material.dimension), "recall", COMMON[0]]
    spawned = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=plan.environment.variables(name), capture_output=True, timeout=_START_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"start: no answer within {_START_SECONDS} s") from None
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Failed(f"start: {' '.join(last)[:200]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return {**found, "spawned": found["spawned"] or spawned}


def _ask_all(
    plan: Plan, size: int, place: Path, rows: Rows, say: Callable[[str], None], keep: Callable[[Rows], None]
) -> None:
    talks: dict[str, Talk] = {}
    try:
        for name in well(rows):
            talks[name] = Talk(plan.environment, name, plan.kept, place / f"{name}.log")
            say(f"opening {SYSTEMS[name].title}")
            _try(rows, name, lambda name=name: rows[name].update(_opened(talks[name], place / name)))
        for asked in questions_of(plan, size):
            _in_turns(plan, rows, talks, asked, lambda done, asked=asked: say(f"{size:,}: {asked.measure}, {done}"))
            keep(rows)
    finally:
        for talk in talks.values():
            talk.end()


def _opened(talk: Talk, folder: Path) -> dict[str, Any]:
    found = talk.ask("open", folder=str(folder))
    talk.ask("warm")
    return {"embedder": found["embedder"], "embedder_note": found["note"]}


def _try(rows: Rows, name: str, work: Callable[[], Any]) -> None:
    try:
        work()
    except Failed as failed:
        rows[name]["failed"] = str(failed)


def _in_turns(plan: Plan, rows: Rows, talks: dict[str, Talk], asked: Asked, say: Callable[[str], None]) -> None:
    """Block by block, each system in turn: all meet the same weather."""
    taken = {name: Taken() for name in well(rows) if SYSTEMS[name].ours or not asked.ours}
    for start_at in range(0, len(asked.items), BLOCK):
        say(f"{start_at} of {len(asked.items)}")
        for name, done in taken.items():
            if "failed" in rows[name] or (sum(done.seconds) > plan.cap and len(done.seconds) >= plan.least):
                continue
            block = {asked.field: asked.items[start_at : start_at + BLOCK], **asked.arguments}
            _try(rows, name, lambda name=name, block=block, done=done: done.add(talks[name].ask(asked.do, **block)))
    for name, done in taken.items():
        if done.seconds:
            rows[name][asked.measure] = done.figures()
