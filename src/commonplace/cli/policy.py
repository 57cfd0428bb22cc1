"""Rules about what may be remembered, forgotten and recalled.

\b
Example:
  commonplace policy list
  commonplace policy test --content "(?i)salary" --days 30
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from commonplace.cli.support import values
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, flat, minute, moment, plural
from commonplace.cli.support.tables import Table
from commonplace.wire.errors import ValidationError

Rules = Annotated[Path, argument("FILE", 'A JSON file {"rules": [...]}; `-` reads stdin.')]
_LISTED = ("agent", "user", "type", "kind", "source", "dialect", "principal", "operation", "findings")

_UNUSED = "rules are asked for every agent"

commands = Commands(__doc__)


@commands.add("list", unused=_UNUSED)
def list_rules(run: Session) -> Answer:
    """List the rules in force, in the order in which they are asked.

    \b
    Example:
      commonplace policy list --json
    """
    found = run(run.memory.policies())
    rules = [(rule, "commonplace.toml") for rule in found["configured"]] + [(rule, "store") for rule in found["rules"]]
    rows = [[rule["name"], rule["action"], _conditions(rule), where] for rule, where in rules]
    return Answer(found, Table(["rule", "action", "when", "from"], rows, rows, empty="there are no rules"))


@commands.add("set", existing=False, unused=_UNUSED)
def set_rules(run: Session, file: Rules) -> Answer:
    """Replace the rules that are kept in the store; those of commonplace.toml stay.

    \b
    Example:
      commonplace policy set rules.json
    """
    found = run(run.memory.set_policies(_rules(file)))
    return Answer(found, f"{plural(len(found['rules']), 'rule')} in force from now on")


@commands.add("test", unused=_UNUSED)
def try_rules(
    run: Session,
    file: Annotated[Path | None, argument("[FILE]", 'A JSON file {"rules": [...]}; `-` reads stdin.')] = None,
    content: Annotated[str | None, option("--content REGEX", "Instead of a file: what a text must match.")] = None,
    when: Annotated[
        list[str] | None, option("--when KEY=VALUE", "Instead of a file: a condition, such as kind=lesson; repeat it.")
    ] = None,
    days: Annotated[int, option("--days N", "How far back.")] = 30,
) -> Answer:
    """Say what rules would have caught lately; nothing is changed.

    \b
    Example:
      commonplace policy test --content "(?i)salary" --days 30
      commonplace policy test rules.json
    """
    if (file is None) == (content is None and not when):
        raise ValidationError("give a FILE, or --content and --when: one of them", field="file")
    rules = _rules(file) if file is not None else [_rule(content, when)]
    found = run(run.memory.try_policies(rules, days=days))

    def row(each: Document, at: str) -> list[Any]:
        return [(flat(each.get("content", "")), each.get("id", "")), each["rule"], each["operation"],
                each["agent_id"], each["principal"], at]  # fmt: skip

    lately = "1 day" if days == 1 else f"{days} days"
    counted = f"{plural(len(found['caught']), 'write')} of {found['looked_at']:,} in {lately}"
    table = Table(
        ["write", "rule", "operation", "agent", "by", "at"],
        [row(each, minute(each["at"])) for each in found["caught"]],
        [row(each, moment(each["at"])) for each in found["caught"]],
        empty=f"would have caught nothing: {counted}",
        more=f"would have caught {counted}; nothing was changed" if found["caught"] else None,
    )
    return Answer(found, table)


@commands.add("learned", unused=_UNUSED)
def learned(run: Session) -> Answer:
    """List what reviewers always approve, and whether it needs them still.

    \b
    Example:
      commonplace policy learned
    """
    found = run(run.memory.learned_policies())
    rows = [
        [
            (_conditions({"when": {k: v for k, v in each["pattern"].items() if v and k != "rule"}}), each["id"]),
            each["pattern"]["rule"],
            each["approved"],
            "allowed" if each["auto_allow"] else "reviewed",
        ]
        for each in found
    ]
    table = Table(["pattern", "rule", "approved", "now"], rows, rows, empty="nothing has been learned")
    return Answer({"learned": found}, table)


@commands.add("revoke", unused=_UNUSED)
def revoke(run: Session, pattern: Annotated[str, argument("PATTERN", "The pattern's id.")]) -> Answer:
    """Take back what was learned of a pattern; only later decisions count.

    \b
    Example:
      commonplace policy revoke 3f1c9a7e5b2d4c60
    """
    done = run(run.memory.revoke_learned(pattern))
    return Answer(done, f"revoked {pattern}")


_EXAMPLE = '{"rules": [{"name": "salaries", "when": {"content": "(?i)salary"}, "action": "review"}]}'


def _rules(file: Path) -> list[Document]:
    document = values.json_object(values.text_file(file, "FILE", values.MAX_REQUEST_CHARS), "FILE", _EXAMPLE)
    rules = document.get("rules")
    if not isinstance(rules, list) or set(document) != {"rules"}:
        raise ValidationError(f"FILE must have one list of rules, such as {_EXAMPLE}", field="rules")
    return rules


def _rule(content: str | None, conditions: list[str] | None) -> Document:
    given = values.pairs(conditions, "--when")
    when: Document = {name: [value] if name in _LISTED else value for name, value in given.items()}
    if content is not None:
        when["content"] = content
    return {"name": "test", "when": when, "action": "review"}


def _conditions(rule: Document) -> str:
    said: Document = rule.get("when", {})
    return (
        ", ".join(f"{name} {'|'.join(value) if isinstance(value, list) else value}" for name, value in said.items())
        or "every write"
    )
