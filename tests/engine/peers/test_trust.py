"""Trust: levels as a table, what each may see, and how far an author is believed."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.peers import trust
from commonplace.engine.peers.trust import Peer, author_level, trust_of, visible
from commonplace.wire import keys
from commonplace.wire.filters import matches
from commonplace.wire.record import Memory

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
