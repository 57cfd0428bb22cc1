"""Phrase rules: secrets told by what stands around them, keys and cards."""

from __future__ import annotations

import base64
import json
from random import Random

import pytest
from hypothesis import given, strategies as st
from redaction_corpus.credentials import ALNUM, BASE64, DIGITS, card, pem, some, words
from redaction_corpus.positives import positives

from commonplace.engine.redaction import Redactor, scanner
from commonplace.engine.redaction.phrase_rules import PHRASES, cards, luhn, private_keys
from commonplace.engine.redaction.rule import LeadIndex, lower

ON = Redactor()
RNG = Random(5)


def test_a_key_without_its_end_is_found_as_far_as_it_goes() -> None:
    cut = pem(RNG).rsplit("\n", 2)[0]
    clean, labels = ON.text(f"it begins\n{cut}\n\nand then the disk was full, said Bob.")
    assert (clean, labels) == (
        "it begins\n<REDACTED:private_key>\n\nand then the disk was full, said Bob.",
        ["private_key"],
    )


@pytest.mark.parametrize("prefix", ["4", "51", "2221", "6011", "65", "3530"])
def test_cards_are_told_by_brand_and_check_digit(prefix: str) -> None:
    good = card(RNG, prefix)
    assert ON.text(f"card {good}")[1] == ["card_number"]
    wrong = good[:-1] + str((int(good[-1]) + 1) % 10)
    assert ON.text(f"card {wrong}") == (f"card {wrong}", [])


def test_an_option_is_a_password_where_the_command_takes_one() -> None:
    assert ON.text("mysql -u root -pS3cret99 mydb")[0] == "mysql -u root -p<REDACTED:password> mydb"
    assert ON.text("mysqldump -P3307 -p'S3 cret' crm")[0] == "mysqldump -P3307 -p'<REDACTED:password>' crm"
    assert ON.text("docker login -u alice -p S3cret99 r")[0] == "docker login -u alice -p <REDACTED:password> r"
    for command in (
        "mysql -u root -p crm",
        "docker run --name mysql -p3306:3306 mysql",
        "psql -p 5432",
        "mkdir -p mysql",
    ):
        assert ON.text(command) == (command, [])


def test_a_login_of_a_registry_is_found_by_what_it_says() -> None:
    login = base64.b64encode(b"alice:S3cret99").decode()
    config = {"auths": {"r.example.com": {"auth": login}}}
    hidden = {"auths": {"r.example.com": {"auth": "<REDACTED:authorization>"}}}
    assert ON.document(config) == (hidden, ["authorization"])
    assert ON.text(json.dumps(config)) == (json.dumps(hidden), ["authorization"])
    for other in ("none", "basic", base64.b64encode(b"no colon here").decode(), base64.b64encode(b"a:$PASS").decode()):
        assert ON.document({"auth": other})[1] == []


def test_the_key_of_a_wallet_is_found_beside_the_word_and_a_digest_is_not_one() -> None:
    number = some(Random(8), "0123456789abcdef", 64)
    assert ON.text(f"private key 0x{number}.") == ("private key <REDACTED:private_key>.", ["private_key"])
    for text in (f"sha256 {number}", f"tx 0x{number}", f"private key hash {number}", f"{number}  wallet.tar.gz"):
        assert ON.text(text) == (text, [])


def test_cookies_of_a_session_go_and_others_stay() -> None:
    one, two = (some(Random(n), ALNUM, 32) for n in (1, 2))
    clean, labels = ON.text(f"Cookie: theme=dark; sessionid={one}; PHPSESSID={two}; lang=de")
    hidden = "<REDACTED:session_cookie>"
    assert (clean, labels) == (
        f"Cookie: theme=dark; sessionid={hidden}; PHPSESSID={hidden}; lang=de",
        ["session_cookie"],
    )
    assert ON.document({"headers": {"Cookie": f"sid={one}"}})[0] == {"headers": {"Cookie": hidden}}
    assert ON.document({"Cookie": "theme=dark"})[1] == []
    many = "Cookie: " + "; ".join(f"a{n}_session={some(Random(n), ALNUM, 32)}" for n in range(40))
    assert ON.text(many)[0].count(hidden) == 40


SECRET, RANDOM = "S3cret99", "q7W2xB9Lm4Zt"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("password: {S}", "password"), ("DB_PASSWORD_PROD={S}", "password"), ("Das Kennwort lautet {S}", "password"),
        ("contraseña: {S}", "password"), ("пароль: {S}", "password"), ("密码：{S}", "password"),
        ("password:\n  {S}\n", "password"), ("the password for the router is {S}.", "password"),
        ("curl -u alice:{S} https://h", "password"), ("sshpass -p {S} ssh host", "password"),
        ("tool --password={S}", "password"), ("mongosh -p {S}", "password"), ("redis-cli -h x -a {S}", "password"),
        ("machine h login alice password {S}", "password"), ("login alice password {S}", "password"),
        ("creds: alice / {S}", "password"), ("CREATE USER a IDENTIFIED BY '{S}'", "password"),
        ("<password>{S}</password>", "password"), ("Server=x;Pwd={S};", "password"),
        ("postgres://alice:{S}@db/x", "url_password"), ("https://:{S}@host/", "url_password"),
        ("Authorization: Bearer {S}{S}", "authorization"), ("authorization = 'Basic {S}{S}'", "authorization"),
        ("bearer {R}{R}", "bearer_token"), ("api_key = '{R}'", "secret"), ('client_secret: "{R}"', "secret"),
        ("deploy --token {R}", "secret"), ("SERVICE_PAT={R}", "secret"), ("mistral key: {R}{R}{R}", "secret"),
        ("the access token is {R}{R}", "secret"), ("aws secret access key is {R}{R}{R}abcd", "aws_secret_key"),
    ],
)  # fmt: skip
def test_every_phrase_gives_its_secret_away(text: str, label: str) -> None:
    clean, labels = ON.text(text.format(S=SECRET, R=RANDOM))
    assert labels == [label]
    assert SECRET not in clean
    assert RANDOM not in clean
    assert ON.text(text.format(S="xxxx", R="xxxx"))[1] == [], "the words alone are none"


