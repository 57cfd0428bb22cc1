"""`commonplace kg` on a real store: what it shows, that --json is the wire's answer, and what it refuses."""

from __future__ import annotations

import pytest

from commonplace.wire.validate import check

OPERATIONS = "memorywire/operations/"


def test_a_fact_is_stated_asked_for_and_ended(cli) -> None:
    said = cli("kg", "assert", "Alice", "works_at", "Acme", "--valid-from", "2020-01-01")
    assert said.out == "Alice works_at Acme, since 2020-01-01T00:00:00.000Z\n"
    ran = cli("kg", "assert", "Alice", "works_at", "Bolt", "--confidence", "0.9", "--provenance", "cv", "--json")
    check(OPERATIONS + "kg.assert.response", ran.json)
    assert (ran.json["confidence"], ran.json["provenance"]) == (0.9, "cv")
    now = cli("kg", "query", "Alice", "--json").json
    check(OPERATIONS + "kg.response", now)
    assert [t["object"] for t in now["triples"]] == ["Bolt"]
    then = cli("kg", "query", "Alice", "--as-of", "2021-01-01", "--predicate", "works_at")
    assert then.out.split("\t")[1:5] == ["Alice", "works_at", "Acme", "2020-01-01T00:00:00.000Z"]
    earlier = cli("kg", "assert", "Alice", "works_at", "Cogs", "--valid-from", "2018-01-01")
    assert earlier.out.endswith("until 2020-01-01T00:00:00.000Z\n")
    assert [row.split("\t")[3] for row in cli("kg", "history", "Alice").out.splitlines()] == ["Cogs", "Acme", "Bolt"]
    assert cli("kg", "retract", "Alice", "works_at").out.startswith("Alice works_at Bolt, until ")
    assert cli("kg", "assert", "Bob", "likes", "tea", "--valid-from", "2020-01-01").out.count("\n") == 1
    said, ended = cli("kg", "assert", "Bob", "likes", "coffee").out.splitlines()
    assert said.startswith("Bob likes coffee, since ")
    assert ended == "ends: Bob likes tea, since 2020-01-01T00:00:00.000Z"
    assert "ends" not in cli("kg", "assert", "Bob", "likes", "coffee").out, "it goes on"
    nothing = cli("kg", "query", "Alice")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "nothing is stated about Alice\n")
    again = cli("kg", "retract", "Alice", "works_at")
    assert again.code == 1
    assert "kg query" in again.err


def test_the_way_from_one_thing_to_another(cli) -> None:
    cli("kg", "assert", "Alice", "works_at", "Acme")
    cli("kg", "assert", "acme", "located_in", "Oslo")
    ways = [line.split("\t") for line in cli("kg", "path", "alice", "OSLO").out.splitlines()]
    assert [way[1:4] for way in ways] == [["Alice", "works_at", "Acme"], ["acme", "located_in", "Oslo"]]
    stated = [cli("kg", "query", subject).out for subject in ("Alice", "acme")]
    assert cli("kg", "path", "alice", "OSLO").out == "".join(stated), "the columns of every piped statement"
    check(OPERATIONS + "kg.path.response", cli("kg", "path", "alice", "Oslo", "--json").json)
    short = cli("kg", "path", "alice", "Oslo", "--max-hops", "1")
    assert (short.code, short.out) == (0, "")
    assert "no way from alice to Oslo within 1 statement" in short.err
    assert cli("kg", "path", "alice", "Oslo", "--max-hops", "9").code == 1


def test_neighbours_and_hops(cli, remember) -> None:
    a = remember("the kiln is hot", "--metadata", "entity_name=Kiln")
    b = remember("the glaze is blue", "--metadata-json", f'{{"references": ["{a}"]}}')
    c = remember("clay", "--metadata", "entity_name=kiln")
    near = cli("kg", "neighbors", b[-8:], "--hops", "2")
    assert near.out == f"{a}\tthe kiln is hot\t1\n{c}\tclay\t2\n"
    answer = cli("kg", "neighbors", a, "--json").json
    check(OPERATIONS + "kg.neighbors.response", answer)
    assert {n["id"] for n in answer["neighbors"]} == {b, c}
    assert cli("kg", "neighbors", "nowhere").code == 1
    found = cli("recall", "glaze", "--hops", "2", "--json").json["results"]
    assert found[0]["supporting"] == [a, c]
    assert cli("recall", "glaze", "--hops", "4").code == 1


def test_erasing_wants_to_be_sure(cli) -> None:
    for object in ("Acme", "Bolt"):
        cli("kg", "assert", "Alice", "works_at", object)
    cli("kg", "assert", "Bob", "knows", "Alice")
    unsure = cli("kg", "erase", "Alice")
    assert unsure.code == 1
    assert "--dry-run" in unsure.err
    would = cli("kg", "erase", "Alice", "--mentions", "--dry-run")
    assert len(would.out.splitlines()) == 3
    assert "would erase 3 statements; nothing was changed" in would.err
    assert cli("kg", "erase", "Alice", "--dry-run", "--json").json["dry_run"] is True
    assert len(cli("kg", "history", "Alice").out.splitlines()) == 2
    done = cli("kg", "erase", "Alice", "--yes")
    assert done.out == "erased 2 statements\n"
    ran = cli("kg", "erase", "Alice", "--mentions", "--yes", "--json")
    check(OPERATIONS + "kg.erase.response", ran.json)
    assert len(ran.json["erased"]) == 1
    assert cli("kg", "erase", "Alice", "--yes").code == 1
    assert "Alice" not in cli("audit", "list", "--json").out
    assert cli("audit", "verify").code == 0


@pytest.mark.parametrize(("args", "word"), [
    (("assert", " ", "x", "y"), "subject"), (("assert", "x", "y", "z", "--confidence", "2"), "confidence"),
    (("assert", "x", "y", "z", "--valid-from", "soon"), "--valid-from"), (("query", "x", "--as-of", "soon"), "--as-of"),
    (("query", " "), "subject"), (("assert", "x" * 1025, "y", "z"), "subject"),
])  # fmt: skip
def test_mistakes_are_told_in_a_sentence(cli, args: tuple[str, ...], word: str) -> None:
    cli("kg", "assert", "a", "b", "c")
    ran = cli("kg", *args)
    assert ran.code == 1
    assert ran.out == ""
    assert word in ran.err
    assert len(ran.err.splitlines()) == 1


def test_agents_state_things_for_themselves(cli) -> None:
    cli("kg", "assert", "Alice", "knows", "Bob", "--agent", "one")
    assert cli("kg", "query", "Alice", "--agent", "two", "--json").json["triples"] == []
