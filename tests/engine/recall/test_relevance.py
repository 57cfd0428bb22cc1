from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.embedders.encoder import NAME, Encoder
from commonplace.engine import BatchItem
from commonplace.engine.engine import Engine
from commonplace.engine.recall import judging, relevance
from commonplace.engine.recall.evidence import Background, Evidence
from commonplace.engine.recall.relevance import (
    Assessment,
    Fit,
    Logistic,
    answer_features,
    assess,
    fitted,
    gather_signals,
    hit_features,
    judge_count,
)
from commonplace.engine.recall.understanding import analyse
from commonplace.engine.types import Draft, Hit, Query
from commonplace.judges.minilm import MiniLMJudge
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Memory

QUESTION = "Where does Alice keep the bicycle?"
CORPUS = Path(__file__).parents[3] / "bench" / "data" / "corpus"


@dataclass
class ScoredMemory:
    memory: Memory
    score: float
    dense: float | None
    late: float | None = None


class FixedJudge:
    """A judge that has made up its mind."""

    name = "fixed"
    note: str | None = None
    reads_pairs = False

    def __init__(self, *logits: float) -> None:
        self.logits = logits
        self.read: list[str] = []

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        self.read += texts
        return [self.logits[n] if n < len(self.logits) else -6.0 for n in range(len(texts))]


class BrokenJudge(FixedJudge):
    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        raise Unavailable("the judge is broken")


#: Names of its own, so that no test depends on what was fitted last.
FIT = Fit(
    hit=Logistic(-2.0, {"cosine": 4.0, "place": -0.5}),
    hit_judged=Logistic(-1.0, {"judge": 0.5, "cosine": 2.0, "place": -0.5}),
    whole=Logistic(-3.0, {"cosine": 8.0}),
    whole_judged=Logistic(0.0, {"judge": 0.5}),
    hopeless=0.2,
    certain=0.95,
    cut=0.3,
    cut_judged=0.25,
    cut_always=0.35,
    cut_hit=0.1,
    judged=10,
)
SHIPPED = sorted(json.loads(relevance.FITTED.read_text()))


@pytest.fixture(autouse=True)
def one_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**{name: relevance.fitted(name) for name in SHIPPED}, "tested": FIT}
    monkeypatch.setattr(relevance, "fitted", known.get)


def candidates(*cosines: float | None) -> list[ScoredMemory]:
    return [
        ScoredMemory(Memory(str(n), "local", "a", "semantic", f"memory {n}"), 1 / (60 + n), cosine)
        for n, cosine in enumerate(cosines)
    ]


def assess_with(judge: Any, ranked: Sequence[ScoredMemory], **options: Any) -> Assessment[ScoredMemory]:
    name = options.pop("fit_name", "tested")
    query = Query(("a",), QUESTION, **{"judge": options.pop("mode", "auto"), **options})
    signals = asyncio.run(gather_signals(judge, analyse(QUESTION), ranked, query, name, timer=lambda: 0.0))
    return assess(signals, ranked, query)


def ids(assessment: Assessment[ScoredMemory]) -> list[str]:
    return [hit.found.memory.id for hit in assessment.hits]


NEAR = (0.6, 0.55, 0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1)
FAR = (0.05, 0.04, 0.03, 0.02, 0.01, 0.0, 0.0)


@pytest.mark.parametrize("name", SHIPPED)
def test_what_ships_is_whole_and_ordered(name: str) -> None:
    fit = fitted(name)
    assert fit is not None
    assert 0 <= fit.hopeless < fit.certain <= 1
    for cut in (fit.cut, fit.cut_judged, fit.cut_always):
        assert 0 < cut < 1
    assert 0 <= fit.cut_hit < 0.2, "recall must hardly fall by it"


SIGNS = {"judge": 1, "coverage": 1, "margin": 1, "late": 1, "late_margin": 1, "cosine": 1, "names_missing": -1,
         "answer_type": 1, "place": -1, "blend": 1, "answerable": 1, "far": -1}  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_more_evidence_never_makes_it_less_relevant(name: str) -> None:
    fit = fitted(name)
    assert fit is not None
    for logistic in (fit.hit, fit.hit_judged, fit.whole, fit.whole_judged):
        assert all(weight * SIGNS[feature] >= 0 for feature, weight in logistic.weights.items())
    assert "judge" in fit.whole_judged.weights
    assert "judge" not in fit.whole.weights


