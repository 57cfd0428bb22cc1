"""Agents who talk MRP: what they ask, sign and send, with every answer checked against its schema."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from commonplace.dialects.mrp import Mrp, signatures
from commonplace.engine.types import Draft
from commonplace.testing.subject import Subject
from commonplace.wire import keys
from commonplace.wire.record import Principal
from commonplace.wire.times import iso
from commonplace.wire.validate import check

Document = dict[str, Any]
LOCAL = Principal()
_ANSWERS = {"memory_request": "mrp/response", "memory_verify": "mrp/verify-result"}


def attestation(content: str = "Pruning is identity", **more: Any) -> Document:
    """As some other agent makes one."""
    made: Document = {
        "id": str(uuid.uuid4()), "agent": "Babel", "created_at": "2025-06-01T12:00:00Z",
        "claim": {"type": "insight", "content": content, "context": "a long night", "references": []},
        "salience": {
            "why_kept": "it explains much", "category": "foundational", "confidence": 0.9,
            "expected_decay": {"type": "permanent", "until": None}, "supersedes": [],
        },
        "provenance": {"source": "direct-experience", "witnesses": [], "chain": []},
    }  # fmt: skip
    return {**made, **more}


def vouch(voucher: str, subject: str, public: str | None = None, **more: Any) -> Document:
    """`public` is the key its subject is known by."""
    made: Document = {
        "id": f"vouch-{voucher}-{subject}-{uuid.uuid4()}", "created_at": "2025-06-01T12:00:00Z",
        "voucher": {"agent_id": voucher}, "subject": {"agent_id": subject} | ({"public_key": public} if public else {}),
        "claim": {"domain": "memory-systems", "statement": "knows how to forget", "level": "expert"},
        "evidence": {"context": "we worked together", "interaction_refs": [], "outcome": "it held"},
        "confidence": {"level": "high", "reason": "years of it"}, "scope": {},
    }  # fmt: skip
    return {**made, **more}


class Talk:
    """One responder, and whoever asks it."""

    def __init__(self, subject: Subject, run: Callable[[Any], Any]) -> None:
        self.subject, self.run, self.engine = subject, run, subject.engine

    def mrp(self, who: Principal = LOCAL, agent: str | None = None, *, peer: bool = False) -> Mrp:
        return Mrp(self.engine, who, agent=agent, authenticated=not peer)

    def remember(self, content: str, agent: str = "alice", *, shared: list[str] | None = None, **fields: Any) -> str:
        privacy = {} if shared is None else {"share_with": shared}
        draft = Draft(agent, fields.pop("type", "semantic"), content, privacy=privacy, **fields)
        id: str = self.run(self.engine.remember(LOCAL, draft)).id
        return id

    def settings(self, **changes: Any) -> None:
        self.engine._core.settings.mrp = replace(self.engine._core.settings.mrp, **changes)

    def trust(self, agent: str, level: int = 2, key: str | None = None, voucher: bool = False, **more: Any) -> None:
        self.run(self.engine.peers.bind(LOCAL, agent, level=level, key=key, voucher=voucher, replace=True, **more))

    def request(self, natural: str | None = "what about pruning?", requester: str = "bob", **more: Any) -> Document:
        structured = more.pop("structured", None)
        preferences = more.pop("preferences", None)
        query: Document = {} if natural is None else {"natural": natural}
        made: Document = {
            "$schema": "https://anamnesis.dev/schemas/mrp/request-v01.json", "type": "memory_request",
            "version": "0.1", "header": {"request_id": str(uuid.uuid4()), "timestamp": iso(self.subject.clock())},
            "requester": {"agent_id": requester},
            "query": query | ({} if structured is None else {"structured": structured}),
        }  # fmt: skip
        if preferences is not None:
            made["response_preferences"] = preferences
        return {**made, **more}

    def verification(self, result: Document, *checks: str, **more: Any) -> Document:
        made: Document = {
            "type": "memory_verify", "version": "0.1",
            "header": {"verify_id": str(uuid.uuid4()), "timestamp": iso(self.subject.clock())},
            "target": {"memory_id": result["memory_id"],
                       "attestation_hash": signatures.attestation_hash(result["attestation"])},
        }  # fmt: skip
        return {**made, **({"checks": list(checks)} if checks else {}), **more}

    def sign(self, document: Document, private: str) -> Document:
        """As our client does: for this responder and nobody else."""
        return signatures.sign_request({**document, "audience": self.engine.peers.identity.keypair().public}, private)

    def send(self, document: Document, *, via: Mrp | None = None) -> Document:
        answer: Document = self.run((via or self.mrp()).handle(document))
        check(_ANSWERS[document["type"]], answer)
        return answer

    def ask(self, natural: str | None = "what about pruning?", *, via: Mrp | None = None, **more: Any) -> Document:
        return self.send(self.request(natural, **more), via=via)

    def found(self, natural: str | None = "what about pruning?", **more: Any) -> list[str]:
        return [r["attestation"]["claim"]["content"] for r in self.ask(natural, **more)["results"]]

    def vouched(self, document: Document, **who: Any) -> bool:
        counted: bool = self.run(self.mrp(**who).vouch({"vouch": document}))["counted"]
        return counted


def key() -> tuple[str, str]:
    """(private, public)"""
    private = keys.new_private()
    return private, keys.public_of(private)
