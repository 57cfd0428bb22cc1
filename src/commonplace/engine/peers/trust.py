"""How far other agents are trusted: the levels, what each may see, and what an operator binds. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from commonplace.wire import keys
from commonplace.wire.errors import ValidationError
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import EVERYONE

ANONYMOUS, IDENTIFIED, VOUCHED, DIRECT = range(4)
NAMES = ("anonymous", "identified", "vouched", "direct")
_NAME_CHARS = 256

Sight = Literal["shared", "all"]

#: What a peer of each level may see. Only a caller authenticated for the agent asked, by its token or in open local
#: mode, sees everything that token may read: a signature says who someone is, not what is theirs.
SEES: Mapping[int, Sight] = {ANONYMOUS: "shared", IDENTIFIED: "shared", VOUCHED: "shared", DIRECT: "shared"}


@dataclass(slots=True, frozen=True)
class Peer:
    """What the operator has said about one agent of someone else's."""

    agent_id: str
    level: int
    key: str | None = None
    voucher: bool = False
    created_at: int = 0
    declined: bool = False  # whatever it asks

    def to_wire(self) -> dict[str, Any]:
        shown = {"agent_id": self.agent_id, "level": self.level, "name": NAMES[self.level], "voucher": self.voucher}
        if self.key is not None:
            shown |= {"public_key": self.key, "fingerprint": keys.fingerprint(self.key)}
        if self.declined:
            shown["declined"] = True
        return {**shown, "created_at": self.created_at}


def folded_name(name: str) -> str:
    """What is left of a name when it does not matter how its letters are written."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


@dataclass(slots=True, frozen=True)
class RequesterTrust:
    """How one requester is looked upon."""

    agent_id: str
    level: int
    sees: Sight
    named: bool = True  # whether what is shared with that name is shared with whoever asks
    known: bool = False  # authenticated, or by a key that is bound here: nobody else can pass for it


def trust_of(
    agent_id: str,
    *,
    authenticated: bool = False,
    identified: bool = False,
    proved: str | None = None,
    addressed: bool = False,
    peer: Peer | None = None,
    vouched: bool = False,
) -> RequesterTrust:
    """The level of a requester.

    `authenticated` for the agent asked; `identified` by a token that is for the name it gives; `proved` is the key
    whose possession its request proves, and `addressed` that it is signed for this server. Whose key is bound here is
    believed with that key only. A signature that names no audience may have been sent on by whoever got it: it says who
    wrote the request, and opens nothing that is not everyone's.
    """
    if authenticated:
        return RequesterTrust(agent_id, DIRECT, "all", known=True)
    bound = peer is not None and peer.key is not None
    if bound and proved != peer.key and not identified:  # type: ignore[union-attr]
        return RequesterTrust(agent_id, ANONYMOUS, SEES[ANONYMOUS], named=False)
    level = IDENTIFIED if proved is not None or identified else ANONYMOUS
    own = identified or (proved is not None and addressed)  # nobody else has sent it here
    known = identified or (bound and addressed)
    if own and vouched:
        level = VOUCHED
    if peer is not None and known:
        level = max(level, peer.level)
    return RequesterTrust(agent_id, level, SEES[level], named=own, known=known)


def declines(policy: str, who: RequesterTrust, proved: str | None, peers: Iterable[Peer]) -> bool:
    """Whether the operator has said that a requester gets no answer; whose memories these are is always answered."""
    if who.sees == "all":
        return False
    if policy == "all" or (policy == "strangers" and not who.known):
        return True
    name = folded_name(who.agent_id)
    return any(p.declined and (folded_name(p.agent_id) == name or (p.key and p.key == proved)) for p in peers)


def visible(who: RequesterTrust) -> Where:
    """The condition that every memory shown to a requester meets."""
    if who.sees == "all":
        return ()
    names = [EVERYONE, who.agent_id] if who.named else [EVERYONE]
    return (Condition(("privacy", "share_with"), "in", names),)


def author_level(*, own: bool, peer: Peer | None, signed: bool, by_bound_key: bool, vouched: bool) -> int:
    """How far the author of an attestation is trusted: our own agents fully, others by what proves it is theirs.

    `signed` by any key it names, `by_bound_key` by the one bound here.
    """
    if own:
        return DIRECT
    if peer is not None and peer.key is not None and not by_bound_key:
        return ANONYMOUS
    level = (VOUCHED if vouched else IDENTIFIED) if signed or by_bound_key else ANONYMOUS
    return max(level, peer.level) if peer is not None and by_bound_key else level


def check_binding(agent_id: str, level: int, key: str | None) -> None:
    """What can be wrong with a binding an operator makes."""
    if not agent_id.strip() or len(agent_id) > _NAME_CHARS or not agent_id.isprintable() or agent_id == EVERYONE:
        sentence = f"agent must be printable text of 1 to {_NAME_CHARS} characters, and not *"
        raise ValidationError(sentence, field="agent")
    if level not in (IDENTIFIED, VOUCHED, DIRECT):
        raise ValidationError(f"level must be 1 (identified), 2 (vouched) or 3 (direct), not {level}", field="level")
    if key is not None:
        keys.check_public(key)
