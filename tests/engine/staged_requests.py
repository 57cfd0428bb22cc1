"""One staged request of every operation, for what must hold of each."""

from __future__ import annotations

from typing import Any

from commonplace.engine.types import Draft, Forget, Merge, Statement, Update
from commonplace.testing.subject import WHO, Subject

REQUEST = {"content": "x"}


def stage_all(subject: Subject, run: Any) -> dict[str, str]:
    """One staged request of each operation: its review."""
    engine, ids = subject.engine, [run(subject.remember(text)) for text in ("tea is green", "tea is black", "tea")]
    staged = {
        "remember": run(engine.remember(WHO, Draft("agent", "semantic", "tea is white"), approval=REQUEST)).review_id,
        "update": run(engine.update(WHO, Update("agent", ids[0], "tea is red", approval_required=True))).review_id,
        "forget": run(engine.forget(WHO, Forget("agent", [ids[0]], approval_required=True))).review_id,
        "merge": run(engine.merge(WHO, Merge("agent", ids[0], [ids[1]], approval_required=True))).review_id,
        "statement": run(
            engine.assert_fact(WHO, Statement("agent", "tea", "is", "white", approval_required=True))
        ).review_id,
    }
    return {name: str(id) for name, id in staged.items()}