def test_what_is_far_by_its_cosine_cannot_overrule_the_judge_of_the_encoder() -> None:
    fit = fitted(NAME)
    assert fit is not None
    for logistic in (fit.whole, fit.whole_judged):
        assert "far" not in logistic.weights


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(-9, 9))
def test_nearer_and_better_judged_is_never_less_answerable(cosine: float, more: float, logit: float) -> None:
    for fit in map(fitted, SHIPPED):
        assert fit is not None
        less, nearer = (
            answer_features([Evidence(c, 0.5, 0.1, 0.0, 0.0)], Background(0.1, 0.1, c, c), fit.near)
            for c in (cosine, cosine + more)
        )
        assert fit.whole(less) <= fit.whole(nearer) + 1e-12
        assert fit.whole_judged(less | {"judge": logit}) <= fit.whole_judged(less | {"judge": logit + more}) + 1e-12


def test_the_best_of_each_counts_for_the_whole() -> None:
    first, second = Evidence(0.3, 0.2, 0.1, 1.0, -1.0), Evidence(0.5, 0.8, 0.0, 0.5, 1.0)
    features = answer_features([first, second], Background(0.25, 0.5, best_cosine=0.5, best_late=0.75), near=0.6)
    assert features == {
        "cosine": 0.5, "far": pytest.approx(0.1), "margin": 0.25, "late": 0.75, "late_margin": 0.25, "coverage": 0.8,
        "names_missing": 0.5, "answer_type": -1.0,
    }  # fmt: skip


def test_how_many_hits_are_wanted_changes_nothing_in_what_is_answerable() -> None:
    ranked = candidates(0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.6)
    shown = [assess_with(None, ranked, k=k, explain=True, min_score=0).explain for k in (1, 8)]
    assert shown[0] is not None
    assert shown[1] is not None
    assert shown[0]["answerable"] == shown[1]["answerable"]


def test_a_place_is_that_of_the_final_order() -> None:
    ranked, query = candidates(0.5, 0.5), Query(("a",), QUESTION)
    signals = asyncio.run(gather_signals(None, analyse(QUESTION), ranked, query, "tested"))
    first, second = (assess(signals, order, query).hits[1] for order in (ranked, ranked[::-1]))
    assert (first.found.memory.id, second.found.memory.id) == ("1", "0")
    assert first.relevance == second.relevance


def test_a_hit_rests_on_ranking_and_on_the_whole_as_well() -> None:
    features = hit_features(Evidence(0.3, 0.2, 0.1, 1.0, -1.0), 2.5, blend=0.5, answerable=0.5)
    assert (features["blend"], features["answerable"], features["judge"]) == (0.0, 0.0, 2.5)
    assert "judge" not in hit_features(Evidence(0.3, 0.2, 0.1, 1.0, -1.0))
    extremes = hit_features(Evidence(0.3, 0.2, 0.1, 1.0, -1.0), blend=0.0, answerable=1.0)
    assert extremes["blend"] == pytest.approx(-extremes["answerable"])


def test_a_question_nothing_answers_is_left_empty_and_says_why() -> None:
    result = assess_with(FixedJudge(-9, -9, -9), candidates(*NEAR), explain=True)
    assert (result.hits, result.judged) == ([], 10)
    assert "a judge read the best 10" in (result.reason or "")
    assert result.explain is not None
    assert result.explain["answerable"] < result.explain["cut_off"]
    assert result.explain["reason"] == result.reason


def test_a_question_that_is_answered_keeps_its_hits() -> None:
    result = assess_with(FixedJudge(4, 1, 1, 1, 1), candidates(*NEAR))
    assert ids(result) == ["0", "1", "2", "3", "4"]
    assert result.reason is None
    assert all(hit.relevance is not None and hit.explain is None for hit in result.hits)


def test_a_good_first_hit_does_not_drag_strangers_along() -> None:
    result = assess_with(FixedJudge(4, -9, 1, -9, -9), candidates(*NEAR), explain=True)
    assert ids(result) == ["0", "2"]
    assert result.reason == "3 of 5 have a relevance below 0.1"
    assert result.explain is not None
    assert (result.explain["hit_cut_off"], result.explain["kept"], result.explain["of"]) == (0.1, 2, 5)


def test_the_first_stays_when_the_whole_is_answered_by_another() -> None:
    assert ids(assess_with(FixedJudge(-9, 4, -9, -9, -9), candidates(*NEAR))) == ["0", "1"]


def test_explain_tells_what_each_hit_rests_on() -> None:
    result = assess_with(FixedJudge(6, -6, -6), candidates(*NEAR), explain=True, min_score=0, k=12)
    first, last = result.hits[0].explain, result.hits[11].explain
    assert first is not None
    assert last is not None
    assert first["judge"] == 6
    assert "judge" not in last
    shown = {"cosine", "late", "coverage", "margin", "late_margin", "names_missing", "answer_type", "relevance"}
    assert set(last) >= shown


