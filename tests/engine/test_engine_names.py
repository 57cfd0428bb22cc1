"""A secret given as a name, to any operation: refused without being repeated, or replaced where a name may be."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from redaction_corpus.credentials import BY_FORM
from tampering import traces

from commonplace.config import RedactionConfig
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import BatchItem, Engine
from commonplace.engine.core import Settings
from commonplace.engine.governance.decisions import Decision
from commonplace.engine.peers.asking import PeerQuery
from commonplace.engine.runs.refs import MemoryScope
from commonplace.engine.types import Draft, Expire, Forget, Merge, Query
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import SecretLeakage
from commonplace.wire.record import Principal

REGISTERED = "words that only Alice knows"
PLAIN = Draft("agent", "semantic", "plain")
FACT = {"subject": "Bob", "predicate": "likes", "object": "tea"}


@dataclass
class Place:
    """An engine over files, with something of everything in it."""

    engine: Engine
    folder: Path
    loop: asyncio.AbstractEventLoop
    ids: dict[str, Any] = field(default_factory=dict)

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)


Attempt = Callable[[Place, str], Awaitable[Any]]


def remember(**fields: Any) -> Attempt:
    return lambda p, s: p.engine.remember(WHO, replace(PLAIN, **{k: named(v, s) for k, v in fields.items()}))


def named(value: Any, secret: str) -> Any:
    """`value` with the secret where it says so."""
    if isinstance(value, str):
        return value.replace("$", secret)
    if isinstance(value, dict):
        return {named(k, secret): named(v, secret) for k, v in value.items()}
    return [named(v, secret) for v in value] if isinstance(value, list) else value


async def batch(p: Place, s: str) -> None:
    (outcome,) = await p.engine.remember_many(WHO, [BatchItem(replace(PLAIN, agent_id=s))])
    assert isinstance(outcome, SecretLeakage)
    raise outcome


def update(**fields: Any) -> Attempt:
    return lambda p, s: p.engine.update_with(
        WHO, "agent", p.ids["memory"], lambda m: replace(m, **{k: named(v, s) for k, v in fields.items()})
    )


def decide(**fields: Any) -> Attempt:
    return lambda p, s: p.engine.reviews.decide(
        WHO, p.ids["review"], Decision(False, **{"reviewer": "bob", **{k: named(v, s) for k, v in fields.items()}})
    )


def asks(agent: str | None, claimed: str) -> Attempt:
    return lambda p, s: p.engine.peers.requester(
        WHO, authenticated=True, agent=named(agent, s), claimed=named(claimed, s), proved=None
    )


async def asked_by_name(p: Place, s: str) -> None:
    """A stranger's name would become the principal of an entry in the audit."""
    who = Principal("stranger", "local", "reader", ())
    found = await p.engine.peers.requester(who, authenticated=False, agent="agent", claimed=s, proved=None)
    await p.engine.peers.ask(found, PeerQuery((), "plain"), limit=5, show=5)


def graph(method: str, *args: Any, **fields: Any) -> Attempt:
    return lambda p, s: getattr(p.engine.graph, method)(
        WHO, *(named(a, s) for a in args), **{k: named(v, s) for k, v in fields.items()}
    )


def notes(method: str, *args: Any) -> Attempt:
    scope = MemoryScope("agent")
    return lambda p, s: getattr(p.engine.run_notes, method)(
        WHO, p.ids["run"], "scratchpad", scope, *(named(a, s) for a in args)
    )


def tokens(verb: str, **fields: Any) -> Attempt:
    def attempt(p: Place, s: str) -> Awaitable[Any]:
        call = getattr(p.engine.tokens, verb)
        made: Awaitable[Any] = call(WHO, **{k: named(v, s) for k, v in fields.items()}) if fields else call(WHO, s)
        return made

    return attempt


