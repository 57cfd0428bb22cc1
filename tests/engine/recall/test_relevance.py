from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.embedders.encoder import NAME, Encoder
from commonplace.engine.recall import relevance
from commonplace.engine.recall.evidence import Evidence
from commonplace.engine.recall.relevance import (
    Assessment,
    answer_features,
    assess,
    fitted,
    hit_features,
    judge_count,
    read,
)
from commonplace.engine.recall.understanding import analyse
from commonplace.engine.types import Query
from commonplace.judges.minilm import MiniLMJudge
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

    def __init__(self, *logits: float) -> None:
        self.logits = logits
        self.read: list[str] = []

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        self.read += texts
        return [self.logits[n] if n < len(self.logits) else -6.0 for n in range(len(texts))]


class BrokenJudge(FixedJudge):
    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        raise Unavailable("the judge is broken")


def candidates(*cosines: float | None) -> list[ScoredMemory]:
    return [
        ScoredMemory(Memory(str(n), "local", "a", "semantic", f"memory {n}"), 1 / (60 + n), cosine)
        for n, cosine in enumerate(cosines)
    ]


def assess_with(judge: Any, ranked: Sequence[ScoredMemory], **options: Any) -> Assessment[ScoredMemory]:
    name = options.pop("embedder_name", NAME)
    query = Query(("a",), QUESTION, **{"judge": options.pop("mode", "auto"), **options})
    reading = asyncio.run(read(judge, analyse(QUESTION), ranked, query, name))
    return assess(reading, ranked, query)


def ids(assessment: Assessment[ScoredMemory]) -> list[str]:
    return [hit.found.memory.id for hit in assessment.hits]


NEAR = (0.6, 0.55, 0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1)
FAR = (0.05, 0.04, 0.03, 0.02, 0.01, 0.0, 0.0)


def test_what_ships_is_whole_and_ordered() -> None:
    fit = fitted(NAME)
    assert fit is not None
    assert 0 < fit.hopeless <= fit.cut < fit.certain <= 1
    assert 0 < fit.cut_judged < 1
    assert 0 < fit.cut_always < 1


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("judge", 1),
        ("coverage", 1),
        ("margin", 1),
        ("cosine", 1),
        ("names_missing", -1),
        ("answer_type", 1),
        ("place", -1),
    ],
)
@given(low=st.floats(-1, 1), more=st.floats(0, 1), logit=st.floats(-9, 9))
def test_more_evidence_never_makes_it_less_relevant(
    name: str, sign: int, low: float, more: float, logit: float
) -> None:
    fit = fitted(NAME)
    assert fit is not None
    base = Evidence(cosine=0.4, coverage=0.5, margin=0.1, names_missing=0.5, answer_type=0.0)
    if name == "judge":
        pairs = [(base, logit), (base, logit + more)]
    else:
        pairs = [(replace(base, **{name: value}), logit) for value in (low, low + more)]
    judged = [fit.hit_judged(hit_features(e, value)) for e, value in pairs]
    unjudged = [fit.hit(hit_features(e)) for e, _ in pairs]
    for less, least in (judged[::sign], unjudged[::sign]):
        assert 0 <= less <= least + 1e-12 <= 1 + 1e-9


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(-9, 9))
def test_nearer_and_better_judged_is_never_less_answerable(cosine: float, more: float, logit: float) -> None:
    fit = fitted(NAME)
    assert fit is not None
    less, nearer = (Evidence(c, 0.5, 0.1, 0.0, 0.0) for c in (cosine, cosine + more))
    assert fit.whole(answer_features([less], fit.near)) <= fit.whole(answer_features([nearer], fit.near)) + 1e-12
    one = fit.whole_judged(answer_features([less], fit.near) | {"judge": logit})
    assert one <= fit.whole_judged(answer_features([less], fit.near) | {"judge": logit + more}) + 1e-12


def test_a_question_nothing_answers_is_left_empty_and_says_why() -> None:
    result = assess_with(FixedJudge(-9, -9, -9), candidates(*NEAR), explain=True)
    assert (result.hits, result.judged) == ([], 3)
    assert "a judge read the best 3" in (result.reason or "")
    assert result.explain is not None
    assert result.explain["answerable"] < result.explain["cut_off"]
    assert result.explain["reason"] == result.reason


def test_a_question_that_is_answered_keeps_its_hits() -> None:
    result = assess_with(FixedJudge(4, -6, -6), candidates(*NEAR))
    assert ids(result) == ["0", "1", "2", "3", "4"]
    assert result.reason is None
    assert all(hit.relevance is not None and hit.explain is None for hit in result.hits)


