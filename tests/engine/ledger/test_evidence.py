"""The tamper test: whatever is done to a ledger, what was signed or exported before tells, and names the first entry.

The attacker has the store and knows how we hash: they leave a chain without a fault wherever they can.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from tampering import rewrite_ledger

from commonplace.engine.ledger import audit, merkle
from commonplace.engine.ledger.tree_heads import TreeHead
from commonplace.stores.base import AuditEntry
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire import keys
from commonplace.wire.errors import ValidationError

Entries = list[AuditEntry]


def live_a_little(subject: Subject, run: Any) -> None:
    ids = [run(subject.remember(f"fact {n}")) for n in range(6)]
    run(subject.update(ids[0], content="changed"))
    run(subject.recall("fact"))
    run(subject.engine.flush())
    run(subject.merge(ids[0], ids[1]))
    run(subject.forget(ids[2], hard_delete=True))


@pytest.fixture
def pair() -> Any:
    clock = FakeClock()
    with open_subject(InMemory(clock), clock) as (subject, run):
        live_a_little(subject, run)
        yield subject, run


def rewrite(subject: Subject, entries: Entries) -> None:
    """Behind the engine's back."""
    rewrite_ledger(subject.store, "local", entries)


def rechain(entries: Entries) -> Entries:
    """Every number, hash and link as if it had always been so."""
    done: Entries = []
    for n, entry in enumerate(entries, 1):
        before = done[-1].hash if done else ""
        hashed = replace(entry, n=n, previous=before, payload_hash=audit._payload_hash(entry.parts))
        hashed.hash = audit._header_hash(hashed)
        done.append(hashed)
    return done


def flip(entries: Entries, place: int) -> Entries:
    entries[place].principal = "nobody"
    return entries


def delete(entries: Entries, place: int) -> Entries:
    return entries[:place] + entries[place + 1 :]


def swap(entries: Entries, place: int) -> Entries:
    entries[place], entries[place + 1] = entries[place + 1], entries[place]
    return entries


def truncate(entries: Entries, place: int) -> Entries:
    return entries[:place]


def insert(entries: Entries, place: int) -> Entries:
    return [*entries[:place], replace(entries[place], operation="made up"), *entries[place:]]


def payload(entries: Entries, place: int) -> Entries:
    entries[place].parts = [audit.part(None, {"reason": "made up"})]
    return entries


ATTACKS = [flip, delete, swap, truncate, insert, payload]
PLACES = 10


def places(attack: Callable[..., Any]) -> range:
    return range(PLACES - 1) if attack is swap else range(PLACES)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("hides", [False, True], ids=["plainly", "with every hash made anew"])
def test_every_attack_on_every_entry_is_found_and_the_first_bad_one_named(
    pair: Any, attack: Callable[[Entries, int], Entries], hides: bool
) -> None:
    subject, run = pair
    ledger = subject.engine.ledger
    original = run(ledger.entries(WHO, limit=1000))
    assert len(original) == PLACES
    export = [audit.header(entry) for entry in original]
    head = run(ledger.heads.head(WHO))
    assert run(ledger.verify(WHO, evidence=[*export, head])).problem is None
    for place in places(attack):
        tampered = attack(deepcopy(original), place)
        rewrite(subject, rechain(tampered) if hides else tampered)
        by_head = run(ledger.verify(WHO, evidence=[head]))
        assert by_head.problem is not None, (attack, place)
        by_export = run(ledger.verify(WHO, evidence=[*export, head]))
        # Where an entry is gone and the numbers were left as they were, the first that is wrong has the next number.
        shifted = not hides and (attack in (delete, swap) and place < PLACES - 1)
        assert by_export.first_bad == place + 1 + shifted, (attack, place, by_export.problem)


def test_a_head_of_yesterday_exposes_a_ledger_rewritten_today(pair: Any) -> None:
    subject, run = pair
    heads = subject.engine.ledger.heads
    yesterday = run(heads.head(WHO))
    key = heads.key(WHO)["public_key"]
    subject.clock.advance(86_400_000)
    entries = run(subject.engine.ledger.entries(WHO, limit=1000))
    rewrite(subject, rechain(flip(deepcopy(entries), 3)))
    today = run(heads.head(WHO))  # of the rewritten ledger, by its own key: they have the whole machine
    assert run(subject.engine.ledger.verify(WHO)).problem is None, "by itself it is without a fault"
    assert run(subject.engine.ledger.verify(WHO, evidence=[today])).problem is None
    for evidence in ([yesterday], [yesterday, today], [today, yesterday]):
        found = run(subject.engine.ledger.verify(WHO, evidence=evidence, key=key))
        assert "among entries 1 to 10 some are not what was signed at 2025-06-15" in str(found.problem)
    old, new = bytes.fromhex(yesterday["root"]), bytes.fromhex(today["root"])
    for path in ([], run(heads.consistency(WHO, 10, 10))["path"]):
        assert not merkle.is_consistent(10, 10, old, new, [bytes.fromhex(node) for node in path])


