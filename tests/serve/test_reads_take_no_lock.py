"""Whoever looks does not wait for whoever writes: status, verifying the audit and every dry-run take no write lock."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from call_recorder import CountingStore, request
from tampering import raw_database

from commonplace.cli import main
from commonplace.config import Config
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Draft, Engine, Query
from commonplace.serve.app import application
from commonplace.serve.server import server_context
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing import FakeClock
from commonplace.testing.subject import WHO

AGENT = "alice"

#: Method, path and body of each; IDS stands for the ids of two memories.
LOOKS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "status": ("GET", "/v0/status", None),
    "verify_audit": ("GET", "/v0/audit/verify", None),
    "audit_head": ("GET", "/v0/audit/head", None),
    "audit_proof": ("GET", "/v0/audit/proof?entry=1", None),
    "preview_forget_ids": ("POST", "/v0/preview/forget", {"ids": "IDS"}),
    "preview_forget_filter": ("POST", "/v0/preview/forget", {"filter": {"type": "semantic"}}),
    "preview_erase": ("POST", "/v0/preview/forget", {"ids": "IDS", "hard_delete": True, "cascade": True}),
    "preview_merge": ("POST", "/v0/preview/merge", {"canonical": "FIRST", "duplicates": "REST",
                      "strategy": "keep_canonical"}),
    "preview_expire": ("POST", "/v0/preview/expire", {"policy": {"type": "semantic"}, "action": "forget"}),
    "preview_expire_unrecalled": ("POST", "/v0/preview/expire", {"policy": {"no_recall_in_days": 1},
                                  "action": "archive"}),
    "preview_kg_erase": ("POST", "/v0/preview/kg/erase", {"subject": "Alice"}),
    "amp_status": ("GET", "/amp/status", None),
    "health": ("GET", "/v0/health", None),
}  # fmt: skip


def filled(body: dict[str, Any], ids: list[str]) -> dict[str, Any]:
    stands_for: dict[Any, Any] = {"IDS": ids, "FIRST": ids[0], "REST": ids[1:]}
    return {"agent_id": AGENT} | {
        name: stands_for[value] if isinstance(value, str) and value in stands_for else value
        for name, value in body.items()
    }


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_is_answered_while_another_process_writes(look: str, tmp_path: Path) -> None:
    method, path, body = LOOKS[look]
    database = tmp_path / "commonplace.db"

    async def scenario() -> None:
        clock = FakeClock()
        store = CountingStore(SqliteStore(database, clock))
        engine = await Engine.open(store, HashingEmbedder(), clock=clock)  # type: ignore[arg-type]
        app = application(await server_context(Config(tmp_path), engine))
        ids = [(await engine.remember(WHO, Draft(AGENT, "semantic", f"peanuts {n}"))).id for n in range(2)]
        await engine.recall(WHO, Query((AGENT,), "peanuts"))
        assert engine.queues()["recalls"] == 1, "there is something that could be written first"
        store.clear()
        with raw_database(database) as other, other.write_lock():
            answer = await request(app, method, path, None if body is None else filled(body, ids))
            assert answer.status == 200, answer.document
            assert store.transactions == []
            assert engine.queues()["recalls"] == 1
        await engine.close()

    asyncio.run(scenario())


#: What a command line asks for without changing anything.
COMMANDS = {
    "status": ("status",),
    "audit verify": ("audit", "verify"),
    "forget --dry-run": ("forget", "FIRST", "--dry-run"),
    "forget --where --dry-run": ("forget", "--where", "type=semantic", "--dry-run"),
    "forget --hard --dry-run": ("forget", "FIRST", "--hard", "--dry-run"),
    "merge --dry-run": ("merge", "FIRST", "SECOND", "--dry-run"),
    "expire --dry-run": ("expire", "--type", "semantic", "--dry-run"),
    "kg erase --dry-run": ("kg", "erase", "Alice", "--dry-run"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_only_looks_works_while_another_process_writes(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path))
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
    # Short, so that a command that does want the lock fails soon; it is not passed at all.
    monkeypatch.setattr("commonplace.stores.sqlite.writer.WAIT_SECONDS", 1.0)
    monkeypatch.setattr("commonplace.stores.sqlite.files.BUSY_TIMEOUT_MS", 1000)
    for n in range(2):
        assert main(["remember", f"peanuts {n}"]) == 0
    capsys.readouterr()
    with raw_database(tmp_path / "commonplace.db") as other:
        first, second = (id for (id,) in other.rows("SELECT id FROM memories ORDER BY seq"))
        given = [{"FIRST": first, "SECOND": second}.get(word, word) for word in COMMANDS[command]]
        with other.write_lock():
            code = main([*given, "--json"])
    assert code == 0, capsys.readouterr()


def test_a_recall_that_is_not_written_yet_counts_in_a_preview_and_in_the_status(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = FakeClock()
        engine = await Engine.open(SqliteStore(tmp_path / "commonplace.db", clock), HashingEmbedder(), clock=clock)
        app = application(await server_context(Config(tmp_path), engine))
        await engine.remember(WHO, Draft(AGENT, "semantic", "peanuts"))
        clock.advance(2 * 86_400_000)
        policy = {"agent_id": AGENT, "policy": {"no_recall_in_days": 1}, "action": "archive"}
        before = await request(app, "POST", "/v0/preview/expire", policy)
        entries = (await engine.upkeep.status(WHO))["audit_entries"]
        await engine.recall(WHO, Query((AGENT,), "peanuts"))
        after = await request(app, "POST", "/v0/preview/expire", policy)
        assert (len(before.document["memories"]), len(after.document["memories"])) == (1, 0)
        assert (await engine.upkeep.status(WHO))["audit_entries"] == entries + 1
        await engine.flush()
        assert (await engine.upkeep.status(WHO))["audit_entries"] == entries + 1
        await engine.close()

    asyncio.run(scenario())