REMEMBERED = ("agent_id", "user_id", "project", "session_id", "kind")
REFUSED: dict[str, Attempt] = {
    # remember
    **{f"remember {name}": remember(**{name: "$"}) for name in REMEMBERED},
    "remember aliases": remember(aliases=["$"]),
    "remember supersedes": remember(supersedes=["$"]),
    "remember share_with": remember(privacy={"share_with": ["$"]}),
    "remember batch": batch,
    "remember idempotency_key": lambda p, s: p.engine.remember(WHO, PLAIN, idempotency_key=s),
    "remember staged agent": lambda p, s: p.engine.remember(WHO, replace(PLAIN, agent_id=s), approval={"agent_id": s}),
    "remember principal": lambda p, s: p.engine.remember(Principal(s), PLAIN),
    "upsert id": lambda p, s: p.engine.upsert(WHO, PLAIN, s, "agent"),
    "upsert agent": lambda p, s: p.engine.upsert(WHO, PLAIN, "one", s),
    # change and removal
    "update agent": lambda p, s: p.engine.update_with(WHO, s, p.ids["memory"], lambda m: m),
    "update id": lambda p, s: p.engine.update_with(WHO, "agent", s, lambda m: m),
    "update session_id": update(session_id="$"),
    "update user_id": update(user_id="$"),
    "forget agent": lambda p, s: p.engine.forget(WHO, Forget(s, ["x"])),
    "forget id": lambda p, s: p.engine.forget(WHO, Forget("agent", [s])),
    "forget user_id": lambda p, s: p.engine.forget(WHO, Forget("agent", ["x"], user_id=s)),
    "forget staged user_id": lambda p, s: p.engine.forget(
        WHO, Forget("agent", ["x"], user_id=s, approval_required=True)
    ),
    "forget staged id": lambda p, s: p.engine.forget(WHO, Forget("agent", [s], approval_required=True)),
    "delete id": lambda p, s: p.engine.delete(WHO, s),
    "undelete id": lambda p, s: p.engine.undelete(WHO, "agent", s),
    "undelete agent": lambda p, s: p.engine.undelete(WHO, s, "x"),
    "delete agent": lambda p, s: p.engine.delete(WHO, "x", s),
    "merge agent": lambda p, s: p.engine.merge(WHO, Merge(s, "a", ["b"])),
    "merge canonical": lambda p, s: p.engine.merge(WHO, Merge("agent", s, ["b"])),
    "merge duplicates": lambda p, s: p.engine.merge(WHO, Merge("agent", p.ids["memory"], [s])),
    "merge staged duplicates": lambda p, s: p.engine.merge(
        WHO, Merge("agent", p.ids["memory"], [s, p.ids["other"]], approval_required=True)
    ),
    "expire agent": lambda p, s: p.engine.expire(WHO, Expire(s, older_than_days=1)),
    "preview forget": lambda p, s: p.engine.preview_forget(WHO, Forget("agent", [s])),
    "preview merge": lambda p, s: p.engine.preview_merge(WHO, Merge("agent", s, ["b"])),
    # reading
    "recall agent": lambda p, s: p.engine.recall(WHO, Query((s,), "plain")),
    "search agent": lambda p, s: p.engine.search(WHO, Query(("agent", s), "plain"), limit=3),
    "get agent": lambda p, s: p.engine.get(WHO, s, "x"),
    "get id": lambda p, s: p.engine.get(WHO, "agent", s),
    "get id as of": lambda p, s: p.engine.get(WHO, "agent", s, as_of=1),
    "find id": lambda p, s: p.engine.find(WHO, s),
    "find agent": lambda p, s: p.engine.find(WHO, "x", s),
    "list agent": lambda p, s: p.engine.list(WHO, (s,)),
    "page agent": lambda p, s: p.engine.page(WHO, (s,), limit=3),
    "count agent": lambda p, s: p.engine.count(WHO, (s,)),
    "history agent": lambda p, s: p.engine.history(WHO, s, "x"),
    "history id": lambda p, s: p.engine.history(WHO, "agent", s),
    "audit agent": lambda p, s: p.engine.ledger.entries(WHO, agent_id=s),
    # reviews
    "review id": lambda p, s: p.engine.reviews.get(WHO, s),
    "decide id": lambda p, s: p.engine.reviews.decide(WHO, s, Decision(True, "bob")),
    # graph
    **{f"graph {name} agent": graph(name, "$", **FACT) for name in ("assert_fact",)},
    **{f"graph {name} agent": graph(name, "$", "Bob") for name in ("query", "history", "erase", "preview_erase")},
    "graph counts agent": graph("counts", "$"),
    "graph query subject": graph("query", "agent", "$"),
    "graph query predicate": graph("query", "agent", "Bob", predicate="$"),
    "graph history subject": graph("history", "agent", "$"),
    "graph path start": graph("path", "agent", "$", "Bob"),
    "graph path end": graph("path", "agent", "Bob", "$"),
    "graph neighbours id": graph("neighbours", "agent", "$", 1),
    "graph retract id": graph("retract", "agent", "$"),
    "graph retract subject": lambda p, s: p.engine.graph.retract(WHO, "agent", (s, "likes")),
    "graph retract predicate": lambda p, s: p.engine.graph.retract(WHO, "agent", ("Bob", s)),
    # palaces
    "palace create": lambda p, s: p.engine.palaces.create(WHO, s),
    "palace create, no valid name": lambda p, s: p.engine.palaces.create(WHO, f"../{s}"),
    "palace get": lambda p, s: p.engine.palaces.get(WHO, s),
    "palace get, no valid name": lambda p, s: p.engine.palaces.get(WHO, f"../{s}"),
    "palace ensure": lambda p, s: p.engine.palaces.ensure(WHO, s),
    "palace identity": lambda p, s: p.engine.palaces.set_identity(WHO, s, "Alice"),
    "palace recall": lambda p, s: p.engine.palaces.recall(WHO, s, "plain", 3),
    "palace listing": lambda p, s: p.engine.palaces.most_important(WHO, s, limit=3),
    "palace fact": lambda p, s: p.engine.palaces.assert_fact(WHO, s, ("Bob", "likes", "tea"), 1.0, None),
    # runs
    "ref agent": lambda p, s: p.engine.refs.issue(WHO, s),
    "ref namespace": lambda p, s: p.engine.refs.issue(WHO, "agent", s),
    "ref resolve": lambda p, s: p.engine.refs.resolve(WHO, s),
    "run ref": lambda p, s: p.engine.runs.start(WHO, ref=s),
    "run find": lambda p, s: p.engine.runs.find(WHO, s),
    "run use": lambda p, s: p.engine.runs.use(WHO, s),
    "run end": lambda p, s: p.engine.runs.end(WHO, s),
    "run read": lambda p, s: p.engine.runs.read(WHO, MemoryScope("agent"), s, None),
    "run note get": notes("get", "$"),
    "run note remove": notes("remove", "$"),
    # peers
    "peer bind": lambda p, s: p.engine.peers.bind(WHO, s, level=1),
    "peer unbind": lambda p, s: p.engine.peers.unbind(WHO, s),
    "peer asked": asks("$", "Babel"),
    "peer asking": asks("agent", "$"),
    "peer asking, told in the audit": asked_by_name,
    "vouches for": lambda p, s: p.engine.peers.vouches_for(WHO, s),
    # tokens
    "token name": tokens("create", name="$"),
    "token tenant": tokens("create", tenant="$"),
    "token agents": tokens("create", agents=["agent", "$"]),
    **{f"token {verb}": tokens(verb) for verb in ("revoke", "rotate", "remove")},
}  # fmt: skip