def test_what_is_hopeless_is_not_worth_judging() -> None:
    judge = FixedJudge(9, 9, 9)
    result = assess_with(judge, candidates(*FAR), explain=True)
    assert (result.hits, result.judged, judge.read) == ([], 0, [])
    assert result.explain is not None
    assert result.explain["answerable"] < result.explain["cut_off"] == FIT.hopeless
    assert "by their words and meaning alone" in (result.reason or "")
    assert assess_with(judge, candidates(*FAR), mode="always").hits


@pytest.mark.parametrize(("mode", "judged"), [("off", 0), ("auto", 10), ("always", 10)])
def test_how_many_are_judged(mode: str, judged: int) -> None:
    judge = FixedJudge(4, 4, 4, 4, 4)
    result = assess_with(judge, candidates(*NEAR), mode=mode)
    assert (result.judged, len(judge.read)) == (judged, judged)
    assert len(result.hits) == 5


@pytest.mark.parametrize(("each", "judged"), [(0.0, 10), (1.0, 2)])
def test_the_judge_stops_when_time_is_up_and_what_it_read_counts(
    monkeypatch: pytest.MonkeyPatch, each: float, judged: int
) -> None:
    monkeypatch.setattr(judging, "BUDGET_SECONDS", 0.5)
    judge, now = FixedJudge(-9, -8), [0.0]
    judge.reads_pairs = True

    def timer() -> float:
        now[0] += each
        return now[0]

    query = Query(("a",), QUESTION)
    signals = asyncio.run(gather_signals(judge, analyse(QUESTION), candidates(*NEAR), query, "tested", timer=timer))
    assert list(signals.logits) == [str(n) for n in range(judged)]
    assert signals.answerable == pytest.approx(FIT.whole_judged({"judge": -8}))


def test_off_still_gives_a_relevance() -> None:
    assert all(hit.relevance is not None for hit in assess_with(FixedJudge(), candidates(*NEAR), mode="off").hits)


def test_a_certain_one_needs_no_judge() -> None:
    sure, ranked = replace(FIT, certain=0.6), candidates(*NEAR)
    assert [judge_count("auto", p, sure, ranked) for p in (0.0, FIT.hopeless, 0.59, 0.6)] == [0, 10, 10, 0]
    assert judge_count("auto", 0.5, replace(sure, within=0.04), ranked) == 3, "only those close to the best"
    assert judge_count("always", 0.5, replace(sure, within=0.04), ranked) == 10


class PairsJudge(FixedJudge):
    """The verdict of a memory is its number's in `logits`, whichever round it is read in."""

    reads_pairs = True

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        self.read += texts
        return [self.logits[int(text.split()[-1])] for text in texts]


@pytest.mark.parametrize(
    ("logits", "judged"), [((-9, 0, *[-9] * 8), 2), ((-9, -9, 0, *[9] * 7), 4), ([-3.0] * 10, 10), ((*[-9] * 9, 0), 10)]
)
def test_reading_ends_when_the_answer_stands(logits: Sequence[float], judged: int) -> None:
    judge = PairsJudge(*logits)
    result = assess_with(judge, candidates(*NEAR))
    assert (result.judged, len(judge.read)) == (judged, judged)
    assert bool(result.hits) == (max(logits) >= 0), "what was left unread would not have changed that"


def test_whoever_asks_for_a_relevance_of_each_has_each_read() -> None:
    judge = PairsJudge(*[9.0] * 10)
    assert assess_with(judge, candidates(*NEAR), min_score=0.2).judged == 10
    assert assess_with(judge, candidates(*NEAR)).judged == 2


@given(st.lists(st.floats(-12, 12), min_size=1, max_size=12), st.lists(st.floats(0.0, 1.0), min_size=12, max_size=12))
def test_what_is_left_unread_changes_no_decision(logits: list[float], cosines: list[float]) -> None:
    """Against a judge that reads them all in one go."""
    padded = (logits + [-12.0] * 12)[:12]
    at_once = PairsJudge(*padded)
    at_once.reads_pairs = False  # type: ignore[misc]
    in_rounds = PairsJudge(*padded)
    found = candidates(*sorted(cosines, reverse=True))
    assert bool(assess_with(in_rounds, found).hits) == bool(assess_with(at_once, found).hits)
    assert len(in_rounds.read) <= len(at_once.read)


