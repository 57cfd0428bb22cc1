"""What no export of ours says is a broken line, found before anything is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transfer_scenarios import WHO, export_of

from commonplace.testing.subject import Subject
from commonplace.transfer.import_file import import_export
from commonplace.transfer.report import ImportRefused

ID = "01977947-3800-729e-a907-e5e26cc71904"
VERSION = {"content": "x", "type": "semantic", "kind": "semantic", "created_at": 5, "updated_at": 5}
MEMORY = {"record": "memory", "id": ID, "agent_id": "agent", "versions": [VERSION]}
STATEMENT = {
    "record": "statement", "id": ID, "agent_id": "agent", "subject": "A", "predicate": "is", "object": "B",
    "valid_from": 1000,
}  # fmt: skip
BESIDE = {**MEMORY, "id": ID.replace("a907", "a908"), "versions": [VERSION | {"content": "beside"}]}
HALF = "a\ud800b"
INFINITE = "1e999"  # which JSON may say, and which decodes to infinity
#: What stands in a file for these texts: Python's own encoder writes none of it.
AS_JSON = {INFINITE: INFINITE, "deep": "[" * 100 + "]" * 100, "very deep": "[" * 950 + "]" * 950}


def version(**fields: Any) -> dict[str, Any]:
    return {**MEMORY, "versions": [VERSION | fields]}


ODD = {
    "infinite": version(metadata={"x": [INFINITE]}),
    "infinite in provenance": version(provenance={"x": INFINITE}),
    "infinite in an earlier version": {**MEMORY, "versions": [VERSION | {"metadata": {"x": INFINITE}}, VERSION]},
    **{f"half a pair in {name}": version(**{name: HALF}) for name in ("content", "title", "user_id", "kind")},
    **{f"half a pair in {name}": version(**{name: [HALF]}) for name in ("tags", "aliases", "supersedes")},
    "half a pair in a key": version(metadata={HALF: 1}),
    "half a pair in the id": {**MEMORY, "id": HALF},
    "half a pair in the agent": {**MEMORY, "agent_id": HALF},
    **{
        f"half a pair in {name} of a statement": STATEMENT | {name: HALF}
        for name in ("id", "agent_id", "subject", "object", "asserted_by", "memory_id", "provenance")
    },
    **{
        f"half a pair in {name} of a palace": {"record": "palace", "name": "library", "description": "d"} | {name: HALF}
        for name in ("name", "description", "identity")
    },
    "deep": version(metadata={"x": "deep"}),
    "very deep": version(metadata={"x": "very deep"}),
}


ODD |= {
    f"{field} {said}": version(**{field: said})
    for field, many in {
        "privacy": [
            *({"share_with": value} for value in (5, "x", None, [1], [""], {})),
            *({"retain": value} for value in ("x", 0, -1, 1.5, True, None, 2**53, {})),
            *({"user_consent_id": value} for value in (7, "", None)),
            {"retain_until": 5},
        ],
        "provenance": [
            *({name: 5} for name in ("merged", "chain", "witnesses", "imported", "attestation", "dialect", "from")),
            {"merged": [5]},
            {"restored_at": "x"},
            {"quarantined_by": []},
        ],
    }.items()
    for said in many
}


@pytest.mark.parametrize("record", ODD.values(), ids=ODD)
def test_an_odd_value_is_a_broken_line(subject: Subject, run: Any, save: Any, record: dict[str, Any]) -> None:
    data = export_of(record, BESIDE)
    for text, value in AS_JSON.items():
        data = data.replace(json.dumps(text).encode(), value.encode())
    path = save(data)
    before = run(subject.store.audit_head("local"))
    for dry_run in (True, False):
        with pytest.raises(ImportRefused, match="line 2: "):
            run(import_export(subject.engine, WHO, path, dry_run=dry_run))
    assert run(subject.store.audit_head("local")) == before
    report = run(import_export(subject.engine, WHO, path, skip_broken=True))
    assert (report.written.total(), report.left_out.counts.total()) == (1, 0)
    assert [m.content for m in run(subject.list())] == ["beside"]


def test_what_remembering_takes_is_taken(subject: Subject, run: Any, save: Any) -> None:
    nested = json.loads("[" * 99 + "]" * 99)
    report = run(import_export(subject.engine, WHO, save(export_of(version(metadata={"x": nested})))))
    assert report.written["memory"] == 1


def test_a_promise_and_an_origin_are_taken_as_they_are(subject: Subject, run: Any, save: Any) -> None:
    privacy = {"retain": 5, "share_with": ["*"], "user_consent_id": "form 7"}
    provenance = {
        "merged": ["x"],
        "chain": [{"agent": "bob"}],
        "restored_at": 5,
        "something": ["else"],
        "dialect": "mrp",
    }
    record = version(privacy=privacy, provenance=provenance)
    assert run(import_export(subject.engine, WHO, save(export_of(record)))).written["memory"] == 1
    held = run(subject.get(ID))
    assert (held.privacy, held.provenance) == (privacy, {**provenance, "original": held.provenance["original"]})
