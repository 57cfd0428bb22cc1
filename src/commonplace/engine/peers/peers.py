"""How this installation deals with other agents: who it is, whom it trusts, and what it shows whom."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from commonplace.engine import rate_limit
from commonplace.engine.checks import require_operator, require_role
from commonplace.engine.core import SYSTEM, Core
from commonplace.engine.ledger import audit
from commonplace.engine.memory.read import find
from commonplace.engine.peers import asking, trust, vouches
from commonplace.engine.peers.asking import PeerAnswer, PeerQuery
from commonplace.engine.peers.audience import Address, is_own
from commonplace.engine.peers.identity import Identity
from commonplace.engine.peers.request_dedup import RequestDedup, request_key
from commonplace.engine.peers.trust import Peer, RequesterTrust
from commonplace.engine.peers.vouches import StoredVouch, Vouched, VouchedTrust
from commonplace.engine.recall.recall import Recaller
from commonplace.stores.base import Record, Transaction
from commonplace.wire import keys
from commonplace.wire.errors import Conflict, Forbidden, NotFound, SecretLeakage, Unauthenticated, ValidationError
from commonplace.wire.filters import matches
from commonplace.wire.record import ALL_AGENTS, Memory, Principal

PEER, VOUCH = "peer", "vouch"
MAX_VOUCHES = 10_000  # kept in one tenant
MAX_LISTED = 1_000  # vouches in one answer
_TIME_DIGITS = 16  # of milliseconds, at most
_KEPT_CHARS = 16_384  # of memories in an answer to a requester nobody knows, for it to be kept for repetition
_MAX_REPLACED = 100  # by one received memory
_NOT_FOR_US = (
    "this message is meant for another server (audience): ask this one itself, at its own address or with its key; "
    "whoever runs it names other addresses of it under origins in [mrp]"
)
_STRANGERS = 10  # times one requester's budget is what all that nobody knows share: names cost nothing


@dataclass(slots=True, frozen=True)
class TrustContext:
    """Whom the operator trusts, and whom those vouch for."""

    peers: dict[str, Peer]
    vouched: Vouched

    def trusted(self, agent_id: str, key: str | None, *, own: bool = False) -> VouchedTrust | None:
        """What vouches make of whoever shows this key. Those that give a name alone speak of the key bound to it here,
        or of ours where the agent is our `own`; where a key is bound, nobody speaks of another."""
        peer = self.peers.get(agent_id)
        bound = peer.key if peer is not None and not own else None
        if key is None or (bound is not None and bound != key):
            return None
        named = self.vouched.get(agent_id, {})
        spoken = [named[each] for each in ((key, None) if own or bound else (key,)) if each in named]
        if not spoken:
            return None
        vouchers = dict.fromkeys(name for each in spoken for name in each.vouchers)
        return VouchedTrust(max(each.strength for each in spoken), list(vouchers))

    def trust_of(
        self, agent_id: str, *, authenticated: bool, identified: bool, proved: str | None, addressed: bool
    ) -> RequesterTrust:
        vouched = proved is not None and self.trusted(agent_id, proved) is not None
        return trust.trust_of(
            agent_id, authenticated=authenticated, identified=identified, proved=proved,
            addressed=addressed, peer=self.peers.get(agent_id), vouched=vouched,
        )  # fmt: skip


@dataclass(slots=True, frozen=True)
class Requester:
    """Whom a message is from: what its transport knows (`who`), what it claims, and what follows from both."""

    who: Principal
    authenticated: bool
    trust: RequesterTrust
    context: TrustContext
    agents: tuple[str, ...]  # whose memories it may ask for
    declined: bool = False  # the operator answers nothing of it

    @property
    def reader(self) -> Principal:
        """As whom it reads: itself, or a stranger who is shown only what is shared with it."""
        if self.trust.sees == "all":
            return self.who
        return Principal(f"mrp:{self.trust.agent_id}", self.who.tenant, "reader", (ALL_AGENTS,), self.who.dialect)


class Peers:
    def __init__(self, core: Core, recaller: Recaller) -> None:
        self._core = core
        self._recaller = recaller
        self.identity = Identity(core.settings.folder)
        self.dedup = RequestDedup(core, recaller)
        limit = core.settings.mrp.requests_per_minute
        self._limit = limit
        self._each = rate_limit.per_minute(limit)
        self._strangers = rate_limit.per_minute(limit * _STRANGERS)

    async def rotate_identity(self, who: Principal) -> str:
        """Sign with a new key from now on; its public half. The audit has it once it is so, and never before."""
        require_operator(who, "rotate the identity")
        old, fresh = self.identity.keypair().public, self.identity.rotate().public
        said = {"retired": keys.fingerprint(old), "key": keys.fingerprint(fresh)}
        await self._core.transact(
            SYSTEM, lambda tx: audit.append(tx, who, "rotate_identity", ALL_AGENTS, [audit.part(None, said)])
        )
        return fresh

    # who asks, and what they may see

    def stranger(self) -> Principal | None:
        """Who a caller without a token is, where peers are let in."""
        return self.unauthenticated() if self._core.settings.mrp.public else None

    def unauthenticated(self) -> Principal:
        return Principal("stranger", self._core.settings.mrp.tenant, "reader", ())

    async def requester(
        self, who: Principal, *, authenticated: bool, agent: str | None, claimed: str, proved: str | None,
        audience: str | None = None, address: tuple[str, int] | None = None,
    ) -> Requester:  # fmt: skip
        """Refuses nobody in particular where an identity is required, what is meant for someone else, and who asks too
        often.

        `agent` is the one asked, None the whole server; `claimed` is the name in the message, `proved` the key whose
        possession it proves, `audience` whom it says it is meant for; `address` is where it came in.
        """
        self._core.check_names(principal=who.name, agent=agent, requester=claimed)  # it is named in the audit
        if audience is not None and not self._is_own(audience, address):
            raise Forbidden(_NOT_FOR_US)
        context = await self.trust_context(who.tenant)
        mine = authenticated and (agent is None or who.may_use(agent))
        identified = authenticated and bool(claimed) and who.may_use(claimed)
        found = context.trust_of(
            claimed, authenticated=mine, identified=identified, proved=proved, addressed=audience is not None
        )
        if self._core.settings.mrp.require_identity and found.level == trust.ANONYMOUS:
            raise Unauthenticated("this server answers only who proves an identity: sign the request, or send a token")
        if agent is not None:
            agents: tuple[str, ...] = (agent,)
        else:
            names = await self._core.agent_names(who.tenant)
            agents = tuple(name for name in names if not mine or who.may_use(name))
        self._spend(who, authenticated, found)
        declined = trust.declines(self._core.settings.mrp.decline, found, proved, context.peers.values())
        return Requester(who, authenticated, found, context, agents, declined)

    def _is_own(self, audience: str, address: tuple[str, int] | None) -> bool:
        settings = self._core.settings
        here = None if address is None else Address(*address, names=settings.host_names)
        return is_own(audience, settings.mrp, self.identity.keypair().public, here)

    def _spend(self, who: Principal, authenticated: bool, asking: RequesterTrust) -> None:
        """One request of this requester's, or a refusal that says when to try again."""
        if self._each is None or self._strangers is None:
            return
        caller = who.name if authenticated else ""
        if wait := self._each.spend((who.tenant, caller, asking.known, asking.agent_id)):
            raise rate_limit.rate_limited(wait, f"{asking.agent_id!r:.80} has made its {self._limit} requests a minute")
        if not asking.known and (wait := self._strangers.spend((who.tenant, caller))):
            raise rate_limit.rate_limited(
                wait, "agents that are not known here have made their requests of this minute"
            )

    async def ask(self, requester: Requester, query: PeerQuery, *, limit: int, show: int) -> PeerAnswer:
        """What the requester may see of what it asks for; of `limit` that are looked at `show` are shown."""
        if not requester.agents:
            return PeerAnswer([], 0)
        who, agents = requester.reader, requester.agents
        left = tuple(agent for agent in agents if self._recaller.has_budget(who, agent)) or agents
        self._recaller.spend(who, left)
        where = (*query.where, *trust.visible(requester.trust))
        found = await asking.ask(self._core, who, replace(query, agents=left, where=where), limit)
        seen = {memory.id: memory for memory in await self._core.policies.shown(who, [m.memory for m in found.matches])}
        found.matches = [replace(m, memory=seen[m.memory.id]) for m in found.matches if m.memory.id in seen]
        if len(left) < len(agents):
            found.cut = found.cut or "some agents have used up their recalls of this minute"
        text = query.text if query.text is not None else " ".join(query.keywords)
        # Not written by itself: every answer is kept for repetition, and that transaction takes it along.
        shown = found.matches[:show]
        tail = frozenset(match.memory.id for match in shown if not match.answers)
        self._recaller.log_with_next_write(who, agents, text, [match.memory.id for match in shown], tail)
        return found

    async def answer_once(
        self, requester: Requester, message: tuple[str, str, bytes], until: int,
        answer: Callable[[], Awaitable[tuple[dict[str, Any], Sequence[Memory]]]],
    ) -> dict[str, Any]:  # fmt: skip
        """The answer to a message (its kind, its id and its bytes), or the one given to the very same a moment ago;
        RequestIdReused where the id was another's. `answer` makes it, with the memories it shows."""
        kind, id, body = message
        trust, who = requester.trust, requester.who
        # Whose message it is belongs to its id: what one may see is never another's to hear again.
        held = [who.name, *who.agents] if requester.authenticated else ["", trust.agent_id]
        key = request_key(kind, requester.authenticated, held, id.lower())
        sight = [trust.level, trust.named, trust.sees]
        if (earlier := await self.dedup.find_answer(who.tenant, key, body, sight)) is not None:
            return earlier
        response, shown = await answer()
        # Who is not known may ask for much and often; that much is found again instead of kept.
        room = trust.known or sum(len(memory.content) for memory in shown) <= _KEPT_CHARS
        versions = {memory.id: memory.version for memory in shown} if room else None
        return await self.dedup.keep(who.tenant, key, body, sight, until, response, versions)

    async def find(self, requester: Requester, ref: str, agent: str | None) -> Memory | None:
        """A memory that a requester may see; None alike when it may not and when there is none."""
        try:
            memory = await find(self._core, requester.reader, ref, agent)
        except (NotFound, Conflict, SecretLeakage):
            return None
        if not matches(memory, trust.visible(requester.trust)):
            return None
        return next(iter(await self._core.policies.shown(requester.reader, [memory])), None)

    async def replacements(self, requester: Requester, memory: Memory) -> list[str]:
        """The ids of live memories that took its place, as far as the requester may see them."""
        context = await self._core.primary.context(memory.tenant, [memory.agent_id], self._core.clock())
        names = (memory.id, *memory.aliases)
        newer = dict.fromkeys(context.replaced[name] for name in names if name in context.replaced)
        return [id for id in newer if id != memory.id and await self.find(requester, id, None) is not None]

    async def replaceable(
        self, who: Principal, refs: Sequence[str], same_author: Callable[[Memory], bool]
    ) -> list[str]:
        """Of what a received memory says it replaces, what it may: its own author's memories, and what is not here.

        Whoever says that something replaces a memory of another's must not make it stand behind theirs here.
        """
        if len(refs) > _MAX_REPLACED:
            raise ValidationError(f"it supersedes more than {_MAX_REPLACED} others", field="salience.supersedes")
        return [ref for ref in refs if await self._replaceable(who, ref, same_author)]

    async def _replaceable(self, who: Principal, ref: str, same_author: Callable[[Memory], bool]) -> bool:
        try:
            return same_author(await find(self._core, who, ref))
        except NotFound:
            return True
        except Conflict:  # several agents hold one under that id
            return False

    # whom the operator trusts

    async def trust_context(self, tenant: str) -> TrustContext:
        peers = await self.bindings(tenant)
        kept = await self.vouches(tenant)
        return TrustContext(peers, vouches.chains(kept, peers, self._core.clock()))

    async def bindings(self, tenant: str) -> dict[str, Peer]:
        found = [Peer(**record.value) for record in await self._core.primary.records(tenant, PEER)]
        return {peer.agent_id: peer for peer in sorted(found, key=lambda p: p.agent_id)}

    async def bind(
        self, who: Principal, agent_id: str, *, level: int, key: str | None = None, voucher: bool = False,
        declined: bool = False, replace: bool = False,
    ) -> Peer:  # fmt: skip
        """Bind an agent to a level, and to a key. What was said of it before is replaced; its key only where `replace`
        says so, since whoever holds the new one is from then on the agent."""
        _require_all_agents(who)
        self._core.check_names(agent=agent_id)
        trust.check_binding(agent_id, level, key)
        bindings = await self.bindings(who.tenant)
        for other in bindings:
            if other != agent_id and trust.folded_name(other) == trust.folded_name(agent_id):
                raise Conflict(
                    f"{other} is bound already, and {agent_id} is the same name in other letters: bind {other}, or "
                    f"remove it first: `commonplace trust remove {shlex.quote(other)}`"
                )
        held = bindings[agent_id].key if agent_id in bindings else None
        if held is not None and held != key and not replace:
            raise Conflict(
                f"{agent_id} is bound to the key {keys.fingerprint(held)}: give that one with --key or, where the "
                "agent has told you of a new one itself, bind it with --replace"
            )
        peer = Peer(agent_id, level, key, voucher, self._core.clock(), declined)

        def work(tx: Transaction) -> Peer:
            tx.put_record(Record(PEER, agent_id, asdict(peer)))
            said = {"peer": agent_id, "level": level, "voucher": voucher, "key": keys.fingerprint(key) if key else None}
            if declined:
                said["declined"] = True
            audit.append(tx, who, "add_peer", ALL_AGENTS, [audit.part(None, said)])
            return peer

        return await self._core.transact(who.tenant, work)

    async def unbind(self, who: Principal, agent_id: str) -> Peer:
        """Trust it no more; vouches it gave count no more, either."""
        _require_all_agents(who)
        self._core.check_names(agent=agent_id)

        def work(tx: Transaction) -> Peer:
            record = tx.record(PEER, agent_id)
            if record is None:
                sentence = f"{agent_id!r:.300} is not among the agents trusted"
                raise NotFound(sentence, hint="`commonplace trust list` shows them")
            tx.drop_record(PEER, agent_id)
            audit.append(tx, who, "remove_peer", ALL_AGENTS, [audit.part(None, {"peer": agent_id})])
            return Peer(**record.value)

        return await self._core.transact(who.tenant, work)

    # vouches

    async def vouches(self, tenant: str) -> list[StoredVouch]:
        """All that are kept, in the order they came."""
        records = await self._core.primary.records(tenant, VOUCH)
        return [StoredVouch(r.value["vouch"], r.value["sent_in"]) for r in sorted(records, key=_vouch_place)]

    async def vouches_for(
        self, who: Principal, subject: str | None = None, *, limit: int = MAX_LISTED, cursor: str | None = None
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Those about an agent, else all, that are not over, as they were given and in the order they came; and where
        to go on, if there are more."""
        self._core.check_names(subject=subject)
        now = self._core.clock()
        records = sorted(await self._core.primary.records(who.tenant, VOUCH), key=_vouch_place)
        after = None if cursor is None else _decode_place(cursor)
        page: list[Record] = []
        for record in records:
            vouch = StoredVouch(record.value["vouch"])
            if (subject is None or vouch.subject == subject) and not vouch.is_expired(now):
                if after is not None and _vouch_place(record) <= after:
                    continue
                if len(page) == limit:
                    at, key = _vouch_place(page[-1])
                    return [each.value["vouch"] for each in page], f"{at}-{key}"
                page.append(record)
        return [each.value["vouch"] for each in page], None

    async def keep_vouch(self, who: Principal, vouch: dict[str, Any], *, authenticated: bool) -> bool:
        """Keep a vouch; whether it counts now. One that is malformed or wrongly signed is refused."""
        self._spend(who, authenticated, RequesterTrust(vouch["voucher"]["agent_id"], 0, "shared", known=authenticated))
        if authenticated:
            require_role(who, "writer")
        kept = StoredVouch(vouch, authenticated and who.may_use(vouch["voucher"]["agent_id"]))
        now = self._core.clock()
        vouches.check(kept, now)
        # It is no memory, but it is kept, and shown to whoever asks for vouches; what is signed cannot be redacted.
        said = Memory("", who.tenant, kept.voucher, "semantic", "", kind="vouch", provenance={"attestation": vouch})
        await self._core.policies.admit_memory(who, "attestation", said, reviewed=True)
        peers = await self.bindings(who.tenant)
        asking = RequesterTrust(kept.voucher, 0, "all" if kept.sent_in else "shared", known=kept.voucher in peers)
        if trust.declines(self._core.settings.mrp.decline, asking, vouch["voucher"].get("public_key"), peers.values()):
            raise Forbidden("this server takes no vouches of this agent: its operator declines it")
        bound = peers.get(kept.voucher)
        signed = (vouch.get("signatures") or {}).get("voucher_signature")
        if bound is not None and bound.key is not None and signed and not kept.signed_with(bound.key):
            raise ValidationError(
                f"the signature is not made with the key bound to {kept.voucher}", field="signatures.voucher_signature"
            )
        others = await self.vouches(who.tenant)
        if len(others) >= MAX_VOUCHES:
            raise Conflict(f"{MAX_VOUCHES:,} vouches are kept already; no more are taken")
        own = await self._core.primary.agent_names(who.tenant)
        counted = vouches.counts(kept, others, peers, now, own)
        if not authenticated and not counted:
            raise Forbidden(
                "without a token only a vouch that counts is kept: one signed by a voucher trusted here, "
                "for its subject's key"
            )
        value = {"vouch": vouch, "sent_in": kept.sent_in, "at": now}

        def work(tx: Transaction) -> None:
            place = request_key(kept.voucher, vouch["id"])
            earlier = tx.record(VOUCH, place)
            if earlier is not None and earlier.value["vouch"] != vouch:
                sentence = f"{kept.voucher} has given another vouch under the id {vouch['id']!r:.300}; use a new id"
                raise Conflict(sentence)
            if earlier is None or (kept.sent_in and not earlier.value["sent_in"]):
                tx.put_record(Record(VOUCH, place, value))
                said = {"voucher": kept.voucher, "subject": kept.subject, "counted": counted}
                audit.append(tx, who, "vouch", ALL_AGENTS, [audit.part(None, said)])

        await self._core.transact(who.tenant, work)
        return counted


def _vouch_place(record: Record) -> tuple[int, str]:
    return record.value["at"], record.key


def _decode_place(cursor: str) -> tuple[int, str]:
    at, _, key = cursor.partition("-")
    # Only what `vouches_for` writes: ids of other things begin with a digit, too, and have a dash.
    if not (at.isascii() and at.isdigit() and len(at) <= _TIME_DIGITS and str(int(at)) == at and key):
        raise ValidationError("cursor must be the next_cursor of an earlier answer", field="cursor")
    return int(at), key


def _require_all_agents(who: Principal) -> None:
    require_role(who, "admin")
    if not who.uses_all_agents:
        raise Forbidden(f"{who.name} may not use every agent, and whom to trust is a matter of all of them")
