"""The worked examples in the documentation follow the schemas they illustrate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commonplace.wire import models
from commonplace.wire.models import Message, dump
from commonplace.wire.validate import check, parse

FOLDER = Path(__file__).parents[2] / "docs" / "examples" / "memorywire"
EXAMPLES = sorted(FOLDER.glob("*.json"))


def test_there_are_three_for_every_operation() -> None:
    operations = ("expire", "forget", "merge", "recall", "remember")
    assert [path.stem for path in EXAMPLES] == [f"{name}-{n}" for name in operations for n in (1, 2, 3)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_request_and_response_are_valid_and_survive_a_round_trip(path: Path) -> None:
    operation = path.stem.rsplit("-", 1)[0]
    example = json.loads(path.read_text("utf-8"))
    assert set(example) == {"request", "response"}
    for part, suffix in (("request", ""), ("response", ".response")):
        document = example[part]
        check(f"memorywire/operations/{operation}{suffix}", document)
        model: type[Message] = getattr(models, operation.capitalize() + part.capitalize())
        again = dump(parse(model, document))
        assert {key: again[key] for key in document} == document


def test_the_procedure_among_them_is_a_state_machine() -> None:
    example = json.loads((FOLDER / "remember-3.json").read_text("utf-8"))
    machine = json.loads(example["request"]["content"])
    check("memorywire/types/fsm", machine)
    assert machine["initial"] in machine["states"]
