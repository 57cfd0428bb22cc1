"""A newer export of the same store brings an older copy's graph up to date."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transfer_scenarios import WHO, exported

from commonplace.testing.subject import Subject
from commonplace.transfer.import_file import import_export

Save = Callable[..., Path]
Elsewhere = tuple[Subject, Callable[[Any], Any]]


@pytest.mark.parametrize("how", ["replaced", "retracted"])
def test_a_statement_that_ended_at_the_source_ends_here(
    subject: Subject, run: Any, elsewhere: Elsewhere, save: Save, how: str
) -> None:
    other, wait = elsewhere
    wait(other.forget(*[m.id for m in wait(other.list("bob"))], agent="bob", hard_delete=True))
    graph = subject.engine.graph
    run(graph.assert_fact(WHO, "agent", subject="Alice", predicate="lives_in", object="Paris"))
    wait(import_export(other.engine, WHO, save(run(exported(subject)))))
    subject.clock.advance(1000)
    if how == "replaced":
        run(graph.assert_fact(WHO, "agent", subject="Alice", predicate="lives_in", object="Rome"))
    else:
        run(graph.retract(WHO, "agent", ("Alice", "lives_in")))
    data = run(exported(subject))
    for dry_run in (True, False):
        report = wait(import_export(other.engine, WHO, save(data), dry_run=dry_run))
        assert (report.written["statement"], dict(report.left_out.counts)) == (2 if how == "replaced" else 1, {})
    assert wait(exported(other)) == data
    assert wait(other.engine.ledger.verify(WHO)).problem is None
    assert dict(wait(import_export(other.engine, WHO, save(data))).written) == {}


def test_a_rule_about_forgetting_keeps_a_statement_from_ending(
    subject: Subject, run: Any, elsewhere: Elsewhere, save: Save
) -> None:
    other, wait = elsewhere
    run(subject.engine.graph.assert_fact(WHO, "agent", subject="Alice", predicate="lives_in", object="Paris"))
    wait(import_export(other.engine, WHO, save(run(exported(subject)))))
    run(subject.engine.graph.retract(WHO, "agent", ("Alice", "lives_in")))
    wait(other.engine.policies.replace(WHO, [{"name": "no", "when": {"operation": ["forget"]}, "action": "reject"}]))
    report = wait(import_export(other.engine, WHO, save(run(exported(subject)))))
    assert dict(report.left_out.counts) == {"the policy 'no' refuses this forget": 1}
    assert [t.valid_to for t in wait(other.engine.graph.history(WHO, "agent", "Alice"))] == [None]
