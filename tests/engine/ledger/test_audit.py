"""The audit chain: whatever is touched is named, and erasing is not touching."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

import commonplace.engine
from commonplace.dialects.memorywire.records import entry_to_wire
from commonplace.engine import AUDIT_OPERATIONS
from commonplace.engine.governance.staging import Operation
from commonplace.engine.ledger import audit
from commonplace.stores.base import AuditEntry
from commonplace.stores.memory import InMemory
from commonplace.testing import FakeClock
from commonplace.testing.subject import WHO, open_subject


def chain() -> list[AuditEntry]:
    clock = FakeClock()
    with open_subject(InMemory(clock), clock) as (subject, run):
        ids = [run(subject.remember(f"fact {i}")) for i in range(4)]
        run(subject.update(ids[0], content="changed"))
        run(subject.recall("fact"))
        run(subject.merge(ids[0], ids[1]))
        run(subject.forget(ids[2], reason="no longer true"))
        return run(subject.engine.ledger.entries(WHO, limit=1000))


ENTRIES = chain()


def first_bad(entries: list[AuditEntry]) -> int | None:
    verifier = audit.Verifier()
    verifier.feed(entries)
    return verifier.first_bad


def altered(value: Any) -> Any:
    match value:
        case int():
            return value + 1
        case str():
            return ("1" if value[:1] != "1" else "2") + value[1:]
        case bytes():
            return bytes([value[0] ^ 1]) + value[1:]
        case None:
            return "something"
    raise AssertionError(value)


def test_an_untouched_chain_verifies() -> None:
    assert len(ENTRIES) == 8
    assert first_bad(ENTRIES) is None


@pytest.mark.parametrize("place", range(len(ENTRIES)))
@pytest.mark.parametrize("name", [f.name for f in fields(AuditEntry) if f.name != "parts"])
def test_any_changed_field_is_named(place: int, name: str) -> None:
    entries = deepcopy(ENTRIES)
    setattr(entries[place], name, altered(getattr(entries[place], name)))
    found = first_bad(entries)
    assert found == (entries[place].n if name == "n" else place + 1)


@pytest.mark.parametrize("place", range(len(ENTRIES)))
@pytest.mark.parametrize("name", ["memory_id", "payload", "salt", "hash"])
def test_any_changed_payload_is_named(place: int, name: str) -> None:
    for i in range(len(ENTRIES[place].parts)):
        entries = deepcopy(ENTRIES)
        part = entries[place].parts[i]
        setattr(part, name, altered(getattr(part, name)))
        assert first_bad(entries) == place + 1, (i, name)


def test_every_single_byte_of_a_payload_counts() -> None:
    payload = ENTRIES[0].parts[0].payload
    assert payload is not None
    for i in range(len(payload)):
        entries = deepcopy(ENTRIES)
        entries[0].parts[0].payload = payload[:i] + bytes([payload[i] ^ 1]) + payload[i + 1 :]
        assert first_bad(entries) == 1


def test_removed_added_and_swapped_entries_and_parts_are_named() -> None:
    for place in range(len(ENTRIES) - 1):
        assert first_bad(ENTRIES[:place] + ENTRIES[place + 1 :]) == place + 2  # the one after the gap
        swapped = [*ENTRIES[:place], ENTRIES[place + 1], ENTRIES[place], *ENTRIES[place + 2 :]]
        assert first_bad(swapped) == place + 2
    entries = deepcopy(ENTRIES)
    entries[6].parts.pop()
    assert first_bad(entries) == 7
    entries = deepcopy(ENTRIES)
    entries[6].parts.append(entries[0].parts[0])
    assert first_bad(entries) == 7
    assert first_bad([ENTRIES[0], *ENTRIES]) == 1


@pytest.mark.parametrize("place", range(len(ENTRIES) - 1))
def test_an_entry_that_was_forged_with_its_hashes_is_found_by_the_next(place: int) -> None:
    """Whoever can write the file can also hash; but every later entry would have to change, too."""
    entries = deepcopy(ENTRIES)
    forged = entries[place]
    forged.principal = "nobody"
    forged.parts = [audit.part(None, {"reason": "made up"})]
    forged.payload_hash = audit._payload_hash(forged.parts)
    forged.hash = audit._header_hash(forged)
    verifier = audit.Verifier()
    verifier.feed(entries)
    assert (verifier.first_bad, verifier.problem) == (place + 2, "it does not follow from the entry before it")


def test_erased_payloads_still_verify() -> None:
    entries = deepcopy(ENTRIES)
    for entry in entries:
        for part in entry.parts:
            part.memory_id = part.payload = part.salt = None
    assert first_bad(entries) is None
    assert entry_to_wire(entries[0])["payload"] == [{"erased": True}]


def test_a_part_hides_what_it_says_behind_a_salt() -> None:
    one, other = (audit.part("m", {"status": "live"}) for _ in range(2))
    assert one.payload == other.payload == b'{"status":"live"}'
    assert one.hash != other.hash
    assert audit.part(None, {}).memory_id is None


def test_an_entry_is_chained_to_the_one_before() -> None:
    assert [entry.n for entry in ENTRIES] == list(range(1, len(ENTRIES) + 1))
    assert ENTRIES[0].previous == ""
    assert all(after.previous == before.hash for before, after in pairwise(ENTRIES))
    assert {entry.principal for entry in ENTRIES} == {WHO.name}


def test_a_walk_may_be_fed_in_pieces_and_stops_at_the_first_bad_entry() -> None:
    verifier = audit.Verifier()
    for entry in ENTRIES:
        verifier.feed([entry])
    assert (verifier.entries, verifier.head, verifier.problem) == (len(ENTRIES), ENTRIES[-1].hash, None)
    entries = deepcopy(ENTRIES)
    entries[2].principal = "nobody"
    entries[4].principal = "nobody"
    bad = audit.Verifier()
    bad.feed(entries[:5])
    bad.feed(entries[5:])
    assert (bad.first_bad, bad.entries, bad.problem) == (3, 2, "its header was changed")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda entries: entries.pop(1), "entry 2 is missing"),
        (lambda entries: setattr(entries[1], "previous", "x"), "it does not follow from the entry before it"),
        (lambda entries: setattr(entries[1], "hash", "x"), "its header was changed"),
        (lambda entries: entries[1].parts.clear(), "its payloads were changed, removed or added"),
        (lambda entries: setattr(entries[1].parts[0], "payload", b"{}"), "a payload was changed"),
    ],
)
def test_what_is_wrong_is_said(change: Any, problem: str) -> None:
    entries = deepcopy(ENTRIES)
    change(entries)
    verifier = audit.Verifier()
    verifier.feed(entries)
    assert verifier.problem == problem


def _written_operations() -> Iterator[tuple[str, str]]:
    """Each operation that the source writes into the ledger, with the file."""
    places = {
        "append": 2,
        "write": 3,
        "_keep": 3,
        "_change": 2,
        "_append_audit": 1,
    }  # which argument of these calls it is
    constants = {"ASSERT", "RETRACT", "ERASE", "IMPORT", "REPAIR"}
    for path in Path(commonplace.engine.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                given = node.args[places[name]] if name in places and len(node.args) > places[name] else None
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    yield given.value, path.name
            elif isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Tuple | ast.Name):
                names = [t.id for t in getattr(target, "elts", [target]) if isinstance(t, ast.Name)]
                values = getattr(node.value, "elts", [node.value])
                yield from (
                    (value.value, path.name)
                    for name, value in zip(names, values, strict=False)
                    if name in constants and isinstance(value, ast.Constant)
                )


def test_every_operation_that_is_written_is_among_those_that_are_named() -> None:
    written = dict(_written_operations())
    assert written.keys() >= {"remember", "rotate_token", "create_palace", "graph_erase", "import", "mend_time"}
    assert {name: file for name, file in written.items() if name not in AUDIT_OPERATIONS} == {}
    staged = {f"stage_{operation}" for operation in get_args(Operation)}
    assert {*AUDIT_OPERATIONS} == {*written, *staged, "approve", "reject"}
