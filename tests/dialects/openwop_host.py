"""OpenWOP's MemoryAdapter with the shortest way to say each thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commonplace.dialects.memorywire import Memorywire
from commonplace.dialects.openwop import MemoryAdapter
from commonplace.testing.subject import Subject
from commonplace.wire.models import RememberRequest
from commonplace.wire.record import Principal, Role
from commonplace.wire.validate import check


class Host:
    """The adapter of one caller, every answer checked against its schema."""

    def __init__(self, subject: Subject, run: Callable[[Any], Any], who: Principal | None = None) -> None:
        self.subject, self.engine, self.wait, self.who = subject, subject.engine, run, who or Principal()

    def as_(self, name: str, tenant: str = "local", role: Role = "writer", agents: tuple[str, ...] = ("*",)) -> Host:
        return Host(self.subject, self.wait, Principal(name, tenant, role, agents))

    def adapter(self, run: Any = None) -> MemoryAdapter:
        return MemoryAdapter(self.engine, self.who, run)

    def start(self, **options: Any) -> Any:
        return self.wait(self.engine.runs.start(self.who, **options))

    def put(
        self, content: str = "tea", ref: str = "alice", run: Any = None, backend: str = "longTerm", **more: Any
    ) -> Any:
        entry = self.wait(self.adapter(run).put(ref, {"content": content, **more}, backend=backend))
        check("openwop/types/memory-entry", entry)
        return entry

    def list(self, ref: str = "alice", run: Any = None, backend: str = "longTerm", **options: Any) -> list[Any]:
        found: list[Any] = self.wait(self.adapter(run).list(ref, options, backend=backend))
        for entry in found:
            check("openwop/types/memory-entry", entry)
        return found

    def contents(self, ref: str = "alice", run: Any = None, backend: str = "longTerm", **options: Any) -> Any:
        return [entry["content"] for entry in self.list(ref, run, backend, **options)]

    def get(self, id: str, ref: str = "alice", run: Any = None, backend: str = "longTerm") -> Any:
        return self.wait(self.adapter(run).get(ref, id, backend=backend))

    def delete(self, id: str, ref: str = "alice", run: Any = None, backend: str = "longTerm") -> Any:
        return self.wait(self.adapter(run).delete(ref, id, backend=backend))

    def ref(self, agent: str = "alice", namespace: str | None = None) -> str:
        return str(self.wait(self.engine.refs.issue(self.who, agent, namespace)))

    def remember(self, content: str, agent: str = "alice", **more: Any) -> str:
        request = RememberRequest(agent_id=agent, type="semantic", content=content, **more)
        return self.wait(Memorywire(self.engine, self.who).remember(request)).id  # type: ignore[no-any-return]
