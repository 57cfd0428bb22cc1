"""What says the same and what does not: a table of each, because what is made one by mistake is lost."""

from __future__ import annotations

import pytest

from commonplace.engine.lifecycle.statements import same_statement, statement

SAME = [
    ("The gateway validates tokens", "the gateway validates tokens."),
    ("The gateway validates tokens", "A gateway validates the tokens"),
    ("Alice really likes tea", "Alice likes tea"),
    ("Alice isn't vegetarian", "Alice is not vegetarian"),
    ("Bob doesn’t drink", "Bob does not drink"),
    ("Bob can't swim", "Bob cannot swim"),
    ("Alice has two cats", "Alice has 2 cats"),
    ("salt & pepper", "salt and pepper"),
    ("The discount is 10 percent", "The discount is 10%"),
    ("alice likes tea", "Alice likes tea"),
    ("alice met bob in lisbon", "Alice met Bob in Lisbon"),
    ("On Monday Alice swims", "Alice swims on Monday"),
    ("In June 2024 Alice moved to Porto", "Alice moved to Porto in June 2024"),
    ("The meeting is at 10:30", "The meeting is at 10:30!"),
    ("send it by e-mail", "Send it by e – mail"),
]

#: (a statement, what must never be taken for the same)
DIFFERENT = [
    # numbers, amounts, versions, times, dates
    ("Alice has two cats", "Alice has three cats"),
    ("The limit is 100", "The limit is 1000"),
    ("The limit is 1.5", "The limit is 15"),
    ("The limit is 1,5", "The limit is 1.5"),
    ("It costs 5", "It costs -5"),
    ("It costs $5", "It costs €5"),
    ("Growth is 5%", "Growth is 5"),
    ("Python 3.11 is needed", "Python 3.12 is needed"),
    ("The meeting is at 10:30", "The meeting is at 11:30"),
    ("The meeting is at 5 am", "The meeting is at 5 pm"),
    ("Born on 1990-03-04", "Born on 1990-04-03"),
    ("Due on 03/04", "Due on 04/03"),
    ("Alice moved in June 2024", "Alice moved in June 2023"),
    ("Alice swims on Monday", "Alice swims on Tuesday"),
    ("Room 12", "Room 12b"),
    ("It takes 5 ms", "It takes 5 s"),
    ("The file is 5 MB", "The file is 5 Mb"),
    ("twenty people came", "twelve people came"),
    ("x > 3", "x < 3"),
    ("x >= 3", "x > 3"),
    ("The door is open", "The door is open?"),
    # names
    ("Alice likes tea", "Bob likes tea"),
    ("Alice lives in Lisbon", "Alice lives in London"),
    ("The repository is acme/api", "The repository is acme/app"),
    ("Ask alice@example.com", "Ask alicia@example.com"),
    ("The host is db-1", "The host is db-2"),
    ("Tell us tomorrow", "Tell US tomorrow"),
    ("We bought Turkey last year", "We bought turkey last year"),
    ("They hired IT people", "They hired it people"),
    ("she may leave in march", "She May leave in MARCH"),
    ("C is fast", "C++ is fast"),
    ("C# is typed", "C is typed"),
    ("José called", "Jose called"),
    # negations, and what comes close to one
    ("Alice is vegetarian", "Alice is not vegetarian"),
    ("Alice eats fish", "Alice never eats fish"),
    ("Alice eats fish", "Alice hardly eats fish"),
    ("Alice eats meat and fish", "Alice eats meat but no fish"),
    ("Alice likes tea", "Alice dislikes tea"),
    ("It is possible", "It is impossible"),
    ("With sugar", "Without sugar"),
    ("Everyone agreed", "Nobody agreed"),
    ("The test passed", "The test failed"),
    ("Enable the flag", "Disable the flag"),
    ("Don't deploy on Friday", "Do deploy on Friday"),
    ("Alice isn't in Lisbon", "Alice is in Lisbon"),
    # who did it to whom
    ("Alice gave Bob the book", "Bob gave Alice the book"),
    ("Tokens validate the gateway", "The gateway validates tokens"),
    ("Alice is older than Bob", "Bob is older than Alice"),
    ("Alice's sister is Bob's boss", "Bob's sister is Alice's boss"),
    ("Alice reports to Bob", "Alice reports for Bob"),
    ("In Alice Bob trusts", "Bob trusts in Alice and"),
    ("On Monday not Alice but Bob swims", "Alice but Bob swims on Monday not"),
    # tense, mood, degree, quantity
    ("Alice lives in Lisbon", "Alice lived in Lisbon"),
    ("Alice will move", "Alice has moved"),
    ("Alice may move", "Alice will move"),
    ("Alice must move", "Alice should move"),
    ("Alice likes tea", "Alice liked tea"),
    ("Alice has a cat", "Alice has cats"),
    ("All tests pass", "Some tests pass"),
    ("Some tests pass", "Most tests pass"),
    ("Alice likes tea more than coffee", "Alice likes tea less than coffee"),
    ("The first one is right", "The last one is right"),
    ("Only Alice may deploy", "Alice may deploy"),
    ("Alice may only deploy", "Alice may deploy"),
    ("Deploy before the backup", "Deploy after the backup"),
    ("If it rains Alice stays", "Alice stays"),
    ("Alice or Bob decides", "Alice and Bob decide"),
    ("Alice and Bob decide", "Alice decides"),
    ("Alice thinks Bob left", "Bob left"),
    ("Bob said Alice likes tea", "Alice likes tea"),
    ("Call before 5", "Call by 5"),
    ("at least 5 people", "at most 5 people"),
    ("The old server is down", "The new server is down"),
    ("Alice now lives in Porto", "Alice lives in Porto"),
    # one text is part of the other
    ("Alice likes tea", "Alice likes tea with milk"),
    ("Alice likes tea", "Alice likes tea. Bob does not"),
    # other scripts
    ("Алиса любит чай", "Алиса не любит чай"),
    ("爱丽丝喜欢茶", "爱丽丝不喜欢茶"),
    ("أليس تحب الشاي", "أليس لا تحب الشاي"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_they_say_the_same(one: str, other: str) -> None:
    assert same_statement(one, other)
    assert same_statement(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_they_do_not(one: str, other: str) -> None:
    assert not same_statement(one, other)
    assert not same_statement(other, one)


@pytest.mark.parametrize("text", ["", "   ", "!!!", "the", "🙂"])
def test_what_has_no_words_is_itself(text: str) -> None:
    assert same_statement(text, text)
    assert not same_statement(text, "Alice likes tea")


def test_words_have_one_spelling() -> None:
    assert statement("The Cat isn't at home.") == ["cat", "is", "not", "at", "home"]
