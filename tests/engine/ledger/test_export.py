"""The export: appended to and never rewritten, nothing of a memory in it, refused where the ledger is another."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from tampering import rewrite_ledger

from commonplace.engine.ledger import export as exporting
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import Conflict, Forbidden, Unavailable
from commonplace.wire.record import Principal


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_what_is_new_is_appended_with_a_head(subject: Subject, run: Any, tmp_path: Path) -> None:
    path = tmp_path / "worm" / "ledger.jsonl"
    id = run(subject.remember("the mark xyzzy-4711"))
    assert run(subject.engine.ledger.export(WHO, path)) == 1
    before = path.read_bytes()
    assert run(subject.engine.ledger.export(WHO, path)) == 0
    assert path.read_bytes() == before, "nothing new, nothing written"
    run(subject.forget(id, hard_delete=True))
    assert run(subject.engine.ledger.export(WHO, path)) == 1
    assert path.read_bytes().startswith(before), "what was there stays as it was"
    found = lines(path)
    assert [line.get("n", f"head {line.get('size')}") for line in found] == [1, "head 1", 2, "head 2"]
    assert b"xyzzy" not in path.read_bytes()
    assert id.encode() not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run(subject.engine.ledger.verify(WHO, evidence=found)).problem is None


def test_long_ledgers_are_written_in_pieces(
    subject: Subject, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "_AT_ONCE", 3)
    for n in range(8):
        run(subject.remember(str(n)))
    path = tmp_path / "ledger.jsonl"
    assert run(subject.engine.ledger.export(WHO, path)) == 8
    assert [line.get("n") for line in lines(path)] == [*range(1, 9), None]


def test_after_a_torn_line_it_goes_on(subject: Subject, run: Any, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    for n in range(3):
        run(subject.remember(str(n)))
    run(subject.engine.ledger.export(WHO, path))
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b'{"n":3') + 20])
    assert run(subject.engine.ledger.export(WHO, path)) == 1
    kept = [line for line in path.read_text("utf-8").splitlines() if line.endswith("}")]
    assert [json.loads(line).get("n") for line in kept] == [1, 2, 3, None]


def test_a_ledger_that_is_another_is_not_appended(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "ledger.jsonl"
    with open_subject(InMemory(clock), clock) as (subject, run):
        for n in range(3):
            run(subject.remember(str(n)))
        run(subject.engine.ledger.export(WHO, path))
        before = path.read_bytes()
        rewrite_ledger(subject.store, "local", run(subject.engine.ledger.entries(WHO))[:2])
        with pytest.raises(Conflict, match="has 3 entries and the ledger 2: the ledger was cut off"):
            run(subject.engine.ledger.export(WHO, path))
        run(subject.remember("another third"))
        with pytest.raises(Conflict, match="entry 3 is not the one in"):
            run(subject.engine.ledger.export(WHO, path))
    assert path.read_bytes() == before


def test_who_may_and_where(subject: Subject, run: Any, tmp_path: Path) -> None:
    run(subject.remember("x"))
    with pytest.raises(Forbidden):
        run(subject.engine.ledger.export(Principal("eve", "acme"), tmp_path / "x"))
    (tmp_path / "letter.txt").write_text("Dear Bob\n", "utf-8")
    with pytest.raises(Conflict, match="holds no entries of a ledger"):
        run(subject.engine.ledger.export(WHO, tmp_path / "letter.txt"))
    with pytest.raises(Unavailable, match="cannot"):
        run(subject.engine.ledger.export(WHO, tmp_path))


def test_the_file_of_a_tenant_has_a_name_of_its_own() -> None:
    assert exporting.file_name("local") == "local.jsonl"
    assert exporting.file_name("../acme") == "..%2Facme.jsonl"