@pytest.mark.parametrize("text", [
    "Pass `verbose=True`", "public key: q7W2xB9Lm4Ztq7W2", "the password is required", "password: ${DB_PASSWORD}",
    "token: <your-token>", "docker run -p80:80 x", "https://user@host/", "https://a:$PASS@host/", "bearer of good news",
    "secret santa", "--token-count 4096", "IDENTIFIED BY 'password'",
])  # fmt: skip
def test_phrases_without_a_secret_stay(text: str) -> None:
    assert ON.text(text) == (text, [])


def test_every_rule_matches_only_where_one_of_its_triggers_is() -> None:
    tried = 0
    for each in positives(seed=3, each=1):
        lowered = lower(each.text)
        for rule in PHRASES:
            if rule.label == "session_cookie":
                continue  # it could match elsewhere, and is tried where cookies are spoken of
            if next(rule.spans(each.text, LeadIndex(lowered)), None) is not None:
                tried += 1
                assert any(trigger in lowered for trigger in rule.triggers), (rule.label, each.text)
    assert tried > 100


@pytest.mark.parametrize(("digits", "right"), [
    ("0", True), ("18", True), ("19", False), ("4111111111111111", True), ("4111111111111112", False),
    ("378282246310005", True), ("79927398713", True), ("79927398710", False),
])  # fmt: skip
def test_check_digits(digits: str, right: bool) -> None:
    assert luhn(digits) is right


@given(st.text(DIGITS, min_size=1, max_size=20), st.integers(0, 19), st.integers(1, 9))
def test_any_wrong_digit_is_noticed(digits: str, place: int, by: int) -> None:
    made = next(digits + last for last in DIGITS if luhn(digits + last))
    place %= len(made)
    wrong = made[:place] + str((int(made[place]) + by) % 10) + made[place + 1 :]
    assert not luhn(wrong)


@pytest.mark.parametrize(("text", "found"), [
    ("4111 1111 1111 1111", True), ("4111-1111-1111-1111", True), ("4111111111111111", True),
    ("3782 822463 10005", True), ("3782-822463-10005", True), ("(4111 1111 1111 1111)", True),
    ("4111 1111-1111 1111", False), ("x4111111111111111", False), ("4111111111111111.5", False),
    ("41111111111111110", False), ("4111 1111 1111 1112", False), ("9111 1111 1111 1111", False),
    ("5 4111 1111 1111 1111", True), ("+4111111111111111", False),
])  # fmt: skip
def test_cards_are_written_in_few_ways(text: str, found: bool) -> None:
    assert bool(list(cards(text))) is found


BODY = some(Random(1), BASE64, 64)
EDGE = "-" * 5


def armoured(kind: str, body: str, *, end: str | None = "same") -> str:
    closing = "" if end is None else f"{EDGE}END {kind if end == 'same' else end}{EDGE}"
    return f"{EDGE}BEGIN {kind}{EDGE}\n{body}\n{closing}"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (armoured("PRIVATE KEY", BODY), 1),
        (armoured("OPENSSH PRIVATE KEY", f"{BODY}\n{BODY}"), 1),
        (armoured("PRIVATE KEY", "> " + BODY), 1),  # quoted in a mail
        (armoured("PRIVATE KEY", BODY, end=None), 1),
        (armoured("PRIVATE KEY", "short", end=None), 0),
        (armoured("PRIVATE KEY", "..."), 0),
        (armoured("PUBLIC KEY", BODY), 0),
        (armoured("CERTIFICATE", BODY), 0),
        (armoured("PRIVATE KEY", BODY) + "\n" + armoured("PRIVATE KEY", BODY), 2),
        (f"{EDGE}END PRIVATE KEY{EDGE}", 0),
        ("no key at all", 0),
    ],
)  # fmt: skip
def test_keys_between_their_lines(text: str, count: int) -> None:
    spans = list(private_keys(text))
    assert len(spans) == count
    assert all(text[start:end].startswith(f"{EDGE}BEGIN") for start, end in spans)
    if count:
        assert BODY not in ON.text(text)[0]


@pytest.mark.parametrize(
    ("name", "value", "label"),
    [
        ("password", "swordfish", "password"), ("db_password", "hunter2", "password"),
        ("PASSPHRASE", "correct horse battery", "password"), ("passwordHint", "swordfish", None),
        ("password", "<REDACTED:password>", None), ("password", "required", None), ("password", "", None),
        ("token", RANDOM, "secret"), ("api-key", RANDOM, "secret"), ("token_count", "4096", None),
        ("public_key", RANDOM, None), ("user", RANDOM, None), ("secret", "q7W2 xB9Lm4Zt", None),
        ("auth", base64.b64encode(b"alice:S3cret99").decode(), "authorization"), ("auth", "basic", None),
        ("cookie", f"sid={RANDOM}{RANDOM}", "session_cookie"), ("Set-Cookie", "theme=dark", None),
        ("seed_phrase", words(12)(Random(3)), "seed_phrase"),
        ("mnemonic", "one two three", None),
    ],
)  # fmt: skip
def test_a_field_gives_away_what_it_holds(name: str, value: str, label: str | None) -> None:
    assert scanner.named_secret(name, value) == label
