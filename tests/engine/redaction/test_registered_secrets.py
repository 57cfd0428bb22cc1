"""Registered secrets: found by value however it is spelled, and told by a label that gives nothing away."""

from __future__ import annotations

import base64
import html
import html.entities
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings, strategies as st
from redaction_corpus.credentials import ALNUM
from redaction_corpus.positives import leaked

from commonplace.config import RedactionConfig
from commonplace.engine.redaction import Redactor, Secrets
from commonplace.engine.redaction.registered_secrets import from_environment, from_file
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import MAX_CONTENT_CHARS

ON = Redactor()
VALUE = "correct+horse/battery staple"  # a secret that every escape spells differently


def test_a_label_that_tells_the_secret_is_replaced() -> None:
    for label in ("swordfish-1234", "Swordfish-1234-prod", "my swordfish-12"):
        secrets = Secrets.of({label: "swordfish-1234"})
        clean, labels = ON.text("it is swordfish-1234", secrets)
        assert (clean, labels) == ("it is <REDACTED:secret>", ["secret"])


def test_no_marker_spells_the_secret_together_with_its_label() -> None:
    for secrets in ({"alpha": "ED:alpha"}, {"alpha": "another value", "x": "ED:alpha"}):
        for text in ("it is ED:alpha", "it is another value"):
            assert "ED:alpha" not in ON.text(text, Secrets.of(secrets))[0]
    with pytest.raises(ValidationError, match="part of the marker"):
        Secrets.of({"x": "ED:secret"})


@settings(max_examples=300, deadline=None)
@given(st.text(), st.text(alphabet=ALNUM + "+/&<é ", min_size=9, max_size=40), st.text())
def test_what_is_registered_never_survives(before: str, value: str, after: str) -> None:
    value = value.strip()
    if len("".join(value.split())) < 8 or "REDACTED" in value:
        return
    clean, labels = ON.text(f"{before}{value}{after}", Secrets.of({"x": value}))
    assert value not in clean
    assert labels


def spellings() -> dict[str, Callable[[str], str]]:
    return {
        "plain": lambda v: v,
        "json": lambda v: json.dumps({"v": v + '"'}),
        "json in json": lambda v: json.dumps(json.dumps({"v": v})),
        "url": lambda v: f"https://h/?q={quote(v, safe='')}",
        "url path": lambda v: f"https://h/{quote(v)}",
        "url, lower case": lambda v: "".join(
            c if len(quote(c, safe="")) == 1 else quote(c, safe="").lower() for c in v
        ),
        "form": lambda v: f"a=1&v={quote(v, safe='').replace('%20', '+')}",
        "base64": lambda v: base64.b64encode(v.encode()).decode(),
        "base64 behind one": lambda v: base64.b64encode(f"u{v}".encode()).decode(),
        "base64 behind two": lambda v: base64.b64encode(f"u:{v}:tail".encode()).decode(),
        "base64 for urls": lambda v: base64.urlsafe_b64encode(f"??>{v}".encode()).decode().rstrip("="),
        "base64 in lines": lambda v: base64.encodebytes((v * 5).encode()).decode(),
        "hex": lambda v: v.encode().hex(),
        "HEX": lambda v: v.encode().hex().upper(),
        "html": html.escape,
        "wrapped": lambda v: "\n    ".join(v[i : i + 9] for i in range(0, len(v), 9)),
        "with invisible characters": lambda v: "\u200b".join(v),
    }


@pytest.mark.parametrize("how", spellings())
def test_a_registered_value_is_found_however_it_is_spelled(how: str) -> None:
    value = VALUE + " <&> é\\"
    text = f"before {spellings()[how](value)} after"
    clean, labels = ON.text(text, Secrets.of({"BANK": value}))
    assert labels == ["BANK"]
    assert not any(leaked(part, clean) for part in (value, value.encode().hex(), quote(value, safe="")))
    assert clean.startswith("before ")
    assert "<REDACTED:BANK>" in clean
    core = base64.b64encode(value.encode()).decode()[:24]
    assert core not in clean


def test_the_longest_registered_value_wins() -> None:
    secrets = Secrets.of({"short": "abcdefgh", "long": "abcdefgh-ijkl-mnop"})
    assert ON.text("x abcdefgh-ijkl-mnop abcdefgh", secrets)[0] == "x <REDACTED:long> <REDACTED:short>"


