"""What the files of each format say as one document, with all that its maker is known to write, and the way back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
from foreign_files import FILES, chatgpt_conversation, claude, mem0, trusty


def _chatgpt(folder: Path) -> Any:
    conversation = chatgpt_conversation()
    conversation |= {"is_archived": False, "moderation_results": [], "default_model_slug": "gpt-4o"}
    answer = conversation["mapping"]["c1-ans"]["message"]
    answer |= {"update_time": 1736209421.5, "status": "finished_successfully", "end_turn": True, "weight": 1.0}
    answer["metadata"] |= {"finish_details": {"type": "stop"}, "is_visually_hidden_from_conversation": False}
    asked = conversation["mapping"]["c1-ask"]["message"]
    asked["metadata"] = {"attachments": [{"id": "file-1", "name": "lease.pdf"}]}
    spoken = {"content_type": "audio_transcription", "text": "And quickly.", "direction": "in"}
    asked["content"] = {"content_type": "multimodal_text", "parts": ["What not to cook?", spoken]}
    return [conversation]


def _claude(folder: Path) -> Any:
    path = claude(folder)
    said = [json.loads((path / f"{part}.json").read_text())[0] for part in ("conversations", "projects", "memories")]
    conversation, project, _ = said
    conversation["summary"] = "they met"
    first = conversation["chat_messages"][0]
    first["parent_message_uuid"] = "m-0"
    first["content"][0] |= {"start_timestamp": "2025-01-07T00:23:32Z", "citations": []}
    first["attachments"][0]["file_size"] = 12
    project |= {"updated_at": "2025-01-03T00:00:00Z", "is_private": True, "creator": {"uuid": "acc"}}
    return said


def _mem0(folder: Path) -> Any:
    document = json.loads(mem0(folder).read_text())
    document["results"][0] |= {
        "actor_id": "bob", "role": "user", "score": 0.5, "categories": ["diet"], "expiration_date": "2099-01-01",
        "source": "chat",
    }  # fmt: skip
    return document


def _server_memory(folder: Path) -> Any:
    return [json.loads(line) for line in (FILES / "server-memory.jsonl").read_text("utf-8").splitlines()]


def _trusty(folder: Path) -> Any:
    drawers = [json.loads(line) for line in trusty(folder).read_text("utf-8").splitlines()]
    served = {
        "id": "d1", "drawer_id": "d2", "room_id": "r", "content": "Carol sails", "importance": 0.5, "tags": ["sea"],
        "created_at": "2026-02-03T04:05:06Z", "updated_at": "2026-02-03T04:05:07Z", "source_file": "a.md",
        "expires_at": "2099-01-01T00:00:00Z", "last_accessed_at": "2026-02-04T04:05:06Z", "access_count": 2,
        "content_hash": "ef56",
    }  # fmt: skip
    fact = {
        "subject": "Alice", "predicate": "lives_in", "object": "Bergen", "valid_from": "2026-02-03T04:05:06Z",
        "valid_to": "2099-01-01T00:00:00Z", "confidence": 0.5, "provenance": "said by Alice",
    }  # fmt: skip
    return [*drawers, served, fact]


def _markdown(folder: Path) -> Any:
    return {
        "title": "Coffee", "type": "note", "permalink": "food/coffee", "tags": ["coffee", "brewing"], "rating": 4,
        "created": "2025-02-01T08:00:00+01:00", "date": "2025-02-02", "modified": "2025-02-03", "aliases": ["brew"],
    }  # fmt: skip


def _amp(folder: Path) -> Any:
    lesson = {
        "id": "lesson-1", "title": "Tabs", "content": "Use tabs in Makefiles", "tags": ["make"], "severity": "critical",
        "agent": "builder", "repo": "atlas", "created_at": 1736200000, "updated_at": 1736300000,
    }  # fmt: skip
    checkpoint = {
        "id": "cp-1", "agent": "builder", "repo": "atlas", "session_id": "s1", "working_on": "Fixing the build",
        "state": {"decisions": ["use make"], "flags": ["IN_PROGRESS"], "more": {"a": 1}}, "created_at": 1736200001,
    }  # fmt: skip
    return {"lessons": [lesson], "checkpoints": [checkpoint]}


#: How each format says what it says, in one document.
DOCUMENTS: dict[str, Callable[[Path], Any]] = {
    "chatgpt": _chatgpt, "claude": _claude, "mem0": _mem0, "server_memory": _server_memory, "trusty": _trusty,
    "markdown": _markdown, "amp": _amp,
}  # fmt: skip


def written(name: str, document: Any, folder: Path) -> Path:
    """The file that says so."""
    if name == "markdown":
        path = folder / "note.md"
        fields = "".join(f"{key}: {json.dumps(value)}\n" for key, value in document.items())
        path.write_text(f"---\n{fields}---\nGrind it fine.\n", "utf-8")
        return path
    if name == "amp":
        return _database(document, folder / "nellie.db")
    path = folder / "odd.json"
    lines = name in ("server_memory", "trusty") and isinstance(document, list)
    path.write_text("\n".join(map(json.dumps, document)) if lines else json.dumps(document), "utf-8")
    return path


def _database(document: dict[str, list[dict[str, Any]]], path: Path) -> Path:
    """Nellie's tables without their constraints, so that they take what is odd."""
    path.unlink(missing_ok=True)
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    for table, rows in document.items():
        columns = list(dict.fromkeys(name for row in rows for name in row)) or ["id"]
        db.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        for row in rows:
            cells = [_cell(name, row.get(name)) for name in columns]
            db.execute(f"INSERT INTO {table} VALUES({', '.join('?' * len(columns))})", cells)
    db.close()
    return path


def _cell(column: str, value: Any) -> Any:
    if isinstance(value, list | dict) or (column in ("tags", "state") and value is not None and type(value) is not int):
        return json.dumps(value)
    return float(value) if isinstance(value, int) and abs(value) > 2**63 else value
