"""What was said becomes proposals: once, for a reviewer, and never a question."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from transfer_scenarios import WHO

from commonplace.config import GovernanceConfig
from commonplace.engine import Decision
from commonplace.testing.subject import Subject
from commonplace.transfer.capture import CaptureTarget, capture
from commonplace.transfer.transcripts import Turn
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS

TURNS = [
    Turn("user", "What is my favourite editor?", "0", "s1"),
    Turn("assistant", "Your favourite editor is Vim.", "1", "s1"),
    Turn("user", "No, my favourite editor is Zed.", "2", "s1", 1_740_000_000_000, "/home/alice/atlas"),
    Turn("user", "I prefer tabs over spaces. Can you reformat it?", "3", "s1"),
]
TARGET = CaptureTarget("agent", user="alice")


def test_it_waits_for_a_reviewer(subject: Subject, run: Any) -> None:
    report = run(capture(subject.engine, WHO, TURNS, "claude-code", TARGET))
    assert (report.staged, report.written) == (2, 0)
    assert run(subject.list()) == []
    reviews = run(subject.engine.reviews.list(WHO))
    assert [review["request"]["content"] for review in reviews] == [
        "No, my favourite editor is Zed.",
        "I prefer tabs over spaces.",
    ]
    assert reviews[0]["reasoning"] == "said in a conversation; taken for a correction"
    run(subject.engine.reviews.decide(WHO, reviews[0]["id"], Decision(True)))
    (kept,) = run(subject.list())
    assert (kept.kind, kept.project, kept.user_id, kept.speaker) == ("correction", "atlas", "alice", "user")
    assert kept.metadata["answers"] == "Your favourite editor is Vim."
    assert kept.provenance["captured"] == {"session": "s1", "turn": "2", "rule": "correction"}
    assert kept.event_time == 1_740_000_000_000


def test_a_second_time_nothing_is_proposed(subject: Subject, run: Any) -> None:
    run(capture(subject.engine, WHO, TURNS, "claude-code", TARGET))
    before = run(subject.store.audit_head("local"))
    again = run(capture(subject.engine, WHO, TURNS, "claude-code", TARGET))
    assert (again.staged, again.proposed) == (0, [])
    assert run(subject.store.audit_head("local")) == before


def test_at_once_where_that_was_chosen_and_then_not_again(subject: Subject, run: Any) -> None:
    target = CaptureTarget("agent", review=False)
    assert run(capture(subject.engine, WHO, TURNS, "claude-code", target)).written == 2
    again = run(capture(subject.engine, WHO, TURNS, "claude-code", target))
    assert again.written == 0
    assert again.left_out.counts["it is remembered already"] == 2


def test_what_was_rejected_is_not_proposed_again(subject: Subject, run: Any) -> None:
    run(capture(subject.engine, WHO, TURNS, "claude-code", TARGET))
    for review in run(subject.engine.reviews.list(WHO)):
        run(subject.engine.reviews.decide(WHO, review["id"], Decision(False)))
    later = [replace(turn, id=f"{turn.id} again", session="s2") for turn in TURNS]
    at_once = CaptureTarget("agent", user="alice", review=False)
    for turns, target in ((TURNS, TARGET), (later, TARGET), (TURNS, at_once), (later, at_once)):
        again = run(capture(subject.engine, WHO, turns, "claude-code", target))
        assert (again.staged, again.written, again.proposed) == (0, 0, [])
        assert dict(again.left_out.counts) == {"a reviewer turned it down": 2}
    assert run(subject.engine.reviews.list(WHO)) == []


def test_what_was_approved_as_edited_is_neither_counted_nor_proposed_again(subject: Subject, run: Any) -> None:
    run(capture(subject.engine, WHO, TURNS[3:], "claude-code", TARGET))
    (review,) = run(subject.engine.reviews.list(WHO))
    edit = run(subject.engine.reviews.with_changes(WHO, review["id"], {"content": "Alice indents with tabs"}))
    run(subject.engine.reviews.decide(WHO, review["id"], Decision(True, edited=edit[0], edited_request=edit[1])))
    again = run(capture(subject.engine, WHO, TURNS[3:], "claude-code", TARGET))
    assert (again.staged, again.proposed) == (0, [])
    assert dict(again.left_out.counts) == {"it was proposed before, and decided": 1}


@pytest.mark.parametrize("review", [True, False])
def test_what_nobody_decided_in_time_is_proposed_anew(subject: Subject, run: Any, review: bool) -> None:
    subject.engine.settings.governance = GovernanceConfig(review_days=7)
    run(capture(subject.engine, WHO, TURNS[3:], "claude-code", TARGET))
    subject.clock.advance(8 * DAY_MS)
    target = CaptureTarget("agent", user="alice", review=review)
    again = run(capture(subject.engine, WHO, TURNS[3:], "claude-code", target))
    assert (again.staged, again.written, len(again.proposed)) == (int(review), int(not review), 1)


@pytest.mark.parametrize(
    ("known", "said", "new"),
    [
        ("I prefer tabs over spaces.", "I prefer tabs over spaces!", False),
        ("I prefer tabs over spaces.", "I really prefer tabs over spaces.", False),
        ("I prefer tabs over spaces.", "We like long walks on the beach.", True),
        ("We deploy at 9 on Mondays.", "We deploy at 10 on Mondays.", True),
        ("Our tests are always quick.", "Our tests are not always quick.", True),
    ],
)
def test_nearly_the_same_words_are_not_written_twice(
    subject: Subject, run: Any, known: str, said: str, new: bool
) -> None:
    run(subject.remember(known))
    report = run(capture(subject.engine, WHO, [Turn("user", said, "1")], "codex", TARGET))
    assert bool(report.proposed) is new


@pytest.mark.parametrize(
    ("known", "target", "new"),
    [
        ({"user_id": "bob"}, CaptureTarget("agent", user="alice"), True),
        ({"user_id": "alice"}, CaptureTarget("agent", user="alice"), False),
        ({"user_id": "bob"}, CaptureTarget("agent"), False),
        ({}, CaptureTarget("agent", user="alice"), False),
        ({"project": "atlas"}, CaptureTarget("agent", project="borealis"), True),
        ({"project": "atlas"}, CaptureTarget("agent", project="atlas"), False),
        ({"project": "atlas"}, CaptureTarget("agent"), False),
        ({}, CaptureTarget("agent", project="atlas"), False),
    ],
)
@pytest.mark.parametrize("how", ["remembered", "waiting", "rejected"])
def test_what_another_person_said_or_of_another_project_hides_nothing(
    subject: Subject, run: Any, how: str, known: dict[str, str], target: CaptureTarget, new: bool
) -> None:
    turns = [Turn("user", "I'm allergic to peanuts.", "1", "s1")]
    earlier = CaptureTarget(
        "agent", user=known.get("user_id"), project=known.get("project"), review=how != "remembered"
    )
    assert len(run(capture(subject.engine, WHO, turns, "codex", earlier)).proposed) == 1
    if how == "rejected":
        (review,) = run(subject.engine.reviews.list(WHO))
        run(subject.engine.reviews.decide(WHO, review["id"], Decision(False)))
    later = [replace(turns[0], id="2", session="s2")]
    assert bool(run(capture(subject.engine, WHO, later, "codex", target)).proposed) is new


def test_of_one_transcript_each_person_has_their_own(subject: Subject, run: Any) -> None:
    for user in ("alice", "bob"):
        report = run(capture(subject.engine, WHO, TURNS, "codex", CaptureTarget("agent", user=user, review=False)))
        assert (report.written, dict(report.left_out.counts)) == (2, {})
    assert [memory.user_id for memory in run(subject.list())] == ["bob", "bob", "alice", "alice"]


@pytest.mark.parametrize("review", [True, False])
def test_of_one_transcript_each_project_that_is_named_has_its_own(subject: Subject, run: Any, review: bool) -> None:
    for project in ("atlas", "borealis"):
        for new in (2, 0):
            target = CaptureTarget("agent", project=project, review=review)
            assert len(run(capture(subject.engine, WHO, TURNS, "codex", target)).proposed) == new


def test_a_project_that_is_named_as_the_folder_is_the_same_request(subject: Subject, run: Any) -> None:
    run(capture(subject.engine, WHO, TURNS[2:3], "codex", TARGET))
    (review,) = run(subject.engine.reviews.list(WHO))
    edit = run(subject.engine.reviews.with_changes(WHO, review["id"], {"content": "Alice edits with Zed"}))
    run(subject.engine.reviews.decide(WHO, review["id"], Decision(True, edited=edit[0], edited_request=edit[1])))
    again = run(capture(subject.engine, WHO, TURNS[2:3], "codex", replace(TARGET, project="atlas")))
    assert dict(again.left_out.counts) == {"it was proposed before, and decided": 1}


def test_a_session_that_moves_to_another_folder_proposes_nothing_twice(subject: Subject, run: Any) -> None:
    """A hook is told the folder of now, and looks through what was said in the one before."""
    before = "it was captured before, for another project or with other details"
    for folder, left_out in (("atlas", {}), ("src", {before: 1})):
        report = run(capture(subject.engine, WHO, TURNS[3:], "codex", replace(TARGET, folder=folder)))
        assert dict(report.left_out.counts) == left_out
    (review,) = run(subject.engine.reviews.list(WHO))
    assert review["request"]["metadata"]["project"] == "atlas"


def test_however_many_people_say_the_same_nobodys_is_written_twice(subject: Subject, run: Any) -> None:
    people = [f"person-{number}" for number in range(12)]
    for session in ("s1", "s2"):
        turns = [Turn("user", "I'm allergic to peanuts.", "1", session)]
        for user in people:
            run(capture(subject.engine, WHO, turns, "codex", CaptureTarget("agent", user=user, review=False)))
    assert sorted(memory.user_id or "" for memory in run(subject.list())) == sorted(people)


@pytest.mark.slow
def test_of_a_long_conversation_all_is_proposed(subject: Subject, run: Any) -> None:
    turns = [Turn("user", f"We use shelf {number} of rack {number}.", str(number)) for number in range(1_500)]
    report = run(capture(subject.engine, WHO, turns, "codex", CaptureTarget("agent", review=False)))
    assert (report.written, dict(report.left_out.counts)) == (1_500, {})


def test_said_twice_in_one_conversation_it_is_proposed_once(subject: Subject, run: Any) -> None:
    turns = [Turn("user", "I prefer tabs over spaces.", "1"), Turn("user", "I really prefer tabs over spaces.", "2")]
    report = run(capture(subject.engine, WHO, turns, "codex", TARGET))
    assert report.staged == 1
    assert report.left_out.counts["it was said twice"] == 1


OPPOSITES = ["I prefer tabs over spaces in Python files.", "I prefer spaces over tabs in Python files."]


def test_the_opposite_in_the_same_words_is_something_new(subject: Subject, run: Any) -> None:
    turns = [Turn("user", text, str(number), "s1") for number, text in enumerate(OPPOSITES)]
    report = run(capture(subject.engine, WHO, turns, "codex", TARGET))
    assert [each["content"] for each in report.proposed] == OPPOSITES


@pytest.mark.parametrize("how", ["remembered", "waiting", "rejected"])
def test_the_opposite_of_what_was_said_in_another_session_is_something_new(
    subject: Subject, run: Any, how: str
) -> None:
    first, second = (Turn("user", text, "1", text) for text in OPPOSITES)
    run(capture(subject.engine, WHO, [first], "codex", replace(TARGET, review=how != "remembered")))
    if how == "rejected":
        (review,) = run(subject.engine.reviews.list(WHO))
        run(subject.engine.reviews.decide(WHO, review["id"], Decision(False)))
    report = run(capture(subject.engine, WHO, [second], "codex", TARGET))
    assert [each["content"] for each in report.proposed] == OPPOSITES[1:]


def test_a_question_is_never_kept_so_that_it_answers_nothing(subject: Subject, run: Any) -> None:
    target = CaptureTarget("agent", review=False)
    turns = [Turn("user", "Do I prefer tabs over spaces? Is our server in Oslo?", "1")]
    assert run(capture(subject.engine, WHO, turns, "codex", target)).proposed == []
    assert run(subject.recall("do I prefer tabs")) == []


def test_a_dry_run_changes_nothing(subject: Subject, run: Any) -> None:
    report = run(capture(subject.engine, WHO, TURNS, "codex", TARGET, dry_run=True))
    assert len(report.proposed) == 2
    assert run(subject.store.audit_head("local")) == (0, "")


def test_secrets_are_taken_out_and_rules_hold(subject: Subject, run: Any) -> None:
    secret = "ghp_" + "a1B2" * 9
    turns = [Turn("user", f"Remember that the token is {secret} for now.", "1"), Turn("user", "I prefer tea.", "2")]
    rules = [{"name": "no-tea", "when": {"content": "tea"}, "action": "reject"}]
    run(subject.engine.policies.replace(WHO, rules))
    report = run(capture(subject.engine, WHO, turns, "codex", CaptureTarget("agent", review=False)))
    assert report.written == 1
    assert secret not in run(subject.list())[0].content
    assert [reason for reason in report.left_out.counts if "'no-tea' refuses" in reason]


def test_a_reader_may_not(subject: Subject, run: Any) -> None:
    from commonplace.wire.errors import Forbidden

    with pytest.raises(Forbidden):
        run(capture(subject.engine, Principal("r", role="reader"), TURNS, "codex", TARGET))


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("start", ["I prefer", "I prefer the deployment token of the release team"])
def test_a_report_holds_no_secret(subject: Subject, run: Any, start: str, dry_run: bool) -> None:
    """Neither what is new, nor the examples of what was left out, also where one would be cut in two."""
    secret = "ghp_" + "a1B2" * 9
    ends = ("for the staging builds.", "actually for staging builds.")
    turns = [Turn("user", f"{start} {secret} {end}", str(i), "s1") for i, end in enumerate(ends)]
    document = run(capture(subject.engine, WHO, turns, "claude-code", TARGET, dry_run=dry_run)).document()
    assert "REDACTED" in document["proposed"][0]["content"]
    assert document["left_out"][0]["reason"] == "it was said twice"
    assert secret[:8] not in repr(document)


def test_what_a_correction_answers_holds_not_even_half_a_secret(subject: Subject, run: Any) -> None:
    secret = "ghp_" + "a1B2" * 9
    for said in (f"{'Hello. ' * 26}Use {secret} to log in.", f"{'x' * 30_000} {secret}", f"Use\n{secret}\nto log in."):
        turns = [Turn("assistant", said, "1"), Turn("user", f"No, the port is {len(said)}, not 8080.", "2")]
        run(capture(subject.engine, WHO, turns, "codex", CaptureTarget("agent", review=False)))
    kept = run(subject.list())
    assert [len(memory.metadata["answers"]) <= 200 for memory in kept] == [True] * 3
    assert secret[:8] not in repr(kept)


def test_a_secret_does_not_make_the_same_sentence_another_one(subject: Subject, run: Any) -> None:
    """Compared, and embedded, is what would be kept."""
    secret = "ghp_" + "a1B2" * 9
    target = CaptureTarget("agent", review=False)
    for session in ("s1", "s2"):
        report = run(capture(subject.engine, WHO, [Turn("user", f"Remember: {secret}", "1", session)], "codex", target))
    assert dict(report.left_out.counts) == {"it is remembered already": 1}
