"""Trust: levels as a table, what each may see, and how far an author is believed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.peers import trust
from commonplace.engine.peers.trust import (
    Peer,
    RequesterTrust,
    author_level,
    check_binding,
    declines,
    trust_of,
    visible,
)
from commonplace.wire import keys
from commonplace.wire.errors import ValidationError
from commonplace.wire.filters import matches
from commonplace.wire.record import Memory

# Workers must collect the same tests, and keys are among their names.
PRIVATE = keys.encode(bytes(range(32)))
PUBLIC = keys.public_of(PRIVATE)
OTHER = keys.public_of(keys.encode(bytes(32)))


@pytest.mark.parametrize(("given", "level", "named", "known"), [
    ({}, 0, False, False),
    ({"addressed": True}, 0, False, False),
    ({"proved": OTHER}, 1, False, False),
    ({"proved": OTHER, "addressed": True}, 1, True, False),
    ({"identified": True}, 1, True, True),
    ({"vouched": True}, 0, False, False),
    ({"proved": OTHER, "vouched": True}, 1, False, False),
    ({"proved": OTHER, "addressed": True, "vouched": True}, 2, True, False),
    ({"peer": Peer("bob", 3)}, 0, False, False),
    ({"peer": Peer("bob", 3), "proved": OTHER, "addressed": True}, 1, True, False),
    ({"peer": Peer("bob", 1, PUBLIC)}, 0, False, False),
    ({"peer": Peer("bob", 3, PUBLIC), "proved": OTHER, "addressed": True, "vouched": True}, 0, False, False),
    ({"peer": Peer("bob", 3, PUBLIC), "proved": PUBLIC, "vouched": True}, 1, False, False),
    ({"peer": Peer("bob", 1, PUBLIC), "proved": PUBLIC, "addressed": True}, 1, True, True),
    ({"peer": Peer("bob", 2, PUBLIC), "proved": PUBLIC, "addressed": True}, 2, True, True),
    ({"peer": Peer("bob", 3, PUBLIC), "proved": PUBLIC, "addressed": True}, 3, True, True),
    ({"peer": Peer("bob", 1, PUBLIC), "proved": PUBLIC, "addressed": True, "vouched": True}, 2, True, True),
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

    bound = {"peer": Peer("bob", 3, PUBLIC), "proved": PUBLIC}
    for proof in ({"proved": OTHER, "addressed": True}, {**bound, "addressed": True}, {"identified": True}):
        assert seen(**proof) == [["*"], ["bob"], ["carol", "bob"]]
    for relayed in ({}, {"addressed": True}, {"proved": OTHER}, bound):
        assert seen(**relayed) == [["*"]], "anyone could have sent it"
    assert seen(peer=Peer("bob", 3, PUBLIC)) == [["*"]], "not proved to be bob"
    assert seen(authenticated=True) == shared


OURS = trust_of("bob", authenticated=True)
STRANGER = trust_of("bob", proved=OTHER, addressed=True)
KNOWN = trust_of("bob", proved=PUBLIC, addressed=True, peer=Peer("bob", 3, PUBLIC))


@pytest.mark.parametrize(("policy", "who", "proved", "peers", "declined"), [
    ("none", STRANGER, OTHER, [], False), ("none", KNOWN, PUBLIC, [], False),
    ("strangers", STRANGER, OTHER, [], True), ("strangers", KNOWN, PUBLIC, [], False),
    ("all", STRANGER, OTHER, [], True), ("all", KNOWN, PUBLIC, [], True),
    ("strangers", OURS, None, [], False), ("all", OURS, None, [Peer("bob", 1, declined=True)], False),
    ("none", STRANGER, OTHER, [Peer("bob", 1, declined=True)], True),
    ("none", STRANGER, OTHER, [Peer("BOB", 1, declined=True)], True),
    ("none", STRANGER, OTHER, [Peer("eve", 1, OTHER, declined=True)], True),  # by another name, with the same key
    ("none", STRANGER, OTHER, [Peer("eve", 1, PUBLIC, declined=True), Peer("bob", 1)], False),
    ("none", trust_of("bob"), None, [Peer("eve", 1, declined=True)], False),
])  # fmt: skip
def test_whom_the_operator_declines(
    policy: str, who: RequesterTrust, proved: str | None, peers: list[Peer], declined: bool
) -> None:
    assert declines(policy, who, proved, peers) is declined


@pytest.mark.parametrize(("given", "level"), [
    ({"own": True}, 3),
    ({}, 0),
    ({"signed": True}, 1),
    ({"vouched": True}, 0),
    ({"signed": True, "vouched": True}, 2),
    ({"peer": Peer("b", 2)}, 0),
    ({"peer": Peer("b", 3), "signed": True}, 1),
    ({"peer": Peer("b", 3, PUBLIC)}, 0),
    ({"peer": Peer("b", 3, PUBLIC), "signed": True, "vouched": True}, 0),
    ({"peer": Peer("b", 3, PUBLIC), "by_bound_key": True}, 3),
    ({"peer": Peer("b", 1, PUBLIC), "by_bound_key": True, "vouched": True}, 2),
])  # fmt: skip
def test_how_far_an_author_is_trusted(given: dict[str, Any], level: int) -> None:
    blank = {"own": False, "peer": None, "signed": False, "by_bound_key": False, "vouched": False}
    assert author_level(**{**blank, **given}) == level


@pytest.mark.parametrize(("agent", "level", "key"), [
    ("bob", 1, None), ("bob", 2, PUBLIC), ("b" * 256, 3, None), ("Bob of Rome, the 3rd", 1, None), ("日本", 1, None),
])  # fmt: skip
def test_bindings_an_operator_may_make(agent: str, level: int, key: str | None) -> None:
    check_binding(agent, level, key)


@pytest.mark.parametrize(("agent", "level", "key", "field"), [
    ("", 1, None, "agent"), (" \t", 1, None, "agent"), ("b" * 257, 1, None, "agent"), ("a\nb", 1, None, "agent"),
    ("*", 1, None, "agent"), ("bob", 0, None, "level"), ("bob", 4, None, "level"), ("bob", -1, None, "level"),
    ("bob", 1, "AAAA", "public_key"), ("bob", 1, "", "public_key"),
])  # fmt: skip
def test_bindings_that_are_refused_by_field(agent: str, level: int, key: str | None, field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        check_binding(agent, level, key)
    assert refused.value.details["field"] == field


def test_a_peer_is_shown_by_the_name_of_its_level() -> None:
    assert [Peer("b", level).to_wire()["name"] for level in (1, 2, 3)] == ["identified", "vouched", "direct"]
    assert "public_key" not in Peer("b", 1).to_wire()


@given(
    st.booleans(), st.booleans(), st.sampled_from([None, PUBLIC, OTHER]), st.booleans(),
    st.none() | st.builds(Peer, st.just("bob"), st.integers(1, 3), st.sampled_from([None, PUBLIC])),
)  # fmt: skip
def test_nobody_passes_for_whose_key_is_bound(
    authenticated: bool, identified: bool, proved: str | None, vouched: bool, peer: Peer | None
) -> None:
    found = trust_of("bob", authenticated=authenticated, identified=identified, proved=proved, peer=peer,
                     vouched=vouched)  # fmt: skip
    assert (found.sees == "all") is authenticated
    shown_key = peer is not None and peer.key is not None and proved == peer.key
    if not authenticated and not identified and peer is not None and peer.key is not None and not shown_key:
        assert (found.level, found.named, found.known) == (0, False, False)
    if not authenticated and not identified and proved is None:
        assert found.level == 0
