"""Every way to write goes past redaction: what is kept, shown to reviewers, audited and told holds no secret."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from redaction_corpus.credentials import BY_FORM
from tampering import traces

from commonplace.config import RedactionConfig
from commonplace.dialects.amp import Amp
from commonplace.dialects.memorywire import Memorywire
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import BatchItem, Engine
from commonplace.engine.core import Settings
from commonplace.engine.governance.decisions import Decision
from commonplace.engine.redaction import Secrets
from commonplace.engine.types import Draft, Forget, Merge, Query, Receipt, Update
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Conflict, SecretLeakage
from commonplace.wire.models import RememberRequest
from commonplace.wire.record import Memory

RNG = Random(11)
KEY = BY_FORM["aws_access_key"](RNG)
TOKEN = BY_FORM["github"](RNG)
GONE = "<REDACTED:aws_access_key>"


def draft_with_key(draft: Draft | None = None, **fields: Any) -> Draft:
    return replace(draft or Draft("agent", "semantic", f"the key is {KEY}"), **fields)


def all_stored_text(subject: Subject, run: Any) -> str:
    """All that any protocol could show: memories and their history, reviews, audit entries and the engine's records."""
    memories = run(subject.list())
    history = [run(subject.engine.history(WHO, "agent", m.id)) for m in memories]
    reviews = run(subject.engine.reviews.list(WHO, None))
    audit = run(subject.engine.ledger.entries(WHO, limit=1000))
    records = run(subject.store.records(WHO.tenant, "review")) + run(subject.store.records(WHO.tenant, "idempotency"))
    return repr((memories, history, reviews, [(e, [p.payload for p in e.parts]) for e in audit], records))


def test_remember_keeps_the_text_without_the_secret(subject: Subject, run: Any) -> None:
    receipt: Receipt = run(
        subject.engine.remember(WHO, draft_with_key(title=TOKEN, tags=[TOKEN], metadata={"a": [{TOKEN: KEY}]}))
    )
    assert receipt.redacted == ["aws_access_key", "github_token"]
    kept: Memory = run(subject.get(receipt.id))
    assert kept.content == f"the key is {GONE}"
    assert kept.metadata == {"a": [{"<REDACTED:github_token>": GONE}]}
    assert kept.title == "<REDACTED:github_token>"
    assert kept.tags == ["<REDACTED:github_token>"]
    assert KEY not in all_stored_text(subject, run)
    assert TOKEN not in all_stored_text(subject, run)


def test_what_was_kept_is_what_is_read(subject: Subject, run: Any) -> None:
    shown = "documents say <REDACTED:github_token> and [REDACTED:x]"
    id = run(subject.remember(shown))
    assert run(subject.get(id)).content == shown
    assert run(subject.recall("what do documents say"))[0].content == shown


def test_each_item_of_a_batch_has_its_own_outcome(subject: Subject, run: Any) -> None:
    done = run(
        subject.engine.remember_many(
            WHO,
            [
                BatchItem(draft_with_key(content="plain")),
                BatchItem(draft_with_key()),
                BatchItem(draft_with_key(user_id=TOKEN)),
            ],
        )
    )
    assert [getattr(d, "redacted", d) for d in done[:2]] == [[], ["aws_access_key"]]
    assert isinstance(done[2], SecretLeakage)
    assert sorted(m.content for m in run(subject.list())) == ["plain", f"the key is {GONE}"]


def test_storing_and_replacing_a_whole_record(subject: Subject, run: Any) -> None:
    stored = run(subject.engine.upsert(WHO, draft_with_key(), "note-1", "agent"))
    assert stored.receipt.redacted == ["aws_access_key"]
    again = run(subject.engine.upsert(WHO, draft_with_key(content=f"now {TOKEN}"), "note-1", "agent"))
    assert (again.created, again.receipt.redacted) == (False, ["github_token"])
    assert run(subject.get(stored.receipt.id)).content == "now <REDACTED:github_token>"
    with pytest.raises(SecretLeakage):
        run(subject.engine.upsert(WHO, draft_with_key(content="x"), f"id-{TOKEN}", "agent"))
    assert not any(secret in all_stored_text(subject, run) for secret in (KEY, TOKEN))