@pytest.mark.parametrize(
    ("scores", "within", "count"),
    [
        ([], 1.0, 0),
        ([0.5], 1.0, 1),
        ([0.5, 0.001, 0.001], 0.0, 2),  # one round in any case
        ([0.5, 0.5, 0.5, 0.1], 0.0, 3),
        ([0.5, 0.45, 0.4, 0.3, 0.28, 0.2, 0.1], 1.0, 5),  # from .27 on
        ([0.5, 0.45, 0.4, 0.3, 0.28, 0.2, 0.1], math.inf, 7),
        ([0.01, 0.009, 0.005, 0.0038, 0.003], 1.0, 4),  # ratios count, not differences
    ],
)
def test_those_close_to_the_best_are_worth_reading(scores: list[float], within: float, count: int) -> None:
    assert relevance.worth_reading(scores, within) == count


def test_min_score_cuts_at_that_relevance_instead() -> None:
    judge = FixedJudge(4, -9, -9)
    every = assess_with(judge, candidates(*NEAR), min_score=0)
    middle = sorted(hit.relevance or 0 for hit in every.hits)[-1]
    result = assess_with(judge, candidates(*NEAR), min_score=middle)
    assert ids(result) == ["0"]
    assert "4 of 5 have a relevance below" in (result.reason or "")


def test_min_score_0_keeps_everything() -> None:
    result = assess_with(FixedJudge(-9, -9, -9), candidates(*FAR), min_score=0)
    assert (len(result.hits), result.reason) == (5, None)


def test_assessing_leaves_the_order_alone() -> None:
    assert ids(assess_with(FixedJudge(-9, 0, 9), candidates(*NEAR), min_score=0)) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("name", ["another-embedder", None])
def test_without_a_fit_there_is_neither_relevance_nor_a_cut(name: str | None) -> None:
    judge = FixedJudge(-9, -9, -9)
    result = assess_with(judge, candidates(*FAR), fit_name=name)
    assert [hit.relevance for hit in result.hits] == [None] * 5
    assert (result.note, judge.read) == (None, [])
    assert "not calibrated" in (assess_with(judge, candidates(*FAR), fit_name=name, min_score=0.5).note or "")


def test_nothing_found_is_nothing_assessed() -> None:
    assert assess_with(FixedJudge(), []) == Assessment([])


def test_a_memory_without_a_vector_is_not_cut() -> None:
    result = assess_with(FixedJudge(0, 0, 9), candidates(0.6, None, 0.5, 0.4))
    assert ids(result)[:3] == ["0", "1", "2"]
    assert result.hits[1].relevance is None


def test_memories_without_any_vector_are_left_alone() -> None:
    assert len(assess_with(FixedJudge(-9), candidates(None, None)).hits) == 2


def test_a_judge_that_fails_is_a_note() -> None:
    result = assess_with(BrokenJudge(), candidates(*NEAR), min_score=0)
    assert (len(result.hits), result.judged) == (5, 0)
    assert result.note == "the judge is broken; relevance is without a judge"


def test_a_judges_own_note_is_passed_on() -> None:
    judge = FixedJudge(4)
    judge.note = "the budget is spent"
    assert assess_with(judge, candidates(*NEAR)).note == "the budget is spent"


@pytest.mark.parametrize("name", SHIPPED)
def test_fits_are_read_per_embedder(name: str) -> None:
    entry = json.loads(relevance.FITTED.read_text())[name]
    assert relevance.parse_fit(entry) == fitted(name)


@pytest.mark.slow
def test_a_few_questions_of_the_corpus_end_to_end() -> None:
    entries = [json.loads(line) for line in (CORPUS / "memories.jsonl").read_text("utf-8").splitlines()]
    coding = [Draft("coding", "semantic", e["text"], aliases=[e["id"]]) for e in entries if e["agent_id"] == "coding"]

    async def scenario() -> None:
        clock = FakeClock()
        engine = await Engine.open(InMemory(clock), Encoder(), clock=clock)
        engine.use_judge(MiniLMJudge)
        await engine.remember_many(WHO, [BatchItem(draft) for draft in coding])

        async def ask(question: str) -> list[Hit]:
            return (await engine.recall(WHO, Query(("coding",), question))).hits

        answered = await ask("What happens to stored readings when the disk buffer on a gateway is full?")
        assert answered[0].memory.aliases == ["cod-027"]
        assert (answered[0].relevance or 0) > 0.3
        assert await ask("How tall is the Eiffel Tower?") == []
        await engine.close()

    asyncio.run(scenario())
