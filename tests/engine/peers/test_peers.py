"""Peers: whom the operator binds, as whom others read, and what they are shown."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from commonplace.config import MrpConfig
from commonplace.engine import Engine
from commonplace.engine.core import SYSTEM, Settings
from commonplace.engine.peers import peers as peering
from commonplace.engine.peers.asking import PeerQuery
from commonplace.engine.peers.peers import Requester, TrustContext
from commonplace.engine.peers.trust import Peer, trust_of
from commonplace.engine.peers.vouches import VouchedTrust
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import START, FakeClock, Subject
from commonplace.wire import keys
from commonplace.wire.errors import Conflict, Forbidden, NotFound, RateLimited, Unauthenticated, ValidationError
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import iso

LOCAL = Principal()
# Workers must collect the same tests, and keys are among their names.
PRIVATE = keys.encode(bytes(range(32)))
PUBLIC = keys.public_of(PRIVATE)
OTHER = keys.public_of(keys.encode(bytes(32)))


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
    run(peers.bind(LOCAL, "bob", level=1, key=PUBLIC, declined=True))
    assert run(peers.bindings("local"))["bob"] == Peer("bob", 1, PUBLIC, False, START, declined=True)
    run(peers.unbind(LOCAL, "bob"))
    with pytest.raises(NotFound, match="trust list"):
        run(peers.unbind(LOCAL, "bob"))
    operations = [entry.operation for entry in run(subject.engine.ledger.entries(LOCAL))]
    assert operations == ["add_peer", "add_peer", "add_peer", "remove_peer"]


@pytest.mark.parametrize("key", [OTHER, None])
def test_another_key_for_a_name_is_a_conflict_until_it_is_meant(subject: Subject, run: Any, key: str | None) -> None:
    peers = subject.engine.peers
    run(peers.bind(LOCAL, "bob", level=2, key=PUBLIC))
    with pytest.raises(Conflict, match=f"bob is bound to the key {keys.fingerprint(PUBLIC)}.*--replace"):
        run(peers.bind(LOCAL, "bob", level=3, key=key))
    assert run(peers.bindings("local"))["bob"] == Peer("bob", 2, PUBLIC, False, START)
    run(peers.bind(LOCAL, "bob", level=3, key=key, replace=True))
    assert run(peers.bindings("local"))["bob"].key == key


@pytest.mark.parametrize("spelled", ["Bob", "BOB", "ｂｏｂ", "bob "])
def test_a_name_in_other_letters_is_a_conflict_that_says_what_to_do(subject: Subject, run: Any, spelled: str) -> None:
    peers = subject.engine.peers
    run(peers.bind(LOCAL, "bob", level=2, key=PUBLIC))
    for replace_key in (False, True):
        with pytest.raises(Conflict, match=r"bob is bound already.*`commonplace trust remove bob`"):
            run(peers.bind(LOCAL, spelled, level=2, key=OTHER, replace=replace_key))
    assert list(run(peers.bindings("local"))) == ["bob"]


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


def test_a_rotated_key_is_in_the_audit_by_who_rotated_it(subject: Subject, run: Any) -> None:
    peers = subject.engine.peers
    old = peers.identity.keypair().public
    fresh = run(peers.rotate_identity(LOCAL))
    assert fresh == peers.identity.keypair().public != old
    (entry,) = run(subject.store.audit(SYSTEM))
    assert (entry.operation, entry.principal) == ("rotate_identity", LOCAL.name)
    said = {"retired": keys.fingerprint(old), "key": keys.fingerprint(fresh)}
    assert json.loads(entry.parts[0].payload) == said


@pytest.mark.parametrize(
    "who", [Principal("a", role="reviewer"), Principal("a", agents=("x",)), Principal("a", tenant="acme")]
)
def test_only_the_operator_rotates_the_key(subject: Subject, run: Any, who: Principal) -> None:
    old = subject.engine.peers.identity.keypair()
    with pytest.raises(Forbidden, match="a may not rotate the identity"):
        run(subject.engine.peers.rotate_identity(who))
    assert subject.engine.peers.identity.keypair() == old


def test_who_is_vouched_for_by_key_is_trusted_with_that_key() -> None:
    root, leaf = VouchedTrust(0.8, ["root"]), VouchedTrust(0.64, ["leaf", "root"])
    vouched: dict[str, dict[str | None, VouchedTrust]] = {"a": {PUBLIC: root, OTHER: leaf}, "b": {None: root}}
    known = TrustContext({}, vouched)
    assert known.trusted("a", PUBLIC) == root
    assert known.trusted("a", OTHER) == leaf, "each key has those who speak of it"
    assert known.trusted("a", None) is None
    assert known.trusted("b", OTHER) is None, "a name alone is anybody's"
    assert known.trusted("b", OTHER, own=True) == root
    assert known.trusted("c", PUBLIC) is None
    bound = TrustContext({name: Peer(name, 1, OTHER) for name in "ab"}, {**vouched, "b": {None: root, OTHER: leaf}})
    assert bound.trusted("a", PUBLIC) is None, "it is known by another key here"
    assert bound.trusted("a", OTHER) == leaf
    assert bound.trusted("b", OTHER) == VouchedTrust(0.8, ["leaf", "root"])


# who asks


def ask_as(subject: Subject, run: Any, who: Principal = LOCAL, **fields: Any) -> Requester:
    """`proved` with a message that is for this server."""
    given = {"authenticated": False, "agent": "ada", "claimed": "bob", "proved": None, **fields}
    given.setdefault("audience", subject.engine.peers.identity.keypair().public if given["proved"] else None)
    requester: Requester = run(subject.engine.peers.requester(who, **given))
    return requester


@pytest.mark.parametrize(
    ("fields", "level", "sees"),
    [
        ({}, 0, "shared"),
        ({"proved": PUBLIC}, 1, "shared"),
        ({"authenticated": True}, 3, "all"),
        ({"authenticated": True, "agent": None}, 3, "all"),
        ({"authenticated": True, "who": Principal("b", role="reader", agents=("bob",))}, 1, "shared"),
        ({"authenticated": True, "who": Principal("b", role="reader", agents=("eve",))}, 0, "shared"),
        ({"authenticated": True, "who": Principal("b", role="reader", agents=("ada",))}, 3, "all"),
    ],
)
def test_how_a_requester_is_looked_upon(
    subject: Subject, run: Any, fields: dict[str, Any], level: int, sees: str
) -> None:
    found = ask_as(subject, run, **fields)
    assert (found.trust.level, found.trust.sees, found.trust.agent_id) == (level, sees, "bob")


def test_the_whole_server_is_every_agent_that_the_asker_may_use(subject: Subject, run: Any) -> None:
    for agent in ("ada", "bea", "cid"):
        run(subject.remember("x", agent))
    some = Principal("s", role="reader", agents=("ada", "c*"))
    assert ask_as(subject, run, agent=None).agents == ("ada", "bea", "cid")
    assert ask_as(subject, run, some, agent=None, authenticated=True).agents == ("ada", "cid")
    assert ask_as(subject, run, some, agent="bea").agents == ("bea",)


def scenario(settings: MrpConfig, work: Any) -> None:
    """Run `work(subject)` over an engine that answers peers so."""

    async def scene() -> None:
        clock = FakeClock()
        store = InMemory(clock)
        engine = await Engine.open(store, clock=clock, settings=Settings(mrp=settings))
        await work(Subject(engine, store, clock))
        await engine.close()

    asyncio.run(scene())


async def request(subject: Subject, claimed: str, proved: str | None = None) -> Requester:
    who = subject.engine.peers.unauthenticated()
    peers = subject.engine.peers
    fields = {"claimed": claimed, "proved": proved, "audience": peers.identity.keypair().public}
    return await peers.requester(who, authenticated=False, agent="ada", **fields)


def test_strangers_are_let_in_where_the_operator_says_so() -> None:
    async def closed(subject: Subject) -> None:
        assert subject.engine.peers.stranger() is None

    async def public(subject: Subject) -> None:
        assert subject.engine.peers.stranger() == Principal("stranger", "acme", "reader", ())

    scenario(MrpConfig(), closed)
    scenario(MrpConfig(public=True, tenant="acme"), public)


def test_where_an_identity_is_required_nobody_in_particular_is_refused() -> None:
    async def work(subject: Subject) -> None:
        with pytest.raises(Unauthenticated, match="sign the request, or send a token"):
            await request(subject, "bob")
        assert (await request(subject, "bob", PUBLIC)).trust.level == 1

    scenario(MrpConfig(require_identity=True), work)


def test_each_requester_has_a_budget_and_all_strangers_share_one() -> None:
    async def work(subject: Subject) -> None:
        await request(subject, "bob")
        with pytest.raises(RateLimited, match="'bob' has made its 1 requests a minute; try again in"):
            await request(subject, "bob")
        for n in range(9):
            await request(subject, f"agent-{n}")
        with pytest.raises(RateLimited, match="agents that are not known here"):
            await request(subject, "agent-9")
        await subject.engine.peers.bind(LOCAL, "known", level=1, key=PUBLIC)
        assert (await request(subject, "known", PUBLIC)).trust.known

    scenario(MrpConfig(requests_per_minute=1), work)


def test_without_a_limit_anyone_asks_as_often_as_they_like() -> None:
    async def work(subject: Subject) -> None:
        for _ in range(200):
            await request(subject, "bob")

    scenario(MrpConfig(requests_per_minute=0), work)


# what they are shown


def fill(subject: Subject, run: Any) -> dict[str, str]:
    shared = {"everyone": ["*"], "bob": ["bob"], "carol": ["carol"], "nobody": None}
    return {
        name: run(subject.remember(f"pruning for {name}", "ada", privacy={"share_with": to} if to else {}))
        for name, to in shared.items()
    }


@pytest.mark.parametrize("query", [
    PeerQuery((), "pruning"), PeerQuery((), keywords=("pruning",)), PeerQuery((), "pruning", ("pruning",)),
    PeerQuery(()),
])  # fmt: skip
def test_a_peer_is_shown_what_is_shared_with_it(subject: Subject, run: Any, query: PeerQuery) -> None:
    ids = fill(subject, run)
    for requester, names in (
        (ask_as(subject, run, proved=PUBLIC), {"everyone", "bob"}),
        (ask_as(subject, run, proved=PUBLIC, audience=None), {"everyone"}),
        (ask_as(subject, run), {"everyone"}),
        (ask_as(subject, run, authenticated=True), set(ids)),
    ):
        found = run(subject.engine.peers.ask(requester, query, limit=10, show=10))
        assert {match.memory.id for match in found.matches} == {ids[name] for name in names}
        assert (found.total, found.cut) == (len(names), None)


def test_only_what_is_shown_counts_as_recalled(subject: Subject, run: Any) -> None:
    fill(subject, run)
    requester = ask_as(subject, run, authenticated=True)
    run(subject.engine.peers.ask(requester, PeerQuery((), keywords=("pruning",)), limit=10, show=1))
    run(subject.engine.flush())
    assert sum(memory.recalls for memory in run(subject.list("ada"))) == 1


def test_who_may_ask_nobody_is_told_nothing(subject: Subject, run: Any) -> None:
    fill(subject, run)
    nobody = replace(ask_as(subject, run), agents=())
    found = run(subject.engine.peers.ask(nobody, PeerQuery((), "pruning"), limit=10, show=10))
    assert (found.matches, found.total) == ([], 0)


def test_an_agent_whose_budget_is_spent_is_left_out_and_that_is_said(clock: FakeClock) -> None:
    async def work() -> None:
        store = InMemory(clock)
        engine = await Engine.open(store, clock=clock, settings=Settings(recalls_per_minute=1))
        subject = Subject(engine, store, clock)
        for agent in ("ada", "bea"):
            await subject.remember(f"pruning by {agent}", agent)

        async def ask(agent: str | None) -> Any:
            requester = await engine.peers.requester(LOCAL, authenticated=True, agent=agent, claimed="bob", proved=None)
            return await engine.peers.ask(requester, PeerQuery((), keywords=("pruning",)), limit=10, show=10)

        await ask("ada")
        found = await ask(None)
        assert [match.memory.agent_id for match in found.matches] == ["bea"]
        assert found.cut == "some agents have used up their recalls of this minute"
        with pytest.raises(RateLimited):
            await ask(None)
        await engine.close()

    asyncio.run(work())


def test_a_memory_is_found_only_by_who_may_see_it(subject: Subject, run: Any) -> None:
    ids = fill(subject, run)
    peers, bob = subject.engine.peers, ask_as(subject, run, proved=PUBLIC)
    seen = {name for name, id in ids.items() if run(peers.find(bob, id, None)) is not None}
    assert seen == {"everyone", "bob"}
    assert run(peers.find(bob, "nothing", None)) is None
    owner = ask_as(subject, run, authenticated=True)
    assert run(peers.find(owner, ids["nobody"], "ada")).id == ids["nobody"]


def test_what_took_its_place_is_told_to_who_may_see_it(subject: Subject, run: Any) -> None:
    old = run(subject.remember("old", "ada", privacy={"share_with": ["*"]}, aliases=["note"]))
    secret = run(subject.remember("newer", "ada", supersedes=[old]))
    shared = run(subject.remember("newest", "ada", supersedes=["note"], privacy={"share_with": ["bob"]}))
    memory = run(subject.get(old, "ada"))
    peers = subject.engine.peers
    assert run(peers.replacements(ask_as(subject, run, proved=PUBLIC), memory)) == [shared]
    assert run(peers.replacements(ask_as(subject, run), memory)) == [], "a name alone proves nothing"
    assert set(run(peers.replacements(ask_as(subject, run, authenticated=True), memory))) == {secret, shared}
    assert run(peers.replacements(ask_as(subject, run, proved=PUBLIC), run(subject.get(shared, "ada")))) == []


def test_what_a_received_memory_may_replace(subject: Subject, run: Any) -> None:
    own = run(subject.remember("own", "ada", source="babel", aliases=["a1"]))
    theirs = run(subject.remember("theirs", "ada", source="eve"))
    for agent in ("bea", "cid"):
        run(subject.remember("twice", agent, aliases=["both"], source="babel"))

    def same(memory: Memory) -> bool:
        return memory.source == "babel"

    replaceable = subject.engine.peers.replaceable
    assert run(replaceable(LOCAL, [own, theirs, "a1", "not here", "both"], same)) == [own, "a1", "not here"]
    with pytest.raises(ValidationError, match="it supersedes more than 100 others"):
        run(replaceable(LOCAL, ["x"] * 101, same))


# vouches


def vouch(voucher: str = "root", about: str = "bob", id: str = "v1", **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "created_at": iso(START),
        "voucher": {"agent_id": voucher},
        "subject": {"agent_id": about},
        **more,
    }


def signed(document: dict[str, Any], private: str = PRIVATE) -> dict[str, Any]:
    return {**document, "signatures": {"voucher_signature": keys.sign(private, keys.bytes_of(document))}}


def test_a_vouch_of_a_trusted_voucher_counts_and_raises_its_subject(subject: Subject, run: Any) -> None:
    peers = subject.engine.peers
    run(peers.bind(LOCAL, "root", level=3, voucher=True))
    assert ask_as(subject, run, proved=PUBLIC).trust.level == 1
    assert run(peers.keep_vouch(LOCAL, vouch(id="v0"), authenticated=True)) is False, "a name alone is anybody's"
    assert ask_as(subject, run, proved=PUBLIC).trust.level == 1
    about = {"subject": {"agent_id": "bob", "public_key": PUBLIC}}
    assert run(peers.keep_vouch(LOCAL, vouch(**about), authenticated=True)) is True
    assert ask_as(subject, run, proved=PUBLIC).trust.level == 2
    assert ask_as(subject, run, proved=OTHER).trust.level == 1
    assert ask_as(subject, run).trust.level == 0, "a name alone proves nothing"
    assert run(peers.keep_vouch(LOCAL, vouch("eve", id="v2"), authenticated=True)) is False, "kept, but of nobody's"
    assert [kept.voucher for kept in run(peers.vouches("local"))] == ["root", "root", "eve"]
    run(peers.unbind(LOCAL, "root"))
    assert ask_as(subject, run, proved=PUBLIC).trust.level == 1


def test_without_a_token_only_a_signed_vouch_that_counts_is_kept(subject: Subject, run: Any) -> None:
    peers, stranger = subject.engine.peers, subject.engine.peers.unauthenticated()
    run(peers.bind(LOCAL, "root", level=3, key=PUBLIC, voucher=True))
    with pytest.raises(Forbidden, match="without a token only a vouch that counts is kept"):
        run(peers.keep_vouch(stranger, vouch(), authenticated=False))
    with pytest.raises(ValidationError, match="the signature is not made with the key bound to root"):
        run(peers.keep_vouch(stranger, signed(vouch(), keys.new_private()), authenticated=False))
    about = {"subject": {"agent_id": "bob", "public_key": OTHER}}
    assert run(peers.keep_vouch(stranger, signed(vouch(**about)), authenticated=False)) is True
    assert len(run(peers.vouches("local"))) == 1


def test_a_vouch_is_kept_once_and_its_id_means_one(subject: Subject, run: Any) -> None:
    peers = subject.engine.peers
    for _ in range(2):
        run(peers.keep_vouch(LOCAL, vouch(), authenticated=True))
    assert len(run(peers.vouches("local"))) == 1
    assert [entry.operation for entry in run(subject.engine.ledger.entries(LOCAL))] == ["vouch"]
    with pytest.raises(Conflict, match="root has given another vouch under the id 'v1'; use a new id"):
        run(peers.keep_vouch(LOCAL, vouch(about="eve"), authenticated=True))
    run(peers.keep_vouch(LOCAL, vouch("other", "eve"), authenticated=True))


def test_vouches_about_an_agent_are_shown_until_they_are_over(subject: Subject, run: Any) -> None:
    peers = subject.engine.peers
    lasting, brief = vouch(), vouch(id="v2", scope={"valid_until": iso(START + 1000)})
    for document in (brief, lasting, vouch(about="eve", id="v3")):
        run(peers.keep_vouch(LOCAL, document, authenticated=True))
        subject.clock.advance(1)
    assert run(peers.vouches_for(LOCAL, "bob")) == ([brief, lasting], None)
    subject.clock.advance(1000)
    assert run(peers.vouches_for(LOCAL, "bob")) == ([lasting], None)
    assert run(peers.vouches_for(Principal(tenant="acme"), "bob")) == ([], None)


def test_all_vouches_are_listed_a_page_at_a_time(subject: Subject, run: Any) -> None:
    peers = subject.engine.peers
    given = [vouch(about="bob" if n % 2 else "eve", id=f"v{n}") for n in range(7)]
    for n, document in enumerate(given):
        run(peers.keep_vouch(LOCAL, document, authenticated=True))
        subject.clock.advance(n % 2)  # some came in the same moment
    for about in (None, "bob"):
        wanted = [each["id"] for each in given if about is None or each["subject"]["agent_id"] == about]
        for limit in (1, 2, 3, 7, 8):
            listed: list[str] = []
            cursor = None
            for _ in range(8):
                page, cursor = run(peers.vouches_for(LOCAL, about, limit=limit, cursor=cursor))
                assert len(page) <= limit
                listed += [each["id"] for each in page]
                if cursor is None:
                    break
            assert sorted(listed) == wanted
    for wrong in ("", "x", "-", "1", "1-"):
        with pytest.raises(ValidationError, match="cursor must be"):
            run(peers.vouches_for(LOCAL, cursor=wrong))


def test_who_is_declined_hands_in_no_vouch() -> None:
    async def work(subject: Subject) -> None:
        peers = subject.engine.peers
        await peers.bind(LOCAL, "root", level=3, key=PUBLIC, voucher=True, declined=True)
        about = {"subject": {"agent_id": "bob", "public_key": OTHER}}
        with pytest.raises(Forbidden, match="declines"):
            await peers.keep_vouch(peers.unauthenticated(), signed(vouch(**about)), authenticated=False)

    scenario(MrpConfig(), work)


def test_no_more_vouches_are_taken_than_can_be_kept(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peering, "MAX_VOUCHES", 1)
    run(subject.engine.peers.keep_vouch(LOCAL, vouch(), authenticated=True))
    with pytest.raises(Conflict, match="1 vouches are kept already"):
        run(subject.engine.peers.keep_vouch(LOCAL, vouch(id="v2"), authenticated=True))


def test_readers_vouch_for_nobody(subject: Subject, run: Any) -> None:
    with pytest.raises(Forbidden):
        run(subject.engine.peers.keep_vouch(Principal("r", role="reader"), vouch(), authenticated=True))
