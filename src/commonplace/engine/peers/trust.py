"""How far other agents are trusted: levels, what each may see, and the bindings an operator keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from commonplace.engine.core import Core, require_role
from commonplace.engine.ledger import audit
from commonplace.stores.base import Record, Transaction
from commonplace.wire import keys
from commonplace.wire.errors import Forbidden, NotFound, ValidationError
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import EVERYONE, Principal

PEER = "peer"
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

    def to_wire(self) -> dict[str, Any]:
        shown = {"agent_id": self.agent_id, "level": self.level, "name": NAMES[self.level], "voucher": self.voucher}
        if self.key is not None:
            shown |= {"public_key": self.key, "fingerprint": keys.fingerprint(self.key)}
        return {**shown, "created_at": self.created_at}


@dataclass(slots=True, frozen=True)
class RequesterTrust:
    """How one requester is looked upon."""

    agent_id: str
    level: int
    sees: Sight
    named: bool = True  # whether what is shared with that name is shared with whoever asks
    known: bool = False  # authenticated, or by a key that is bound here: nobody else can pass for it


def standing(
    agent_id: str,
    *,
    authenticated: bool = False,
    identified: bool = False,
    proved: str | None = None,
    peer: Peer | None = None,
    vouched: bool = False,
) -> RequesterTrust:
    """The level of a requester.

    `authenticated` for the agent asked; `identified` by a token that is for the name it gives; `proved` is the key
    whose possession its request proves. Whose key is bound here is believed with that key only.
    """
    if authenticated:
        return RequesterTrust(agent_id, DIRECT, "all", known=True)
    bound = peer is not None and peer.key is not None
    if bound and proved != peer.key and not identified:  # type: ignore[union-attr]
        return RequesterTrust(agent_id, ANONYMOUS, SEES[ANONYMOUS], named=False)
    level = IDENTIFIED if proved is not None or identified else ANONYMOUS
    known = identified or bound
    if level and vouched:
        level = VOUCHED
    if peer is not None and known:
        level = max(level, peer.level)
    return RequesterTrust(agent_id, level, SEES[level], known=known)


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
    return max(level, peer.level) if peer is not None else level


# what the operator keeps


async def peers(core: Core, tenant: str) -> dict[str, Peer]:
    found = [Peer(**record.value) for record in await core.primary.records(tenant, PEER)]
    return {peer.agent_id: peer for peer in sorted(found, key=lambda p: p.agent_id)}


async def add(
    core: Core, who: Principal, agent_id: str, *, level: int, key: str | None = None, voucher: bool = False
) -> Peer:
    """Bind an agent to a level, and to a key; what was bound before is replaced."""
    _allowed(who)
    if not agent_id.strip() or len(agent_id) > _NAME_CHARS or not agent_id.isprintable() or agent_id == EVERYONE:
        raise ValidationError(
            f"agent must be printable text of 1 to {_NAME_CHARS} characters, and not *", field="agent"
        )
    if level not in (IDENTIFIED, VOUCHED, DIRECT):
        raise ValidationError(f"level must be 1 (identified), 2 (vouched) or 3 (direct), not {level}", field="level")
    if key is not None:
        keys.check_public(key)
    peer = Peer(agent_id, level, key, voucher, core.clock())

    def work(tx: Transaction) -> Peer:
        tx.put_record(Record(PEER, agent_id, asdict(peer)))
        said = {"peer": agent_id, "level": level, "voucher": voucher, "key": keys.fingerprint(key) if key else None}
        audit.append(tx, who, "add_peer", "*", [audit.part(None, said)])
        return peer

    return await core.transact(who.tenant, work)


async def remove(core: Core, who: Principal, agent_id: str) -> Peer:
    """Trust it no more; vouches it gave count no more, either."""
    _allowed(who)

    def work(tx: Transaction) -> Peer:
        record = tx.record(PEER, agent_id)
        if record is None:
            raise NotFound(f"{agent_id!r:.300} is not among the agents trusted; `commonplace trust list` shows them")
        tx.drop_record(PEER, agent_id)
        audit.append(tx, who, "remove_peer", "*", [audit.part(None, {"peer": agent_id})])
        return Peer(**record.value)

    return await core.transact(who.tenant, work)


def _allowed(who: Principal) -> None:
    require_role(who, "admin")
    if EVERYONE not in who.agents:
        raise Forbidden(f"{who.name} may not use every agent, and whom to trust is a matter of all of them")
