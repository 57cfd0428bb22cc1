"""Generated requests for every operation of /openapi.json: no 5xx, and every answer as its schema says."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from server_process import PROTOCOLS, ServerProcess
from store_kinds import STORE

from commonplace.serve import openapi

pytestmark = pytest.mark.usefixtures("no_rules_left")

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@schemathesis.serializer("application/x-ndjson")
def lines(ctx: Any, text: Any) -> bytes:
    return str(text).encode("utf-8", "surrogatepass")


SCHEMA = schemathesis.openapi.from_dict(openapi.document(PROTOCOLS))
OPERATIONS = {result.ok().definition.raw["operationId"]: result.ok() for result in SCHEMA.get_all_operations()}


def hammer(server: ServerProcess, operation: Any, cases: int) -> None:
    @settings(
        max_examples=cases, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)))
        case = data.draw(operation.as_strategy(generation_mode=mode))
        case.call_and_validate(base_url=server.url, checks=CHECKS, timeout=30)

    run()


@pytest.mark.parametrize("name", OPERATIONS)
def test_generated_requests(open_server: ServerProcess, name: str) -> None:
    hammer(open_server, OPERATIONS[name], 15 if STORE else 40)


@pytest.mark.sweep
@pytest.mark.parametrize("name", OPERATIONS)
def test_many_generated_requests(open_server: ServerProcess, name: str) -> None:
    hammer(open_server, OPERATIONS[name], 500)
