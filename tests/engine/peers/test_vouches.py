"""Vouches: words that carry three hops, and only their voucher's own."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from commonplace.engine.peers.trust import Peer
from commonplace.engine.peers.vouches import AHEAD_MS, DECAY, DEEPEST, StoredVouch, Vouched, chains, check, counts
from commonplace.testing.subject import START
from commonplace.wire import keys
from commonplace.wire.canonical import sha256_hex
from commonplace.wire.errors import ValidationError
from commonplace.wire.times import iso

# Workers must collect the same tests, and keys are among their names.
PRIVATE = keys.encode(bytes(range(32)))
PUBLIC = keys.public_of(PRIVATE)
OTHER = keys.public_of(keys.encode(bytes(32)))


def vouch(voucher: str, subject: str, key: str | None = None, until: int | None = None, **more: Any) -> StoredVouch:
    made = {"created_at": iso(more.get("at", START))}
    document: dict[str, Any] = {**made, "voucher": {"agent_id": voucher}, "subject": {"agent_id": subject}}
    if key:
        document["subject"]["public_key"] = key
    if until is not None:
        document["scope"] = {"valid_until": iso(until)}
    return StoredVouch(document, more.get("sent_in", True))


ROOT = {"root": Peer("root", 3, voucher=True)}


#: Everyone has a key: hops past the first are signed with the key that was vouched for.
SECRET = {name: keys.encode(bytes([n] * 32)) for n, name in enumerate(["root", *"rabcde"], 1)}
KEY = {name: keys.public_of(private) for name, private in SECRET.items()}


def word(voucher: str, subject: str, key: str | None = None, **more: Any) -> StoredVouch:
    """Signed by the voucher, for the subject's key."""
    document = vouch(voucher, subject, key or KEY[subject], **more).document
    return StoredVouch(signed(document, SECRET[voucher]))


def strengths(found: Vouched) -> dict[str, float]:
    return {name: round(max(t.strength for t in by_key.values()), 3) for name, by_key in found.items()}


def test_words_carry_three_hops_and_fade_with_each() -> None:
    names = ["root", "a", "b", "c", "d"]
    line = [word(*pair) for pair in itertools.pairwise(names)]
    bound = {"root": Peer("root", 3, KEY["root"], voucher=True)}
    found = chains(line, bound, START)
    assert strengths(found) == {"a": 0.8, "b": 0.64, "c": 0.512}
    assert chains(list(reversed(line)), bound, START) == found, "in whatever order they came"
    assert (DECAY, DEEPEST) == (0.8, 3)


def test_what_does_not_count() -> None:
    assert chains([vouch("root", "root")], ROOT, START) == {}
    assert chains([vouch("x", "a")], ROOT, START) == {}
    assert chains([vouch("root", "a")], {"root": Peer("root", 3)}, START) == {}, "trusted, but no voucher"
    assert chains([vouch("root", "a", sent_in=False)], ROOT, START) == {}
    assert chains([vouch("root", "a")], {"root": Peer("root", 3, PUBLIC, voucher=True)}, START) == {}
    assert chains([vouch("root", "a", until=START)], ROOT, START) == {}
    assert strengths(chains([vouch("root", "a", until=START + 1)], ROOT, START)) == {"a": 0.8}
    expired = [vouch("root", "a", KEY["a"], until=START), word("a", "b")]
    assert chains(expired, ROOT, START) == {}, "a chain is as good as its weakest link"
    assert strengths(chains([vouch("root", "a", KEY["a"]), word("a", "b")], ROOT, START)) == {"a": 0.8, "b": 0.64}


@pytest.mark.parametrize("spelled", ["ROOT", "Root", " root", "ｒｏｏｔ", "rooT "])
def test_another_spelling_of_ones_own_name_is_no_other_agent(spelled: str) -> None:
    assert chains([vouch("root", spelled, PUBLIC)], ROOT, START) == {}
    assert not counts(vouch("root", spelled, PUBLIC), [], ROOT, START)


def test_a_key_does_not_vouch_for_itself_under_another_name() -> None:
    bound = {"root": Peer("root", 3, KEY["root"], voucher=True)}
    assert chains([word("root", "a", KEY["root"])], bound, START) == {}


def test_a_vouch_from_the_future_does_not_count_yet() -> None:
    early = vouch("root", "a", PUBLIC, at=START + AHEAD_MS + 1)
    assert chains([early], ROOT, START) == {}
    assert strengths(chains([early], ROOT, START + 1)) == {"a": 0.8}


def test_a_name_alone_is_vouched_for_only_where_a_key_is_bound_to_it() -> None:
    by_name = vouch("root", "a")
    assert not counts(by_name, [], ROOT, START)
    assert counts(by_name, [], {**ROOT, "a": Peer("a", 1, PUBLIC)}, START)
    assert not counts(by_name, [], {**ROOT, "a": Peer("a", 1)}, START)
    assert counts(by_name, [], ROOT, START, ["a"]), "an agent of ours has our key"
    other = vouch("root", "a", OTHER)
    assert counts(other, [], ROOT, START)
    assert not counts(other, [], {**ROOT, "a": Peer("a", 1, PUBLIC)}, START), "it is known by another key here"
    assert set(chains([by_name, word("a", "b")], ROOT, START)) == {"a"}, "and leads no further"
    assert set(chains([by_name, word("a", "b")], {**ROOT, "a": Peer("a", 1, KEY["a"])}, START)) == {"a", "b"}


