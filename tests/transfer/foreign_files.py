"""Files as other products write them.

`server-memory.jsonl` was written by @modelcontextprotocol/server-memory 2026.8.31 itself; the others
follow the formats as their makers describe them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import apsw

FILES = Path(__file__).parent / "files"
Document = dict[str, Any]


def node(id: str, parent: str | None, children: list[str], message: Document | None) -> Document:
    return {"id": id, "parent": parent, "children": children, "message": message}


def said(id: str, role: str, *parts: Any, at: float | None = 1736209412.345, **more: Any) -> Document:
    content = {"content_type": more.pop("content_type", "text"), "parts": list(parts)}
    author = {"role": role, "name": None, "metadata": {}}
    return {
        "id": id,
        "author": author,
        "create_time": at,
        "content": content,
        "recipient": "all",
        "metadata": {},
        **more,
    }


def chatgpt_conversation(number: int = 1) -> Document:
    prefix = f"c{number}"
    root, system, ask, edited, answer, picture = (f"{prefix}-{x}" for x in ("root", "sys", "ask", "old", "ans", "pic"))
    mapping = {
        root: node(root, None, [system], None),
        system: node(system, root, [ask, edited], said(system, "system", "", at=None)),
        edited: node(edited, system, [], said(edited, "user", "what should I not cok?")),
        ask: node(ask, system, [answer], said(ask, "user", "What should I not cook for Alice?")),
        answer: node(
            answer, ask, [picture],
            said(answer, "assistant", "Anything with peanuts.", metadata={"model_slug": "gpt-4o"}, at=1736209420.5),
        ),
        picture: node(
            picture, answer, [],
            said(picture, "user", {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
                 "Here is the menu ☃", content_type="multimodal_text"),
        ),
    }  # fmt: skip
    return {
        "title": "Cooking", "create_time": 1736209400.0, "update_time": 1736209800.0, "mapping": mapping,
        "current_node": picture, "conversation_id": f"conv-{number}", "id": f"conv-{number}",
    }  # fmt: skip


def chatgpt(folder: Path) -> Path:
    path = folder / "chatgpt.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("user.json", '{"email": "alice@example.com"}')
        archive.writestr("conversations-000.json", json.dumps([chatgpt_conversation(1)], ensure_ascii=False))
        archive.writestr("conversations-001.json", json.dumps([chatgpt_conversation(2)], ensure_ascii=False))
    return path


def claude(folder: Path) -> Path:
    messages = [
        {
            "uuid": "m-1", "text": "I moved to Bergen.", "sender": "human", "created_at": "2025-01-07T00:23:32.345678Z",
            "updated_at": "2025-01-07T00:23:32.345678Z", "content": [{"type": "text", "text": "I moved to Bergen."}],
            "attachments": [{"file_name": "lease.txt", "file_type": "txt", "extracted_content": "The lease"}],
            "files": [{"file_name": "photo.png"}],
        },
        {
            "uuid": "m-2", "text": "", "sender": "assistant", "created_at": "2025-01-07T00:23:40Z",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Noted."}], "attachments": [],
        },
        {"uuid": "m-3", "text": "", "sender": "assistant", "created_at": "2025-01-07T00:24:00Z", "content": []},
    ]  # fmt: skip
    conversation = {
        "uuid": "conv-1", "name": "Moving", "created_at": "2025-01-07T00:23:00Z", "updated_at": "2025-01-07T00:30:00Z",
        "account": {"uuid": "acc"}, "chat_messages": messages,
    }  # fmt: skip
    project = {
        "uuid": "p-1", "name": "House", "description": "All about the house", "prompt_template": "",
        "created_at": "2025-01-01T00:00:00Z",
        "docs": [{"uuid": "d-1", "filename": "rules.md", "content": "No shoes inside", "created_at": "2025-01-02"}],
    }  # fmt: skip
    memories = {
        "conversations_memory": "Alice lives in Bergen",
        "project_memories": {"p-1": "shoes off"},
        "account_uuid": "acc",
    }
    (folder / "claude").mkdir()
    for name, document in (("conversations", [conversation]), ("projects", [project]), ("memories", [memories])):
        (folder / "claude" / f"{name}.json").write_text(json.dumps(document, indent=1), "utf-8")
    (folder / "claude" / "users.json").write_text("[]", "utf-8")
    return folder / "claude"


def server_memory(folder: Path) -> Path:
    return FILES / "server-memory.jsonl"


def mem0(folder: Path) -> Path:
    path = folder / "mem0.json"
    results = [
        {
            "id": "11111111-1111-4111-8111-111111111111", "memory": "Loves Italian food", "hash": "abc",
            "metadata": {"category": "food", "stars": 5}, "created_at": "2025-03-01T10:00:00.000001+00:00",
            "updated_at": "2025-03-02T10:00:00+00:00", "user_id": "alice", "agent_id": "cook", "run_id": "r1",
        },
        {"id": "22222222-2222-4222-8222-222222222222", "memory": "Is a vegetarian",
         "created_at": "2025-03-03T10:00:00-07:00",
         "updated_at": None, "user_id": "alice", "categories": ["diet"], "expiration_date": None},
        {"id": "33333333-3333-4333-8333-333333333333", "memory": " ", "user_id": "alice"},
    ]  # fmt: skip
    relations = [{"source": "alice", "relationship": "likes", "target": "pasta"}, {"source": "alice"}]
    path.write_text(json.dumps({"results": results, "relations": relations}), "utf-8")
    return path


def markdown(folder: Path) -> Path:
    notes = folder / "notes"
    (notes / "food" / ".obsidian").mkdir(parents=True)
    (notes / "food" / "coffee.md").write_text(
        "---\ntitle: Coffee Brewing\ntype: note\npermalink: food/coffee-brewing\ntags:\n- coffee\n- '#brewing'\n"
        "created: 2025-02-01T08:00:00+01:00\nrating: 4\nnested:\n  a: 1\n---\n\n# Coffee Brewing\n\n## Observations\n"
        "- [method] Pour over gives clarity #brewing (tested)\n\n## Relations\n- relates_to [[Tea]]\n"
        "- see [[Nowhere]]\n",
        "utf-8",
    )
    (notes / "tea.md").write_text("# Tea\r\nGreen tea at 80 degrees.\r\n", "utf-8")
    (notes / "empty.md").write_text("---\ntitle: Empty\n---\n", "utf-8")
    (notes / "picture.png").write_bytes(b"\x89PNG")
    (notes / "food" / ".obsidian" / "x.md").write_text("not a note", "utf-8")
    (notes / "link.md").symlink_to(notes / "tea.md")
    return notes


NELLIE = """
CREATE TABLE lessons (id TEXT PRIMARY KEY, title TEXT NOT NULL, content TEXT NOT NULL, tags TEXT NOT NULL,
  severity TEXT NOT NULL DEFAULT 'info', agent TEXT, repo TEXT,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
CREATE TABLE checkpoints (id TEXT PRIMARY KEY, agent TEXT NOT NULL, repo TEXT, session_id TEXT,
  working_on TEXT NOT NULL,
  state TEXT NOT NULL, created_at INTEGER NOT NULL);
CREATE TABLE chunks (id INTEGER PRIMARY KEY, file_path TEXT, content TEXT);
"""


def amp(folder: Path) -> Path:
    path = folder / "nellie.db"
    db = apsw.Connection(str(path))
    db.execute(NELLIE)
    db.execute(
        "INSERT INTO lessons VALUES('lesson-1', 'Tabs', 'Use tabs in Makefiles', ?, 'critical', NULL, 'atlas', ?, ?)",
        ('["make"]', 1736200000, 1736300000),
    )
    db.execute(
        "INSERT INTO checkpoints VALUES('cp-1', 'builder', 'atlas', 's1', 'Fixing the build', ?, ?)",
        (json.dumps({"decisions": ["use make"], "flags": ["IN_PROGRESS"]}), 1736200001),
    )
    db.execute("INSERT INTO chunks VALUES(1, 'a.py', 'print()')")
    db.close()
    return path


def trusty(folder: Path) -> Path:
    path = folder / "palace.jsonl"
    record = {
        "format_version": 1, "hash_version": 1, "content_hash": "ab12", "content": "The deploy runs at noon",
        "tags": ["ops"], "created_at": "2026-02-03T04:05:06Z", "drawer_type": "UserFact",
        "room": "planning", "importance": 0.9,
    }  # fmt: skip
    other = {**record, "content_hash": "cd34", "content": "Bob keeps bees", "room": "garden", "tags": []}
    path.write_text("".join(json.dumps(each) + "\n" for each in (record, other)), "utf-8")
    return path


#: Format, file, memories, statements, and how many things are left out.
EVERY = {
    "chatgpt": (chatgpt, 6, 0, 7),
    "claude": (claude, 7, 0, 6),
    "server_memory": (server_memory, 8, 2, 1),
    "mem0": (mem0, 2, 1, 2),
    "markdown": (markdown, 2, 0, 2),
    "amp": (amp, 2, 0, 1),
    "trusty": (trusty, 2, 0, 0),
}
