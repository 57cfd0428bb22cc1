"""Token rules: credentials told by their own form."""

from __future__ import annotations

from random import Random

from redaction_corpus.credentials import ALNUM, BY_FORM, some

from commonplace.engine.redaction import Redactor

ON = Redactor()
RNG = Random(5)
KEY = BY_FORM["aws_access_key"](RNG)


def test_an_aws_secret_needs_no_name_beside_its_access_key() -> None:
    secret = "wJ4" + some(RNG, ALNUM, 37)
    clean, labels = ON.text(f"{KEY} / {secret}")
    assert clean == "<REDACTED:aws_access_key> / <REDACTED:aws_secret_key>"
    assert labels == ["aws_access_key", "aws_secret_key"]
