"""The labelled spaces that recall is measured on: our corpus, and two that are read from where the user keeps them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from commonplace.engine.types import Draft

_DATA = Path(__file__).resolve().parents[1] / "data"
CORPUS = _DATA / "corpus"
JUDGE = _DATA / "judge"
_CATEGORIES = {1: "several turns", 2: "when", 3: "inference", 4: "one turn"}

#: How many of the gold memories a question needs: all, any, or each counts for its share.
Need = Literal["all", "any", "share"]


@dataclass(slots=True)
class Question:
    id: str
    text: str
    gold: frozenset[str]
    category: str
    need: Need = "any"
    user_id: str | None = None
    split: str = ""
    stale: frozenset[str] = frozenset()


@dataclass(slots=True)
class Space:
    """One agent's memories, oldest first, each under the id its labels use; and what it is asked, and when."""

    name: str
    memories: dict[str, Draft]
    questions: list[Question] = field(default_factory=list)
    now: int = 0


def corpus(folder: Path = CORPUS) -> list[Space]:
    spaces: dict[str, Space] = {}
    for row in _lines(folder / "memories.jsonl"):
        space = spaces.setdefault(row["agent_id"], Space(row["agent_id"], {}))
        space.memories[row["id"]] = Draft(
            agent_id=row["agent_id"],
            type=row["type"],
            content=row["text"],
            user_id=row.get("user_id"),
            tags=row.get("tags", []),
            confidence=row.get("confidence", 1.0),
            event_time=instant(row["event_time"]),
            session_id=row.get("session_id"),
            speaker=row.get("speaker"),
            supersedes=row.get("supersedes", []),
        )
    for row in _lines(folder / "answerable.jsonl"):
        spaces[row["agent_id"]].questions.append(
            Question(
                row["id"],
                row["question"],
                frozenset(row["gold"]),
                row["category"],
                row["need"],
                split=split(row["id"]),
                stale=frozenset(row.get("stale", ())),
            )
        )
    for space in spaces.values():
        space.now = instant("2026-08-31")
    return list(spaces.values())


def split(question_id: str) -> str:
    return "tune" if int(hashlib.sha256(question_id.encode()).hexdigest(), 16) % 2 == 0 else "test"


def conversations(file: Path) -> list[Space]:
    """LoCoMo: each turn is a memory. Questions without evidence, and those meant to have none, are left out."""
    spaces = []
    for sample in json.loads(file.read_text()):
        talk, name = sample["conversation"], sample["sample_id"]
        memories: dict[str, Draft] = {}
        latest = 0
        for session in sorted((k for k in talk if re.fullmatch(r"session_\d+", k)), key=lambda k: int(k[8:])):
            at = int(
                datetime.strptime(talk[f"{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()
                * 1000
            )
            latest = max(latest, at)
            for turn in talk[session]:
                memories[turn["dia_id"]] = Draft(
                    agent_id=name,
                    type="episodic",
                    content=turn["text"],
                    session_id=session,
                    speaker=turn["speaker"],
                    event_time=at,
                )
        questions = []
        for number, asked in enumerate(sample["qa"]):
            evidence = {e for given in asked["evidence"] for e in re.split(r"[;,\s]+", given)} & memories.keys()
            if asked["category"] in _CATEGORIES and evidence:
                questions.append(
                    Question(
                        f"{name}-{number}",
                        asked["question"],
                        frozenset(evidence),
                        _CATEGORIES[asked["category"]],
                        "share",
                    )
                )
        spaces.append(Space(name, memories, questions, now=latest + 86_400_000))
    return spaces


def microbench(file: Path) -> list[Space]:
    """The paper's facts and queries; the eight queries without an answer say nothing about recall."""
    found = json.loads(file.read_text())
    space = Space("microbench", {}, now=instant("2026-06-01"))
    for fact in found["facts"]:
        space.memories[fact["id"]] = Draft(
            agent_id="microbench", type=fact["type"], content=fact["content"], user_id=fact["user_id"]
        )
    for number, asked in enumerate(found["queries"]):
        if asked["gold_ids"]:
            gold = frozenset(asked["gold_ids"])
            space.questions.append(
                Question(f"micro-{number}", asked["query"], gold, "microbench", "share", asked.get("user_id"))
            )
    return [space]


def small_spaces(folder: Path = JUDGE) -> list[Space]:
    """Many small invented spaces, for tuning: what is said on one day by several people is one session."""
    spaces = []
    for file in sorted(folder.glob("*.jsonl")):
        for row in _lines(file):
            space = Space(f"{file.stem}/{row['space']}", {})
            said = [m["date"] if m.get("speaker") and m.get("date") else None for m in row["memories"]]
            for i, memory in enumerate(row["memories"]):
                talk = said[i] is not None and said[i] in (*said[max(i - 1, 0) : i], *said[i + 1 : i + 2])
                space.memories[memory["id"]] = Draft(
                    agent_id=space.name,
                    type="semantic",
                    content=memory["text"],
                    speaker=memory.get("speaker"),
                    event_time=instant(memory["date"]) if memory.get("date") else None,
                    session_id=said[i] if talk else None,
                )
            for number, asked in enumerate(row["questions"]):
                if asked["gold"]:
                    id = f"{space.name}-{number}"
                    gold = frozenset(asked["gold"])
                    space.questions.append(Question(id, asked["q"], gold, file.stem, "share", split="tune"))
            space.now = max((m.event_time or 0 for m in space.memories.values()), default=0) + 86_400_000
            spaces.append(space)
    return spaces


def instant(given: Any) -> int:
    """Milliseconds, from milliseconds or an ISO date or instant."""
    if isinstance(given, int):
        return given
    moment = datetime.fromisoformat(given)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
