"""No field of an export brings a secret in: what can be replaced is replaced and counted, the rest is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transfer_scenarios import WHO, export_of, exported

from commonplace.testing.subject import Subject
from commonplace.transfer.import_file import import_export

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ID = "01977947-3800-729e-a907-e5e26cc71904"
VERSION = {"content": "x", "type": "semantic", "kind": "semantic", "created_at": 5, "updated_at": 5}
STATEMENT = {
    "record": "statement", "id": ID, "agent_id": "agent", "subject": "A", "predicate": "is", "object": "B",
    "valid_from": 1000,
}  # fmt: skip


def memory(**fields: Any) -> dict[str, Any]:
    return {"record": "memory", "id": ID, "agent_id": "agent", "versions": [VERSION | fields]}


def files_with_token(folder: Path) -> list[str]:
    return [p.name for p in folder.rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]


@pytest.mark.parametrize(
    "record",
    [
        *(memory(**{name: TOKEN}) for name in ("user_id", "project", "session_id", "kind", "merged_into")),
        *(memory(**{name: [TOKEN]}) for name in ("aliases", "supersedes")),
        memory(privacy={"share_with": [TOKEN]}),
        {**memory(), "versions": [VERSION | {"merged_into": TOKEN}, VERSION]},
        {**memory(), "id": TOKEN},
        {**memory(), "agent_id": TOKEN},
        *(STATEMENT | {name: TOKEN} for name in ("id", "agent_id", "asserted_by", "memory_id")),
        {"record": "palace", "name": TOKEN, "description": "d"},
    ],
)
def test_a_name_that_holds_a_secret_keeps_its_record_out(
    subject: Subject, run: Any, save: Any, tmp_path: Path, record: dict[str, Any]
) -> None:
    path = save(export_of(record))
    for dry_run in (True, False):
        report = run(import_export(subject.engine, WHO, path, dry_run=dry_run))
        assert (dict(report.written), report.left_out.counts.total()) == ({}, 1)
    path.unlink()
    assert TOKEN.encode() not in run(exported(subject))
    assert files_with_token(tmp_path) == []


@pytest.mark.parametrize(
    "record",
    [
        *(memory(**{name: f"it is {TOKEN}"}) for name in ("content", "title", "entity_name", "source", "speaker")),
        memory(metadata={"a": [{TOKEN: 1}]}),
        memory(provenance={"a": TOKEN}),
        *(STATEMENT | {name: f"it is {TOKEN}"} for name in ("subject", "predicate", "object", "provenance")),
        STATEMENT | {"subject": "the router", "predicate": "password", "object": "hunter2-Xyzzy-4711"},
        {"record": "palace", "name": "library", "description": f"it is {TOKEN}"},
        {"record": "palace", "name": "library", "identity": f"it is {TOKEN}"},
    ],
)
def test_a_text_loses_its_secret_which_is_counted(
    subject: Subject, run: Any, save: Any, tmp_path: Path, record: dict[str, Any]
) -> None:
    path = save(export_of(record))
    for dry_run in (True, False):
        report = run(import_export(subject.engine, WHO, path, dry_run=dry_run))
        assert (report.written[record["record"]], report.redacted.total()) == (1, 1)
    path.unlink()
    data = run(exported(subject))
    assert b"REDACTED" in data
    assert b"Xyzzy" not in data
    assert files_with_token(tmp_path) == []
