"""How this installation deals with other agents: who it is, whom it trusts, what it has just answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from commonplace.engine import rate_limit
from commonplace.engine.core import Core
from commonplace.engine.memory import upsert
from commonplace.engine.peers import trust, vouches
from commonplace.engine.peers.identity import Identity
from commonplace.engine.peers.request_dedup import RequestDedup
from commonplace.engine.peers.trust import Peer, RequesterTrust
from commonplace.engine.peers.vouches import VouchedTrust
from commonplace.wire.errors import Conflict, NotFound, ValidationError
from commonplace.wire.filters import matches
from commonplace.wire.record import Memory, Principal

_MOST_REPLACED = 100  # by one received memory
_STRANGERS = 10  # times one requester's budget is what all that nobody knows share: names cost nothing


@dataclass(slots=True, frozen=True)
class TrustContext:
    """Whom the operator trusts, and whom those vouch for."""

    peers: dict[str, Peer]
    vouched: dict[str, VouchedTrust]

    def trusted(self, agent_id: str, key: str | None = None) -> VouchedTrust | None:
        """What vouches make of an agent; where they name its keys, only of who shows one of those."""
        found = self.vouched.get(agent_id)
        return None if found is None or (found.keys and key not in found.keys) else found

    def standing(self, agent_id: str, *, authenticated: bool, identified: bool, proved: str | None) -> RequesterTrust:
        vouched = proved is not None and self.trusted(agent_id, proved) is not None
        return trust.standing(
            agent_id, authenticated=authenticated, identified=identified, proved=proved,
            peer=self.peers.get(agent_id), vouched=vouched,
        )  # fmt: skip


class Peers:
    def __init__(self, core: Core) -> None:
        self._core = core
        self.identity = Identity(core.settings.folder)
        self.replays = RequestDedup(core)
        limit = core.settings.mrp.requests_per_minute
        self._limit = limit
        self._each = rate_limit.per_minute(limit)
        self._strangers = rate_limit.per_minute(limit * _STRANGERS)

    async def trust_context(self, tenant: str) -> TrustContext:
        peers = await trust.peers(self._core, tenant)
        kept = await vouches.load(self._core, tenant)
        return TrustContext(peers, vouches.chains(kept, peers, self._core.clock()))

    async def replaceable(
        self, who: Principal, refs: Sequence[str], same_author: Callable[[Memory], bool]
    ) -> list[str]:
        """Of what a received memory says it replaces, what it may: its own author's memories, and what is not here.

        Whoever says that something replaces a memory of another's must not make it stand behind theirs here.
        """
        if len(refs) > _MOST_REPLACED:
            raise ValidationError(f"it supersedes more than {_MOST_REPLACED} others", field="salience.supersedes")
        return [ref for ref in refs if await self._replaceable(who, ref, same_author)]

    async def _replaceable(self, who: Principal, ref: str, same_author: Callable[[Memory], bool]) -> bool:
        try:
            return same_author(await upsert.find(self._core, who, ref))
        except NotFound:
            return True
        except Conflict:  # several agents hold one under that id
            return False

    async def find(self, who: Principal, standing: RequesterTrust, ref: str, agent: str | None) -> Memory | None:
        """A memory that a requester may see; None alike when it may not and when there is none."""
        try:
            memory = await upsert.find(self._core, reader(who, standing), ref, agent)
        except (NotFound, Conflict):
            return None
        return memory if matches(memory, trust.visible(standing)) else None

    def spend(self, tenant: str, caller: str, who: RequesterTrust) -> None:
        """One request of this requester's, or a refusal that says when to try again."""
        if self._each is None or self._strangers is None:
            return
        if wait := self._each.spend((tenant, caller, who.known, who.agent_id)):
            raise rate_limit.refuse(wait, f"{who.agent_id!r:.80} has made its {self._limit} requests a minute")
        if not who.known and (wait := self._strangers.spend((tenant, caller))):
            raise rate_limit.refuse(wait, "agents that are not known here have made their requests of this minute")


def reader(who: Principal, standing: RequesterTrust) -> Principal:
    """As whom a requester reads: itself, or a stranger who is shown only what is shared with it."""
    if standing.sees == "all":
        return who
    return Principal(f"mrp:{standing.agent_id}", who.tenant, "reader", ("*",))