def test_amp_and_memorywire_share_the_rule(subject: Subject, run: Any) -> None:
    record = {"type": "checkpoint", "agent": "agent", "working_on": f"rotating {KEY}", "state": {"decisions": [TOKEN]}}
    run(Amp(subject.engine, WHO).store({"record": record}))
    request = RememberRequest(agent_id="agent", type="semantic", content=f"see {KEY}", metadata={"title": TOKEN})
    assert run(Memorywire(subject.engine, WHO).remember(request)).redacted == ["aws_access_key", "github_token"]
    assert not any(secret in all_stored_text(subject, run) for secret in (KEY, TOKEN))


def test_an_update_cannot_bring_a_secret_in(subject: Subject, run: Any) -> None:
    id = run(subject.remember("plain"))
    changed: Memory = run(subject.update(id, content=f"now {KEY}", metadata={"password": "swordfish"}))
    assert changed.content == f"now {GONE}"
    assert changed.metadata == {"password": "<REDACTED:password>"}
    assert "swordfish" not in all_stored_text(subject, run)
    with pytest.raises(SecretLeakage):
        run(subject.update(id, session_id=TOKEN))


def test_a_staged_write_shows_no_secret_to_anyone(subject: Subject, run: Any) -> None:
    request = {"agent_id": "agent", "type": "semantic", "content": f"the key is {KEY}", "embedding": [0.5] * 3}
    receipt = run(
        subject.engine.remember(
            WHO, draft_with_key(), approval=request, reasoning=f"Bob wrote {TOKEN}", idempotency_key="k"
        )
    )
    assert receipt.redacted == ["aws_access_key"]
    (review,) = run(subject.engine.reviews.list(WHO))
    assert review["request"]["content"] == f"the key is {GONE}"
    assert "embedding" not in review["request"], "it was made of the text as it was"
    assert review["reasoning"] == "Bob wrote <REDACTED:github_token>"
    run(subject.engine.reviews.decide(WHO, review["id"], Decision(True, "alice", f"fine, {TOKEN} is revoked")))
    assert run(subject.get(receipt.id)).content == f"the key is {GONE}"
    assert not any(secret in all_stored_text(subject, run) for secret in (KEY, TOKEN))


def test_an_edited_approval_cannot_bring_a_secret_in(subject: Subject, run: Any) -> None:
    run(
        subject.engine.remember(
            WHO, draft_with_key(content="plain"), approval={"agent_id": "agent", "content": "plain"}
        )
    )
    (review,) = run(subject.engine.reviews.list(WHO))
    edited = {"agent_id": "agent", "type": "semantic", "content": f"better: {KEY}"}
    decided = run(Memorywire(subject.engine, WHO).decide(review["id"], True, "alice", request=edited))
    assert decided["request"]["content"] == f"better: {GONE}"
    assert KEY not in all_stored_text(subject, run)


@pytest.mark.parametrize("operation", ["update", "forget", "merge"])
def test_no_edited_review_brings_a_secret_in(operation: str, subject: Subject, run: Any) -> None:
    engine, dialect = subject.engine, Memorywire(subject.engine, WHO)
    one, two = (run(subject.remember(text, "agent")) for text in ("Alice drinks tea", "Alice drinks green tea"))
    edited: dict[str, Any] = {"agent_id": "agent"}
    match operation:
        case "update":
            run(engine.update(WHO, Update("agent", one, content="Alice drinks milk", approval_required=True)))
            edited |= {"content": f"better: {KEY}"}
        case "forget":
            run(engine.forget(WHO, Forget("agent", [one], approval_required=True)))
            edited |= {"ids": [one], "reason": f"it quoted {KEY}"}
        case "merge":
            run(engine.merge(WHO, Merge("agent", one, [two], approval_required=True)))
            edited |= {"canonical": one, "duplicates": [two], "reasoning": f"both say {KEY}"}
    (review,) = run(engine.reviews.list(WHO))
    decided = run(dialect.decide(review["id"], True, "alice", request=edited))
    assert decided["decision"]["approved"]
    assert KEY not in all_stored_text(subject, run)


