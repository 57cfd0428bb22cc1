"""The labelled questions: invented memory spaces for fitting, and the recall corpus for tuning and testing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from commonplace.wire.record import Memory

DATA = Path(__file__).parent.parent / "data"
RESULTS = Path(__file__).parent.parent / "results"


@dataclass(slots=True)
class Question:
    id: str
    text: str
    gold: frozenset[str]
    category: str
    split: str  # fit, tune or test
    beside: frozenset[str] = frozenset()  # out of date, or only the turn before: neither right nor wrong

    @property
    def answerable(self) -> bool:
        return bool(self.gold)


@dataclass(slots=True)
class Space:
    """One agent's memories and the questions asked of them."""

    name: str
    memories: list[Memory]
    questions: list[Question] = field(default_factory=list)


def judge_spaces(files: str = "*") -> list[Space]:
    """Of bench/data/judge. The judge was trained on most of them: only what does not use it may be fitted here."""
    spaces = []
    for path in sorted((DATA / "judge").glob(f"{files}.jsonl")):
        for entry in _lines(path):
            memories = [
                _memory(m["id"], entry["space"], m["text"], m.get("speaker"), m.get("date")) for m in entry["memories"]
            ]
            known = {m.id for m in memories}
            questions = [
                Question(
                    f"{entry['space']}/{number}",
                    q["q"],
                    frozenset(q["gold"]) & known,
                    "answerable" if q["gold"] else "unanswerable",
                    "fit",
                )
                for number, q in enumerate(entry["questions"])
            ]
            spaces.append(Space(f"{path.stem}.{entry['space']}", memories, questions))
    return spaces


def corpus_spaces() -> list[Space]:
    spaces: dict[str, Space] = {}
    for entry in _lines(DATA / "corpus" / "memories.jsonl"):
        agent = entry["agent_id"]
        memory = _memory(entry["id"], agent, entry["text"], entry.get("speaker"), entry.get("event_time"))
        memory.tags = entry.get("tags", [])
        memory.session_id = entry.get("session_id")
        memory.type = entry["type"]
        memory.supersedes = entry.get("supersedes", [])
        spaces.setdefault(agent, Space(agent, [])).memories.append(memory)
    for name in ("answerable", "unanswerable"):
        for entry in _lines(DATA / "corpus" / f"{name}.jsonl"):
            beside = frozenset(entry.get("stale", [])) | frozenset(entry.get("context", []))
            spaces[entry["agent_id"]].questions.append(
                Question(
                    entry["id"],
                    entry["question"],
                    frozenset(entry.get("gold", [])),
                    entry["category"],
                    split(entry["id"]),
                    beside,
                )
            )
    return list(spaces.values())


def split(question_id: str) -> str:
    return "tune" if int(hashlib.sha256(question_id.encode()).hexdigest(), 16) % 2 == 0 else "test"


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def _memory(id: str, agent: str, text: str, speaker: str | None, when: str | int | None) -> Memory:
    memory = Memory(id, "local", agent, "semantic", text, speaker=speaker)
    memory.event_time = _milliseconds(when) if isinstance(when, str) else when
    if speaker and when:
        memory.session_id = f"{agent}/{when}"  # turns of one day are one chat
    return memory


def _milliseconds(when: str) -> int | None:
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
