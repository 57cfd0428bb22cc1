"""The recall corpus keeps the shape its README promises."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "bench" / "data" / "corpus"
AGENTS = {"coding": "cod", "personal": "per", "support": "sup", "research": "res", "operations": "ops"}
CATEGORIES = {
    "paraphrase",
    "exact",
    "multi",
    "temporal",
    "changed-fact",
    "neighbour",
    "person",
    "cross-language",
    "keyword",
    "emotional",
}
TYPES = {"semantic", "episodic", "procedural", "emotional"}
MEMORY_FIELDS = {
    "id",
    "agent_id",
    "text",
    "type",
    "event_time",
    "lang",
    "speaker",
    "user_id",
    "session_id",
    "tags",
    "confidence",
    "supersedes",
}
FROZEN = {
    "memories.jsonl": "e7ea35a2fa6cdfdb9e317de2a58267b4b02fb73bd272fbad4d1d9c5ac42a8a20",
    "answerable.jsonl": "017da42d39409783a3c0baa5c4d85ba15fa61dcb59f8fee3de79ad26f2bb0700",
    "unanswerable.jsonl": "b4b15a65e9a44e903ed21ccbbea03848eec428a7a01de355b93a8089613e0218",
    "relations.jsonl": "bd9442eb4f1aca77f861f00d29074fc654e472396441abfc5e80c820e212d74f",
}
FUNCTION_WORDS = re.compile(
    r"\b(?:a|an|the|of|to|in|on|at|is|are|was|were|do|does|did|we|our|us|i|my|me|you|your|it|its|he|she|his|her|they"
    r"|them|their|for|and|or|with|by|from|as|that|this|which|what|who|whom|whose|when|where|why|how|much|many|long"
    r"|can|could|may|must|should|would|will|be|been|has|have|had|not|no|any|than|into|about|if|so|there|s|t)\b"
)


def _read(name: str) -> list[dict[str, Any]]:
    lines = (CORPUS / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


MEMORIES = _read("memories.jsonl")
ANSWERABLE = _read("answerable.jsonl")
UNANSWERABLE = _read("unanswerable.jsonl")
RELATIONS = _read("relations.jsonl")
BY_ID = {m["id"]: m for m in MEMORIES}


def _instant(event_time: str | int) -> datetime:
    if isinstance(event_time, int):
        return datetime.fromtimestamp(event_time / 1000, UTC)
    moment = datetime.fromisoformat(event_time.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _split(question_id: str) -> str:
    return "tune" if int(hashlib.sha256(question_id.encode()).hexdigest(), 16) % 2 == 0 else "test"


def _content_words(text: str) -> set[str]:
    return {w for w in re.findall(r"\w+", text.lower()) if not FUNCTION_WORDS.fullmatch(w)}


@pytest.mark.parametrize("name", FROZEN)
def test_the_corpus_is_frozen(name: str) -> None:
    # Numbers measured on it are comparable only while not a byte of it changes.
    assert hashlib.sha256((CORPUS / name).read_bytes()).hexdigest() == FROZEN[name]


def test_sizes() -> None:
    assert len(MEMORIES) >= 320
    assert len(ANSWERABLE) >= 260
    assert len(UNANSWERABLE) >= 260
    assert sum(f.stat().st_size for f in CORPUS.iterdir()) < 400_000


@pytest.mark.parametrize("agent", AGENTS)
def test_each_agent_has_enough(agent: str) -> None:
    assert sum(m["agent_id"] == agent for m in MEMORIES) >= 60
    assert sum(q["agent_id"] == agent for q in ANSWERABLE) >= 50
    assert sum(q["agent_id"] == agent for q in UNANSWERABLE) >= 50


def test_ids_are_unique_and_name_their_agent() -> None:
    for rows, prefix in ((MEMORIES, ""), (ANSWERABLE, "q-"), (UNANSWERABLE, "u-")):
        assert len({r["id"] for r in rows}) == len(rows)
        for row in rows:
            assert re.fullmatch(rf"{prefix}{AGENTS[row['agent_id']]}-\d{{3}}", row["id"])


def test_no_text_or_question_occurs_twice() -> None:
    for texts in ([m["text"] for m in MEMORIES], [q["question"] for q in ANSWERABLE + UNANSWERABLE]):
        assert [t for t, n in Counter(t.casefold().strip() for t in texts).items() if n > 1] == []


def test_memories_are_well_formed() -> None:
    for memory in MEMORIES:
        assert set(memory) <= MEMORY_FIELDS
        assert memory["type"] in TYPES
        assert memory["text"].strip() == memory["text"] != ""
        assert len(memory["text"]) <= 4000
        assert 0 <= memory.get("confidence", 1) <= 1
        assert datetime(2025, 9, 1, tzinfo=UTC) <= _instant(memory["event_time"]) < datetime(2026, 9, 1, tzinfo=UTC)
    assert {m["type"] for m in MEMORIES} == TYPES


def test_supersedes_names_an_older_memory_of_the_same_agent() -> None:
    for memory in MEMORIES:
        for older in memory.get("supersedes", []):
            assert BY_ID[older]["agent_id"] == memory["agent_id"]
            assert _instant(BY_ID[older]["event_time"]) <= _instant(memory["event_time"])


def test_answerable_labels_point_into_the_agents_own_store() -> None:
    for question in ANSWERABLE:
        assert question["category"] in CATEGORIES
        gold, stale = set(question["gold"]), set(question.get("stale", []))
        assert gold
        assert len(gold) == len(question["gold"])
        for memory_id in gold | stale | set(question.get("context", [])):
            assert BY_ID[memory_id]["agent_id"] == question["agent_id"]
        assert not gold & stale
        assert not gold & set(question.get("context", []))
        assert question["need"] == ("all" if question["category"] == "multi" else "any")


def test_category_rules() -> None:
    superseded = {older for m in MEMORIES for older in m.get("supersedes", [])}
    for question in ANSWERABLE:
        match question["category"]:
            case "multi":
                assert 2 <= len(question["gold"]) <= 3
            case "changed-fact":
                assert question["stale"]
                newest_stale = max(_instant(BY_ID[i]["event_time"]) for i in question["stale"])
                assert all(_instant(BY_ID[i]["event_time"]) >= newest_stale for i in question["gold"])
            case "neighbour":
                session = {BY_ID[i].get("session_id") for i in question["gold"] + question["context"]}
                assert len(session) == 1
                assert None not in session
        if question["category"] != "temporal":
            assert not superseded & set(question["gold"]), question["id"]
    counts = Counter(q["category"] for q in ANSWERABLE)
    assert set(counts) == CATEGORIES
    assert min(counts.values()) >= 15


def test_unanswerable_labels() -> None:
    for question in UNANSWERABLE:
        if question["category"] == "in_domain":
            assert question["near"]
            assert all(BY_ID[i]["agent_id"] == question["agent_id"] for i in question["near"])
        else:
            assert question["category"] == "out_of_domain"
            assert "near" not in question
    in_domain = sum(q["category"] == "in_domain" for q in UNANSWERABLE)
    assert in_domain / len(UNANSWERABLE) >= 0.65


def test_languages() -> None:
    counts = Counter(m["lang"] for m in MEMORIES)
    assert set(counts) == {"en", "de", "fr", "es", "pt", "ja", "zh"}
    assert sum(n for lang, n in counts.items() if lang != "en") >= 30
    for memory in MEMORIES:
        has_cjk = bool(re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", memory["text"]))
        assert has_cjk == (memory["lang"] in {"ja", "zh"}), memory["id"]
    assert counts["ja"] + counts["zh"] >= 10


def test_relations() -> None:
    changed = [r for r in RELATIONS if r["kind"] == "changed"]
    twins = [r for r in RELATIONS if r["kind"] == "near_duplicate"]
    assert len(changed) + len(twins) == len(RELATIONS)
    assert len(changed) >= 30
    assert len(twins) >= 25
    for pair in changed:
        older, newer = BY_ID[pair["older"]], BY_ID[pair["newer"]]
        assert older["agent_id"] == newer["agent_id"] == pair["agent_id"]
        assert _instant(older["event_time"]) <= _instant(newer["event_time"])
        assert pair["declared"] == (older["id"] in newer.get("supersedes", []))
    assert 0.35 <= sum(r["declared"] for r in changed) / len(changed) <= 0.65
    for pair in twins:
        assert pair["a"] != pair["b"]
        assert BY_ID[pair["a"]]["agent_id"] == BY_ID[pair["b"]]["agent_id"] == pair["agent_id"]


def test_chat_runs_are_consecutive_and_in_order() -> None:
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for memory in MEMORIES:
        if "session_id" in memory:
            runs[memory["session_id"]].append(memory)
    assert len(runs) >= 10
    for turns in runs.values():
        assert 3 <= len(turns) <= 6
        numbers = [int(t["id"][-3:]) for t in turns]
        assert numbers == list(range(numbers[0], numbers[0] + len(turns)))
        instants = [_instant(t["event_time"]) for t in turns]
        assert instants == sorted(set(instants))
        assert len({t["agent_id"] for t in turns}) == 1
        assert all(t["speaker"] for t in turns)


def test_long_memories_and_identifiers() -> None:
    assert sum(len(m["text"]) >= 800 for m in MEMORIES) >= 6
    identifier = re.compile(r"`[^`]+`|(?:/[\w.-]+){2,}|\b[A-Z]{2,}-\w*\d{2,}|\s--\w+")
    assert sum(bool(identifier.search(m["text"])) for m in MEMORIES) >= 15


def test_questions_do_not_just_repeat_their_answers() -> None:
    repeating = 0
    for question in ANSWERABLE:
        asked = _content_words(question["question"])
        told = set[str]().union(
            *(_content_words(f"{BY_ID[i]['text']} {BY_ID[i].get('speaker', '')}") for i in question["gold"])
        )
        repeating += len(asked & told) >= len(asked) / 2
    assert repeating / len(ANSWERABLE) <= 0.35


def test_the_split_is_about_half() -> None:
    for rows in (ANSWERABLE, UNANSWERABLE):
        assert 0.4 <= sum(_split(q["id"]) == "tune" for q in rows) / len(rows) <= 0.6
    for agent in AGENTS:
        own = [q for q in ANSWERABLE + UNANSWERABLE if q["agent_id"] == agent]
        assert 0.3 <= sum(_split(q["id"]) == "tune" for q in own) / len(own) <= 0.7
