"""Trust: levels as a table, bindings as the operator keeps them, and vouches that carry three hops."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from commonplace.engine.peers import trust
from commonplace.engine.peers.peers import Requester, TrustContext
from commonplace.engine.peers.trust import Peer, author_level, trust_of, visible
from commonplace.engine.peers.vouches import DECAY, DEEPEST, StoredVouch, VouchedTrust, chains
from commonplace.testing.subject import START, Subject
from commonplace.wire import keys
from commonplace.wire.errors import Forbidden, NotFound, ValidationError
from commonplace.wire.filters import matches
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import iso

Over = tuple[Subject, Callable[[Any], Any]]
LOCAL = Principal()
PRIVATE = keys.new_private()
PUBLIC = keys.public_of(PRIVATE)
OTHER = keys.public_of(keys.new_private())


@pytest.mark.parametrize(("given", "level", "named", "known"), [
    ({}, 0, True, False),
    ({"proved": OTHER}, 1, True, False),
    ({"identified": True}, 1, True, True),
    ({"vouched": True}, 0, True, False),
    ({"proved": OTHER, "vouched": True}, 2, True, False),
    ({"peer": Peer("bob", 3)}, 0, True, False),
    ({"peer": Peer("bob", 3), "proved": OTHER}, 1, True, False),
    ({"peer": Peer("bob", 1, PUBLIC)}, 0, False, False),
    ({"peer": Peer("bob", 3, PUBLIC), "proved": OTHER, "vouched": True}, 0, False, False),
    ({"peer": Peer("bob", 1, PUBLIC), "proved": PUBLIC}, 1, True, True),
    ({"peer": Peer("bob", 2, PUBLIC), "proved": PUBLIC}, 2, True, True),
    ({"peer": Peer("bob", 3, PUBLIC), "proved": PUBLIC}, 3, True, True),
    ({"peer": Peer("bob", 1, PUBLIC), "proved": PUBLIC, "vouched": True}, 2, True, True),
    ({"peer": Peer("bob", 3, PUBLIC), "identified": True}, 3, True, True),
    ({"authenticated": True}, 3, True, True),
    ({"authenticated": True, "peer": Peer("bob", 1, PUBLIC)}, 3, True, True),
])  # fmt: skip
def test_levels(given: dict[str, Any], level: int, named: bool, known: bool) -> None:
    found = trust_of("bob", **given)
    assert (found.level, found.named, found.known) == (level, named, known)
    assert found.sees == ("all" if given.get("authenticated") else "shared")


def test_what_each_level_may_see() -> None:
    assert set(trust.SEES.values()) == {"shared"}, "a key says who someone is; a token, what is theirs"
    shared = [None, [], ["*"], ["bob"], ["carol"], ["carol", "bob"], ["Bob"], ["*bob"]]
    memories = [
        Memory(str(n), "t", "a", "semantic", "x", privacy={} if names is None else {"share_with": names})
        for n, names in enumerate(shared)
    ]

    def seen(**given: Any) -> list[Any]:
        return [shared[int(m.id)] for m in memories if matches(m, visible(trust_of("bob", **given)))]

    for proof in ({}, {"proved": OTHER}, {"peer": Peer("bob", 3, PUBLIC), "proved": PUBLIC}):
        assert seen(**proof) == [["*"], ["bob"], ["carol", "bob"]]
    assert seen(peer=Peer("bob", 3, PUBLIC)) == [["*"]], "not proved to be bob"
    assert seen(authenticated=True) == shared


def test_as_whom_a_requester_reads() -> None:
    ada = Principal("ada", "acme", "writer", ("ada",))

    def reader(authenticated: bool) -> Principal:
        trusted = trust_of("bob", authenticated=authenticated)
        return Requester(ada, authenticated, trusted, TrustContext({}, {}), ("ada",)).reader

    assert reader(True) == ada
    assert reader(False) == Principal("mrp:bob", "acme", "reader", ("*",))


@pytest.mark.parametrize(("given", "level"), [
    ({"own": True}, 3),
    ({}, 0),
    ({"signed": True}, 1),
    ({"vouched": True}, 0),
    ({"signed": True, "vouched": True}, 2),
    ({"peer": Peer("b", 2)}, 2),
    ({"peer": Peer("b", 3, PUBLIC)}, 0),
    ({"peer": Peer("b", 3, PUBLIC), "signed": True, "vouched": True}, 0),
    ({"peer": Peer("b", 3, PUBLIC), "by_bound_key": True}, 3),
    ({"peer": Peer("b", 1, PUBLIC), "by_bound_key": True, "vouched": True}, 2),
])  # fmt: skip
def test_how_far_an_author_is_trusted(given: dict[str, Any], level: int) -> None:
    blank = {"own": False, "peer": None, "signed": False, "by_bound_key": False, "vouched": False}
    assert author_level(**{**blank, **given}) == level


# bindings


def test_bindings_are_kept_shown_replaced_and_removed(over: Over) -> None:
    subject, run = over
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
def test_a_binding_that_is_wrong_is_refused(over: Over, wrong: dict[str, Any]) -> None:
    subject, run = over
    peers = subject.engine.peers
    fields = {"agent_id": "bob", "level": 2, **wrong}
    with pytest.raises(ValidationError):
        run(peers.bind(LOCAL, fields.pop("agent_id"), **fields))
    assert run(peers.bindings("local")) == {}


@pytest.mark.parametrize("who", [Principal("a", "local", "reviewer"), Principal("a", "local", "admin", ("ada",))])
def test_only_an_admin_of_all_agents_says_whom_to_trust(over: Over, who: Principal) -> None:
    subject, run = over
    with pytest.raises(Forbidden):
        run(subject.engine.peers.bind(who, "bob", level=1))
    with pytest.raises(Forbidden):
        run(subject.engine.peers.unbind(who, "bob"))


# vouches


def word(voucher: str, subject: str, key: str | None = None, until: int | None = None, **more: Any) -> StoredVouch:
    document: dict[str, Any] = {"voucher": {"agent_id": voucher}, "subject": {"agent_id": subject}}
    if key:
        document["subject"]["public_key"] = key
    if until is not None:
        document["scope"] = {"valid_until": iso(until)}
    return StoredVouch(document, more.get("sent_in", True))


ROOT = {"root": Peer("root", 3, voucher=True)}


def test_words_carry_three_hops_and_fade_with_each() -> None:
    names = ["root", "a", "b", "c", "d"]
    line = [word(*pair) for pair in itertools.pairwise(names)]
    found = chains(line, ROOT, START)
    assert {name: round(t.strength, 3) for name, t in found.items()} == {"a": 0.8, "b": 0.64, "c": 0.512}
    assert chains(list(reversed(line)), ROOT, START) == found, "in whatever order they came"
    assert (DECAY, DEEPEST) == (0.8, 3)


def test_what_does_not_count() -> None:
    assert chains([word("root", "root")], ROOT, START) == {}
    assert chains([word("x", "a")], ROOT, START) == {}
    assert chains([word("root", "a")], {"root": Peer("root", 3)}, START) == {}, "trusted, but no voucher"
    assert chains([word("root", "a", sent_in=False)], ROOT, START) == {}
    assert chains([word("root", "a")], {"root": Peer("root", 3, PUBLIC, voucher=True)}, START) == {}
    assert chains([word("root", "a", until=START)], ROOT, START) == {}
    assert chains([word("root", "a", until=START + 1)], ROOT, START)["a"].strength == 0.8
    expired = [word("root", "a", until=START), word("a", "b")]
    assert chains(expired, ROOT, START) == {}, "a chain is as good as its weakest link"


def test_the_best_chain_gives_the_strength_and_all_who_vouch_are_named() -> None:
    found = chains([word("root", "a"), word("root", "b"), word("a", "b"), word("b", "a")], ROOT, START)
    assert found["b"].strength == 0.8
    assert found["b"].vouchers == ["root", "a"]


def test_a_voucher_in_the_middle_signs_with_the_key_it_was_vouched_for_with() -> None:
    document: dict[str, Any] = {"voucher": {"agent_id": "a"}, "subject": {"agent_id": "b"}}
    signature = keys.sign(PRIVATE, keys.bytes_of(document))
    signed = StoredVouch({**document, "signatures": {"voucher_signature": signature}})
    assert set(chains([word("root", "a", PUBLIC), signed], ROOT, START)) == {"a", "b"}
    assert set(chains([word("root", "a", OTHER), signed], ROOT, START)) == {"a"}
    bound = {**ROOT, "a": Peer("a", 1, OTHER)}
    assert set(chains([word("root", "a", PUBLIC), signed], bound, START)) == {"a"}, "ours to say, where we have said it"


def test_who_is_vouched_for_by_key_is_trusted_with_that_key() -> None:
    known = TrustContext({}, {"a": VouchedTrust(0.8, ["root"], {PUBLIC}), "b": VouchedTrust(0.8, ["root"])})
    assert known.trusted("a", PUBLIC)
    assert known.trusted("a", OTHER) is None
    assert known.trusted("b", OTHER)
    assert known.trusted("c") is None


edges = st.lists(st.tuples(st.sampled_from("rabcde"), st.sampled_from("rabcde")), max_size=14)


@settings(max_examples=200, deadline=None)
@given(edges)
def test_strength_is_by_the_shortest_way_from_a_voucher(pairs: list[tuple[str, str]]) -> None:
    found = chains([word(*pair) for pair in pairs], {"r": Peer("r", 3, voucher=True)}, START)
    distance = {"r": 0}
    for hops in range(1, DEEPEST + 1):
        for giver, taker in pairs:
            if giver != taker and distance.get(giver) == hops - 1:
                distance.setdefault(taker, hops)
    for name, hops in distance.items():
        if hops:
            assert found[name].strength == pytest.approx(DECAY**hops)
    assert set(found) - {"r"} == set(distance) - {"r"}