def test_a_value_too_short_to_look_for_is_refused_without_being_shown() -> None:
    for pairs in ({"PIN": "4711"}, {"PIN": "   47 11   "}, {"PIN": ""}):
        with pytest.raises(ValidationError, match="at least 8") as refused:
            Secrets.of(pairs)
        assert "4711" not in refused.value.message
    with pytest.raises(ValidationError, match="marker"):
        Secrets.of({"x": "REDACTED:"})


def test_variables_of_the_environment_are_registered_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BILLING_KEY", "plain words nobody would find")
    monkeypatch.delenv("NOT_SET", raising=False)
    redactor = Redactor(RedactionConfig(secrets_env=("BILLING_KEY", "NOT_SET")))
    assert redactor.text("it is plain words nobody would find!")[0] == "it is <REDACTED:BILLING_KEY>!"
    assert redactor.unset == ["NOT_SET"]
    monkeypatch.setenv("BILLING_KEY", "short")
    with pytest.raises(ValidationError, match="BILLING_KEY"):
        Redactor(RedactionConfig(secrets_env=("BILLING_KEY",)))


def test_a_file_of_secrets_is_read(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text("# those of the bank\n\nbank=one two three four\nbare-value-number-5\nYWJjZGVmZ2hpag==\n", "utf-8")
    path.chmod(0o600)
    redactor = Redactor(RedactionConfig(secrets_file="secrets"), tmp_path)
    assert len(redactor.secrets) == 3
    clean, _ = redactor.text("one two three four, bare-value-number-5, YWJjZGVmZ2hpag==")
    assert clean == "<REDACTED:bank>, <REDACTED:secret>, <REDACTED:secret>"


def test_a_file_that_others_may_read_is_refused_saying_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_text("bank=one two three four\n", "utf-8")
    path.chmod(0o644)
    with pytest.raises(ValidationError, match="chmod 600"):
        Redactor(RedactionConfig(secrets_file=str(path)))
    path.chmod(0o600)
    path.write_text("short\n", "utf-8")
    with pytest.raises(ValidationError, match="line 1"):
        Redactor(RedactionConfig(secrets_file=str(path)))
    with pytest.raises(ValidationError, match="secrets_file"):
        Redactor(RedactionConfig(secrets_file=str(tmp_path / "missing")))


TIMES = MAX_CONTENT_CHARS // 16  # looking around each of so many would take many minutes
REPEATED = {
    "in one run": lambda unit: unit * TIMES,
    "in many runs": lambda unit: f"{unit} " * TIMES,
    "letter by letter": lambda unit: " ".join(unit * TIMES),
}


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("how", REPEATED)
def test_a_text_full_of_registered_values_is_searched_once(how: str) -> None:
    secrets = Secrets.of({"x": "a" * 12, "y": "b" * 9})
    unit = base64.b64encode(b"a" * 12).decode()
    clean, labels = ON.text(REPEATED[how](unit), secrets)
    assert labels == ["x"]
    assert not leaked(unit, clean)


@pytest.mark.parametrize(
    ("wanted", "label"),
    [
        ("BANK", "BANK"), ("bank key", "bank_key"), ("a/b:c", "a_b_c"), ("", "secret"), ("///", "secret"),
        ("x" * 100, "x" * 64), ("naïve", "na_ve"), ("v1.2-3_4", "v1.2-3_4"),
    ],
)  # fmt: skip
def test_a_label_is_made_fit_for_a_marker(wanted: str, label: str) -> None:
    secrets = Secrets.of({wanted: "some words nobody knows"})
    assert (secrets.labels, len(secrets)) == ({label}, 1)


def test_a_value_given_twice_is_one_secret() -> None:
    secrets = Secrets([("one", "some words nobody knows"), ("two", " some words nobody knows ")])
    assert (len(secrets), secrets.labels) == (1, {"one"})


def test_where_a_value_stands_is_told_with_its_white_space() -> None:
    secrets = Secrets.of({"x": "abcd efgh"})
    text = "it is abcd\n  efgh, twice: abcdefgh."
    assert [(text[start:end], label) for start, end, label in secrets.spans(text)] == [
        ("abcd\n  efgh", "x"), ("abcdefgh", "x")]  # fmt: skip
    assert secrets.may_be_in(text)
    assert not secrets.may_be_in("abcd efg")
    assert list(secrets.spans("nothing here")) == list(Secrets().spans(text)) == []


def test_an_encoded_value_takes_its_whole_run_along() -> None:
    secrets = Secrets.of({"x": "swordfish-99"})
    coded = base64.b64encode(b"user:swordfish-99:tail").decode()
    text = f"header {coded} end"
    assert {text[start:end] for start, end, _ in secrets.spans(text)} == {coded}


def test_variables_that_are_not_set_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", " value ")
    monkeypatch.setenv("BLANK", "  ")
    monkeypatch.delenv("NONE", raising=False)
    assert from_environment(["ONE", "BLANK", "NONE"]) == ([("ONE", "value")], ["BLANK", "NONE"])
    assert from_environment([]) == ([], [])


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        ("bank=one two three", ("bank", "one two three")), ("bank = one two three", ("bank", "one two three")),
        ("bare-value-5", ("secret", "bare-value-5")), ("YWJjZGVmZ2hpag==", ("secret", "YWJjZGVmZ2hpag==")),
        ("a=b=c=d=e=f", ("a", "b=c=d=e=f")), ("short=x", None), ("9digit=12345678", ("secret", "9digit=12345678")),
        ("# a comment", None), ("#", None), ("#no-comment", ("secret", "#no-comment")), ("   ", None),
    ],
)  # fmt: skip
def test_a_line_of_a_file_is_a_secret_with_or_without_a_label(
    tmp_path: Path, line: str, pair: tuple[str, str] | None
) -> None:
    path = tmp_path / "secrets"
    path.write_text(f"first=some words\n{line}\n", "utf-8")
    path.chmod(0o600)
    if line == "short=x":
        with pytest.raises(ValidationError, match="line 2: a secret must have at least 8 characters"):
            from_file(path)
    else:
        assert from_file(path) == [("first", "some words"), *([pair] if pair else [])]


