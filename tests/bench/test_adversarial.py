"""The published table comes out as published, and what the paper leaves out as docs/adversarial.md says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.adversarial.experiment import (
    FUSIONS,
    INJECTED,
    RECOMMENDED,
    SIZES,
    Attack,
    Setting,
    beyond,
    published_table,
    run,
)
from bench.adversarial.plot import plot, plot_router
from bench.adversarial.router import (
    ATTACKS as ROUTER_ATTACKS,
    RECOMMENDED as ROUTER_RECOMMENDED,
    WAYS,
    RouterOutcome,
    RouterSetting,
    through_router,
)

#: Table 4 of the paper: recall@5 and leak of each fusion, whatever is injected.
PUBLISHED = {"rrf": (1.0, 0.0), "max": (0.5, 0.8), "weighted": (1.0, 0.0)}


def test_the_published_table_is_reproduced() -> None:
    found = {(o.setting.fusion, o.setting.injected): (o.recall, o.leak) for o in published_table()}
    for fusion in FUSIONS:
        for injected in INJECTED:
            recall, leak = PUBLISHED[fusion] if injected else (1.0, 0.0)
            assert found[fusion, injected] == pytest.approx((recall, leak)), (fusion, injected)


def test_max_displaces_half_of_what_answers() -> None:
    assert run(Setting("max")).displaced == pytest.approx(0.5)
    assert run(Setting("rrf")).displaced == 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("attack", ["unknown ids", "uncapped scores", "altered texts"])
def test_with_what_we_recommend_nothing_leaks_and_nothing_is_lost(size: int, attack: Attack) -> None:
    for rogues in (1, 2):
        outcome = run(Setting(size=size, attack=attack, rogues=rogues, **RECOMMENDED))
        assert (outcome.recall, outcome.leak, outcome.displaced) == (1.0, 0.0, 0.0)


def test_the_published_result_is_one_of_a_small_corpus() -> None:
    leaks = [run(Setting(size=size)).leak for size in SIZES]
    assert leaks[0] == 0
    assert leaks[1] > 0.1
    assert min(leaks[2:]) > 0.3  # in a larger one benign stores agree on little but the answer


@pytest.mark.parametrize("size", SIZES)
def test_ids_that_exist_bring_no_text_of_the_attackers(size: int) -> None:
    outcome = run(Setting(size=size, attack="existing ids", **RECOMMENDED))
    assert outcome.leak == 0
    assert outcome.recall >= (0.8 if size == 50 else 1.0)


def test_a_quorum_alone_does_not_notice_altered_texts() -> None:
    assert run(Setting(size=5000, attack="altered texts", quorum=2)).leak > 0.5


def test_with_two_rogues_a_quorum_silences_the_honest_store() -> None:
    base = Setting(size=1000, rogues=2, checked=True)
    assert run(base).recall == 1.0
    assert run(replace(base, quorum=2)).recall == 0.0


def test_the_same_seed_gives_the_same_figures() -> None:
    assert run(Setting(size=200)) == run(Setting(size=200))


@pytest.mark.slow
def test_every_combination_is_drawn_or_told() -> None:
    outcomes = beyond()
    assert len(outcomes) == 3 * len(SIZES) * 2 * 4 * 2 * 2
    assert plot(outcomes).count("<polyline") == 5


# Through the router.


@pytest.fixture(scope="module")
def routed() -> list[RouterOutcome]:
    return through_router((50, 200))


def outcome_of(routed: list[RouterOutcome], **setting: object) -> list[RouterOutcome]:
    return [o for o in routed if all(getattr(o.setting, name) == value for name, value in setting.items())]


@pytest.mark.slow
def test_nothing_of_an_attackers_gets_through_the_router(routed: list[RouterOutcome]) -> None:
    assert len(routed) == 2 * len(WAYS) * 2 * len(ROUTER_ATTACKS)
    assert {o.leak for o in routed} == {0.0}


@pytest.mark.slow
def test_where_the_primary_ranks_every_answer_stays_whatever_is_tried(routed: list[RouterOutcome]) -> None:
    found = outcome_of(routed, **ROUTER_RECOMMENDED)
    assert len(found) == 2 * 2 * len(ROUTER_ATTACKS)
    for outcome in found:
        assert (outcome.recall, outcome.leak, outcome.displaced) == (1.0, 0.0, 0.0), outcome.setting


@pytest.mark.slow
def test_votes_alone_do_not_hold_against_who_names_the_next_best(routed: list[RouterOutcome]) -> None:
    for outcome in outcome_of(routed, routing="fan_out", fusion="rrf", quorum=1, attack="next best"):
        assert outcome.recall < 1.0, outcome.setting


@pytest.mark.slow
def test_the_plot_of_the_router_has_a_line_for_each_way(routed: list[RouterOutcome]) -> None:
    everywhere = [
        RouterOutcome(RouterSetting(*way, size=size, rogues=1, attack="next best")) for way in WAYS for size in SIZES
    ]
    assert plot_router(everywhere).count("<polyline") == len(WAYS)
