"""Vouches: words that carry three hops, and only their voucher's own."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from commonplace.engine.peers.trust import Peer
from commonplace.engine.peers.vouches import DECAY, DEEPEST, StoredVouch, chains
from commonplace.testing.subject import START
from commonplace.wire import keys
from commonplace.wire.times import iso

PRIVATE = keys.new_private()
PUBLIC = keys.public_of(PRIVATE)
OTHER = keys.public_of(keys.new_private())


def vouch(voucher: str, subject: str, key: str | None = None, until: int | None = None, **more: Any) -> StoredVouch:
    document: dict[str, Any] = {"voucher": {"agent_id": voucher}, "subject": {"agent_id": subject}}
    if key:
        document["subject"]["public_key"] = key
    if until is not None:
        document["scope"] = {"valid_until": iso(until)}
    return StoredVouch(document, more.get("sent_in", True))


ROOT = {"root": Peer("root", 3, voucher=True)}


def test_words_carry_three_hops_and_fade_with_each() -> None:
    names = ["root", "a", "b", "c", "d"]
    line = [vouch(*pair) for pair in itertools.pairwise(names)]
    found = chains(line, ROOT, START)
    assert {name: round(t.strength, 3) for name, t in found.items()} == {"a": 0.8, "b": 0.64, "c": 0.512}
    assert chains(list(reversed(line)), ROOT, START) == found, "in whatever order they came"
    assert (DECAY, DEEPEST) == (0.8, 3)


def test_what_does_not_count() -> None:
    assert chains([vouch("root", "root")], ROOT, START) == {}
    assert chains([vouch("x", "a")], ROOT, START) == {}
    assert chains([vouch("root", "a")], {"root": Peer("root", 3)}, START) == {}, "trusted, but no voucher"
    assert chains([vouch("root", "a", sent_in=False)], ROOT, START) == {}
    assert chains([vouch("root", "a")], {"root": Peer("root", 3, PUBLIC, voucher=True)}, START) == {}
    assert chains([vouch("root", "a", until=START)], ROOT, START) == {}
    assert chains([vouch("root", "a", until=START + 1)], ROOT, START)["a"].strength == 0.8
    expired = [vouch("root", "a", until=START), vouch("a", "b")]
    assert chains(expired, ROOT, START) == {}, "a chain is as good as its weakest link"


def test_the_best_chain_gives_the_strength_and_all_who_vouch_are_named() -> None:
    found = chains([vouch("root", "a"), vouch("root", "b"), vouch("a", "b"), vouch("b", "a")], ROOT, START)
    assert found["b"].strength == 0.8
    assert found["b"].vouchers == ["root", "a"]


def test_a_voucher_in_the_middle_signs_with_the_key_it_was_vouched_for_with() -> None:
    document: dict[str, Any] = {"voucher": {"agent_id": "a"}, "subject": {"agent_id": "b"}}
    signature = keys.sign(PRIVATE, keys.bytes_of(document))
    signed = StoredVouch({**document, "signatures": {"voucher_signature": signature}})
    assert set(chains([vouch("root", "a", PUBLIC), signed], ROOT, START)) == {"a", "b"}
    assert set(chains([vouch("root", "a", OTHER), signed], ROOT, START)) == {"a"}
    bound = {**ROOT, "a": Peer("a", 1, OTHER)}
    assert set(chains([vouch("root", "a", PUBLIC), signed], bound, START)) == {"a"}, (
        "ours to say, where we have said it"
    )


edges = st.lists(st.tuples(st.sampled_from("rabcde"), st.sampled_from("rabcde")), max_size=14)


@settings(max_examples=200, deadline=None)
@given(edges)
def test_strength_is_by_the_shortest_way_from_a_voucher(pairs: list[tuple[str, str]]) -> None:
    found = chains([vouch(*pair) for pair in pairs], {"r": Peer("r", 3, voucher=True)}, START)
    distance = {"r": 0}
    for hops in range(1, DEEPEST + 1):
        for giver, taker in pairs:
            if giver != taker and distance.get(giver) == hops - 1:
                distance.setdefault(taker, hops)
    for name, hops in distance.items():
        if hops:
            assert found[name].strength == pytest.approx(DECAY**hops)
    assert set(found) - {"r"} == set(distance) - {"r"}
