"""The labelled corpus asked of one system: which memories it finds, and how sure it is of the best."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.peers.systems import adapter
from bench.peers.systems.base import Embed, Row
from bench.quality.datasets import CORPUS, Question, Space, corpus, split

K = 10
NOW = 1_788_134_400_000  # 31 August 2026, when the corpus was written; ours has a clock that can be set to it


@dataclass(slots=True)
class Answer:
    id: str
    found: list[str]  # best first
    score: float | None  # of the best; None where there is none
    empty: bool  # nothing was found that the system would give


def unanswerable(folder: Path = CORPUS) -> list[tuple[str, Question]]:
    """(agent, question) without a gold memory."""
    lines = (folder / "unanswerable.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return [
        (row["agent_id"], Question(row["id"], row["question"], frozenset(), row["category"], split=split(row["id"])))
        for row in rows
    ]


def questions() -> list[tuple[str, Question]]:
    return [(space.name, question) for space in corpus() for question in space.questions] + unanswerable()


def answers(name: str, folder: Path, embed: Embed, dimension: int, fields: bool) -> list[dict[str, Any]]:
    system = adapter(name)
    if hasattr(system, "_clock"):
        system._clock = lambda: NOW
    system.open(folder, dimension, embed)
    if own := getattr(system, "use_own_embedder", None):
        with suppress(Exception):  # it was said when the system was opened
            own()
    for space in corpus():
        for row in rows(space, fields):
            system.remember(row)
    given = []
    for agent, question in questions():
        hits = system.recall(question.text, None, agent, None, K)
        score = hits[0].score if hits else None
        if sure := getattr(system, "relevance", None):
            score = sure(question.text, agent)
        given.append(asdict(Answer(question.id, [hit.label for hit in hits], score, not hits)))
    system.close()
    return given


def rows(space: Space, fields: bool) -> list[Row]:
    """With `fields`, what a memory has beside its text: its type, speaker, session, time and tags."""
    made = []
    for label, draft in space.memories.items():
        more: dict[str, Any] = {}
        if fields:
            more = {"type": draft.type, "confidence": draft.confidence, "event_time": draft.event_time}
            more |= {"tags": list(draft.tags)} if draft.tags else {}
            more |= {name: value for name in ("session_id", "speaker") if (value := getattr(draft, name))}
        made.append(Row(label, draft.content, None, space.name, None, more))
    return made
