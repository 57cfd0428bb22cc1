"""Every command on a real store: what it does, and that --json is the wire's own answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from commonplace.cli.history import changes
from commonplace.cli.support.output import moment
from commonplace.embedders import model_files, packaged_files
from commonplace.wire.validate import check

Remember = Callable[..., str]


def test_remember_keeps_everything_it_was_told(cli, remember: Remember) -> None:
    id = remember(
        "Alice", "is allergic", "--type", "episodic", "--user", "alice", "--tag", "food", "--tag", "health",
        "--title", "Allergy", "--metadata", "stars=5", "--metadata-json", '{"place": {"city": "Lisbon"}}',
        "--confidence", "0.9", "--source", "chat", "--expires", "30d", "--session", "s1", "--speaker", "Bob",
        "--event-time", "2026-03-01", "--importance", "0.7",
    )  # fmt: skip
    memory = cli("get", id, "--json").json
    assert memory["content"] == "Alice is allergic"
    assert (memory["type"], memory["user_id"], memory["confidence"]) == ("episodic", "alice", 0.9)
    assert memory["source"] == "chat"
    assert memory["expires_at"] - memory["created_at"] == pytest.approx(30 * 86_400_000, abs=60_000)
    assert memory["metadata"] == {
        "tags": ["food", "health"], "title": "Allergy", "stars": 5, "place": {"city": "Lisbon"}, "session_id": "s1",
        "speaker": "Bob", "event_time": 1_772_323_200_000, "importance": 0.7,
    }  # fmt: skip


def test_remember_answers_as_the_wire_does(cli) -> None:
    ran = cli("remember", "hello", "--json")
    check("memorywire/operations/remember.response", ran.json)
    assert ran.err == ""
    assert len(ran.out.splitlines()) == 1


@pytest.mark.parametrize("args", [("-",), ()])
def test_remember_reads_a_pipe(cli, args: tuple[str, ...]) -> None:
    id = cli("remember", *args, "--json", stdin="two\nlines\n").json["id"]
    assert cli("get", id, "--json").json["content"] == "two\nlines"


def test_remember_reads_a_file(cli, tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("Grüße\n", "utf-8")
    id = cli("remember", "--file", str(path), "--json").json["id"]
    assert cli("get", id, "--json").json["content"] == "Grüße"


def test_the_same_key_writes_once(cli, remember: Remember) -> None:
    assert remember("once", "--idempotency-key", "k") == remember("once", "--idempotency-key", "k")
    assert len(cli("list", "--json").json["memories"]) == 1


def test_a_batch_gives_each_line_its_own_outcome(cli, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    lines = ['"just text"', '{"content": "an object", "type": "episodic", "metadata": {"n": 1}}', "", "{nonsense",
             '{"content": "x", "type": "wrong"}', "7", '{"type": "semantic"}']  # fmt: skip
    path.write_text("\n".join(lines), "utf-8")
    ran = cli("remember", "--batch", str(path), "--tag", "imported", "--json")
    results = ran.json["results"]
    assert ran.code == 1
    for answer in results[:2]:
        check("memorywire/operations/remember.response", answer)
    for refusal in results[2:]:
        check("memorywire/error", refusal)
    assert len(results) == 6
    memories = {m["content"]: m for m in cli("list", "--json").json["memories"]}
    assert memories["an object"]["metadata"] == {"tags": ["imported"], "n": 1}
    assert memories["an object"]["type"] == "episodic"
    assert memories["just text"]["metadata"] == {"tags": ["imported"]}
    result = cli("remember", "--batch", str(path))
    assert result.out.startswith("remembered 2 of 6 lines")
    assert "line 4: not valid JSON" in result.err


def test_a_file_that_is_no_batch_is_given_up_early(cli, tmp_path: Path) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text("y\n" * 1_200 + '"a memory"\n', "utf-8")
    refused = cli("remember", "--batch", str(path))
    assert (refused.code, refused.out) == (1, "")
    assert "none of the first 1,000 lines" in refused.err
    assert "line 1: not valid JSON" in refused.err
    assert len(refused.err.splitlines()) == 1
    assert cli("list", "--json").json["memories"] == []


def test_of_many_refused_lines_the_first_hundred_say_why(cli, tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_text('"the first"\n' + "y\n" * 1_500 + '"the last"\n', "utf-8")
    ran = cli("remember", "--batch", str(path))
    assert (ran.code, ran.out) == (1, "remembered 2 of 1,502 lines\n")
    assert len(ran.err.splitlines()) == 101
    assert ran.err.splitlines()[-1] == "1,400 more lines were refused"
    results = cli("remember", "--batch", str(path), "--json").json["results"]
    assert len(results) == 1_502, "each line has its place"
    assert "id" in results[0]
    assert "id" in results[-1]
    for refusal in results[1:-1]:
        check("memorywire/error", refusal)
    assert "not valid JSON" in results[100]["error"]["message"]
    assert "the first 100" in results[101]["error"]["message"]


@pytest.mark.parametrize(
    ("line", "why"), [(b'"\xff"', "is not UTF-8 text"), (b'"' + b"x" * 5_000_000 + b'"', "longer")]
)
def test_a_line_that_cannot_be_read_is_refused_alone(cli, tmp_path: Path, line: bytes, why: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b'"before"\n' + line + b'\n"after"')
    ran = cli("remember", "--batch", str(path))
    assert (ran.code, ran.out) == (1, "remembered 2 of 3 lines\n")
    assert ran.err.startswith("line 2: ")
    assert why in ran.err


def test_a_batch_larger_than_one_request(cli, tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text("".join(f'"memory number {n}"\n' for n in range(1200)), "utf-8")
    assert cli("remember", "--batch", str(path)).out == "remembered 1,200 of 1,200 lines\n"
    everything = cli("list", "--all")
    assert len(everything.out.splitlines()) == 1200
    assert len(cli("list", "--all", "--json").json["memories"]) == 1200


def test_recall(cli, remember: Remember) -> None:
    tea = remember("Alice drinks green tea", "--user", "alice", "--metadata", "stars=5")
    remember("Bob drinks coffee", "--user", "bob", "--type", "episodic", "--metadata", "stars=2")
    ran = cli("recall", "who", "drinks", "tea?", "--json", "--explain", "--fusion", "max")
    check("memorywire/operations/recall.response", ran.json)
    assert ran.json["results"][0]["id"] == tea
    assert ran.json["fusion_used"] == "max"
    for narrowed in (
        ["--user", "alice"],
        ["--types", "semantic,procedural"],
        ["--where", "stars>3"],
        ["--filter", '{"stars": {"$gt": 3}}'],
        ["-k", "1"],
    ):
        found = cli("recall", "drinks tea", *narrowed, "--json").json["results"]
        assert [hit["id"] for hit in found] == [tea], narrowed
    assert cli("recall", "drinks", "--fresher-than-days", "1", "--json").json["results"]
    lines = cli("recall", "drinks tea").out.splitlines()
    assert lines[0].split("\t")[0] == tea
    assert lines[0].endswith("Alice drinks green tea")
    assert "keywords only" in cli("recall", "tea").err


def test_recall_with_vectors(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
    cli("remember", "Alice drinks green tea")
    ran = cli("recall", "green tea", "--json")
    assert ran.json["results"][0]["content"] == "Alice drinks green tea"
    assert "note" not in ran.json
    assert cli("recall", "green tea").err == ""


def test_recall_includes_what_is_shared(cli) -> None:
    cli("remember", "everyone may know", "--agent", "shared")
    assert not cli("recall", "everyone", "--json").json["results"]
    assert cli("recall", "everyone", "--include-shared", "--json").json["results"]


def test_list_pages_and_narrows(cli, remember: Remember) -> None:
    ids = [remember(f"memory {n}", "--tag", "even" if n % 2 == 0 else "odd") for n in range(5)]
    first = cli("list", "--limit", "2", "--json").json
    assert [m["id"] for m in first["memories"]] == [ids[4], ids[3]]
    second = cli("list", "--limit", "2", "--cursor", first["next_cursor"], "--json").json
    assert [m["id"] for m in second["memories"]] == [ids[2], ids[1]]
    assert "--all" in cli("list", "--limit", "2").err
    assert [m["id"] for m in cli("list", "--tag", "odd", "--json").json["memories"]] == [ids[3], ids[1]]
    assert cli("list", "--type", "emotional").out == ""
    assert cli("list", "--user", "alice", "--json").json == {"memories": [], "next_cursor": None}


def test_agents_are_apart(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("remember", "hers", "--agent", "hers")
    monkeypatch.setenv("COMMONPLACE_AGENT", "his")
    cli("remember", "his")
    assert [m["agent_id"] for m in cli("list", "--json").json["memories"]] == ["his"]
    assert cli("list", "--agent", "hers").out.endswith("hers\n")
    assert cli("status", "--json").json["agents"] == {"hers": 1, "his": 1}


def test_update_history_and_the_past(cli, remember: Remember) -> None:
    id = remember("peanuts", "--tag", "food", "--metadata", "stars=1", "--metadata", "old=1")
    then = moment(cli("get", id, "--json").json["updated_at"])
    updated = cli("update", id, "--content", "peanuts and kiwi", "--metadata", "stars=2", "--metadata", "old=null",
                  "--confidence", "0.5", "--expected-version", "1", "--json").json  # fmt: skip
    assert updated["version"] == 2
    assert updated["metadata"] == {"tags": ["food"], "stars": 2}
    assert (
        cli("update", id, "--content", "late", "--expected-version", "1", "--json").json["error"]["code"] == "conflict"
    )
    versions = cli("history", id, "--json").json["versions"]
    assert [v["content"] for v in versions] == ["peanuts", "peanuts and kiwi"]
    assert "2\t" in cli("history", id).out
    assert "peanuts → peanuts and kiwi" in cli("history", id).out
    assert cli("get", id, "--as-of", then, "--json").json["content"] == "peanuts"
    assert cli("recall", "peanuts", "--as-of", then, "--json").json["results"][0]["content"] == "peanuts"
    assert cli("list", "--as-of", then, "--json").json["memories"][0]["content"] == "peanuts"
    assert cli("update", id, "--no-tags", "--json").json["metadata"].get("tags") in (None, [])
    assert cli("update", id, "--metadata-json", '{"only": 1}', "--json").json["metadata"] == {"only": 1}
    assert cli("update", id, "--tag", "new", "--expires", "1h").out == f"updated {id} to version 5\n"


def test_what_changed_between_versions() -> None:
    before = {"content": "old", "version": 1, "updated_at": 1, "metadata": {"a": 1, "gone": 2}, "confidence": 1.0}
    after = {"content": "new", "version": 2, "updated_at": 2, "metadata": {"a": 1, "tags": ["x"]}, "confidence": 1.0}
    assert changes(before, after) == [
        ("content", "old → new"),
        ("metadata.gone", "2 → —"),
        ("metadata.tags", '— → ["x"]'),
    ]
    assert changes(None, before) == [("content", "old")]


def test_part_of_an_id_is_enough(cli, remember: Remember) -> None:
    id, other = remember("one"), remember("two")
    assert cli("get", id[-8:], "--json").json["id"] == id
    ambiguous = cli("get", id[:6], "--json")
    assert id[:6] == other[:6]
    assert ambiguous.json["error"]["code"] == "conflict"
    assert cli("forget", id[-8:], "--json").json["forgotten_ids"] == [id]


def test_forget(cli, remember: Remember) -> None:
    one, two, three = (
        remember("one", "--user", "alice"),
        remember("two", "--user", "alice"),
        remember("three", "--user", "bob"),
    )
    dry = cli("forget", "--where", "user_id=alice", "--dry-run", "--json").json
    assert dry["dry_run"] is True
    assert {m["id"] for m in dry["memories"]} == {one, two}
    assert len(cli("list").out.splitlines()) == 3
    answer = cli("forget", one, "--reason", "test", "--json").json
    check("memorywire/operations/forget.response", answer)
    assert answer["forgotten_ids"] == [one]
    assert cli("get", one).code == 1
    refused = cli("forget", "--where", "user_id=bob", "--hard")
    assert refused.code == 1
    assert "--yes" in refused.err
    assert cli("forget", "--where", "user_id=bob", "--hard", "--yes").out == "erased 1 memory\n"
    assert cli("forget", three).code == 1
    partly = cli("forget", two, three)
    assert (partly.code, partly.out) == (1, "forgot 1 memory\n")
    assert three in partly.err


def test_merge(cli, remember: Remember) -> None:
    one, two = remember("Alice likes tea"), remember("Tea is what Alice likes")
    dry = cli("merge", one, two, "--strategy", "merge_content", "--dry-run", "--json").json
    assert dry["survivor"]["content"] == "Alice likes tea\nTea is what Alice likes"
    assert [loser["id"] for loser in dry["losers"]] == [two]
    assert "would keep" in cli("merge", one, two, "--dry-run").out
    answer = cli("merge", one, two, "--json").json
    check("memorywire/operations/merge.response", answer)
    assert answer["merged_count"] == 1
    assert cli("get", two, "--json").json["id"] == one, "where it is now"


def test_expire(cli, remember: Remember) -> None:
    doubtful = remember("maybe", "--confidence", "0.2")
    remember("surely")
    dry = cli("expire", "--confidence-below", "0.5", "--dry-run", "--json").json
    assert [m["id"] for m in dry["memories"]] == [doubtful]
    assert "would forget 1 memory" in cli("expire", "--confidence-below", "0.5", "--dry-run").err
    answer = cli("expire", "--confidence-below", "0.5", "--action", "archive", "--json").json
    check("memorywire/operations/expire.response", answer)
    assert answer == {**answer, "matched_count": 1, "action_taken": "archive"}
    assert cli("expire", "--type", "semantic", "--older-than-days", "3").out == "forgot 0 memories\n"


def test_an_approved_erasure_says_where_else_the_text_is(cli, remember: Remember) -> None:
    kept, doubled = remember("one"), remember("two")
    assert cli("merge", kept, doubled).code == 0
    cli("forget", doubled, "--hard", "--yes", "--approval")
    (review,) = cli("reviews", "list", "--json").json["reviews"]
    done = cli("reviews", "approve", review["id"])
    assert (done.code, done.out) == (0, f"approved: forget {doubled}\n")
    assert f"{kept} was merged from what was erased" in done.err


@pytest.mark.parametrize(("action", "past"), [("forget", "forgot"), ("archive", "archived"), ("demote", "demoted")])
def test_expire_shows_and_asks_at_a_terminal(cli, remember: Remember, action: str, past: str) -> None:
    for text in ("maybe", "perhaps"):
        remember(text, "--confidence", "0.2")
    command = ("expire", "--confidence-below", "0.5", "--action", action)
    refused = cli(*command, typed="n\n")
    assert refused.code == 1
    assert "maybe" in refused.out
    assert f"{action.capitalize()} these 2 memories?" in refused.err
    assert len(cli("audit", "list", "--json").json["entries"]) == 2, "nothing was changed"
    assert cli(*command, typed="y\n").out.endswith(f"{past} 2 memories\n")
    remember("possibly", "--confidence", "0.1", "--type", "episodic")
    unasked = cli(*command, "--type", "episodic", "--yes", typed="")
    assert (unasked.code, unasked.out, unasked.err) == (0, f"{past} 1 memory\n", "")
    nothing = cli("expire", "--older-than-days", "3", typed="")
    assert (nothing.code, nothing.out) == (0, "forgot 0 memories\n"), "there is nothing to ask about"


def _waiting(cli) -> str:
    """What `reviews show` says of the one change that waits."""
    (review,) = cli("reviews", "list", "--json").json["reviews"]
    return str(cli("reviews", "show", review["id"]).out)


def test_a_review_shows_whoever_decides_all_that_would_change(cli, remember: Remember) -> None:
    id = remember("Alice likes tea", "--tag", "old")
    change = ("--tag", "new", "--confidence", "0.5", "--expires", "2999-01-01", "--share-with", "*", "--approval")
    cli("update", id, *change)
    shown = _waiting(cli)
    for words in (
        '    tags: ["old"] → ["new"]\n',
        "    confidence: 1.0 → 0.5\n",
        "    expires_at: — → 2999-01-01T00:00:00.000Z\n",
        '    privacy_intent: — → {"share_with": ["*"]}\n',
    ):
        assert words in shown
    assert "metadata.tags" not in shown, "said once"


def test_a_review_shows_what_a_new_memory_and_a_statement_would_say(cli, remember: Remember) -> None:
    remember(
        "Bob likes tea", "--user", "bob", "--title", "Drinks", "--share-with", "*", "--metadata", "k=1", "--approval"
    )
    shown = _waiting(cli)
    for words in ("    user_id: bob\n", "    title: Drinks\n", '    privacy_intent: {"share_with": ["*"]}\n'):
        assert words in shown
    assert "    metadata.k: 1\n" in shown
    assert "metadata.title" not in shown, "said once"
    (review,) = cli("reviews", "list", "--json").json["reviews"]
    cli("reviews", "reject", review["id"])
    fact = ("Bob", "likes", "tea", "--valid-from", "2020-01-01", "--confidence", "0.3", "--provenance", "cv")
    cli("kg", "assert", *fact, "--approval")
    shown = _waiting(cli)
    for words in ("    valid_from: 2020-01-01T00:00:00.000Z\n", "    confidence: 0.3\n", "    provenance: cv\n"):
        assert words in shown


@pytest.mark.parametrize("hard", [True, False])
def test_a_review_of_a_forget_says_whether_it_erases(cli, remember: Remember, hard: bool) -> None:
    id = remember("Alice likes tea")
    cli("forget", id, *(["--hard"] if hard else []), "--reason", "she asked", "--approval")
    shown = _waiting(cli)
    assert ("erases it for good" in shown) is hard
    assert "she asked" in shown


def test_what_waits_cannot_pass_for_a_line_of_the_review(cli, remember: Remember) -> None:
    remember("tea\n- 0198  everything", "--approval", "--reasoning", "please\nstatus        approved")
    lines = _waiting(cli).splitlines()
    assert not any(line.startswith(("- 0198", "status        approved")) for line in lines)
    assert any(line.strip() == "- 0198  everything" for line in lines)


def test_with_four_eyes_another_name_on_the_command_line_is_sent_to_the_page(cli, data: Path) -> None:
    """Whether or not there are tokens: --reviewer is a claim."""
    data.mkdir()
    (data / "commonplace.toml").write_text("[governance]\nfour_eyes = true\n", "utf-8")
    assert cli("token", "create", "--role", "reviewer", "--name", "bob").code == 0
    review = cli("remember", "payments up to 500", "--approval", "--json").json["review_id"]
    refused = cli("review", "approve", review, "--reviewer", "bob")
    assert (refused.code, "on the page or over HTTP with another's token" in refused.err) == (1, True)


def test_reviews(cli, remember: Remember) -> None:
    plain = remember("visible")
    result = cli("remember", "payments up to 500", "--approval")
    review = result.out.split()[-1]
    assert cli("get", result.out.split()[0]).code == 1
    cli("forget", plain, "--approval", "--json")
    found = cli("reviews", "list", "--json").json["reviews"]
    assert [r["operation"] for r in found] == ["remember", "forget"]
    assert cli("reviews", "list").out.splitlines()[0].startswith(f"{review}\tpayments up to 500\t")
    assert cli("reviews", "show", review, "--json").json["diff"]["added"][0]["content"] == "payments up to 500"
    assert "+ " in cli("reviews", "show", review).out
    assert cli("reviews", "approve", review, "--reviewer", "bob", "--json").json["status"] == "approved"
    assert cli("get", result.out.split()[0], "--json").json["content"] == "payments up to 500"
    assert cli("reviews", "approve", review, "--json").json["error"]["code"] == "conflict"
    assert cli("reviews", "reject", found[1]["id"], "--reason", "no").out == "rejected: forget\n"
    assert cli("get", plain).code == 0
    assert cli("reviews", "list").out == ""
    assert len(cli("reviews", "list", "--status", "all", "--json").json["reviews"]) == 2
    edited = cli("remember", "drft", "--approval").out.split()[-1]
    request = json.dumps({"agent_id": "default", "type": "semantic", "content": "draft"})
    made = cli("reviews", "approve", edited, "--request", request, "--json").json["outcome"]["id"]
    assert cli("get", made, "--json").json["content"] == "draft"


def test_audit(cli, remember: Remember) -> None:
    id = remember("something")
    cli("recall", "something")
    cli("forget", id)
    page = cli("audit", "list", "--json").json
    assert [e["operation"] for e in page["entries"]] == ["remember", "recall", "forget"]
    assert [e["n"] for e in cli("audit", "list", "--limit", "2", "--json").json["entries"]] == [1, 2]
    assert cli("audit", "list", "--limit", "2", "--cursor", "2").out.split("\t")[0] == "3"
    assert [e["n"] for e in cli("audit", "list", "--operation", "forget", "--json").json["entries"]] == [3]
    assert cli("audit", "list", "--since", "1h", "--until", "30m").out == ""
    assert cli("audit", "list", "--agent", "other").out == ""
    verdict = cli("audit", "verify", "--json").json
    assert verdict["ok"]
    assert verdict["entries"] == 3
    assert cli("audit", "verify").out.startswith("the ledger is whole: 3 entries")


def test_upkeep(cli, remember: Remember, data: Path, tmp_path: Path) -> None:
    remember("something")
    status = cli("status", "--json").json
    assert status["memories"] == 1
    assert Path(status["data"]) == data
    result = cli("status")
    assert str(data) in result.out
    checks = cli("doctor", "--no-repair", "--json")
    assert (checks.code, checks.json["ok"]) == (0, True)
    assert "everything is in order" in cli("doctor").err
    copy = tmp_path / "copy.db"
    made = cli("backup", str(copy), "--json").json
    assert made["bytes"] == copy.stat().st_size
    assert cli("backup", str(copy)).code == 1
    compacted = cli("compact", "--json").json
    assert compacted["after_bytes"] <= compacted["before_bytes"]
    assert "→" in cli("compact").out


def test_reindex_gives_a_keyword_store_its_vectors(cli, remember: Remember) -> None:
    remember("something")
    done = cli("reindex", "--embedder", "hashing", "--json")
    assert done.code == 0, done
    assert done.json["reindexed"] == 1
    assert cli("status", "--json").json["embedder"]["name"] == done.json["embedder"]
    assert cli("reindex", "--embedder", "hashing").out.startswith("reindexed ")


def test_compact_counts_the_indexes_it_took_erased_content_out_of(cli, remember: Remember) -> None:
    first, second = remember("one"), remember("two")
    cli("forget", first, second, "--hard", "--yes")
    assert "took erased content out of 1 index\n" in cli("compact").out
    cli("remember", "three", "--agent", "other")
    (third,) = cli("list", "--agent", "other", "--json").json["memories"]
    cli("forget", third["id"], "--agent", "other", "--hard", "--yes")
    assert "took erased content out of 2 indexes\n" in cli("compact").out


def test_status_says_once_that_vectors_are_missing(cli, remember: Remember, monkeypatch: pytest.MonkeyPatch) -> None:
    remember("with")
    cli("reindex", "--embedder", "hashing")
    remember("without")
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
    said = cli("status").err
    assert said.count("vectors") == said.count("commonplace reindex") == 1, said


def test_status_says_what_needs_attention(cli) -> None:
    cli("remember", "wait", "--approval")
    assert "1 change waiting for approval; run `commonplace review list`" in cli("status").err


def test_model_list_and_verify(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "none here"))
    encoder, minilm, multilingual = cli("model", "list", "--json").json["models"]
    assert (encoder["spec"], encoder["installed"], encoder["ok"], encoder["default"]) == ("encoder", True, True, True)
    assert (minilm["spec"], minilm["installed"], minilm["default"]) == ("minilm", False, False)
    assert (multilingual["spec"], multilingual["installed"], multilingual["dimension"]) == ("multilingual", False, 512)
    assert "not installed" in cli("model", "list").out
    verified = cli("model", "verify", "--json")
    assert (verified.code, verified.json["ok"], verified.json["models"]) == (0, True, ["encoder", "judge"])
    assert cli("model", "verify").out == "whole: encoder, judge\n"
    verified = cli("model", "verify", "minilm", "--json")
    assert (verified.code, verified.json["ok"]) == (2, False)
    assert "commonplace model build minilm" in cli("model", "verify", "minilm").out
    assert (
        "there is no model 'bert' here; there are: encoder, minilm, multilingual" in cli("model", "verify", "bert").err
    )


def test_looking_at_models_begins_no_store(cli, data: Path) -> None:
    assert cli("model", "list").code == cli("model", "verify").code == cli("model", "build").code == 0
    assert not (data / "commonplace.db").exists()


def test_what_ships_needs_no_building(cli, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "build", lambda tell: pytest.fail("nothing may be fetched"))
    for args in ([], ["encoder"]):
        built = cli("model", "build", *args)
        assert (built.code, built.out) == (0, "the encoder is in the package: nothing to install\n")
    assert cli("model", "build", "bert").code == 1


def test_a_damaged_model_is_told_by_verify_status_and_recall(
    cli, remember: Remember, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "encoder")
    remember("Alice drinks tea")
    (tmp_path / "encoder.onnx").write_bytes(b"half of it")
    damaged = replace(packaged_files.ENCODER, path=tmp_path / "encoder.onnx")
    monkeypatch.setattr(packaged_files, "ENCODER", damaged)
    sentence = "the encoder is damaged: install commonplace-memory again"
    assert sentence in cli("model", "verify").out
    assert "damaged" in cli("model", "list").out
    assert sentence in cli("status").err
    found = cli("recall", "tea")
    assert "Alice drinks tea" in found.out
    assert f"{sentence}; recall is by keywords only" in found.err
    kept = cli("remember", "Bob drinks coffee")
    assert (kept.code, sentence in kept.err) == (0, True)
    checked = cli("doctor")
    assert (checked.code, sentence in checked.out) == (2, True)


def test_switching_says_what_it_will_do_and_does_it(cli, remember: Remember, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
    remember("Alice drinks tea")
    would = cli("model", "switch", "hashing-64", "--dry-run", "--json")
    assert would.json == {"dry_run": True, "from": "hashing-256", "to": "hashing-64", "memories": 1}
    would = cli("model", "switch", "hashing-64", "--dry-run")
    assert would.out.startswith("would embed 1 memory anew with hashing-64; hashing-256 made the vectors so far")
    assert cli("model", "list", "--json").json["embedder"] == "hashing-256"
    done = cli("model", "switch", "hashing-64")
    assert done.code == 0
    assert "embed 1 memory anew with hashing-64" in done.err
    assert done.out == "this store's vectors are made by hashing-64 now (1 memory embedded)\n"
    again = cli("model", "switch", "hashing-128", "--json").json
    assert (again["from"], again["to"], again["reindexed"]) == ("hashing-64", "hashing-128", 1)
    assert cli("model", "list", "--json").json["embedder"] == "hashing-128"


@pytest.mark.parametrize("name", ["none", "nonsense", "encoder?fast=yes"])
def test_what_cannot_be_switched_to_changes_nothing(
    cli, remember: Remember, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
    remember("Alice drinks tea")
    refused = cli("model", "switch", name)
    assert (refused.code, refused.out) == (1, "")
    assert cli("model", "list", "--json").json["embedder"] == "hashing-256"


def test_without_the_model_everything_works_and_says_so(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "none here"))
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "minilm")
    result = cli("remember", "Alice drinks tea")
    assert result.code == 0
    assert result.err.count("commonplace model build") == 1
    found = cli("recall", "tea")
    assert "Alice drinks tea" in found.out
    assert found.err.count("commonplace model build") == 1
    assert cli("status").err.count("commonplace model build") == 1


def test_a_backup_is_restored(cli, remember: Remember, data: Path, tmp_path: Path) -> None:
    remember("Alice is allergic to peanuts")
    backup = tmp_path / "backup.db"
    assert cli("backup", str(backup)).code == 0
    remember("written later")
    for path in data.rglob("*.db*"):
        path.unlink()
    looked = cli("restore", str(backup), "--dry-run")
    assert looked.code == 0
    assert "the backup is whole (1 memory," in looked.out
    assert not (data / "commonplace.db").exists()
    assert "--force" not in looked.out
    assert cli("restore", str(backup), "--json").json["memories"] == 1
    assert "with --force it would replace" in cli("restore", str(backup), "--dry-run").out
    refused = cli("restore", str(backup), "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "conflict")
    again = cli("restore", str(backup), "--force")
    assert again.code == 0
    assert "is kept as" in again.out + again.err
    assert "peanuts" in cli("list").out
    assert cli("audit", "verify").code == 0
    backup.write_bytes(backup.read_bytes()[:5000])
    assert cli("restore", str(backup), "--force", "--json").code == 2
    assert cli("restore", str(tmp_path / "none.db")).code == 1


def test_a_review_says_why(cli, remember: Remember) -> None:
    one, two = remember("one"), remember("two")
    why = ("--approval", "--reasoning", "Bob asked for it")
    changed, stated = ("update", one, "--content", "uno"), ("kg", "assert", "Bob", "likes", "tea")
    cli("kg", "assert", "Bob", "likes", "water")
    for command in (("remember", "three"), ("forget", one), ("merge", one, two), changed, stated):
        assert cli(*command, *why, "--json").code == 0
        review = cli(*command, *why).out.rstrip("\n").partition("waits for approval: commonplace review show ")[2]
        assert cli("review", "show", review, "--json").json["id"] == review
    reviews = cli("reviews", "list", "--json").json["reviews"]
    assert [review["reasoning"] for review in reviews] == ["Bob asked for it"] * 10
    assert (cli("get", one, "--json").json["content"], "tea" in cli("kg", "query", "Bob").out) == ("one", False)
    update, statement = (next(r["id"] for r in reviews if r["operation"] == name) for name in ("update", "statement"))
    assert "+ " + one in cli("reviews", "show", update).out
    assert "Bob likes tea" in cli("reviews", "list").out
    assert "Bob likes water, until" in cli("reviews", "show", statement).out
    assert cli("reviews", "approve", update).out == f"approved: update {one}\n"
    assert cli("reviews", "approve", statement).code == 0
    assert (cli("get", one, "--json").json["content"], "tea" in cli("kg", "query", "Bob").out) == ("uno", True)


def test_review_edit_apply_and_many(cli, remember: Remember) -> None:
    old = remember("payments up to 300")

    def stage(text: str) -> str:
        return str(cli("remember", text, "--approval", "--json").json["review_id"])

    first = stage("payments up to 400")
    shown = cli("review", "show", first).out
    assert f"~ {old}" in shown
    assert "contradicts: payments up to 300" in shown
    assert cli("review", "edit", first, "--json").json["error"]["code"] == "validation_error"
    said = cli("review", "edit", first, "--content", "payments up to 500").out
    assert said == f"edited: remember {first}, revision 2\n"
    assert "edited by local; revision 2" in cli("review", "show", first).out
    refused = cli("review", "apply", first, "--forget", old, "--revision", "1", "--json").json["error"]
    assert (refused["code"], refused["details"]["review"]["revision"]) == ("conflict", 2)
    assert cli("review", "apply", first, "--json").json["error"]["code"] == "validation_error"
    assert cli("review", "apply", first, "--forget", old, "--revision", "2").code == 0
    assert [m["content"] for m in cli("list", "--json").json["memories"]] == ["payments up to 500"]
    one, two, three = stage("one"), stage("two"), stage("three")
    assert cli("review", "approve", one, two).out == "approved 2 of 2 reviews\n"
    mixed = cli("review", "reject", two, three)
    assert (mixed.code, mixed.out) == (1, "rejected 1 of 2 reviews\n")
    assert "was approved already" in mixed.err
    assert cli("review", "approve", one, three, "--request", "{}", "--json").json["error"]["code"] == "validation_error"


def test_policy(cli, remember: Remember, tmp_path: Path) -> None:
    remember("her salary is high")
    remember("she likes tea")
    found = cli("policy", "test", "--content", "(?i)SALARY", "--json").json
    assert (found["looked_at"], found["counts"]) == (2, {"test": 1})
    assert "would have caught 1 write of 2 in 30 days" in cli("policy", "test", "--content", "salary").err
    assert cli("policy", "test", "--content", "zzz").err == "would have caught nothing: 0 writes of 2 in 30 days\n"
    assert cli("policy", "test", "--when", "kind=semantic", "--json").json["counts"] == {"test": 2}
    assert cli("policy", "test", "--json").json["error"]["code"] == "validation_error"
    wrong = cli("policy", "test", "--content", "(", "--json").json["error"]
    assert "rules[0].when.content" in wrong["message"]
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"rules": [{"name": "pay", "when": {"content": "salary"}, "action": "review"}]}))
    assert cli("policy", "set", str(file)).out == "1 rule in force from now on\n"
    for other in ([{"name": "pay"}], {"rule": []}):
        bare = tmp_path / "bare.json"
        bare.write_text(json.dumps(other))
        assert 'such as {"rules": [' in cli("policy", "set", str(bare), "--json").json["error"]["message"]
    assert "pay" in cli("policy", "list").out
    staged = cli("remember", "his salary is low", "--json").json
    assert staged["pending_approval"] is True
    assert cli("review", "show", staged["review_id"], "--json").json["rule"] == "pay"
    assert cli("policy", "learned", "--json").json == {"learned": []}
    assert cli("policy", "revoke", "nothing", "--json").json["error"]["code"] == "not_found"


def test_rules_of_the_configuration(cli, data: Path) -> None:
    data.mkdir(parents=True, exist_ok=True)
    settings = data / "commonplace.toml"
    settings.write_text(
        '[[policy]]\nname = "pay"\naction = "reject"\nnote = "ask Carol"\n[policy.when]\n'
        'content = "salary"\nagent = "*"\n'
    )
    refused = cli("remember", "her salary is high", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "forbidden")
    assert "'pay' refuses this remember: ask Carol" in refused.json["error"]["message"]
    assert "commonplace.toml" in cli("policy", "list").out
    settings.write_text('[[policy]]\nname = "pay"\naction = "forbid"\n')
    wrong = cli("remember", "tea", "--json").json["error"]
    assert "action" in wrong["message"]
    assert "a rule looks like" in wrong["message"]
    settings.write_text("policy = 3\n")
    assert "[[policy]]" in cli("remember", "tea", "--json").json["error"]["message"]


def test_piped_lists_say_whole_times(cli) -> None:
    cli("remember", "Alice keeps bees", "--approval")
    cli("palace", "create", "hall")
    for command in (("reviews", "list"), ("palace", "list")):
        (line,) = cli(*command).out.splitlines()
        ((found,),) = cli(*command, "--json").json.values()
        assert line.split("\t")[-1] == moment(found["created_at"])


def test_an_update_of_nothing_names_the_options(cli, remember: Remember) -> None:
    refused = cli("update", remember("Alice likes tea"))
    assert refused.code == 1
    assert "nothing to change: give --content, --tag, " in refused.err


def test_a_note_on_a_recall_names_the_option(cli, remember: Remember, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
    remember("Alice likes tea")
    assert "note: --min-score was not applied" in cli("recall", "tea", "--min-score", "0.5").err
    assert cli("recall", "tea", "--min-score", "0.5", "--json").json["note"].startswith("min_score was not applied")