def test_two_heads_tell_between_which_entries_it_happened(pair: Any) -> None:
    subject, run = pair
    heads, ledger = subject.engine.ledger.heads, subject.engine.ledger
    entries = run(ledger.entries(WHO, limit=1000))
    rewrite(subject, entries[:6])
    first = run(heads.head(WHO))
    rewrite(subject, entries)
    second = run(heads.head(WHO))
    rewrite(subject, rechain(flip(deepcopy(entries), 7)))
    found = run(ledger.verify(WHO, evidence=[second, first]))
    assert str(found.problem).startswith("among entries 7 to 10 some are not what was signed")
    assert found.first_bad is None
    rewrite(subject, entries[:7])
    third = run(heads.head(WHO))
    rewrite(subject, rechain(flip(deepcopy(entries), 6)))
    assert run(ledger.verify(WHO, evidence=[third, first])).first_bad == 7


def test_what_was_cut_off_is_said(pair: Any) -> None:
    subject, run = pair
    head = run(subject.engine.ledger.heads.head(WHO))
    rewrite(subject, run(subject.engine.ledger.entries(WHO, limit=8)))
    found = run(subject.engine.ledger.verify(WHO, evidence=[head]))
    cut_off = "there were 10 entries when this was signed or exported, and there are 8: the ledger was cut off"
    assert (found.first_bad, found.problem) == (9, cut_off)


def test_another_key_proves_nothing(pair: Any) -> None:
    """They rewrote the ledger, made a key of their own and signed: whoever asks for ours is not taken in."""
    subject, run = pair
    heads, ledger = subject.engine.ledger.heads, subject.engine.ledger
    ours = heads.key(WHO)["public_key"]
    rewrite(subject, rechain(flip(run(ledger.entries(WHO, limit=1000)), 0)))
    theirs = keys.new_private()
    true = run(heads.head(WHO))
    forged = TreeHead("local", 10, true["root"], true["at"], keys.fingerprint(keys.public_of(theirs))).signed(theirs)
    assert "which is not known here" in str(run(ledger.verify(WHO, evidence=[forged], key=ours)).problem)
    assert "which is not known here" in str(run(ledger.verify(WHO, evidence=[forged])).problem)
    pretended = TreeHead("local", 10, true["root"], true["at"], true["key_id"]).signed(theirs)
    found = run(ledger.verify(WHO, evidence=[pretended], key=ours))
    assert "was changed after it was signed: its signature does not fit" in str(found.problem)


@pytest.mark.parametrize("name", ["tenant", "size", "root", "at", "key_id", "signature"])
def test_any_changed_field_of_a_head_is_found(pair: Any, name: str) -> None:
    subject, run = pair
    head = run(subject.engine.ledger.heads.head(WHO))
    value = head[name]
    head[name] = value - 1 if isinstance(value, int) else ("B" if value[0] != "B" else "C") + value[1:]
    if name == "tenant":
        with pytest.raises(ValidationError, match="this head is of the tenant 'Bocal'"):
            run(subject.engine.ledger.verify(WHO, evidence=[head]))
    else:
        assert run(subject.engine.ledger.verify(WHO, evidence=[head])).problem is not None


def test_a_changed_line_of_an_export_is_told_apart_from_a_changed_ledger(pair: Any) -> None:
    subject, run = pair
    export = [audit.header(entry) for entry in run(subject.engine.ledger.entries(WHO))]
    export[4]["principal"] = "nobody"
    found = run(subject.engine.ledger.verify(WHO, evidence=export))
    assert (found.problem, found.first_bad) == ("entry 5 of the export was changed", None)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({}, "it has neither a root nor an n"),
        ({"root": "00"}, "a head has exactly tenant, size, root, at, key_id, signature"),
        ({"n": 1}, "its at is missing or wrong"),
        ({"n": "1"}, "its n is missing or wrong"),
    ],
)
def test_what_is_no_evidence_is_refused(pair: Any, document: dict[str, Any], sentence: str) -> None:
    subject, run = pair
    with pytest.raises(ValidationError, match=sentence):
        run(subject.engine.ledger.verify(WHO, evidence=[document]))
