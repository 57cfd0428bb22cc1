"""The one decoder and encoder: what is JSON, what is not, and where it goes wrong."""

from __future__ import annotations

import pytest

from commonplace.wire.strict_json import InvalidJson, NestedTooDeeply, decode, dumps, encode

WRONG = [
    (b'{"a": "\xff"}', "not UTF-8 text: byte 7 is wrong", None, None),
    (b'{"a": NaN}', "not valid JSON: NaN is not JSON", None, None),
    (b"[-Infinity]", "not valid JSON: -Infinity is not JSON", None, None),
    (b'{\n"a": }', "not valid JSON: Expecting value", 2, 6),
    ("", "not valid JSON: Expecting value", 1, 1),
    ("{} {}", "not valid JSON: Extra data", 1, 4),
    ('{"a": "b', "not valid JSON: Unterminated string", 1, 7),
    ('{"a": "b\n"}', "not valid JSON: Invalid control character", 1, 9),
]


@pytest.mark.parametrize(("text", "problem", "line", "column"), WRONG)
def test_what_is_not_json_is_refused_with_its_place(
    text: bytes | str, problem: str, line: int | None, column: int | None
) -> None:
    with pytest.raises(InvalidJson) as refused:
        decode(text)
    assert str(refused.value) == problem
    assert (refused.value.line, refused.value.column) == (line, column)


def test_what_is_nested_too_deeply_is_refused_as_such() -> None:
    with pytest.raises(NestedTooDeeply, match="nested too deeply"):
        decode(b"[" * 100_000)


def test_an_integer_of_thousands_of_digits_is_refused_in_few_words() -> None:
    with pytest.raises(InvalidJson) as refused:
        decode(b"1" * 5000)
    assert len(str(refused.value)) <= len("not valid JSON: ") + 80


def test_a_repeated_key_is_found_among_very_many_in_one_go() -> None:
    many = ",".join(f'"k{n}":0' for n in range(300_000))
    with pytest.raises(InvalidJson, match="it has a key twice"):
        decode(f'{{{many},"k299999":1}}', unique_keys=True)  # compared one by one this takes minutes


@pytest.mark.parametrize("document", [None, 1.5, "ü", [], {"a": [True, {"b": None}]}, {"": "\u2028"}])
def test_what_is_encoded_is_decoded_again(document: object) -> None:
    assert decode(encode(document)) == decode(dumps(document)) == document


def test_it_is_compact_and_refuses_what_is_no_json() -> None:
    assert encode({"a": [1, "ü"], "b": None}) == '{"a":[1,"ü"],"b":null}'.encode()
    assert encode("\ud800") == b'"?"'
    with pytest.raises(ValueError):
        encode(float("nan"))
