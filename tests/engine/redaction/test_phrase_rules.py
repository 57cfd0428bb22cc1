"""Phrase rules: secrets told by what stands around them, keys and cards."""

from __future__ import annotations

import base64
import json
from random import Random

import pytest
from redaction_corpus.credentials import ALNUM, card, pem, some

from commonplace.engine.redaction import Redactor

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
