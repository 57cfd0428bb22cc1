"""What is worth keeping, sentence by sentence, and what is left alone."""

from __future__ import annotations

import pytest

from commonplace.transfer.extraction import classify, is_question, proposals, sentences
from commonplace.transfer.transcripts import Turn

KEPT = [
    ("Remember that the staging database is wiped on Sundays.", "note"),
    ("Please note: deploys need two approvals.", "note"),
    ("From now on write commit messages in the imperative.", "note"),
    ("FYI the office moved to Bergen.", "note"),
    ("Do not forget that deploys need two approvals.", "note"),
    ("Remember that I should check whether the invoice went out.", "note"),
    ("Remember that when we deploy, the cache is wiped.", "note"),
    ("Note: when the build is red ping Bob.", "note"),
    ("From now on do code review first.", "note"),
    ("From now on have Bob review it.", "note"),
    ("From now on tell me which files you changed.", "note"),
    ("FYI can't deploy today, the cluster is down.", "note"),
    ("FYI: will be on leave until Monday.", "note"),
    ("Remember that Will is on leave in May.", "note"),
    ("Remember: May is when we do the audit.", "note"),
    ("Remember: should the disk fill up, restart the collector.", "note"),
    ("FYI how we deploy is written down in the wiki.", "note"),
    ("FYI the docs explain how the release works.", "note"),
    ("Actually, when the tests fail we ping Bob.", "correction"),
    ("No, do it with tabs.", "correction"),
    ("So when we deploy, our cache is wiped.", "fact"),
    ("Don't forget we use Redis when testing.", "fact"),
    ("No, the port is 8420, not 8080.", "correction"),
    ("Actually, the invoice goes to Bob.", "correction"),
    ("It should be called ledger rather than journal.", "correction"),
    ("Should be port 8420, not 8080.", "correction"),
    ("Let's go with PostgreSQL for the team server.", "decision"),
    ("We decided to drop Windows support.", "decision"),
    ("Let's use ruff for formatting.", "decision"),
    ("I prefer tabs over spaces.", "preference"),
    ("We really like short functions.", "preference"),
    ("Never push to main on Fridays.", "preference"),
    ("Always run the linter before committing.", "preference"),
    ("Do not ever push to main on Fridays.", "preference"),
    ("Always tell me which files you changed.", "preference"),
    ("My favourite editor is Zed.", "preference"),
    ("I'm allergic to peanuts.", "fact"),
    ("I’m allergic to sesame.", "fact"),
    ("I work at a hospital in Oslo.", "fact"),
    ("Our release branch is called stable.", "fact"),
    ("We deploy from the release branch.", "fact"),
    ("We test and review every change before it ships.", "fact"),
    ("Review meetings are on Mondays and we use Zoom.", "fact"),
    ("Test environments run on AWS, we use Frankfurt.", "fact"),
    ("Change requests go to Bob, our release manager is on leave.", "fact"),
    ("I prefer tabs over spaces, as you know from how I write.", "preference"),
]
LEFT_ALONE = [
    "Do I prefer tabs or spaces?",
    "What should I not cook for Alice?",
    "Is our release branch called stable?",
    "remember when we decided to use Redis?",
    "why do we use Redis",
    "so where do we deploy from",
    "ok and which database do we use",
    "Hey, did we decide on Redis, I forgot what we decided.",
    "I was wondering what our port is.",
    "Tell me who my manager is.",
    "Any idea which port our server is on",
    "I don't remember whether we use Redis.",
    "Find out why our build is slow.",
    "Remember: what port do we use for staging",
    "Note that is our staging database on port 5432",
    "Remember that what port do we use",
    "Please remember, can we deploy on Fridays",
    "FYI do you know which port we use",
    "FYI is Bob our release manager",
    "FYI I forget what our staging port is",
    "For the record, why was the port changed",
    "for future reference: which port is open",
    "Note: how many servers are there",
    "From now on can you use tabs",
    "No, what is our deployment port",
    "No, what’s our deployment port",
    "Nope, how do people deploy the site",
    "Actually, where is the staging server",
    "hey, is it true that our staging database is on 5432",
    "So is our release branch called stable",
    "ok and who is our release manager, is our lead Bob",
    "I forget what our staging port is",
    "Confirm whether our staging server is up",
    "Not clear to me where our staging database is hosted",
    "I think I prefer tabs.",
    "Maybe we decided to use Redis.",
    "If we decided to use Redis it would be slow.",
    "I want you to fix the tests.",
    "I would like you to add a test.",
    "Please fix the build.",
    "Fix what we decided to leave broken.",
    "Run the tests that we use in CI.",
    "Check that our tests are green where we use SQLite.",
    "Test what we use and our code is fine.",
    "Review our code is what we decided.",
    "You know what our port is.",
    "Go ahead and write the migration we decided on.",
    "Check that our tests are green.",
    "I like this.",
    "We use this function in the tests.",
    "Our tests above are broken.",
    "ok thanks",
    "Run the tests again and show me the output.",
    "Looks good to me, continue.",
]


