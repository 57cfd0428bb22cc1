"""Canonical bytes against RFC 8785's own examples, and the shape of minted ids."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.wire.canonical import IdMinter, canonical, content_hash, is_uuid, mint_id, new_salt, sha256_hex

SAFE = 2**53 - 1
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(-SAFE, SAFE)  # a larger float prints as an integer that reads back outside the safe range
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


def test_the_sample_of_section_3_2_2() -> None:
    document = json.loads(
        r"""{
          "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
          "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
          "literals": [null, true, false]
        }"""
    )
    assert (
        canonical(document)
        == (
            '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        ).encode()
    )


def test_keys_sort_by_utf_16_units_as_in_section_3_2_3() -> None:
    document = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    assert list(json.loads(canonical(document)).values()) == [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (-5e-324, "-5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (-9007199254740992.0, "-9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (1e23, "1e+23"),
        (999999999999999700000.0, "999999999999999700000"),
        (999999999999999900000.0, "999999999999999900000"),
        (1e21, "1e+21"),
        (9.999999999999997e-7, "9.999999999999997e-7"),
        (0.000001, "0.000001"),
        (333333333.3333332, "333333333.3333332"),
        (333333333.33333325, "333333333.33333325"),
        (333333333.3333334, "333333333.3333334"),
        (333333333.33333343, "333333333.33333343"),
        (-0.0000033333333333333333, "-0.0000033333333333333333"),
        (1424953923781206.2, "1424953923781206.2"),
    ],
)
def test_numbers_of_appendix_b(number: float, text: str) -> None:
    assert canonical(number) == text.encode()


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(JSON)
def test_key_order_does_not_matter_and_the_form_is_its_own_canonical_form(value: Any) -> None:
    form = canonical(value)
    assert canonical(reordered(value)) == form
    assert canonical(json.loads(form)) == form


def test_a_content_hash_needs_its_salt() -> None:
    one, other = new_salt(), new_salt()
    assert content_hash("Bob likes tea", one) == content_hash("Bob likes tea", one)
    assert content_hash("Bob likes tea", one) != content_hash("Bob likes tea", other)
    assert sha256_hex(b"a", b"bc") == sha256_hex(b"abc")


@given(st.integers(1, 2**48 - 2**20))
def test_an_id_is_a_version_7_uuid_of_its_millisecond(now: int) -> None:
    text = IdMinter().mint(now)
    parsed = uuid.UUID(text)
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == now
    assert str(parsed) == text
    assert is_uuid(text)


def test_ids_ascend_within_a_millisecond_past_the_counter_and_when_the_clock_steps_back() -> None:
    minter = IdMinter()
    ids = [minter.mint(1_000) for _ in range(10_000)]
    ids += [minter.mint(now) for now in (500, 1, 1_001, 2_000, 1_999)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_threads_never_mint_the_same_id() -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: mint_id(1_700_000_000_000), range(8_000)))
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    "text", ["", "x", "0190B0A0-0000-7000-8000-000000000000", "0190b0a0-0000-7000-8000-00000000000"]
)
def test_what_is_not_an_id(text: str) -> None:
    assert not is_uuid(text)
