"""Whom it is told why a store fails: its address, its user and its files concern operators alone."""

from __future__ import annotations

from typing import Any

import pytest
from replica_house import AGENT, Flaky, House, house, run

from commonplace.dialects.memorywire import Memorywire
from commonplace.engine import Draft, Forget, Query
from commonplace.engine.outbox.resync_notices import LEFT_OUT, STORE_NAME, UNATTACHED, WITHHELD, resync_advice
from commonplace.engine.outbox.shown_problems import shown_problem
from commonplace.engine.types import SYSTEM
from commonplace.stores.base import Record
from commonplace.testing.subject import DAY_MS, WHO, FakeClock
from commonplace.wire.models import (
    ExpirePolicy,
    ExpireRequest,
    ForgetRequest,
    MergeRequest,
    RecallRequest,
    RememberRequest,
    UpdateRequest,
)
from commonplace.wire.record import Principal

SECRET = "PostgreSQL at 127.0.0.1:41353/c3 refused user 'postgres': wrong password; is /srv/secret.db full?"
KIND = "it refused its credentials"
REVIEWER = Principal("Bob", "local", "reviewer")
OPERATOR = Principal("Alice", "local", "admin")
CAROL = Principal("Carol", "acme", "admin")

SAID = {
    SECRET: KIND,
    f"{SECRET}; it is kept and tried again": f"{KIND}; it is kept and tried again",
    f"not asked for 5 s more: it failed 3 times in a row, last: {SECRET}; it is kept and tried again": (
        f"not asked for 5 s more: it failed 3 times in a row, last: {KIND}; it is kept and tried again"
    ),
    f"its searches fail: {SECRET}": f"its searches fail: {KIND}",
    f"the store pg does not answer: {SECRET}": f"the store pg does not answer: {KIND}",
    "10.0.0.7:8420 could not be reached: no route to host; is a server running there?": "it could not be reached",
    "no room on the disk of /srv/secret/r.db": "it failed",
    "it refused: validation_error of /srv/secret": "it failed",
    "it failed: OSError": "it failed: OSError",
    "it listed something that is no memory": "it listed something that is no memory",
    "it named something that is no agent": "it named something that is no agent",
    "it answers, but not as memorywire has it": "it answers, but not as memorywire has it",
    "its capabilities cannot be read: TypeError": "its capabilities cannot be read: TypeError",
    "what it says of its health cannot be read": "what it says of its health cannot be read",
    "the pages of its listing do not end": "the pages of its listing do not end",
    "it did not confirm within 2 s; it is kept and tried again": (
        "it did not confirm within 2 s; it is kept and tried again"
    ),
    "it failed: OSError\n/srv/secret": "it failed",
}


@pytest.mark.parametrize("sentence", SAID)
def test_operators_get_the_sentence_and_others_the_kind(sentence: str) -> None:
    assert shown_problem(OPERATOR, sentence) == sentence
    assert shown_problem(REVIEWER, sentence) == SAID[sentence]
    assert shown_problem(None, sentence) == SAID[sentence]
    assert shown_problem(Principal("Carol", "acme", "admin"), sentence) == SAID[sentence]
    assert shown_problem(Principal("Dan", "local", "admin", ("his",)), sentence) == SAID[sentence]


@pytest.mark.parametrize(
    "notice", ["discarded", "waited_for_another", "incomplete", "begun_anew", UNATTACHED, WITHHELD]
)
@run
async def test_that_a_store_is_to_be_resynced_is_no_secret(notice: str) -> None:
    async with house() as h:
        held = Record(STORE_NAME, "copy", {"incomplete": notice} if notice == "begun_anew" else {notice: True})
        tenant, record = (
            ("local", Record(LEFT_OUT, notice, {"copy": {"since": 1}}))
            if notice in (UNATTACHED, WITHHELD)
            else (SYSTEM, held)
        )
        await h.primary.transact(tenant, lambda tx: tx.put_record(record))
        advice = await resync_advice(h.primary, "copy")
        assert advice is not None
        assert shown_problem(REVIEWER, advice) == advice
        assert [each["last_error"] for each in (await Memorywire(h.engine, REVIEWER).stores())[1:]] == [advice]


async def _forget(h: House, asked: Memorywire, **how: Any) -> Any:
    return await asked.forget(ForgetRequest(agent_id=AGENT, ids=[(await h.live())[0].id], **how))


async def _merge(h: House, asked: Memorywire) -> Any:
    first, second, *_ = await h.live()
    return await asked.merge(MergeRequest(agent_id=AGENT, canonical=first.id, duplicates=[second.id]))


async def _update(h: House, asked: Memorywire) -> Any:
    return await asked.update((await h.live())[0].id, UpdateRequest(agent_id=AGENT, tags=["more"]))


async def _undo(h: House, asked: Memorywire) -> Any:
    id = (await h.live())[0].id
    await h.engine.forget(WHO, Forget(AGENT, [id]))
    return await asked.undo(ids=[id])


async def _expire(h: House, asked: Memorywire) -> Any:
    await h.remember("words that are old by then")
    h.clock.advance(3 * DAY_MS)
    return await asked.expire(ExpireRequest(agent_id=AGENT, policy=ExpirePolicy(older_than_days=1)))


async def _decide(h: House, asked: Memorywire) -> Any:
    staged = await h.engine.remember(WHO, Draft(AGENT, "semantic", "words that wait"), approval={})
    assert staged.review_id is not None
    return await asked.decide(staged.review_id, approved=True)


async def _recover(h: House, asked: Memorywire) -> Any:
    await h.engine.remember(asked._who, Draft(AGENT, "semantic", "words of a bad source", source="bad"))
    return await asked.recover(source="bad")


#: Ways out of the engine for what a store says; what an agent, a page or a server shows is one of them.
WAYS: dict[str, Any] = {
    "remember": lambda h, asked: asked.remember(RememberRequest(agent_id=AGENT, type="semantic", content="more")),
    "batch": lambda h, asked: asked.remember_batch([{"agent_id": AGENT, "type": "semantic", "content": "more"}]),
    "update": _update,
    "undo": _undo,
    "expire": _expire,
    "forget": _forget,
    "forget for good": lambda h, asked: _forget(h, asked, hard_delete=True),
    "merge": _merge,
    "recall": lambda h, asked: asked.recall(RecallRequest(agent_id=AGENT, query="words", explain=True)),
    "stores": lambda h, asked: asked.stores(),
    "status": lambda h, asked: asked.status(),
    "upkeep": lambda h, asked: h.engine.upkeep.status(asked._who),
    "health": lambda h, asked: asked.health(),
    "a decision": _decide,
    "recover": _recover,
}


@pytest.mark.parametrize("failures", [1, 4], ids=["at once", "left alone"])
@pytest.mark.parametrize("way", WAYS)
@run
async def test_only_operators_are_told_where_a_store_is(way: str, failures: int) -> None:
    clock = FakeClock()
    copy = Flaky(clock)
    async with house(clock=clock, stores=[copy]) as h:
        for each in range(3):
            await h.remember(f"words {each}")
        await h.settled()
        copy.down = copy.unwell = SECRET
        for each in range(failures):
            await h.remember(f"more words {each}")
            await h.engine.recall(WHO, Query((AGENT,), "words"))
        for who in (OPERATOR, CAROL if way == "recover" else REVIEWER):
            said = repr(await WAYS[way](h, Memorywire(h.engine, who)))
            assert ("41353" in said) is (who is OPERATOR), said
            assert KIND in said or who is OPERATOR
