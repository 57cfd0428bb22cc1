"""*Audit*: that nobody has changed the ledger; its heads, its proofs, and how it is verified."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from commonplace.engine import read_evidence
from commonplace.ui.page import Answer, Download, PageRequest, PageRoute, Redirect, TemplatePage
from commonplace.wire.errors import Conflict, Fault


async def show_proofs(call: PageRequest) -> Answer:
    """Where heads are signed, proofs made, and the ledger compared with what was kept elsewhere."""
    query, heads = call.query, call.engine.ledger.heads
    values: dict[str, Any] = {
        "key": heads.key(call.who), "proof": None, "consistency": None, "problem": None,
        "may_verify": call.who.uses_all_agents,
        "since_size": query.get("from", "").strip(),  # `from` is a word of the templates' language
        **{name: query.get(name, "").strip() for name in ("entry", "size", "to")},
    }  # fmt: skip
    try:
        if (entry := call.whole("entry", values["entry"])) is not None:
            values["proof"] = _pretty(await heads.proof(call.who, entry, call.whole("size", values["size"])))
        if (first := call.whole("from", values["since_size"])) is not None:
            found = await heads.consistency(call.who, first, call.whole("to", values["to"]))
            values["consistency"] = _pretty(found)
    except Fault as fault:
        if fault.code != "validation_error":
            raise
        values["problem"] = fault.summary
    return TemplatePage("audit_proofs.html", values, 400 if values["problem"] else 200)


def _pretty(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1)


async def sign_head(call: PageRequest) -> Answer:
    """A file to keep elsewhere."""
    head = await call.engine.ledger.heads.head(call.who)

    async def chunks() -> AsyncIterator[bytes]:
        yield json.dumps(head).encode() + b"\n"

    return Download(f"head-{head['size']}.json", "application/json", chunks())


async def export_headers(call: PageRequest) -> Answer:
    """As `commonplace audit export` writes it: nothing of any memory, and a signed head at the end."""
    return Download("ledger.jsonl", "application/x-ndjson", call.engine.ledger.export_lines(call.who))


# verifying, in a task of its own: a long ledger takes longer than a request may


@dataclass(slots=True)
class Verification:
    """One walk over a tenant's ledger, and what came of it."""

    begun: int
    evidence: Sequence[dict[str, Any]] = ()  # heads and exported entries that it must still be the ledger of
    key: str | None = None
    done: int = 0
    of: int = 0
    task: asyncio.Task[None] | None = None
    finished: int | None = None
    entries: int = 0
    head: str = ""
    first_bad: int | None = None
    problem: str | None = None

    @property
    def percent(self) -> int:
        return round(100 * self.done / self.of) if self.of else 0


def verifications(call: PageRequest) -> dict[str, Verification]:
    found: dict[str, Verification] = call.kept.setdefault("verifications", {})
    return found


async def verify(call: PageRequest) -> Answer:
    """Begun here and done beside; the page that one is led to tells how far it is."""
    call.engine.ledger.require_verify(call.who)
    known, text = verifications(call), call.text("evidence").strip()
    evidence = read_evidence(text.splitlines(keepends=True), "what was pasted") if text else ()
    running = known.get(call.who.tenant)
    if running is None or running.finished is not None:
        made = Verification(call.engine.clock(), evidence, call.value("key") or None)
        known[call.who.tenant] = made
        made.task = asyncio.create_task(_verify(call, made))
    elif evidence:  # what is being looked at is not what was asked
        raise Conflict("the ledger is being verified already; try again when that is done")
    return Redirect(call.link("audit"))


async def _verify(call: PageRequest, made: Verification) -> None:
    def progress(done: int, of: int) -> None:
        made.done, made.of = done, of

    try:
        found = await call.engine.ledger.verify(call.who, progress, evidence=made.evidence, key=made.key)
        made.entries, made.head, made.first_bad, made.problem = (
            found.entries,
            found.head,
            found.first_bad,
            found.problem,
        )
    except Fault as fault:
        made.problem = fault.summary
    except Exception as error:
        made.problem = f"it could not be checked ({type(error).__name__})"
    made.finished = call.engine.clock()


ROUTES = (
    PageRoute("GET", "audit/proofs", show_proofs, "page_audit_proofs"),
    PageRoute("GET", "audit/head", sign_head, "page_audit_head"),
    PageRoute("GET", "audit/ledger", export_headers, "page_audit_ledger"),
    PageRoute("POST", "audit/verify", verify, "page_audit_verify"),
)
