"""An export says everything that its caller can read, in the same bytes each time, and nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from io import BytesIO
from typing import Any

import pytest
from transfer_scenarios import WHO, exported

from commonplace.engine import Triple
from commonplace.testing.subject import Subject
from commonplace.transfer import records
from commonplace.transfer.export_file import encode
from commonplace.transfer.import_file import import_export
from commonplace.wire.errors import Forbidden, NotFound
from commonplace.wire.record import Memory, Principal


def documents(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def contents(data: bytes) -> list[str]:
    return [d["versions"][-1]["content"] for d in documents(data) if d["record"] == "memory"]


def test_the_first_line_says_what_it_is_and_the_last_how_much(filled: Subject, run: Any) -> None:
    data = run(exported(filled))
    head, *rest, last = documents(data)
    assert head == {"record": "header", "format": "commonplace-export", "version": 1, "scope": {}}
    assert last["record"] == "manifest"
    assert last["lines"] == len(rest) + 1
    assert last["counts"] == {"memory": 3, "version": 5, "statement": 3, "palace": 2}
    assert last["sha256"] == hashlib.sha256(b"".join(data.splitlines(keepends=True)[:-1])).hexdigest()


def test_the_same_store_gives_the_same_bytes(filled: Subject, run: Any) -> None:
    first = run(exported(filled))
    filled.clock.advance(3_600_000)
    assert run(exported(filled)) == first


def test_agents_are_not_listed_anew_for_each_of_them(
    subject: Subject, run: Any, elsewhere: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, wait = elsewhere
    listed: dict[str, list[str]] = {}

    def count(store: Any, name: str) -> None:
        real, asked = store.agent_names, listed.setdefault(name, [])

        async def counted(tenant: str) -> Any:
            asked.append(tenant)
            return await real(tenant)

        monkeypatch.setattr(store, "agent_names", counted, raising=False)

    for n in range(20):
        run(subject.remember("something", agent=f"agent{n}"))
        run(subject.engine.palaces.set_identity(WHO, f"agent{n}", "I help."))
    count(subject.store, "export")
    data = run(exported(subject))
    count(other.store, "import")
    assert wait(import_export(other.engine, WHO, BytesIO(data))).written["palace"] == 20
    assert all(len(asked) < 20 for asked in listed.values()), listed


def test_what_nobody_can_read_is_not_in_it(filled: Subject, run: Any) -> None:
    data = run(exported(filled))
    assert b"forgotten for good" not in data
    assert b"erased for good" not in data
    assert b"home is Bergen" not in data  # it became part of another


def test_what_waits_for_a_reviewer_is_not_in_it(subject: Subject, run: Any) -> None:
    from commonplace.engine import Draft

    run(subject.engine.remember(WHO, Draft("agent", "semantic", "not yet"), approval={"content": "not yet"}))
    run(subject.remember("approved"))
    assert contents(run(exported(subject))) == ["approved"]


def test_what_has_expired_is_not_in_it(subject: Subject, run: Any) -> None:
    run(subject.remember("for a while", expires_at=subject.clock() + 1000))
    run(subject.remember("for ever"))
    assert contents(run(exported(subject))) == ["for a while", "for ever"]
    subject.clock.advance(1000)
    assert contents(run(exported(subject))) == ["for ever"]


def test_what_a_rule_withholds_is_not_in_it_and_what_it_masks_is_masked(subject: Subject, run: Any) -> None:
    for text, kind in (("a diagnosis", "health"), ("card 4111", "money"), ("plain", "note")):
        run(subject.remember(text, kind=kind))
    rules = [
        {"name": "hide", "when": {"operation": ["recall"], "kind": ["health"]}, "action": "reject"},
        {"name": "mask", "when": {"operation": ["recall"], "content": "[0-9]+"}, "action": "redact"},
    ]
    run(subject.engine.policies.replace(WHO, rules))
    reader = Principal("eve", role="reader")
    seen = contents(run(exported(subject, reader)))
    assert "a diagnosis" not in seen
    assert "plain" in seen
    assert not any("4111" in text for text in seen)


def test_one_agent_and_one_user(filled: Subject, run: Any) -> None:
    run(filled.remember("of the shared space", agent="shared", user_id="alice"))
    assert contents(run(exported(filled, agent="shared"))) == ["of the shared space"]
    assert contents(run(exported(filled, user="alice"))) == [
        "Alice is allergic to peanuts and cashews",
        "of the shared space",
    ]
    both = documents(run(exported(filled, agent="agent", user="alice")))
    assert both[0]["scope"] == {"agent_id": "agent", "user_id": "alice"}
    assert [d["record"] for d in both] == ["header", "memory", "manifest"]  # statements are no user's


def test_an_agent_without_anything_is_named(filled: Subject, run: Any) -> None:
    with pytest.raises(NotFound, match=r"nothing of agent 'agnet'.*there are agent, library, mute"):
        run(exported(filled, agent="agnet"))


@pytest.mark.parametrize(("who", "agents"), [(Principal("eve", agents=("lib*",)), {"library"}), (WHO, None)])
def test_only_agents_that_the_caller_may_use(filled: Subject, run: Any, who: Principal, agents: Any) -> None:
    found = {d.get("agent_id") or d.get("name") for d in documents(run(exported(filled, who)))[1:-1]}
    assert found == (agents or {"agent", "library", "mute"})


def test_an_agent_of_someone_else_is_refused(filled: Subject, run: Any) -> None:
    with pytest.raises(Forbidden):
        run(exported(filled, Principal("eve", agents=("lib*",)), agent="agent"))


def test_every_field_of_the_record_travels_or_says_why_not() -> None:
    carried = {*records.MEMORY_FIELDS, *records.COUNTED_FIELDS, "id", "agent_id"}
    assert carried | set(records.LEFT_BEHIND) == {field.name for field in fields(Memory)}
    assert not carried & set(records.LEFT_BEHIND)
    assert {*records.STATEMENT_FIELDS, "id", "agent_id"} == {field.name for field in fields(Triple)}


def test_the_same_document_is_the_same_bytes_in_whatever_order_a_store_gives_its_keys() -> None:
    one, other = {"b": {"d": 1, "c": [2]}, "a": "☃"}, {"a": "☃", "b": {"c": [2], "d": 1}}
    assert encode(one) == encode(other) == '{"a":"☃","b":{"c":[2],"d":1}}\n'.encode()
    assert encode({**one, "a": "\ud800"}) == encode({**other, "a": "\ud800"})


def test_half_a_surrogate_pair_is_carried() -> None:
    line = encode({"content": "a\ud800b", "other": "☃"})
    assert json.loads(line)["content"] == "a\ud800b"
    assert encode({"content": "☃"}) == '{"content":"☃"}\n'.encode()