def test_the_best_chain_gives_the_strength_and_all_who_vouch_are_named() -> None:
    bound = {"root": Peer("root", 3, KEY["root"], voucher=True)}
    words = [word("root", "a"), word("root", "b"), word("a", "b"), word("b", "a")]
    found = chains(words, bound, START)["b"][KEY["b"]]
    assert (found.strength, found.vouchers) == (0.8, ["root", "a"])


def test_who_vouches_for_one_key_does_not_for_another() -> None:
    found = chains([vouch("root", "a", PUBLIC), vouch("other", "a", OTHER)], {**ROOT, "other": ROOT["root"]}, START)
    assert {key: trusted.vouchers for key, trusted in found["a"].items()} == {PUBLIC: ["root"], OTHER: ["other"]}


def test_a_voucher_in_the_middle_signs_with_the_key_it_was_vouched_for_with() -> None:
    passed_on = word("a", "b")
    assert set(chains([vouch("root", "a", KEY["a"]), passed_on], ROOT, START)) == {"a", "b"}
    assert set(chains([vouch("root", "a", OTHER), passed_on], ROOT, START)) == {"a"}
    bound = {**ROOT, "a": Peer("a", 1, OTHER)}
    assert set(chains([vouch("root", "a", KEY["a"]), passed_on], bound, START)) == {"a"}, (
        "ours to say, where we have said it"
    )


edges = st.lists(st.tuples(st.sampled_from("rabcde"), st.sampled_from("rabcde")), max_size=14)


@settings(max_examples=60, deadline=None)
@given(edges)
def test_strength_is_by_the_shortest_way_from_a_voucher(pairs: list[tuple[str, str]]) -> None:
    found = chains([word(*pair) for pair in pairs], {"r": Peer("r", 3, KEY["r"], voucher=True)}, START)
    distance = {"r": 0}
    for hops in range(1, DEEPEST + 1):
        for giver, taker in pairs:
            if giver != taker and distance.get(giver) == hops - 1:
                distance.setdefault(taker, hops)
    shown = {name: by_key[KEY[name]].strength for name, by_key in found.items()}
    for name, hops in distance.items():
        if hops:
            assert shown[name] == pytest.approx(DECAY**hops)
    assert set(found) - {"r"} == set(distance) - {"r"}


# one vouch


def document(**more: Any) -> dict[str, Any]:
    whole = {"id": "v", "created_at": iso(START), "voucher": {"agent_id": "a"}, "subject": {"agent_id": "b"}}
    return {**whole, **more}


def signed(of: dict[str, Any], private: str = PRIVATE, **more: Any) -> dict[str, Any]:
    return {**of, "signatures": {"voucher_signature": keys.sign(private, keys.bytes_of(of)), **more}}


@pytest.mark.parametrize(("until", "over"), [
    (None, False), (iso(START), True), (iso(START + 1), False), ("2025-06-15", False), ("2025-06-14", True),
])  # fmt: skip
def test_when_a_vouch_is_over(until: str | None, over: bool) -> None:
    assert StoredVouch(document(scope={"valid_until": until})).is_expired(START) is over  # on the 15th of June 2025


@pytest.mark.parametrize(("kept", "key", "verified"), [
    (signed(document()), PUBLIC, True), (signed(document()), OTHER, False), (signed(document()), None, False),
    (document(), PUBLIC, False), (document(signatures={}), PUBLIC, False),
    ({**signed(document()), "id": "another"}, PUBLIC, False),
    (document(signatures={"voucher_signature": "!"}), PUBLIC, False),
    (signed(document(), algorithm="rsa-sha256"), PUBLIC, False),
    (signed(document(), algorithm="ed25519"), PUBLIC, True),
])  # fmt: skip
def test_whose_signature_it_carries(kept: dict[str, Any], key: str | None, verified: bool) -> None:
    assert StoredVouch(kept).signed_with(key) is verified


@pytest.mark.parametrize("right", [
    document(), signed(document()), signed(document(voucher={"agent_id": "a", "public_key": PUBLIC})),
    document(subject={"agent_id": "b", "public_key": OTHER}), document(scope={"valid_until": "2030-01-01"}),
    document(signatures={"hash": sha256_hex(keys.bytes_of(document()))}),
    document(signatures={"hash": "sha256:" + sha256_hex(keys.bytes_of(document())).upper()}),
])  # fmt: skip
def test_a_vouch_that_is_in_order(right: dict[str, Any]) -> None:
    check(StoredVouch(right), START)


@pytest.mark.parametrize("wrong", [
    document(created_at="yesterday"), document(created_at=iso(START + AHEAD_MS + 1)),
    document(scope={"valid_until": "soon"}),
    document(voucher={"agent_id": "a", "public_key": "AAAA"}), document(subject={"agent_id": "b", "public_key": "?"}),
    document(signatures={"hash": "sha256:00"}), document(signatures={"voucher_signature": "not base64!"}),
    signed(document(voucher={"agent_id": "a", "public_key": OTHER})),
])  # fmt: skip
def test_a_vouch_that_is_not_in_order_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        check(StoredVouch(wrong), START)


def test_a_vouch_counts_for_itself_and_not_for_an_earlier_one() -> None:
    good, over = vouch("root", "a", KEY["a"]), vouch("root", "a", KEY["a"], until=START)
    assert counts(good, [], ROOT, START)
    assert not counts(over, [good], ROOT, START), "the earlier one of the same voucher's must not speak for it"
    assert counts(word("a", "b"), [good], ROOT, START)
    assert not counts(word("a", "b"), [], ROOT, START)
