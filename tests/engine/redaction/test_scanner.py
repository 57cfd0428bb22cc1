"""The scanner: secrets of every family are found in every surrounding, what only looks like one is left alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings, strategies as st
from redaction_corpus.benign import benign, paragraphs
from redaction_corpus.credentials import ALNUM, BY_FORM, some
from redaction_corpus.positives import Positive, held_out, leaked, positives

from bench.redaction.facts import facts
from bench.redaction.report import texts
from commonplace.config import RedactionConfig
from commonplace.engine.redaction import Redactor, Secrets, scanner
from commonplace.engine.redaction.phrase_rules import PHRASES
from commonplace.engine.redaction.token_rules import TOKENS
from commonplace.wire.errors import SecretLeakage

ON = Redactor()
RNG = Random(5)
KEY = BY_FORM["aws_access_key"](RNG)
TOKEN = BY_FORM["github"](RNG)


def find_missed(texts: Iterable[Positive]) -> tuple[Counter[str], list[str]]:
    seen: Counter[str] = Counter()
    left = []
    for each in texts:
        seen[each.family] += 1
        clean, labels = ON.text(each.text)
        if leaked(each.secret, clean) or not labels:
            left.append(each.family)
    return seen, left


def test_credentials_of_every_family_are_found_in_every_surrounding() -> None:
    seen, left = find_missed(positives())
    assert len(seen) >= 40
    assert seen.total() >= 300
    assert len(left) <= 0.02 * seen.total(), Counter(left)


KINDS = {
    "github_token": [f"{'gh'}{kind}_" for kind in "pousr"] + ["github" + "_pat_"],
    "gitlab_token": [f"{'gl'}{kind}-" for kind in ("pat", "dt", "rt", "rtr", "ptt", "ft", "soat", "imt", "agent")],
    "slack_token": [f"{'xox'}{kind}-" for kind in "abceoprs"],
    "openai_key": [f"{'sk'}-{kind}-" for kind in ("proj", "svcacct", "admin", "None")],
    "huggingface_token": ["hf" + "_", "api" + "_org_"],
}


@pytest.mark.parametrize(("family", "prefix"), [(family, each) for family, kinds in KINDS.items() for each in kinds])
def test_every_kind_of_a_family_is_found(family: str, prefix: str) -> None:
    """None of them may be among the few that are missed elsewhere."""
    secret = prefix + some(Random(prefix), ALNUM, 82)
    for text in (secret, f"the old one was {secret}, change it", f'{{"value": "{secret}"}}'):
        clean, labels = ON.text(text)
        assert not leaked(secret, clean), text
        assert family in labels


def test_awkward_surroundings_hide_nothing() -> None:
    seen, left = find_missed(held_out())
    assert len(left) <= 0.02 * seen.total(), Counter(left)


def test_every_family_of_rules_that_the_page_lists_exists() -> None:
    page = (Path(__file__).parents[3] / "docs" / "redaction.md").read_text("utf-8")
    assert [label for label in scanner.FAMILIES if f"`{label}`" not in page] == []
    assert len(scanner.FAMILIES) >= 40


def test_several_secrets_in_one_text_all_go() -> None:
    made = {name: make(RNG) for name, make in BY_FORM.items()}
    clean, labels = ON.text("\n".join(f"{i}: {secret}" for i, secret in enumerate(made.values())))
    assert [name for name, secret in made.items() if leaked(secret, clean)] == []
    assert len(labels) >= 60


def test_texts_that_only_look_dangerous_are_left_alone() -> None:
    texts = list(benign())
    assert len(set(texts)) >= 2000
    flagged = [text for text in texts if ON.text(text)[1]]
    assert len(flagged) <= 0.005 * len(texts), flagged[:20]


@pytest.mark.slow
def test_this_projects_own_pages_and_code_are_left_alone() -> None:
    texts = list(paragraphs())
    assert len(texts) >= 2000
    flagged = [text for text in texts if ON.text(text)[1]]
    assert len(flagged) <= 0.005 * len(texts), flagged[:5]


def test_a_secret_cannot_hide_in_a_marker() -> None:
    for disguise in (f"<REDACTED:{TOKEN}>", f"password: <REDACTED:password>{TOKEN}", f"[REDACTED:x]{KEY}"):
        clean, labels = ON.text(disguise)
        assert not leaked(TOKEN, clean)
        assert not leaked(KEY, clean)
        assert labels


def pieces() -> st.SearchStrategy[str]:
    rng = Random(1)
    triggers = [trigger for rule in (*TOKENS, *PHRASES) for trigger in rule.triggers]
    secrets = [make(rng) for make in BY_FORM.values()]
    said = ["password is ", "password: ", "password=", "token=", "api key is ", "pw ", "://a:", "@host", "-u a:", "'",
            '"', " ", "\n", "\\n", "<REDACTED:", "<REDACTED:password>", "[REDACTED:secret]", ">", "]", "hunter22",
            "-----BEGIN", " PRIVATE KEY-----", "DB_PASSWORD=", "4111 1111 1111 1111", "x9", "Bearer ",
            "Authorization: Basic ", "password is '", "set password to '", "mysql -p", "auth=", "cookie sid=",
            "seed phrase is ", "private key ", "orbit winter velvet tiger ", "0f1e2d3c4b5a6978"]  # fmt: skip
    return st.lists(st.sampled_from(triggers + secrets + said) | st.text(max_size=8), max_size=12).map("".join)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(pieces(), st.sampled_from(["angle", "square"]))
@example("password: pw: hunter22 pw hunter22", "angle")
def test_redacting_twice_is_redacting_once(text: str, marker: str) -> None:
    redactor = Redactor(RedactionConfig(marker=marker))
    registered = Secrets.of({"hunter": "hunter22", "other": "password"})
    once, labels = redactor.text(text, registered)
    assert redactor.text(once, registered) == (once, [])
    assert bool(labels) == (once != text)


# the steps of a scan


def test_only_rules_whose_triggers_are_there_are_tried() -> None:
    text = f"the password is here, and so is {TOKEN}"
    labels = {rule.label for rule in scanner.candidates(text, text.lower())}
    assert {"password", "github_token"} <= labels
    assert "slack_token" not in labels
    assert scanner.candidates("gh ghp", "gh ghp") == [], "a token is a long run of characters"


def test_spans_are_in_order_and_never_overlap() -> None:
    text = f"password: {TOKEN} and {KEY}, card 4111 1111 1111 1111"
    found = scanner.spans(text)
    assert [(text[start:end], label) for start, end, label in found] == [
        (TOKEN, "github_token"), (KEY, "aws_access_key"), ("4111 1111 1111 1111", "card_number")]  # fmt: skip


def test_without_rules_registered_values_alone_are_found() -> None:
    registered = (Secrets.of({"door": "swordfish 12345"}),)
    text = f"{TOKEN} or swordfish 12345"
    assert [label for *_, label in scanner.spans(text, registered, rules=False)] == ["door"]
    assert scanner.redact(text, lambda label: f"<REDACTED:{label}>", registered, rules=False) == (
        f"{TOKEN} or <REDACTED:door>", ["door"])  # fmt: skip


def test_a_registered_value_names_what_overlaps_it() -> None:
    registered = (Secrets.of({"door": TOKEN[:12]}),)
    assert ON.text(f"use {TOKEN} now", registered[0]) == ("use <REDACTED:door> now", ["door"])


def test_what_a_marker_has_replaced_is_no_secret_but_what_stands_beside_it_is() -> None:
    for text, clean in (
        ("password: <REDACTED:password>", "password: <REDACTED:password>"),
        ("password: <REDACTED:password>.", "password: <REDACTED:password>."),
        ("DB_PASSWORD=ab<REDACTED:password>", "DB_PASSWORD=ab<REDACTED:password>"),
        ("password: [REDACTED:password]", "password: [REDACTED:password]"),
    ):
        assert ON.text(text)[0] == clean
    beside = ON.text("DB_PASSWORD=abcdefg1<REDACTED:unheard>")
    assert beside == ("DB_PASSWORD=<REDACTED:password>", ["password"]), "no label of ours: it may be part of it"


def test_a_text_that_uncovers_secrets_without_end_is_refused() -> None:
    rounds = iter(range(100))

    def marker(label: str) -> str:
        return f"password: hunter{next(rounds)}x"

    with pytest.raises(SecretLeakage, match="secrets within secrets"):
        scanner.redact("password: hunter22", marker)


@pytest.mark.parametrize(("text", "worth"), [
    ("nothing to see", False), ("the password", True), ("-----BEGIN", True), ("4111 1111", True), ("4111", False),
    ("my own words, spelled out", True),
])  # fmt: skip
def test_what_is_worth_a_closer_look(text: str, worth: bool) -> None:
    assert scanner.suspicious(text, (Secrets.of({"own": "my own words"}),)) is worth


@pytest.mark.parametrize(("name", "labels"), [
    (f"x-{TOKEN}", ["github_token"]), ("password: hunter22", []), ("4111 1111 1111 1111", []), ("plain", []),
    ("of my own words", ["own"]), (f"{TOKEN} {KEY} {TOKEN}", ["aws_access_key", "github_token"]),
])  # fmt: skip
def test_what_makes_a_name_a_secret(name: str, labels: list[str]) -> None:
    assert scanner.in_name(name, (Secrets.of({"own": "my own words"}),)) == labels


def test_every_family_is_named_once() -> None:
    assert len(set(scanner.FAMILIES)) == len(scanner.FAMILIES)
    assert {scanner.CARD, scanner.PRIVATE_KEY} <= set(scanner.FAMILIES)


# how long it takes


HOSTILE = (
    "a", "A", "1", "1 ", "4111-", "-----BEGIN", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", ":", "@",
    ":@", "://", "://a:b", "://a:a@", "eyJ", "eyJaaaaaaaa.", "eyJ-", "password ", "password is ", "password: '", "pw=",
    "PASSWORD_", "token = ", "key for a b c d ", "bearer ", "authorization: ", "--password ", "-u a:",
    "login a password ", " ", "\n", "x.", "a-", "_", "=", "\\n", "%20", "<password>", "mistral ", "otpauth://",
    "identified with a by ", "MTA", "8Q~", "<REDACTED:password>", "password=<REDACTED:password>", "A1b2-",
    "machine a login b ", "user ", "creds: a:", "é",
    "password: -----!", "password is '", "password for a is \"a ", "password is «a", "set password to '",
    "set word to ", "mysql -p", "mysql -P ", "mysql \\\n -p", "mysql -pa'", "mongosh -p ", "docker login -p80 ",
    "redis-cli -a", "auth=", "auth: YWI6", "cookie sid=", "cookie session", "cookiesess=a", "seed phrase is ",
    "mnemonic: orbit ", "mnemonic orbit, ",
    "recovery phrase for a ", "private key ", "private key 0x0", "private key 0f0f0f0f ", "cookie\"sid\": \"a",
    "<add key=\"", "<add key=\"password", "<add key=\"pw\" value='", "?a", "?token=", "&a_", "secret_key = 'a\\",
    "client-key-data: ", "private-lines: 1\n", "private-lines: 1\nAAAAAAAAAAAAAAAAAAAAAAAA", "splunk token",
    "00dabcdefabcdef!",
    "<REDACTED:password>a", "<REDACTED:x>", "<REDACTED:password>", "://a", "?signature=",
)  # fmt: skip


UNITS = sorted({*HOSTILE, *(trigger for rule in (*TOKENS, *PHRASES) for trigger in rule.triggers)})
# Characters: seconds at most for what is linear, minutes for what reads the rest again at every unit.
SIZE = 700_000
QUICK_SIZE = 200_000  # minutes still for units of a few characters


def repeated(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


@pytest.mark.slow
@pytest.mark.timeout(15)
@pytest.mark.parametrize("unit", UNITS)
def test_every_rule_is_linear_in_the_text(unit: str) -> None:
    text = repeated(unit, QUICK_SIZE)
    clean, labels = ON.text(text)
    assert bool(labels) == (clean != text)


@pytest.mark.sweep
@pytest.mark.timeout(30)
@pytest.mark.parametrize("unit", UNITS)
def test_every_rule_is_linear_in_a_very_long_text(unit: str) -> None:
    text = repeated(unit, SIZE)
    clean, labels = ON.text(text)
    assert bool(labels) == (clean != text)


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_one_long_run_of_characters_is_searched_once() -> None:
    text = some(Random(3), ALNUM + "+/", SIZE)
    assert ON.text(text) == (text, [])


def test_no_rule_is_tried_on_ordinary_texts() -> None:
    text = (
        "Alice prefers the window seat and asked Bob to book the 9:40 from Zurich to Bern next Tuesday; she will bring "
        "the signed contract and the blue folder from the office on the third floor, as she always does in spring."
    )
    assert scanner.candidates(text, text.lower()) == []
    assert not scanner.suspicious(text)
    assert ON.text(text) == (text, [])


@pytest.mark.parametrize("opened", ["<>", "[]"])
@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD={}hunter22x", "DB_PASSWORD={}swordfish", "password: {}hunter22x", 'password="{}hunter22x"',
        "the password is {}hunter22x", "the password is '{}hunter22x'", '{{"password": "{}hunter22x"}}',
        "mysql -u root -p{}hunter22x crm", "DB_PASSWORD={}{}hunter22x", "password = {}-hunter22x",
        "https://alice:{}hunter22x@example.com/x", "DB_PASSWORD={}!hunter22x", "Пароль: {}hunter22x",
    ],
)  # fmt: skip
def test_what_follows_a_marker_of_ours_is_still_the_value(text: str, opened: str) -> None:
    text = text.replace("{{", "{").replace("}}", "}").replace("{}", f"{opened[0]}REDACTED:password{opened[1]}")
    clean, labels = ON.text(text)
    assert labels
    assert "hunter22" not in clean
    assert "swordfish" not in clean
    assert ON.text(clean) == (clean, [])


@pytest.mark.parametrize("opened", ["<>", "[]"])
@pytest.mark.parametrize(
    "text", ["password: {}", "DB_PASSWORD={}", 'password="{}"', "the password is {}", "pw: {}", "curl -u alice:{} x"]
)
def test_a_label_that_is_none_of_ours_hides_no_value(text: str, opened: str) -> None:
    clean, labels = ON.text(text.format(f"{opened[0]}REDACTED:hunter22x{opened[1]}"))
    assert labels == ["password"]
    assert clean == text.format("<REDACTED:password>")
    assert ON.text(clean) == (clean, [])


@pytest.mark.parametrize(
    "text",
    [
        "password: <REDACTED:password> 2025-reports", "DB_PASSWORD=<REDACTED:password>\nPORT=5432",
        "the password is <REDACTED:password>.", "postgres://app:<REDACTED:url_password>@db.example.com:5432/crm",
        "https://x.example.com/?token=<REDACTED:secret>&page=2", "Server=db;Password=<REDACTED:password>;Timeout=30",
        "password: '<REDACTED:password>', user: 'alice1'", "documents say [REDACTED:x] and <REDACTED:anything>",
        "[REDACTED:github_token](https://example.com/a1b2c3)", "<REDACTED:github_token>s are gone",
    ],
)  # fmt: skip
def test_a_marker_is_left_as_it_is_where_no_value_follows(text: str) -> None:
    assert ON.text(text) == (text, [])


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("https://alice:" + "Tr0ub4dor" + "@git.example.com/app.git", "url_password"),
        ("-----BEGIN RSA " + "PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA" * 6, "private_key"),
    ],
)
def test_a_name_is_also_searched_for_keys_and_passwords_in_addresses(name: str, secret: str) -> None:
    assert scanner.in_name(name) == [secret]
    assert scanner.in_name("https://git.example.com/alice/app.git") == []


def test_every_family_that_the_page_lists_is_caught_under_its_name() -> None:
    """Of the samples of both corpora some have each label; a row of the page that nothing shows is missed here."""
    page = (Path(__file__).parents[3] / "docs" / "redaction.md").read_text("utf-8")
    table = page[page.index("## What is known by its form") : page.index("In documents a value also counts")]
    listed = {label for label in re.findall(r"`([a-z0-9_]+)`", table) if "_" in label or label in ("jwt", "password")}
    seen: set[str] = set()
    for each in (*positives(), *held_out()):
        seen.update(ON.text(each.text)[1])
    for fact in facts():
        rng = Random(fact.service)
        seen.update(label for _, text, _ in texts(fact, rng) for label in ON.text(text)[1])
    assert set(scanner.FAMILIES) - seen == set()
    assert listed - seen == set()