def test_reasons_are_kept_without_secrets(subject: Subject, run: Any) -> None:
    one, two, three, four = (run(subject.remember(f"note {i}")) for i in range(4))
    run(subject.forget(one, reason=f"it quoted {KEY}"))
    staged = Forget("agent", [two], reason=KEY, reasoning=TOKEN, approval_required=True)
    run(subject.engine.forget(WHO, staged))
    (review,) = run(subject.engine.reviews.list(WHO))
    run(subject.engine.reviews.decide(WHO, review["id"], Decision(True, "alice")))
    joined = Merge("agent", three, [four], approval_required=True, reasoning=f"both say {TOKEN}")
    run(subject.engine.merge(WHO, joined))
    assert "it quoted <REDACTED:aws_access_key>" in all_stored_text(subject, run)
    assert not any(secret in all_stored_text(subject, run) for secret in (KEY, TOKEN))


def test_an_embedding_of_the_old_text_is_made_anew(subject: Subject, run: Any) -> None:
    given = HashingEmbedder().embed([f"the key is {KEY}"])[0].tolist()
    expected = HashingEmbedder().embed([f"the key is {GONE}"])[0]
    id = run(subject.engine.remember(WHO, draft_with_key(embedding=given))).id
    found = run(subject.engine.recall(WHO, Query(("agent",), f"the key is {GONE}", explain=True, min_score=0)))
    assert found.hits[0].memory.id == id
    dense = found.hits[0].explain["dense"]  # type: ignore[index]
    assert dense == pytest.approx(float(expected @ expected), abs=1e-3), "of the text that is kept"


def test_an_idempotency_key_is_held_to_the_text_that_is_kept(subject: Subject, run: Any) -> None:
    first = run(subject.engine.remember(WHO, draft_with_key(), idempotency_key="k"))
    again = run(subject.engine.remember(WHO, draft_with_key(), idempotency_key="k"))
    assert (again.id, again.redacted) == (first.id, ["aws_access_key"])
    with pytest.raises(Conflict):
        run(subject.engine.remember(WHO, draft_with_key(content="another"), idempotency_key="k"))
    with pytest.raises(SecretLeakage):
        run(subject.engine.remember(WHO, draft_with_key(content="x"), idempotency_key=f"key-{TOKEN}"))
    assert not any(secret in all_stored_text(subject, run) for secret in (KEY, TOKEN))


def test_secrets_of_a_run_are_found_by_value_and_kept_nowhere(subject: Subject, run: Any) -> None:
    secrets = Secrets.of({"bank_pin": "plain words only the run knows"})
    draft = draft_with_key(content="it is: plain words only the run knows", tags=["plain words only the run knows"])
    receipt = run(subject.engine.remember(WHO, draft, secrets=secrets))
    assert receipt.redacted == ["bank_pin"]
    kept = run(subject.get(receipt.id))
    assert (kept.content, kept.tags) == ("it is: <REDACTED:bank_pin>", ["<REDACTED:bank_pin>"])
    assert subject.engine._core.redact_text("plain words only the run knows", "x", secrets) == "<REDACTED:bank_pin>"
    assert run(subject.engine.remember(WHO, replace(draft), secrets=None)).redacted == [], "only that run's"


def open_engine(mode: str, store: Any = None) -> Engine:
    clock = FakeClock()
    settings = Settings(redaction=RedactionConfig(mode=mode))
    return asyncio.run(Engine.open(store or InMemory(clock), HashingEmbedder(), clock=clock, settings=settings))


