from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

import numpy as np
import pytest
from token_embedder import HashingTokens

from bench.quality import datasets, measures, tuning
from bench.quality.datasets import Question, Space
from bench.quality.embedding import RememberedEmbedder
from bench.quality.measures import Outcome
from bench.quality.stocked import label, stocked
from bench.quality.systems import ABLATIONS, BASELINES, outcomes, shipped
from bench.quality.tuning import Sample
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine.recall.ranking import WEIGHTS_FILE, blends
from commonplace.engine.types import Draft


def question(need: str, *gold: str) -> Question:
    return Question("q", "?", frozenset(gold), "c", need)  # type: ignore[arg-type]


def test_what_a_question_needs_decides_recall() -> None:
    found = ["x", "a", "y", "b"]
    assert measures.recall_at(question("any", "a", "b"), found, 2) == 1.0
    assert measures.recall_at(question("all", "a", "b"), found, 3) == 0.0
    assert measures.recall_at(question("all", "a", "b"), found, 4) == 1.0
    assert measures.recall_at(question("share", "a", "b"), found, 3) == 0.5


def test_mrr_and_ndcg() -> None:
    found = ["x", "a", "y", "b"]
    assert measures.reciprocal_rank(question("any", "b", "a"), found) == 0.5
    assert measures.reciprocal_rank(question("any", "z"), found) == 0.0
    assert measures.ndcg(question("any", "a", "b"), found) == pytest.approx(1 / math.log2(3))
    both = (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3))
    assert measures.ndcg(question("all", "a", "b"), found) == pytest.approx(both)
    assert measures.ndcg(question("share", "a"), ["a"]) == 1.0
    assert measures.figures([]).values["recall@5"] == 0.0


def test_the_corpus_is_split_in_two() -> None:
    spaces = datasets.corpus()
    splits = [q.split for space in spaces for q in space.questions]
    assert (splits.count("tune"), splits.count("test")) == (160, 165)
    assert all(q.gold <= space.memories.keys() for space in spaces for q in space.questions)


def test_conversations_become_turns_with_speaker_session_and_time(tmp_path: Path) -> None:
    turns = [{"speaker": "Alice", "dia_id": f"D1:{n}", "text": f"turn {n}"} for n in range(3)]
    asked = [
        {"question": "When?", "evidence": ["D1:0; D1:2"], "category": 2},
        {"question": "Nothing of it?", "evidence": ["D1:1"], "category": 5},
        {"question": "Without evidence?", "evidence": [], "category": 1},
    ]
    talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023", "session_2_date_time": "never held"}
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([{"sample_id": "conv", "conversation": talk, "qa": asked}]))
    (space,) = datasets.conversations(file)
    first = space.memories["D1:0"]
    assert (first.speaker, first.session_id, first.event_time) == ("Alice", "session_1", 1_683_554_160_000)
    assert [(q.gold, q.category) for q in space.questions] == [(frozenset({"D1:0", "D1:2"}), "when")]


def test_the_embedder_remembers_on_disk(tmp_path: Path) -> None:
    first = RememberedEmbedder(HashingEmbedder(), tmp_path)
    again = RememberedEmbedder(HashingEmbedder(), tmp_path)
    texts = ["one", "two", "one"]
    assert np.array_equal(first.embed(texts), HashingEmbedder().embed(texts))
    assert np.array_equal(again.embed(texts), first.embed(texts))
    assert (first.embedded, again.embedded) == (2, 0)
    first.close()
    again.close()


def test_token_vectors_are_remembered_as_they_are_given_or_left_out(tmp_path: Path) -> None:
    first = RememberedEmbedder(HashingTokens(), tmp_path)
    again = RememberedEmbedder(HashingTokens(), tmp_path)
    (made,), (kept,) = first.encode(["blue harbour"]), again.encode(["blue harbour"])
    assert made.tokens.size
    for one, other in zip(made, kept, strict=True):
        assert np.array_equal(one, other)
    (plain,) = first.without_tokens().encode(["blue harbour"])
    assert not plain.tokens.size
    assert np.array_equal(plain.vector, made.vector)


def test_fitting_finds_the_feature_that_tells() -> None:
    generator = np.random.default_rng(7)
    samples = []
    for n in range(60):
        ids = [f"m{i}" for i in range(8)]
        rows = [{"noise": float(generator.normal()), "telling": float(generator.normal())} for _ in ids]
        best = max(range(8), key=lambda i: rows[i]["telling"])
        samples.append((Sample("s", Question(str(n), "?", frozenset({ids[best]}), "c"), ids, rows), 1.0))
    weights = tuning.fit(samples, ["noise", "telling"])
    assert weights["telling"] > 10 * abs(weights["noise"])
    assert sum(s.order(weights)[0] in s.question.gold for s, _ in samples) >= 55
    scale, bias = tuning.calibrate(samples, weights)
    assert scale > 0 > bias


def test_every_shipped_weight_is_explained() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "recall.md").read_text()
    used = {name for blend in blends().values() for name in blend.weights}
    assert [name for name in sorted(used) if f"`{name}`" not in page] == []
    assert WEIGHTS_FILE.is_file()


def test_all_systems_answer_from_one_store() -> None:
    memories = {f"m{n}": Draft("x", "semantic", f"note {n} on gardening", session_id="s") for n in range(5)}
    memories["tea"] = Draft("x", "semantic", "Alice likes green tea", speaker="Alice")
    asked = [Question("q1", "green tea", frozenset({"tea"}), "keyword")]
    space = Space("agent", memories, asked, now=1_750_000_000_000)

    async def work() -> None:
        async with stocked([space], HashingEmbedder()) as held:
            for name, system in {**BASELINES, **ABLATIONS, "recall": shipped()}.items():
                (done,) = await outcomes(held, [space], system)
                assert isinstance(done, Outcome)
                assert done.found[0] == "tea", name
            (sample,) = await tuning.collect(held, [space])
            assert sample.ids[0] == "tea"
            assert sample.features[0]["coverage"] == 1.0
            (memory,) = await held.core.primary.find_alias("local", ["agent"], "tea")
            assert label(memory) == "tea"

    asyncio.run(work())
