"""The faults: one shape on the wire, and a closed set of codes."""

from __future__ import annotations

import pytest

from commonplace.wire import errors
from commonplace.wire.errors import Fault, fault_of
from commonplace.wire.validate import check, schema

CODES = [
    "validation_error", "unauthenticated", "forbidden", "not_found", "conflict", "payload_too_large",
    "secret_leakage", "rate_limited", "unavailable",
]  # fmt: skip
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Fault)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_fault_has_the_one_shape_and_comes_back_from_it(kind: type[Fault]) -> None:
    for fault in (kind("it went wrong"), kind("it went wrong", hint="try again", field="content")):
        document = fault.to_wire()
        check("memorywire/error", document)
        assert document["error"]["code"] in CODES
        assert document["error"]["message"] == fault.message
        again = fault_of(document)
        assert (again.code, again.message, again.details) == (fault.code, fault.message, fault.details)


def test_the_codes_are_a_closed_set() -> None:
    assert sorted({kind.code for kind in KINDS}) == sorted(CODES)
    assert schema("memorywire/error")["properties"]["error"]["properties"]["code"]["enum"] == CODES
