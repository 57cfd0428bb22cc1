"""Handles: always the same for one agent and namespace, good in one tenant, and useless to whoever may not use it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from commonplace.engine.runs.refs import REFUSED, MemoryScope
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Forbidden, SecretLeakage, ValidationError
from commonplace.wire.record import Memory, Principal


def memory(**fields: Any) -> Memory:
    return Memory(**{"id": "m", "tenant": "local", "agent_id": "ada", "type": "semantic", "content": "x", **fields})


@pytest.mark.parametrize(
    ("scope", "fields", "covered"),
    [
        (MemoryScope("ada"), {}, True),
        (MemoryScope("ada"), {"project": "garden"}, True),
        (MemoryScope("ada"), {"agent_id": "bea"}, False),
        (MemoryScope("ada"), {"status": "archived"}, False),
        (MemoryScope("ada", "garden"), {"project": "garden"}, True),
        (MemoryScope("ada", "garden"), {"project": "zoo"}, False),
        (MemoryScope("ada", "garden"), {}, False),
    ],
)
def test_what_a_handle_stands_for(scope: MemoryScope, fields: dict[str, Any], covered: bool) -> None:
    assert scope.covers(memory(**fields)) is covered
    assert (scope.where == ()) is (scope.namespace is None)


def test_a_handle_is_issued_once_for_each_agent_and_namespace(subject: Subject, run: Any) -> None:
    refs = subject.engine.refs
    scopes = [("ada", None), ("ada", "garden"), ("ada", "null"), ("bea", None), ('ada", null', None)]
    issued = [run(refs.issue(WHO, *scope)) for scope in scopes]
    assert len(set(issued)) == len(scopes)
    assert [run(refs.issue(WHO, *scope)) for scope in scopes] == issued
    assert all(re.fullmatch(r"mem_[0-9a-f]{32}", ref) for ref in issued)
    assert [run(refs.resolve(WHO, ref)) for ref in issued] == [MemoryScope(*scope) for scope in scopes]


def test_a_text_that_is_no_handle_names_an_agent(subject: Subject, run: Any) -> None:
    refs = subject.engine.refs
    assert run(refs.resolve(WHO, "ada")) == MemoryScope("ada")
    with pytest.raises(Forbidden):
        run(refs.resolve(Principal("b", agents=("bea",)), "ada"))
    with pytest.raises(Forbidden):
        run(refs.resolve(Principal("r", role="reader"), "ada", "writer"))


@pytest.mark.parametrize("who", [
    Principal("e", "acme"), Principal("b", role="admin", agents=("bea",)), Principal("n", agents=()),
])  # fmt: skip
def test_a_handle_that_one_may_not_use_is_as_good_as_none(subject: Subject, run: Any, who: Principal) -> None:
    ref = run(subject.engine.refs.issue(WHO, "ada"))
    for presented in (ref, f"mem_{'0' * 32}", "mem_", "mem_x", ref.upper().replace("MEM_", "mem_"), f"{ref}\n"):
        with pytest.raises(Forbidden) as refused:
            run(subject.engine.refs.resolve(who, presented))
        assert refused.value.message == REFUSED


def test_a_handle_gives_no_more_than_the_role(subject: Subject, run: Any) -> None:
    refs, reader = subject.engine.refs, Principal("r", role="reader", agents=("ada",))
    ref = run(refs.issue(reader, "ada"))
    assert run(refs.resolve(reader, ref)).agent == "ada"
    with pytest.raises(Forbidden):
        run(refs.resolve(reader, ref, "writer"))
    with pytest.raises(Forbidden):
        run(refs.issue(reader, "bea"))


@pytest.mark.parametrize("ref", ["", "x" * 257, "half \ud800"])
def test_what_can_be_no_handle_is_refused_by_name(subject: Subject, run: Any, ref: str) -> None:
    with pytest.raises(ValidationError) as refused:
        run(subject.engine.refs.resolve(WHO, ref))
    assert refused.value.details == {"field": "memoryRef"}


@pytest.mark.parametrize("field", ["agent", "namespace"])
def test_no_handle_is_issued_for_a_secret(subject: Subject, run: Any, field: str) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    scope = (token, None) if field == "agent" else ("ada", token)
    with pytest.raises(SecretLeakage) as refused:
        run(subject.engine.refs.issue(WHO, *scope))
    assert refused.value.details["fields"] == [field]
