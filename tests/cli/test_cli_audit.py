"""`commonplace audit`: heads, proofs, and a store that someone has been at."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tampering import drop_guards


def change(data: Path, *statements: str) -> None:
    """As whoever can write the file can."""
    with closing(sqlite3.connect(data / "commonplace.db")) as db:
        drop_guards(db)
        for statement in statements:
            db.execute(statement)
        db.commit()


@pytest.fixture
def head(cli: Any, remember: Any, tmp_path: Path) -> Path:
    for n in range(4):
        remember(f"fact {n}")
    kept = tmp_path / "head.json"
    kept.write_text(cli("audit", "head", "--json").out, "utf-8")
    return kept


def test_a_recall_that_could_not_be_written_is_written_by_the_next_command(
    cli: Any, remember: Any, data: Path, caplog: Any
) -> None:
    remember("Alice likes tea")
    full = "BEFORE INSERT ON audit WHEN NEW.operation = 'recall' BEGIN SELECT RAISE(ABORT, 'no room'); END"
    with closing(sqlite3.connect(data / "commonplace.db")) as db:
        db.execute(f"CREATE TRIGGER full {full}")
        answered = cli("recall", "which drink does Alice like?")
        assert (answered.code, "Alice likes tea" in answered.out) == (0, True)
        assert "1 recalls are not in the ledger yet" in caplog.text
        told = cli("status", "--json").json["unwritten_recalls"]
        assert (told["waiting"], "no room" in told["error"]) == (1, True)
        assert "1 recall cannot be written to the ledger since" in cli("status").err
        kept = [file.read_text("utf-8") for file in (data / "unwritten-recalls").iterdir()]
        assert len(kept) == 1
        assert "drink" not in kept[0], "a question is in no file"
        db.execute("DROP TRIGGER full")
    assert cli("status").code == 0, "which writes it as it ends"
    assert "unwritten_recalls" not in cli("status", "--json").json
    (entry,) = cli("audit", "list", "--operation", "recall", "--json").json["entries"]
    assert entry["payload"][0]["results"] == 1
    assert not (data / "unwritten-recalls").exists()
    assert cli("audit", "verify", "--json").json["ok"] is True


CUT_OFF = (
    "DELETE FROM audit WHERE n > 2",
    "DELETE FROM audit_parts WHERE n > 2",
    "DELETE FROM memories WHERE seq > 2",
    "UPDATE tenants SET audit_n = 2, audit_hash = (SELECT hash FROM audit WHERE n = 2) WHERE name = 'local'",
)


def test_a_head_kept_elsewhere_exposes_a_ledger_that_was_cut_off(cli: Any, data: Path, head: Path) -> None:
    whole = cli("audit", "verify", "--head", str(head))
    assert (whole.code, f"it is the one that {head} tells of (1 line)" in whole.out) == (0, True)
    change(data, *CUT_OFF)
    assert cli("audit", "verify", "--json").json["ok"] is True, "by itself it is without a fault"
    found = cli("audit", "verify", "--head", str(head), "--json")
    assert (found.code, found.json["ok"], found.json["first_bad"]) == (2, False, 3)
    assert "the ledger was cut off" in cli("audit", "verify", "--head", str(head)).out


def test_a_head_may_be_one_line_many_lines_or_pretty(cli: Any, head: Path, remember: Any) -> None:
    first = json.loads(head.read_text("utf-8"))
    remember("one more")
    second = cli("audit", "head", "--json").json
    for text in (json.dumps(first, indent=2), f"{json.dumps(first)}\n\n{json.dumps(second)}\n"):
        head.write_text(text, "utf-8")
        assert cli("audit", "verify", "--head", str(head), "--json").json["ok"] is True
    assert second["size"] == 5


def test_the_key_may_be_given(cli: Any, head: Path) -> None:
    ours = cli("audit", "key", "--json").json["public_key"]
    assert cli("audit", "verify", "--head", str(head), "--key", ours).code == 0
    other = "bLdc04W3mjSmeFTI1uIh8xMVGJmWb5PPQm0NYzE0gHc="
    said = cli("audit", "verify", "--head", str(head), "--key", other).out
    assert "and the ledger do not agree" in said
    assert "changed the store" not in said  # it may well be the file
    refused = cli("audit", "verify", "--head", str(head), "--key", other, "--json")
    assert (refused.code, refused.json["ok"]) == (2, False)
    assert "which is not known here" in refused.json["problem"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty; `commonplace audit head --json` makes a head"),
        ("no json", "line 1 is no JSON"),
        ('{"root": 1}\nx', "line 2 is no JSON"),
        ("[1]", "line 1 is no head and no entry"),
        ('{"root": 1}', "a head has exactly tenant, size, root, at, key_id, signature"),
    ],
)
def test_what_is_no_head_is_refused(cli: Any, head: Path, text: str, sentence: str) -> None:
    head.write_text(text, "utf-8")
    refused = cli("audit", "verify", "--head", str(head))
    assert refused.code == 1
    assert sentence in refused.err


def test_a_key_without_a_head_is_a_mistake(cli: Any, head: Path) -> None:
    assert "give them with --head FILE" in cli("audit", "verify", "--key", "x").err
    missing = cli("audit", "verify", "--head", str(head) + "x")
    assert (missing.code, "cannot read" in missing.err) == (1, True)


def test_proofs_are_shown(cli: Any, head: Path) -> None:
    made = cli("audit", "proof", "2", "--json").json
    assert (made["entry"], made["size"], len(made["path"])) == (2, 4, 2)
    assert made["root"] == json.loads(head.read_text("utf-8"))["root"]
    assert cli("audit", "proof", "2", "--size", "3", "--json").json["size"] == 3
    assert cli("audit", "consistency", "3", "--json").json["to_root"] == made["root"]
    assert cli("audit", "consistency", "2", "3", "--json").json["to"] == 3
    assert "path" in cli("audit", "consistency", "3").out
    assert "leaf_hash" in cli("audit", "proof", "1").out
    assert cli("audit", "head").out.startswith("tenant")
    assert cli("audit", "key").out.strip() == cli("audit", "key", "--json").json["public_key"]
    refused = cli("audit", "proof", "9")
    assert (refused.code, "size must be at least 9, not 4" in refused.err) == (1, True)


def test_an_export_names_the_first_entry_of_a_ledger_that_was_rewritten(
    cli: Any, data: Path, head: Path, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.jsonl"
    assert cli("audit", "export", str(file)).out == f"appended 4 entries to {file}\n"
    assert cli("audit", "export", str(file), "--json").json["exported"] == 0
    whole = cli("audit", "verify", "--head", str(file))
    assert (whole.code, "(5 lines)" in whole.out) == (0, True)
    text = file.read_text("utf-8")
    file.write_text(text.replace('{"n":3', '{"n":3,"at\n{"n":3', 1), "utf-8")
    assert cli("audit", "verify", "--head", str(file)).code == 0, "a line torn by a power cut is left out"
    change(data, "UPDATE audit SET hash = 'aa' WHERE n = 2")
    found = cli("audit", "verify", "--head", str(file), "--json")
    assert (found.code, found.json["first_bad"]) == (2, 2)


def test_the_status_says_what_failed(cli: Any, data: Path, head: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    (data / "commonplace.toml").write_text(f'[audit]\nexport = "{tmp_path}/file/folder"\n', "utf-8")
    assert "cannot" in cli("lifecycle", "run", "audit").out
    told = cli("status")
    assert "the ledger was not exported at" in told.out + told.err


def test_an_operation_that_there_is_not_is_refused_with_those_there_are(cli: Any, head: Path) -> None:
    refused = cli("audit", "list", "--operation", "bogus")
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert "there is no operation 'bogus'; there are remember, update, forget, " in refused.err
    none = cli("audit", "list", "--operation", "vouch")
    assert (none.code, none.err) == (0, "no entries\n")
