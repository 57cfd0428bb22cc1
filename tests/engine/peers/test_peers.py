"""Peers: whom the operator binds, as whom others read, and what they are shown."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.peers.peers import Requester, TrustContext
from commonplace.engine.peers.trust import Peer, trust_of
from commonplace.engine.peers.vouches import VouchedTrust
from commonplace.testing.subject import START, Subject
from commonplace.wire import keys
from commonplace.wire.errors import Forbidden, NotFound, ValidationError
from commonplace.wire.record import Principal

LOCAL = Principal()
PRIVATE = keys.new_private()
PUBLIC = keys.public_of(PRIVATE)
OTHER = keys.public_of(keys.new_private())


def test_as_whom_a_requester_reads() -> None:
    ada = Principal("ada", "acme", "writer", ("ada",))

    def reader(authenticated: bool) -> Principal:
        trusted = trust_of("bob", authenticated=authenticated)
        return Requester(ada, authenticated, trusted, TrustContext({}, {}), ("ada",)).reader

    assert reader(True) == ada
    assert reader(False) == Principal("mrp:bob", "acme", "reader", ("*",))


def test_bindings_are_kept_shown_replaced_and_removed(subject: Subject, run: Any) -> None:
    peers = subject.engine.peers
    run(peers.bind(LOCAL, "bob", level=2, key=PUBLIC))
    run(peers.bind(LOCAL, "alice", level=3, voucher=True))
    assert list(run(peers.bindings("local"))) == ["alice", "bob"]
    assert run(peers.bindings("acme")) == {}
    shown = run(peers.bindings("local"))["bob"].to_wire()
    assert shown == {
        "agent_id": "bob", "level": 2, "name": "vouched", "voucher": False, "public_key": PUBLIC,
        "fingerprint": keys.fingerprint(PUBLIC), "created_at": START,
    }  # fmt: skip
    run(peers.bind(LOCAL, "bob", level=1))
    assert run(peers.bindings("local"))["bob"] == Peer("bob", 1, None, False, START)
    run(peers.unbind(LOCAL, "bob"))
    with pytest.raises(NotFound, match="trust list"):
        run(peers.unbind(LOCAL, "bob"))
    operations = [entry.operation for entry in run(subject.engine.ledger.entries(LOCAL))]
    assert operations == ["add_peer", "add_peer", "add_peer", "remove_peer"]


@pytest.mark.parametrize("wrong", [
    {"level": 0}, {"level": 4}, {"key": "AAAA"}, {"key": "x" * 44}, {"agent_id": ""}, {"agent_id": " "},
    {"agent_id": "*"}, {"agent_id": "a\nb"}, {"agent_id": "x" * 257},
])  # fmt: skip
def test_a_binding_that_is_wrong_is_refused(subject: Subject, run: Any, wrong: dict[str, Any]) -> None:
    peers = subject.engine.peers
    fields = {"agent_id": "bob", "level": 2, **wrong}
    with pytest.raises(ValidationError):
        run(peers.bind(LOCAL, fields.pop("agent_id"), **fields))
    assert run(peers.bindings("local")) == {}


@pytest.mark.parametrize("who", [Principal("a", "local", "reviewer"), Principal("a", "local", "admin", ("ada",))])
def test_only_an_admin_of_all_agents_says_whom_to_trust(subject: Subject, run: Any, who: Principal) -> None:
    with pytest.raises(Forbidden):
        run(subject.engine.peers.bind(who, "bob", level=1))
    with pytest.raises(Forbidden):
        run(subject.engine.peers.unbind(who, "bob"))


def test_who_is_vouched_for_by_key_is_trusted_with_that_key() -> None:
    known = TrustContext({}, {"a": VouchedTrust(0.8, ["root"], {PUBLIC}), "b": VouchedTrust(0.8, ["root"])})
    assert known.trusted("a", PUBLIC)
    assert known.trusted("a", OTHER) is None
    assert known.trusted("b", OTHER)
    assert known.trusted("c") is None