def test_explain_tells_what_each_hit_rests_on() -> None:
    result = assess_with(FixedJudge(6, -6, -6), candidates(*NEAR), explain=True)
    first, second = result.hits[0].explain, result.hits[3].explain
    assert first is not None
    assert second is not None
    assert first["judge"] == 6
    assert "judge" not in second
    assert set(second) >= {"cosine", "coverage", "margin", "names_missing", "answer_type", "relevance"}


def test_what_is_far_from_everything_is_not_worth_judging() -> None:
    judge = FixedJudge(9, 9, 9)
    result = assess_with(judge, candidates(*FAR), explain=True)
    assert (result.hits, result.judged, judge.read) == ([], 0, [])
    assert result.explain is not None
    assert result.explain["answerable"] < result.explain["cut_off"] == fitted(NAME).hopeless  # type: ignore[union-attr]
    assert "by their words and meaning alone" in (result.reason or "")
    assert len(assess_with(judge, candidates(*FAR), mode="always").hits) == 5


@pytest.mark.parametrize(("mode", "judged"), [("off", 0), ("auto", 3), ("always", 10)])
def test_how_many_are_judged(mode: str, judged: int) -> None:
    judge = FixedJudge(4)
    result = assess_with(judge, candidates(*NEAR), mode=mode)
    assert (result.judged, len(judge.read)) == (judged, judged)
    assert len(result.hits) == 5


def test_off_still_gives_a_relevance() -> None:
    assert all(hit.relevance is not None for hit in assess_with(FixedJudge(), candidates(*NEAR), mode="off").hits)


def test_a_certain_one_needs_no_judge() -> None:
    fit = fitted(NAME)
    assert fit is not None
    sure = replace(fit, certain=0.6)
    assert [judge_count("auto", p, sure) for p in (0.0, fit.hopeless, 0.59, 0.6)] == [0, 3, 3, 0]


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


def test_rankings_order_stands() -> None:
    assert ids(assess_with(FixedJudge(-9, 0, 9), candidates(*NEAR))) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("name", ["another-embedder", None])
def test_without_a_fit_there_is_neither_relevance_nor_a_cut(name: str | None) -> None:
    judge = FixedJudge(-9, -9, -9)
    result = assess_with(judge, candidates(*FAR), embedder_name=name)
    assert [hit.relevance for hit in result.hits] == [None] * 5
    assert (result.note, judge.read) == (None, [])
    assert "not calibrated" in (assess_with(judge, candidates(*FAR), embedder_name=name, min_score=0.5).note or "")


def test_nothing_found_is_nothing_assessed() -> None:
    assert assess_with(FixedJudge(), []) == Assessment([])


def test_a_memory_without_a_vector_is_not_cut() -> None:
    result = assess_with(FixedJudge(-9, 0, 9), candidates(0.6, None, 0.5, 0.4), min_score=0)
    assert ids(result)[:3] == ["0", "1", "2"]
    assert result.hits[1].relevance is None


def test_memories_without_any_vector_are_left_alone() -> None:
    assert len(assess_with(FixedJudge(-9), candidates(None, None)).hits) == 2


def test_a_judge_that_fails_is_a_note() -> None:
    result = assess_with(BrokenJudge(), candidates(*NEAR))
    assert (len(result.hits), result.judged) == (5, 0)
    assert result.note == "the judge is broken; relevance is without a judge"


def test_a_judges_own_note_is_passed_on() -> None:
    judge = FixedJudge(4)
    judge.note = "the budget is spent"
    assert assess_with(judge, candidates(*NEAR)).note == "the budget is spent"


def test_fits_are_read_per_embedder() -> None:
    entry = json.loads(relevance.FITTED.read_text())[NAME]
    assert relevance.parse_fit(entry) == fitted(NAME)


@pytest.mark.slow
def test_a_few_questions_of_the_corpus_end_to_end() -> None:
    embedder, judge = Encoder(), MiniLMJudge()
    entries = [json.loads(line) for line in (CORPUS / "memories.jsonl").read_text("utf-8").splitlines()]
    coding = [e for e in entries if e["agent_id"] == "coding"]
    vectors = embedder.embed([e["text"] for e in coding])

    def ask(question: str) -> Assessment[ScoredMemory]:
        cosines = vectors @ embedder.embed([question])[0]
        ranked = [
            ScoredMemory(Memory(e["id"], "local", "coding", "semantic", e["text"]), float(c), float(c))
            for c, e in sorted(zip(cosines, coding, strict=True), key=lambda pair: -pair[0])
        ]
        query = Query(("coding",), question)
        reading = asyncio.run(read(judge, analyse(question), ranked[:20], query, embedder.name))
        return assess(reading, ranked[:20], query)

    answered = ask("What happens to stored readings when the disk buffer on a gateway is full?")
    assert answered.hits[0].found.memory.id == "cod-027"
    assert (answered.hits[0].relevance or 0) > 0.5
    assert ask("How tall is the Eiffel Tower?").hits == []
