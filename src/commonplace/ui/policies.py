"""*Policies*: the rules there are, what a rule would have caught, and what was learned from decisions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from commonplace.ui.page import Answer, PageRequest, PageRoute, Redirect, TemplatePage
from commonplace.wire.errors import Fault, NotFound, ValidationError

ACTIONS = ("review", "reject", "redact", "allow")
OPERATIONS = ("remember", "update", "forget", "merge", "statement", "attestation", "recall")
_DAYS = 30
_SAID = {
    "saved": "These rules hold from now on.",
    "accepted": "A rule allows it from now on.",
    "revoked": "What was learned of it is forgotten.",
}


async def show_policies(call: PageRequest) -> Answer:
    return await _page(call)


async def _page(call: PageRequest, *, problem: Fault | None = None, typed: str | None = None, **values: Any) -> Answer:
    found = await call.engine.policies.get(call.who)
    if problem is not None:
        call.engine.redactor.redact_fault(problem, call.who)
    given = {name: call.value(name) for name in ("name", "action", "content", "agent", "operation", "note", "days")}
    shown = {
        "own": found["rules"], "configured": found["configured"],
        "learned": await call.engine.policies.learned(call.who),
        "rules": typed if typed is not None else json.dumps(found["rules"], ensure_ascii=False, indent=1),
        "actions": ACTIONS, "operations": OPERATIONS, "given": given, "tried": None, "days": _DAYS,
        "said": _SAID.get(call.query.get("said", "")), "problem": None if problem is None else problem.summary,
        "may_change": call.may("admin") and call.who.uses_all_agents,
        "after": call.engine.settings.governance.auto_allow_after,
    }  # fmt: skip
    status = 200 if problem is None else {"forbidden": 403, "not_found": 404}.get(problem.code, 400)
    return TemplatePage("policies.html", {**shown, **values}, status)


async def try_rule(call: PageRequest) -> Answer:
    """What one rule would have caught, or keep it."""
    try:
        rule = _rule(call)
        if call.value("do") == "keep":
            own = (await call.engine.policies.get(call.who))["rules"]
            await call.engine.policies.replace(call.who, [*own, rule])
            return Redirect(call.link("policies", said="saved"))
        days = call.whole("days", call.value("days")) or _DAYS
        tried = await call.engine.policies.dry_run(call.who, [rule], days)
    except Fault as fault:
        return await _page(call, problem=fault)
    return await _page(call, tried=tried, days=days)


def _rule(call: PageRequest) -> dict[str, Any]:
    when: dict[str, Any] = {}
    if content := call.value("content"):
        when["content"] = content
    for name in ("agent", "operation"):
        if value := call.value(name):
            when[name] = [value]
    rule = {"name": call.value("name") or "tried", "action": call.value("action"), "when": when}
    return rule | ({"note": note} if (note := call.value("note")) else {})


async def replace_rules(call: PageRequest) -> Answer:
    text = call.text("rules")
    try:
        try:
            rules = json.loads(text or "[]")
        except (ValueError, RecursionError):
            raise ValidationError("rules must be a JSON list, such as []", field="rules") from None
        if not isinstance(rules, list):
            raise ValidationError("rules must be a JSON list, such as []", field="rules")
        if call.value("do") == "try":
            return await _page(call, typed=text, tried=await call.engine.policies.dry_run(call.who, rules, _DAYS))
        await call.engine.policies.replace(call.who, rules)
    except Fault as fault:
        return await _page(call, problem=fault, typed=text)
    return Redirect(call.link("policies", said="saved"))


async def decide_learned(call: PageRequest) -> Answer:
    """Make a rule of what reviewers always approve, or forget that they did."""
    id = call.path["pattern"]
    try:
        if call.value("do") == "revoke":
            await call.engine.policies.revoke(call.who, id)
            return Redirect(call.link("policies", said="revoked"))
        found = {each["id"]: each for each in await call.engine.policies.learned(call.who)}
        if id not in found:
            raise NotFound(f"nothing was learned of a pattern {id:.80}")
        own = (await call.engine.policies.get(call.who))["rules"]
        await call.engine.policies.replace(call.who, [allowing(found[id]["pattern"], id), *own])
    except Fault as fault:
        return await _page(call, problem=fault)
    return Redirect(call.link("policies", said="accepted"))


def allowing(pattern: Mapping[str, str], id: str) -> dict[str, Any]:
    """The rule that allows exactly what a pattern covers; a star in one of its names stands for itself no more."""
    names = ("operation", "agent", "principal", "dialect", "type", "kind", "source")
    when = {name: [pattern[name]] for name in names if pattern.get(name)}
    return {"name": f"always approved {id}", "action": "allow", "when": when, "note": f"instead of {pattern['rule']}"}


ROUTES = (
    PageRoute("GET", "policies", show_policies, "page_policies"),
    PageRoute("POST", "policies/try", try_rule, "page_policies_try"),
    PageRoute("POST", "policies", replace_rules, "page_policies_replace"),
    PageRoute("POST", "policies/learned/{pattern}", decide_learned, "page_policies_learned"),
)
