"""Signed heads and proofs over a real ledger, against an implementation of the RFC that shares nothing with ours."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import naive_tree as naive
import pytest
import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from commonplace.engine.core import Settings
from commonplace.engine.engine import Engine
from commonplace.engine.ledger import merkle
from commonplace.engine.types import Draft
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import Forbidden, Unavailable, ValidationError
from commonplace.wire.record import Principal


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merkle, "BLOCK", 4)


def data_of(subject: Subject, run: Any, tenant: str = "local") -> list[bytes]:
    return [bytes.fromhex(entry.hash) for entry in run(subject.store.audit(tenant, limit=1000))]


def hexed(nodes: list[bytes]) -> list[str]:
    return [node.hex() for node in nodes]


def signed_by(head: dict[str, Any], public: str) -> bool:
    """As anyone would check it who has read nothing but the description."""
    rest = {name: value for name, value in head.items() if name != "signature"}
    try:
        Ed25519PublicKey.from_public_bytes(base64.b64decode(public)).verify(
            base64.b64decode(head["signature"]), rfc8785.dumps(rest)
        )
    except InvalidSignature:
        return False
    return True


def test_a_head_is_signed_and_grows_with_the_ledger(subject: Subject, run: Any) -> None:
    heads = subject.engine.ledger.heads
    key = heads.key(WHO)
    for count in range(11):
        head = run(heads.head(WHO))
        assert set(head) == {"tenant", "size", "root", "at", "key_id", "signature"}
        assert (head["tenant"], head["size"], head["at"]) == ("local", count, subject.clock())
        assert head["root"] == naive.mth(data_of(subject, run)).hex()
        assert head["key_id"] == key["key_id"]
        assert signed_by(head, key["public_key"])
        assert not signed_by({**head, "size": count + 1}, key["public_key"])
        subject.clock.advance(10)
        run(subject.remember(f"fact {count}"))


def test_every_proof_of_a_ledger(subject: Subject, run: Any) -> None:
    for n in range(13):
        run(subject.remember(f"fact {n}"))
    data, heads = data_of(subject, run), subject.engine.ledger.heads
    for size in range(1, 14):
        for entry in range(1, size + 1):
            found = run(heads.proof(WHO, entry, size))
            assert found == {
                "entry": entry,
                "size": size,
                "leaf_hash": naive.mth([data[entry - 1]]).hex(),
                "path": hexed(naive.path(entry - 1, data[:size])),
                "root": naive.mth(data[:size]).hex(),
            }
        for first in range(1, size + 1):
            found = run(heads.consistency(WHO, first, size))
            assert found["path"] == hexed(naive.proof(first, data[:size]))
            assert (found["from"], found["to"]) == (first, size)
            roots = [naive.mth(data[:first]).hex(), naive.mth(data[:size]).hex()]
            assert [found["from_root"], found["to_root"]] == roots
    assert run(heads.proof(WHO, 5)) == run(heads.proof(WHO, 5, 13))
    assert run(heads.consistency(WHO, 5)) == run(heads.consistency(WHO, 5, 13))


def test_erasing_changes_no_head(subject: Subject, run: Any) -> None:
    ids = [run(subject.remember(f"fact {n}")) for n in range(6)]
    before = run(subject.engine.ledger.heads.head(WHO))
    run(subject.forget(ids[1], hard_delete=True))
    run(subject.forget(ids[4], hard_delete=True))
    data = data_of(subject, run)
    assert naive.mth(data[: before["size"]]).hex() == before["root"]
    after = run(subject.engine.ledger.heads.head(WHO))
    assert (after["size"], after["root"]) == (8, naive.mth(data).hex())
    assert run(subject.engine.ledger.verify(WHO, evidence=[before, after])).problem is None


def test_each_tenant_has_heads_of_its_own(subject: Subject, run: Any) -> None:
    other = Principal("eve", "acme")
    for who in (WHO, other, other):
        run(subject.engine.remember(who, Draft("agent", "semantic", "x")))
    heads = [run(subject.engine.ledger.heads.head(who)) for who in (WHO, other)]
    assert [(head["tenant"], head["size"]) for head in heads] == [("local", 1), ("acme", 2)]
    with pytest.raises(ValidationError, match="this head is of the tenant 'acme', not of 'local'"):
        run(subject.engine.ledger.verify(WHO, evidence=[heads[1]]))


def test_heads_are_for_reviewers_and_the_key_for_everyone(subject: Subject, run: Any) -> None:
    heads = subject.engine.ledger.heads
    writer = Principal("w", role="writer")
    for work in (heads.head(writer), heads.proof(writer, 1), heads.consistency(writer, 0)):
        with pytest.raises(Forbidden):
            run(work)
    assert heads.key(Principal("r", role="reader"))["algorithm"] == "ed25519"


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda heads: heads.proof(WHO, 0), "entry must be at least 1, not 0"),
        (lambda heads: heads.consistency(WHO, -1), "from must be at least 0, not -1"),
        (lambda heads: heads.proof(WHO, 3), "size must be at least 3, not 2"),
        (lambda heads: heads.proof(WHO, 1, 3), "size must be at most 2: the ledger has no more entries"),
        (lambda heads: heads.consistency(WHO, 2, 1), "to must be at least 2, not 1"),
        (lambda heads: heads.consistency(WHO, 1, 9), "to must be at most 2: the ledger has no more entries"),
    ],
)
def test_what_is_not_in_the_ledger_has_no_proof(subject: Subject, run: Any, ask: Any, sentence: str) -> None:
    run(subject.remember("a"))
    run(subject.remember("b"))
    with pytest.raises(ValidationError, match=sentence):
        run(ask(subject.engine.ledger.heads))


def test_a_ledger_with_a_gap_is_not_signed(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(9):
        run(subject.remember(f"fact {n}"))
    plain = subject.store.audit_hashes

    async def without_one(tenant: str, *, after: int = 0, limit: int = 1000) -> list[str]:
        found = await plain(tenant, after=0)
        del found[5]
        return found[after : after + limit]

    monkeypatch.setattr(subject.store, "audit_hashes", without_one)
    with pytest.raises(Unavailable, match="`commonplace audit verify` says which"):
        run(subject.engine.ledger.heads.head(WHO))


def test_what_is_remembered_of_a_tree_goes_when_the_store_was_restored(tmp_path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(tmp_path / "a.db", clock), clock) as (subject, run):
        for n in range(9):
            run(subject.remember(f"fact {n}"))
        run(subject.engine.ledger.heads.head(WHO))
        first, other = subject.store, SqliteStore(tmp_path / "b.db", clock)
        subject.engine._core.primary, subject.store = other, other
        for n in range(9):
            run(subject.remember(f"another {n}"))
        assert run(subject.engine.ledger.heads.head(WHO))["root"] == naive.mth(data_of(subject, run)).hex()
        run(first.close())


def test_many_ask_for_heads_at_once_while_others_write(subject: Subject, run: Any) -> None:
    async def all_at_once() -> list[Any]:
        asked = [subject.engine.ledger.heads.head(WHO) for _ in range(10)]
        return await asyncio.gather(*asked, *(subject.remember(f"fact {n}") for n in range(30)), *[
            subject.engine.ledger.heads.head(WHO) for _ in range(10)
        ])  # fmt: skip

    found = [each for each in run(all_at_once()) if isinstance(each, dict)]
    data = data_of(subject, run)
    assert all(head["root"] == naive.mth(data[: head["size"]]).hex() for head in found)


def test_a_rotated_key_signs_what_follows_and_the_old_one_is_still_known(tmp_path: Path, clock: FakeClock) -> None:
    async def scenario() -> None:
        store = SqliteStore(tmp_path / "commonplace.db", clock)
        engine = await Engine.open(store, clock=clock, settings=Settings(folder=tmp_path))
        await engine.remember(WHO, Draft("agent", "semantic", "x"))
        before = await engine.ledger.heads.head(WHO)
        await engine.peers.rotate_identity(WHO)
        after = await engine.ledger.heads.head(WHO)
        key = engine.ledger.heads.key(WHO)
        assert (key["key_id"], [old["key_id"] for old in key["retired"]]) == (after["key_id"], [before["key_id"]])
        assert signed_by(before, key["retired"][0]["public_key"])
        assert (await engine.ledger.verify(WHO, evidence=[before, after])).problem is None
        only_new = await engine.ledger.verify(WHO, evidence=[before], key=key["public_key"])
        assert "which is not known here" in str(only_new.problem)
        await engine.close()

    asyncio.run(scenario())