@pytest.mark.parametrize(("sentence", "kind"), KEPT)
def test_what_is_kept(sentence: str, kind: str) -> None:
    assert classify(sentence)[0] == kind


@pytest.mark.parametrize("sentence", LEFT_ALONE)
def test_what_is_left_alone(sentence: str) -> None:
    assert classify(sentence) == ("", 0.0)


@pytest.mark.parametrize("sentence", ["No, where is the staging server", "hey, is the blue server in Bergen"])
def test_a_language_model_is_shown_no_question_behind_a_lead_in_either(sentence: str) -> None:
    assert is_question(sentence)


@pytest.mark.parametrize(
    "text",
    [
        "```\nI prefer tabs over spaces.\n```",
        "> I prefer tabs over spaces.",
        "<system-reminder>I prefer tabs over spaces.</system-reminder>",
        "$ I prefer tabs over spaces.",
        "- > I prefer tabs over spaces.",
        "1. > I prefer tabs over spaces.",
        "> - I prefer tabs over spaces.",
        "- $ I prefer tabs over spaces.",
        "````\n```\nI prefer tabs over spaces.\n```\nWe use Redis.\n````",
        "````markdown\n```\nI prefer tabs over spaces.\n```\nWe use Redis.",
        "~~~~\n~~~\nI prefer tabs over spaces.\n~~~\nWe use Redis.\n~~~~",
        "```\n~~~\nI prefer tabs over spaces.\n~~~\nWe use Redis.\n```",
        "```\nI prefer tabs over spaces.\n````\n```We use Redis.",
        "I prefer " + "x" * 500,
    ],
)
def test_what_is_no_prose_is_left_alone(text: str) -> None:
    assert not [sentence for sentence in sentences(text) if classify(sentence)[0]]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<a>x</a>I prefer tabs over spaces.<A b='c'>\ny</a>", ["I prefer tabs over spaces."]),
        ("Vectors of type <T> are slow.<br>\nI prefer lists over vectors.", ["I prefer lists over vectors."]),
        ("<b><i>We decided to use Redis.</b> I prefer tabs over spaces.", ["I prefer tabs over spaces."]),
    ],
)
def test_what_stands_between_tags_is_left_alone_and_a_tag_alone_hides_nothing(text: str, kept: list[str]) -> None:
    assert [sentence for sentence in sentences(text) if classify(sentence)[0]] == kept


@pytest.mark.parametrize(
    "part",
    ["<p>", "<p ", "</p>", "<b></i>", "```", "````\n~~~\n", "` ``` ~~~~ ", "- ", "- 1. ", "<a1><a2>", ". ", "?!"],
)
def test_a_long_paste_takes_no_longer_than_reading_it(part: str) -> None:
    """By the square of its length none of these would end within the time that a test has."""
    proposals([Turn("user", part * 400_000 + "\nI prefer tabs over spaces.", "1")], str)


def test_what_follows_a_fence_is_prose() -> None:
    text = (
        "````\n```\nI prefer spaces.\n```\n````\nI prefer tabs over spaces.\n~~~\nx\n~~~~\nWe deploy on Mondays only."
    )
    assert sentences(text) == ["I prefer tabs over spaces.", "We deploy on Mondays only."]


def test_a_message_is_read_sentence_by_sentence() -> None:
    text = "Hi there! I prefer tabs over spaces. Could you fix the build?\n- We deploy on Mondays only."
    assert [p.text for p in proposals([Turn("user", text, "1")], str)] == [
        "I prefer tabs over spaces.",
        "We deploy on Mondays only.",
    ]


def test_only_what_people_say_counts() -> None:
    turns = [Turn("assistant", "I prefer tabs over spaces. We decided to use Redis.", "1")]
    assert proposals(turns, str) == []


def test_a_correction_knows_what_it_answers() -> None:
    turns = [Turn("assistant", "The server listens on\nport 8080.", "1"), Turn("user", "No, the port is 8420.", "2")]
    (found,) = proposals(turns, str)
    assert (found.kind, found.answers) == ("correction", "The server listens on\nport 8080.")


def test_the_same_words_count_once() -> None:
    turns = [Turn("user", "I prefer tabs over spaces.", "1"), Turn("user", "I PREFER  tabs over spaces!", "2")]
    assert len(proposals(turns, str)) == 1


def test_symbols_are_part_of_the_words() -> None:
    said = ["We use C++ for it.", "We use C# for it.", "Our margin is 5 percent.", "Our margin is -5 percent."]
    assert [p.text for p in proposals([Turn("user", "\n".join(said), "1")], str)] == said