def test_a_file_that_cannot_be_read_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    path.write_bytes(b"\xff\xfe\xfd")
    path.chmod(0o600)
    for wrong, says in (
        (path, "it is not UTF-8 text"),
        (tmp_path, "must be a file"),
        (tmp_path / "no", "No such file"),
    ):
        with pytest.raises(ValidationError, match=says) as refused:
            from_file(wrong)
        assert refused.value.details == {"field": "redaction.secrets_file"}


def entities(value: str, spell: Callable[[int], str]) -> str:
    return "".join(spell(ord(c)) for c in value)


def escapes() -> dict[str, Callable[[str], str]]:
    """Ways to write every character of a value so that none of it is left as it was."""
    return {
        "json escapes": lambda v: entities(v, lambda p: f"\\u{p:04x}"),
        "json escapes, capitals": lambda v: entities(v, lambda p: f"\\u{p:04X}"),
        "json escapes in json": lambda v: json.dumps(entities(v, lambda p: f"\\u{p:04x}"))[1:-1],
        "braced": lambda v: entities(v, lambda p: f"\\u{{{p:x}}}"),
        "long": lambda v: entities(v, lambda p: f"\\U{p:08x}"),
        "bytes": lambda v: "".join(f"\\x{b:02x}" for b in v.encode("latin-1")),
        "octal": lambda v: "".join(f"\\{b:03o}" for b in v.encode("latin-1")),
        "percent": lambda v: "".join(f"%{b:02X}" for b in v.encode()),
        "percent, small": lambda v: "".join(f"%{b:02x}" for b in v.encode()),
        "percent twice": lambda v: quote("".join(f"%{b:02X}" for b in v.encode()), safe=""),
        "decimal entities": lambda v: entities(v, lambda p: f"&#{p};"),
        "decimal entities, open": lambda v: entities(v, lambda p: f"&#{p}"),
        "padded entities": lambda v: entities(v, lambda p: f"&#{p:06d};"),
        "hex entities": lambda v: entities(v, lambda p: f"&#x{p:x};"),
        "hex entities, capitals": lambda v: entities(v, lambda p: f"&#X{p:X};"),
        "named entities": lambda v: "".join(f"&{html.entities.codepoint2name.get(ord(c), f'#{ord(c)}')};" for c in v),
        "colon hex": lambda v: v.encode().hex(":"),
        "colon hex, capitals": lambda v: v.encode().hex(":").upper(),
        "dashed hex": lambda v: v.encode().hex("-"),
        "spaced hex": lambda v: v.encode().hex(" "),
        "an array of bytes": lambda v: ", ".join(f"0x{b:02x}" for b in v.encode()),
        "some of it": lambda v: v[:4] + "".join(f"\\u{ord(c):04x}" for c in v[4:6]) + v[6:],
        "a mixture": lambda v: f"%{ord(v[0]):02x}" + f"&#{ord(v[1])};" + f"\\u{ord(v[2]):04x}" + v[3:],
    }


