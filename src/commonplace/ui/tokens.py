"""*Tokens*, for the operator: who may use which agents, until when."""

from __future__ import annotations

from typing import Any

from commonplace.ui.page import Answer, PageRequest, PageRoute, Redirect, TemplatePage
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.record import LOCAL_TENANT
from commonplace.wire.times import DAY_MS

ROLES = ("reader", "writer", "reviewer", "admin")


async def show_tokens(call: PageRequest) -> Answer:
    return await _page(call)


async def _page(call: PageRequest, *, problem: Fault | None = None, **values: Any) -> Answer:
    if problem is not None:
        call.engine.redactor.redact_fault(problem, call.who)
    given = {name: call.value(name) for name in ("name", "role", "agents", "tenant", "days")}
    shown = {
        "tokens": await call.engine.tokens.list(call.who), "roles": ROLES, "given": given, "local": LOCAL_TENANT,
        "secret": None, "problem": None if problem is None else problem.summary,
    }  # fmt: skip
    status = 200 if problem is None else {"forbidden": 403, "not_found": 404, "conflict": 409}.get(problem.code, 400)
    return TemplatePage("tokens.html", {**shown, **values}, status)


async def create(call: PageRequest) -> Answer:
    """The secret is on the page that answers, and nowhere else ever after."""
    try:
        days = call.whole("days", call.value("days"))
        agents = [each for part in (call.value("agents") or "*").split(",") if (each := part.strip())]
        token, secret = await call.engine.tokens.create(
            call.who,
            tenant=call.value("tenant") or LOCAL_TENANT,
            role=call.value("role"),
            agents=agents,
            expires_at=None if days is None else call.engine.clock() + days * DAY_MS,
            name=call.value("name") or None,
        )
    except Fault as fault:
        return await _page(call, problem=fault)
    return await _page(call, secret=secret, of=token.name)


async def change(call: PageRequest) -> Answer:
    ref, verb = call.path["token"], call.value("do")
    try:
        match verb:
            case "rotate":
                token, secret = await call.engine.tokens.rotate(call.who, ref)
                return await _page(call, secret=secret, of=token.name)
            case "revoke":
                await call.engine.tokens.revoke(call.who, ref)
            case "remove":
                await call.engine.tokens.remove(call.who, ref)
            case _:
                raise ValidationError("choose rotate, revoke or remove", field="do")
    except Fault as fault:
        return await _page(call, problem=fault)
    return Redirect(call.link("tokens"))


ROUTES = (
    PageRoute("GET", "tokens", show_tokens, "page_tokens"),
    PageRoute("POST", "tokens", create, "page_tokens_create"),
    PageRoute("POST", "tokens/{token}", change, "page_tokens_change"),
)
