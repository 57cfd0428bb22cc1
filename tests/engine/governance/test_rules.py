"""Rules: what each condition covers, what hides nothing, and what redacting leaves."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.governance.rules import (
    LATIN_LOOKALIKES,
    OPERATIONS,
    Proposal,
    findings,
    first_match,
    matches,
    of_memory,
    of_triple,
    parse_rules,
    redacted_memory,
    redacted_text,
    redacted_triple,
    visible,
)
from commonplace.stores.graph import Triple
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Memory, Principal

WHO = Principal("wren", dialect="amp")


def rule(action: str = "review", **when: Any) -> Any:
    return parse_rules([{"name": "it", "when": when, "action": action}], "rules")[0]


def memory(content: str = "the salary is high", **fields: Any) -> Memory:
    return Memory("a", "local", fields.pop("agent_id", "agent"), fields.pop("type", "semantic"), content, **fields)


def covers(when: dict[str, Any], found: Memory, operation: Any = "remember") -> bool:
    return first_match([rule(**when)], of_memory(operation, WHO, found, "amp", brings_text=True)).action == "review"


@pytest.mark.parametrize(
    ("when", "yes", "no"),
    [
        ({"agent": ["age*"]}, memory(), memory(agent_id="other")),
        ({"user": ["alice"]}, memory(user_id="alice"), memory()),
        ({"type": ["semantic"]}, memory(), memory(type="episodic")),
        ({"kind": ["lesson", "note"]}, memory(kind="note"), memory(kind="snippet")),
        ({"source": ["https://evil.example/*"]}, memory(source="https://evil.example/x"), memory(source="book")),
        ({"principal": ["wr*"], "agent": ["agent"]}, memory(), memory(agent_id="b")),
        ({"dialect": ["amp"], "kind": ["semantic"]}, memory(), memory(kind="x")),
        ({"content": "(?i)SALARY"}, memory(), memory("wages")),
        ({"confidence_below": 0.5}, memory(confidence=0.4), memory(confidence=0.5)),
        ({"privacy_intent": {"share_with": ["*"]}}, memory(privacy={"share_with": ["x"]}), memory()),
        ({"privacy_intent": {"share_with": ["bob"]}}, memory(privacy={"share_with": ["bob"]}),
         memory(privacy={"share_with": ["eve"]})),
        ({"privacy_intent": {"retain": True}}, memory(privacy={"retain": 7}), memory()),
        ({"privacy_intent": {"user_consent_id": False}}, memory(), memory(privacy={"user_consent_id": "c1"})),
        ({"findings": ["github_*"]}, memory("it is <REDACTED:github_token>"), memory("it is <REDACTED:password>")),
        ({"findings": ["zero_width"]}, memory("pass\u200bword"), memory("password")),
        ({"findings": ["bidi"]}, memory("a\u202eb"), memory("\u05e9\u05dc\u05d5\u05dd")),
    ],
)  # fmt: skip
def test_each_condition_covers_what_it_says(when: dict[str, Any], yes: Memory, no: Memory) -> None:
    assert (covers(when, yes), covers(when, no)) == (True, False)


def test_a_rule_without_conditions_covers_every_write_and_no_read() -> None:
    for operation in OPERATIONS:
        assert covers({}, memory(), operation) is (operation != "recall")


@pytest.mark.parametrize("asked", OPERATIONS)
def test_an_operation_covers_itself_and_remember_all_text_that_comes_in(asked: str) -> None:
    for operation in OPERATIONS:
        proposal = Proposal(operation, "wren", "agent", texts=("x",))
        assert (first_match([rule("reject", operation=[asked])], proposal).action == "reject") is (asked == operation)
    changed = Proposal("update", "wren", "agent", brings_text=True)
    assert (first_match([rule("reject", operation=[asked])], changed).action == "reject") is (
        asked in ("remember", "update")
    )


@pytest.mark.parametrize(
    "hidden",
    [
        memory("the sal\u200bary"), memory("the sal\u00adary"), memory("the \uff53\uff41\uff4c\uff41\uff52\uff59"),
        memory("x", title="salary"), memory("x", tags=["salary"]), memory("x", metadata={"deep": [{"salary": 1}]}),
        memory("x", entity_name="salary"), memory("x", source="salary"), memory("x", speaker="salary"),
        memory("x", kind="salary"), memory("x", project="salary"), memory("x", aliases=["salary"]),
        memory("x", user_id="salary"), memory("x", session_id="salary"), memory("sal\u202eary"),
        memory("x", provenance={"attestation": {"claim": {"context": "salary"}}}),
    ],
)  # fmt: skip
def test_no_field_and_no_spelling_hides_a_text(hidden: Memory) -> None:
    assert covers({"content": "salary"}, hidden)


def test_a_number_is_a_text_too() -> None:
    assert covers({"content": "^4111"}, memory("x", metadata={"card": 4111111111111111}))


def test_the_first_rule_that_covers_it_decides() -> None:
    documents = [
        {"name": "payroll may", "when": {"agent": ["payroll"], "content": "salary"}, "action": "allow"},
        {"name": "salaries", "when": {"content": "salary"}, "action": "reject"},
    ]
    rules = parse_rules(documents, "rules")
    for agent, action in (("payroll", "allow"), ("agent", "reject")):
        assert first_match(rules, of_memory("remember", WHO, memory(agent_id=agent))).action == action
    assert first_match(rules, of_memory("remember", WHO, memory("x"))).rule is None


def test_joiners_of_scripts_and_emoji_hide_nothing() -> None:
    assert findings(["\U0001f468\u200d\U0001f469", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"]) == set()
    assert findings(["a\u200db"]) == {"zero_width"}
    assert visible("a\u200db\u202ec") == "abc"


def test_an_expression_takes_linear_time() -> None:
    """With backtracking this would take longer than the universe has existed."""
    assert not covers({"content": "(a|aa)*(a|aa)*$b"}, memory("a" * 100_000))


def test_half_a_character_is_no_way_around() -> None:
    assert covers({"content": "salary"}, memory("\udc00 salary"))
    assert redacted_text(rule("redact", content="salary"), "a salary") == "a <REDACTED:it>"


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"name": "x"}, "action"),
        ({"action": "allow"}, "name"),
        ({"name": "x", "action": "forbid"}, "action"),
        ({"name": "x", "action": "allow", "if": {}}, "if"),
        ({"name": "x", "action": "allow", "when": {"colour": "red"}}, "colour"),
        ({"name": "x", "action": "allow", "when": {"operation": ["write"]}}, "operation"),
        ({"name": "x", "action": "allow", "when": {"type": ["fact"]}}, "type"),
        ({"name": "x", "action": "allow", "when": {"content": "("}}, "when.content"),
        ({"name": "x", "action": "allow", "when": {"content": r"(a)\1"}}, "when.content"),
        ({"name": "x", "action": "allow", "when": {"content": "(?=a)"}}, "when.content"),
        ({"name": "x", "action": "allow", "when": {"confidence_below": 2}}, "confidence_below"),
        ({"name": "x", "action": "allow", "when": {"privacy_intent": {"retain": "yes"}}}, "retain"),
        ({"name": "x", "action": "review", "when": {"operation": ["recall"]}}, "action"),
        ({"name": "x", "action": "reject", "when": {"operation": ["recall", "remember"]}}, "operation"),
        ("deny", "rules"),
    ],
)
def test_a_malformed_rule_is_refused_by_its_key_with_an_example(document: Any, key: str) -> None:
    with pytest.raises(ValidationError) as refused:
        parse_rules([document], "rules")
    assert key in refused.value.message
    assert 'a rule looks like {"name": "salaries"' in refused.value.message


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(ValidationError, match="two rules are named 'x'"):
        parse_rules([{"name": "x", "action": "allow"}] * 2, "rules")


def test_redacting_takes_out_what_matches_wherever_it_stands() -> None:
    found = memory(
        "her salary is high", title="Salary", tags=["salary", "pay"], metadata={"salary": "n", "n": ["salary"], "k": 1}
    )
    clean = redacted_memory(rule("redact", content="(?i)salary"), found)
    assert clean is not None
    assert (clean.content, clean.title, clean.tags) == (
        "her <REDACTED:it> is high", "<REDACTED:it>", ["<REDACTED:it>", "pay"],
    )  # fmt: skip
    assert clean.metadata == {"<REDACTED:it>": "n", "n": ["<REDACTED:it>"], "k": 1}
    assert not covers({"content": "(?i)salary"}, clean)


def test_two_keys_that_become_one_keep_both_values() -> None:
    clean = redacted_memory(rule("redact", content="salary|wage"), memory("x", metadata={"salary": 1, "wage": 2}))
    assert clean is not None
    assert sorted(clean.metadata.values()) == [1, 2]


def test_what_shows_only_without_invisible_characters_goes_as_a_whole() -> None:
    assert redacted_text(rule("redact", content="salary"), "her sal\u200bary") == "<REDACTED:it>"
    assert redacted_text(rule("redact", findings=["zero_width"]), "her sal\u200bary") == "her salary"
    assert redacted_text(rule("redact", findings=["bidi"]), "a\u202eb") == "ab"


def test_a_rule_that_names_no_text_redacts_all_of_it() -> None:
    clean = redacted_memory(rule("redact", agent=["agent"]), memory("x", title="t", tags=["a"], metadata={"k": "v"}))
    assert clean is not None
    assert (clean.content, clean.title, clean.tags, clean.metadata) == ("<REDACTED:it>", None, [], {})


def test_a_name_and_a_signed_text_cannot_be_redacted() -> None:
    redact = rule("redact", content="salary")
    assert redacted_memory(redact, memory("x", aliases=["salary"])) is None
    assert redacted_memory(redact, memory("salary", provenance={"attestation": {"claim": "x"}})) is None


def test_statements_are_covered_and_redacted_in_every_part() -> None:
    found = Triple("t", "agent", "Alice", "salary", "9000", 0, provenance="salary.txt")
    redact = rule("redact", content="salary|9000")
    assert first_match([redact], of_triple("statement", WHO, found)).action == "redact"
    clean = redacted_triple(redact, found)
    assert (clean.subject, clean.predicate, clean.object) == ("Alice", "<REDACTED:it>", "<REDACTED:it>")
    assert clean.provenance == "<REDACTED:it>.txt"


@pytest.mark.parametrize("text", ["her sаlаry", "her ѕаlаrу", "her sαlαry", "her ѕalary", "HER SАLАRY"])
def test_letters_that_look_alike_are_no_way_around(text: str) -> None:
    """Cyrillic, Greek and mixed spellings of a word that a rule is about; not what is really in another script."""
    rule = {"name": "salaries", "when": {"content": "(?i)salary"}, "action": "reject"}
    (parsed,) = parse_rules([rule], "rules")
    assert matches(parsed, Proposal("remember", "p", "a", texts=(text,)))
    assert redacted_text(parsed, text) == "<REDACTED:salaries>"
    for harmless in ("её зарплата", "ο μισθός της", "her pay"):
        assert not matches(parsed, Proposal("remember", "p", "a", texts=(harmless,)))


def test_a_rule_in_another_script_still_matches_it() -> None:
    rule = {"name": "pay", "when": {"content": "зарплата"}, "action": "reject"}
    (parsed,) = parse_rules([rule], "rules")
    assert matches(parsed, Proposal("remember", "p", "a", texts=("её зарплата",)))


def test_each_look_alike_is_one_letter_of_ascii() -> None:
    assert len(LATIN_LOOKALIKES) > 60
    assert all(not chr(key).isascii() and chr(value).isascii() for key, value in LATIN_LOOKALIKES.items())