@pytest.mark.parametrize("how", escapes())
@pytest.mark.parametrize("value", [VALUE, 'Zebra<crossing>&"quoted"', "plainletters", "grün-weiß-1234"])
def test_a_value_is_found_in_every_escape(how: str, value: str) -> None:
    if how in ("bytes", "octal") and not value.isascii():
        pytest.skip("those of UTF-8 are several a letter")
    spelled = escapes()[how](value)
    assert value not in spelled
    for text in (spelled, f"before {spelled} after", f"x={spelled},y=100%&z=\\n"):
        clean, labels = ON.text(text, Secrets.of({"x": value}))
        assert labels == ["x"]
        assert clean == text.replace(spelled, "<REDACTED:x>")


INVISIBLE = (
    "\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2063\ufeff\u00ad\u034f\u061c\u180e\u202a\u202b\u202c\u202d\u202e"
    "\u2066\u2067\u2068\u2069\ufe00\ufe0e\ufe0f\U000e0100\U000e0001\U000e0041\u3164\u115f\u00a0\u2028\u2029\x00\x08\x7f"
)


@pytest.mark.parametrize("between", INVISIBLE, ids=lambda c: f"U+{ord(c):04X}")
def test_what_nobody_sees_hides_nothing(between: str) -> None:
    for spelled in (between.join("plainletters"), "plain" + between * 3 + "letters", f"pl{between}ainletter{between}s"):
        assert ON.text(f"it is {spelled}.", Secrets.of({"x": "plainletters"})) == ("it is <REDACTED:x>.", ["x"])
    escaped = "plain" + f"\\u{{{ord(between):x}}}" + "letters"
    assert ON.text(escaped, Secrets.of({"x": "plainletters"}))[1] == ["x"]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.text(), st.text(alphabet=ALNUM, min_size=8, max_size=20), st.text(), st.data())
def test_no_mixture_of_escapes_hides_a_value(before: str, value: str, after: str, data: st.DataObject) -> None:
    ways: list[Callable[[str], str]] = [
        lambda c: c, lambda c: f"\\u{ord(c):04x}", lambda c: f"%{ord(c):02x}", lambda c: f"&#{ord(c)};",
        lambda c: f"\u200b{c}", lambda c: f"&#x{ord(c):x};", lambda c: f"\\x{ord(c):02x}",
    ]  # fmt: skip
    spelled = "".join(data.draw(st.sampled_from(ways))(c) for c in value)
    clean, labels = ON.text(f"{before} {spelled} {after}", Secrets.of({"x": value}))
    assert labels
    assert spelled not in clean


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from("abZ \\u0&#;x%41e7:\u200b-"), max_size=200))
def test_escapes_of_something_else_are_left_alone(text: str) -> None:
    """Whatever is undone, a value that is not there is not found."""
    assert ON.text(text, Secrets.of({"x": "QQQQQQQQ-never"})) == ON.text(text)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["\\u005a", "%5a", "&#90;", "&amp;", "\\\\", "%25", "\u200b", "&", "\\u", "&#"])
def test_undoing_escapes_is_linear_in_the_text(unit: str) -> None:
    """Seconds at most, where what reads the rest again at every unit would take minutes."""
    text = unit * (500_000 // len(unit)) + "plain\\u006cetters"
    assert ON.text(text, Secrets.of({"x": "plainletters"}))[0].endswith("<REDACTED:x>")
