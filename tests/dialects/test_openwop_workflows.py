"""The four conformance workflows, with a clock that obeys; over HTTP they are in tests/serve/test_openwop_http.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from openwop_host import Host

from commonplace.config import RedactionConfig
from commonplace.dialects.openwop import MemoryAdapter, workflows
from commonplace.dialects.openwop.workflows import AGENT, ELSEWHERE, WORKFLOWS, perform, state_of
from commonplace.engine import Engine, Forget
from commonplace.testing.subject import FakeClock, Subject
from commonplace.wire.errors import Forbidden, NotFound, ValidationError
from commonplace.wire.times import iso
from commonplace.wire.validate import check

BASE = "conformance-agent-memory-"


@pytest.fixture
def host(over: tuple[Subject, Callable[[Any], Any]]) -> Host:
    return Host(*over)


def perform_workflow(host: Host, name: str) -> dict[str, Any]:
    async def wait(engine: Engine, until: int) -> None:
        clock = engine._core.clock
        assert isinstance(clock, FakeClock)
        clock.advance(until - clock())

    state: dict[str, Any] = host.wait(perform(host.engine, host.who, BASE + name, wait))
    check("openwop/operations/workflow_state.response", state)
    assert host.wait(state_of(host.engine, host.who, state["runId"])) == state
    return state


def test_what_was_written_is_read_back_by_a_later_run(host: Host) -> None:
    found = perform_workflow(host, "roundtrip")["variables"]
    assert found["memoryReadback"] == found["memoryWritten"]
    assert found["memoryReadback"] in host.list(AGENT)
    assert (found["sameRunReadback"], found["sameRunList"]) == (None, [])


def test_what_a_workflow_tells_is_what_the_adapter_said(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"id": "another", "content": "something else", "tags": [], "createdAt": iso(0)}

    class FixedAdapter(MemoryAdapter):
        async def get(self, *_: Any, **__: Any) -> Any:
            return entry

        async def list(self, *_: Any, **__: Any) -> Any:
            return [entry, entry]

        async def delete(self, *_: Any, **__: Any) -> bool:
            return True

    monkeypatch.setattr(workflows, "MemoryAdapter", FixedAdapter)
    single = {
        "roundtrip": {"memoryReadback", "sameRunReadback"},
        "redaction": {"memoryReadback"},
        "ttl": {"expiredReadback"},
        "cross-tenant": {"crossTenantGet", "crossTenantGetById"},
    }
    lists = {
        "roundtrip": {"memoryList", "sameRunList"},
        "redaction": set(),
        "ttl": {"memoryList", "memoryListBefore", "memoryListOfEarlierRun"},
        "cross-tenant": {"ownerProbe", "crossTenantProbe"},
    }
    for workflow in single:
        told = perform_workflow(host, workflow)["variables"]
        assert {name for name, value in told.items() if value == entry} == single[workflow]
        assert {name for name, value in told.items() if value == [entry, entry]} == lists[workflow]
    assert (told["crossTenantDelete"], told["otherTenantEntries"]) == (True, 2)


def test_the_secret_is_not_kept(host: Host) -> None:
    state = perform_workflow(host, "redaction")
    assert state["status"] == "completed"
    assert "<REDACTED:conformance-secret>" in state["variables"]["memoryReadback"]["content"]
    assert "<REDACTED:conformance-secret>" in state["variables"]["memoryReadback"]["tags"]
    assert state["variables"]["plaintextFound"] is False


def test_the_expired_entry_is_not_listed(host: Host) -> None:
    found = perform_workflow(host, "ttl")["variables"]
    assert {e["id"] for e in found["memoryListBefore"]} == {found["freshId"], found["expiredId"]}
    assert [e["id"] for e in found["memoryList"]] == [found["freshId"]]
    assert found["expiredReadback"] is None
    assert found["pastExpiryRefused"]["error"] == "validation_error"


def test_the_other_tenant_is_out_of_reach_and_left_empty(host: Host) -> None:
    found = perform_workflow(host, "cross-tenant")["variables"]
    assert [e["id"] for e in found["ownerProbe"]] == [found["ownerEntryId"]]
    assert (found["crossTenantProbe"], found["crossTenantGet"], found["crossTenantGetById"]) == ([], None, None)
    assert (found["crossTenantPut"]["error"], found["crossTenantDelete"]) == ("forbidden", False)
    assert found["otherTenantEntries"] == 1, "there was something to find"
    assert host.as_("someone", ELSEWHERE).list(AGENT) == []


def test_what_a_workflow_wrote_expires_within_the_hour(host: Host) -> None:
    for name in ("roundtrip", "ttl", "cross-tenant"):
        perform_workflow(host, name)
    assert host.list(AGENT)
    host.subject.clock.advance(3_600_000)
    assert host.list(AGENT) == []


def test_a_workflow_that_fails_says_why(host: Host) -> None:
    host.engine._core.settings.redaction = RedactionConfig(mode="off")
    with pytest.raises(ValidationError, match="redaction is off"):
        perform_workflow(host, "redaction")
    with pytest.raises(NotFound, match="no workflow"):
        perform_workflow(host, "other")
    with pytest.raises(Forbidden):
        perform_workflow(host.as_("ada", agents=("ada",)), "roundtrip")
    assert {name.removeprefix(BASE) for name in WORKFLOWS} == {"roundtrip", "redaction", "ttl", "cross-tenant"}


def test_a_clock_that_stands_still_fails_the_workflow_instead_of_waiting_for_ever(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflows, "_PATIENCE", 0)
    state = host.wait(perform(host.engine, host.who, BASE + "ttl"))
    assert (state["status"], state["variables"]["error"]) == ("failed", "unavailable")


def test_the_outcome_goes_with_an_erased_entry_and_with_the_run(host: Host) -> None:
    state = perform_workflow(host, "roundtrip")
    entry = state["variables"]["memoryReadback"]
    host.wait(host.engine.forget(host.who, Forget(AGENT, [entry["id"]], hard_delete=True)))
    with pytest.raises(NotFound, match="erased"):
        host.wait(state_of(host.engine, host.who, state["runId"]))
    state = perform_workflow(host, "roundtrip")
    host.wait(host.engine.runs.end(host.who, state["runId"]))
    with pytest.raises(NotFound):
        host.wait(state_of(host.engine, host.who, state["runId"]))
