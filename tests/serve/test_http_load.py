"""What a crowd of clients and a single request cost: nothing is lost, and the JSON boundary stays small."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from bench.http_boundary import CASES
from bench.http_load import measure as load
from commonplace.serve.http_io import decode_body, encode
from commonplace.wire.validate import parse

MAX_CALLS = 50  # of 17 to 37; a second look at every field or hit would be more


@pytest.mark.slow
def test_a_crowd_loses_nothing() -> None:
    found = load(clients=20, seconds=3, embedder="hashing", agents=3)
    assert (found["errors"], found["lost"]) == (0, 0), found
    assert found["acknowledged"] > 0


@pytest.mark.parametrize(("name", "model", "document", "answer"), CASES, ids=[name for name, *_ in CASES])
def test_the_json_boundary_stays_cheap(name: str, model: Any, document: Any, answer: Any) -> None:
    """Python functions called to decode, validate and encode: `bench.http_boundary` says how long they take."""
    body, reply = json.dumps(document).encode(), answer()
    calls = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    def request() -> bytes:
        parse(model, decode_body(body))
        return encode(reply)

    request()  # schemas are compiled once
    sys.setprofile(profile)
    try:
        request()
    finally:
        sys.setprofile(None)
    assert 3 <= calls <= MAX_CALLS, calls