def test_reject_refuses_every_write_and_keeps_nothing() -> None:
    engine = open_engine("reject")
    subject = Subject(engine, engine._core.primary, FakeClock())

    async def scenario() -> None:
        plain = await subject.remember("plain")
        staged = await engine.remember(WHO, draft_with_key(content="wait"), approval={"content": "wait"})
        (review,) = await engine.reviews.list(WHO)
        edited = draft_with_key(content=f"better {KEY}")
        attempts: list[Any] = [
            engine.remember(WHO, draft_with_key()),
            engine.remember(WHO, draft_with_key(content="x", tags=[KEY])),
            engine.remember(WHO, draft_with_key(), approval={"content": KEY}),
            engine.remember(WHO, draft_with_key(content="x"), approval={"content": "x"}, reasoning=KEY),
            engine.upsert(WHO, draft_with_key(), "n", "agent"),
            subject.update(plain, content=KEY),
            subject.forget(plain, reason=KEY),
            engine.reviews.decide(WHO, review["id"], Decision(True, "alice", reason=KEY)),
            engine.reviews.decide(
                WHO, review["id"], Decision(True, "alice", edited=edited, edited_request={"content": "x"})
            ),
        ]
        for attempt in attempts:
            with pytest.raises(SecretLeakage) as refused:
                await attempt
            assert refused.value.details["labels"] == ["aws_access_key"]
            assert KEY not in json.dumps(refused.value.to_wire())
        (outcome,) = await engine.remember_many(WHO, [BatchItem(draft_with_key())])
        assert isinstance(outcome, SecretLeakage)
        assert [m.content for m in await subject.list()] == ["plain"]
        assert [r["memory_id"] for r in await engine.reviews.list(WHO)] == [staged.id]

    asyncio.run(scenario())


def test_off_keeps_what_it_is_given() -> None:
    engine = open_engine("off")

    async def scenario() -> None:
        receipt = await engine.remember(WHO, draft_with_key())
        assert receipt.redacted == []
        assert (await engine.get(WHO, "agent", receipt.id)).content == f"the key is {KEY}"

    asyncio.run(scenario())


def test_no_byte_of_a_secret_is_in_the_files_or_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    clock = FakeClock()

    async def scenario() -> None:
        store = SqliteStore(tmp_path / "commonplace.db", clock)
        engine = await Engine.open(store, HashingEmbedder(), clock=clock)
        wire = Memorywire(engine, WHO)
        id = (await engine.remember(WHO, draft_with_key(metadata={KEY: TOKEN}), idempotency_key="k")).id
        await engine.remember(WHO, draft_with_key(), approval={"content": KEY}, reasoning=TOKEN)
        await Amp(engine, WHO).store({"record": {"type": "lesson", "title": TOKEN, "content": KEY}})
        await engine.update_with(WHO, "agent", id, lambda m: replace(m, content=f"{KEY} {TOKEN}"))
        (review,) = await engine.reviews.list(WHO)
        request = {"agent_id": "agent", "type": "semantic", "content": f"edited {TOKEN}"}
        await wire.decide(review["id"], True, "alice", f"because {KEY}", request)
        await engine.recall(WHO, Query(("agent",), f"what is {KEY}"))
        await engine.forget(WHO, Forget("agent", [id], reason=f"held {TOKEN}"))
        await engine.flush()
        # Read while the write-ahead log is still there, and once more below when all is closed.
        assert not _files_with_secrets(tmp_path)
        await engine.close()

    asyncio.run(scenario())
    assert not _files_with_secrets(tmp_path)
    assert not any(secret in caplog.text for secret in (KEY, TOKEN))


def _files_with_secrets(folder: Path) -> list[str]:
    assert traces(folder, "REDACTED")
    return traces(folder, KEY, TOKEN)