#: Names that say something and name nothing else: in these the secret is replaced, or all of it refused in `reject`.
REPLACED: dict[str, Attempt] = {
    "remember tags": remember(tags=["$"]),
    "remember metadata key": remember(metadata={"a": [{"$": {"$": 1}}]}),
    "remember entity_name": remember(entity_name="$"),
    "remember speaker": remember(speaker="$"),
    "remember source": remember(source="$"),
    "remember provenance": remember(provenance={"from": "$", "witnesses": [{"agent": "$"}]}),
    "update tags": update(tags=["$"]),
    "update metadata key": update(metadata={"$": "x"}),
    "graph subject": graph("assert_fact", "agent", **{**FACT, "subject": "$"}),
    "graph predicate": graph("assert_fact", "agent", **{**FACT, "predicate": "$"}),
    "graph provenance": graph("assert_fact", "agent", **FACT, provenance="$"),
    "palace description": lambda p, s: p.engine.palaces.create(WHO, f"house-{len(s)}", s),
    "palace identity text": lambda p, s: p.engine.palaces.set_identity(WHO, "house", s),
    "run note tags": notes("add", "plain", ["$"]),
    "reviewer": decide(reviewer="$"),
}


@pytest.fixture(params=["redact", "reject"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("ALICE", REGISTERED)
    clock = FakeClock()
    settings = Settings(redaction=RedactionConfig(mode=mode, secrets_env=["ALICE"]), folder=tmp_path)
    loop = asyncio.new_event_loop()
    engine = loop.run_until_complete(
        Engine.open(SqliteStore(tmp_path / "commonplace.db", clock), HashingEmbedder(), clock=clock, settings=settings)
    )
    place = Place(engine, tmp_path, loop)
    place.ids["memory"] = place.run(engine.remember(WHO, PLAIN)).id
    place.ids["other"] = place.run(engine.remember(WHO, replace(PLAIN, content="other"))).id
    place.ids["review"] = place.run(engine.remember(WHO, PLAIN, approval={"content": "plain"})).review_id
    place.ids["run"] = place.run(engine.runs.start(WHO))
    yield place
    loop.run_until_complete(engine.close())
    loop.close()


def secret_for(case: str, kind: str) -> str:
    return REGISTERED if kind == "registered" else BY_FORM["github"](Random(case))


def left_behind(place: Place, secret: str, log: str) -> list[str]:
    place.run(place.engine.flush())
    assert traces(place.folder, PLAIN.content)
    return traces(place.folder, secret) + (["log"] if secret in log else [])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["token", "registered"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_name_that_holds_a_secret_is_refused_and_not_repeated(
    place: Place, case: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = secret_for(case, kind)
    with pytest.raises(SecretLeakage) as refused:
        place.run(REFUSED[case](place, secret))
    assert secret not in json.dumps(refused.value.to_wire()) + str(refused.value)
    assert refused.value.details["labels"] == ["ALICE" if kind == "registered" else "github_token"]
    assert left_behind(place, secret, caplog.text) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["token", "registered"])
@pytest.mark.parametrize("case", REPLACED)
def test_a_secret_in_a_name_that_only_describes_is_replaced(
    place: Place, mode: str, case: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = secret_for(case, kind)
    if mode == "reject":
        with pytest.raises(SecretLeakage) as refused:
            place.run(REPLACED[case](place, secret))
        assert secret not in json.dumps(refused.value.to_wire()) + str(refused.value)
    else:
        assert secret not in repr(place.run(REPLACED[case](place, secret)))
    assert left_behind(place, secret, caplog.text) == []


def test_what_was_kept_under_such_a_name_before_is_shown_to_nobody_and_breaks_nothing(tmp_path: Path) -> None:
    """Kept while redaction was off; the rest is read as ever, and it can still be reached by turning it off again."""
    secret, clock = secret_for("before", "token"), FakeClock()

    async def opened(mode: str) -> Engine:
        store = SqliteStore(tmp_path / "commonplace.db", clock)
        settings = Settings(redaction=RedactionConfig(mode=mode))
        return await Engine.open(store, HashingEmbedder(), clock=clock, settings=settings)

    async def scenario() -> None:
        engine = await opened("off")
        for agent in (secret, "agent"):
            await engine.remember(WHO, replace(PLAIN, agent_id=agent, aliases=["known"] if agent == "agent" else []))
            await engine.palaces.create(WHO, agent)
        await engine.close()
        engine = await opened("redact")
        assert await engine.agent_names(WHO) == ["agent"]
        assert await engine.palaces.names(WHO) == ["agent"]
        assert [palace.name for palace in await engine.palaces.all(WHO)] == ["agent"]
        status = await engine.upkeep.status(WHO)
        assert status["agents"] == {"agent": 1}
        assert status["redaction"]["hidden_agents"] == 1
        assert (await engine.find(WHO, "known")).agent_id == "agent"
        everyone = await engine.peers.requester(WHO, authenticated=True, agent=None, claimed="Babel", proved=None)
        assert everyone.agents == ("agent",)
        await engine.close()
        engine = await opened("off")
        assert [m.content for m in (await engine.list(WHO, (secret,))).memories] == ["plain"]
        await engine.close()

    asyncio.run(scenario())
