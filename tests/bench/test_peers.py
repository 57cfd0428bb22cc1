"""The comparison with peers: its arithmetic and its sentences; what it measures is nobody's business here."""

from __future__ import annotations

import itertools
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bench.peers import chart, measures, publishing, reasons, report
from bench.peers.__main__ import main
from bench.peers.comparison import QUALITY, SIZED, Compared, compared, losses, unexplained
from bench.peers.conversation import Failed, Kept, Talk
from bench.peers.corpus import questions, rows
from bench.peers.environment import REQUIREMENTS, Environment, pinned
from bench.peers.results import Results, parse_size
from bench.peers.running import Plan, Taken, questions_of, run_size
from bench.peers.systems import SYSTEMS, adapter, commonplace_http
from bench.peers.systems.base import AGENT, Row
from bench.quality.datasets import Question, corpus
from bench.speed.material import Material

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {"at": "2026-11-16T10:00:00Z", "cores": 2, "load": [0.5, 0.5, 0.5], "machine": "x86_64", "python": "3.11.7"}


def timed(p50: float) -> dict[str, float]:
    return {"calls": 20, "p50_ms": p50, "p95_ms": 2 * p50, "cpu_ms": p50, "hits": 5.0}


def results(**rows: dict[str, Any]) -> Results:
    held = {name.replace("_", "-"): row for name, row in rows.items()}
    return Results(MACHINE, "python -m bench.peers", "minilm", sizes={1000: held})


def ratio(found: Results, measure: str, system: str) -> float:
    return next(each.ratio for each in compared(found) if (each.measure.name, each.system) == (measure, system))


# sizes and pins


@pytest.mark.parametrize(("text", "size"), [("1k", 1_000), ("10K", 10_000), ("1m", 1_000_000), ("250", 250)])
def test_a_size_is_a_number_or_thousands(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "k", "0", "-5", "1.5k", "many", "²"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write for example 1k,10k"):
        parse_size(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--sizes", "few"], "is not a size"), (["--systems", "sdk,oracle"], "there is no system 'oracle'")],
)
def test_a_wrong_argument_is_named(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err


def test_every_peer_is_pinned_and_none_by_an_address() -> None:
    lines = pinned(REQUIREMENTS.read_text())
    peers = {entry.package for entry in SYSTEMS.values() if not entry.ours and not entry.package.startswith("@")}
    assert peers <= lines.keys()
    assert [line for line in lines.values() if "==" not in line or "://" in line] == []


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_has_an_adapter_that_imports_nothing_of_it_before_it_is_opened(name: str) -> None:
    assert adapter(name).pids is not None


# results on disk


def test_results_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    found = results(sdk={"recall_given": timed(1.0)})
    found.complete, found.quality, found.syncs = [1000], {"sdk": {"recall@5": 0.9}}, {"sdk": 1.0, "mem0": None}
    found.write(tmp_path)
    assert Results.read(tmp_path) == found
    assert [file.name for file in tmp_path.iterdir()] == ["peers.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 0}', "null"])
def test_what_cannot_be_read_is_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "peers.json").write_text(text)
    assert Results.read(tmp_path) is None
    assert Results.read(tmp_path / "elsewhere") is None


def test_only_results_of_the_same_versions_and_embedder_are_taken_up_again() -> None:
    one, other = Results(embedder="a", versions={"sdk": "1", "mem0": "2"}), Results(embedder="a", versions={"sdk": "1"})
    assert one.same_subject(other)
    assert not one.same_subject(Results(embedder="b", versions={"sdk": "1"}))
    assert not one.same_subject(Results(embedder="a", versions={"sdk": "2"}))


def test_publishing_without_results_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--publish", "--results", str(tmp_path)]) == 1
    assert "make bench-peers" in capsys.readouterr().err


# figures


def test_figures_are_the_median_the_95th_of_100_and_cpu_a_call() -> None:
    taken = Taken()
    taken.add({"seconds": [0.001 * n for n in range(1, 51)], "cpu": 0.05, "hits": 50})
    taken.add({"seconds": [0.001 * n for n in range(51, 101)], "cpu": 0.15, "hits": 150})
    assert taken.figures() == {"calls": 100, "p50_ms": 50.5, "p95_ms": 96.0, "cpu_ms": 2.0, "hits": 2.0}


def test_a_ratio_above_one_is_a_win_in_time_and_in_quality() -> None:
    found = results(sdk={"recall_given": timed(2.0)}, chromadb={"recall_given": timed(10.0)})
    found.quality = {
        "sdk": {"recall@5": 0.9, "rightly_empty": 0.6},
        "chromadb": {"recall@5": 0.6, "rightly_empty": 0.0},
    }
    assert ratio(found, "recall_given p50", "chromadb") == 5.0
    assert ratio(found, "recall@5", "chromadb") == pytest.approx(1.5)
    assert ratio(found, "no-match", "chromadb") == float("inf")
    assert losses(found) == []
    assert "theirs is 0" in report.ratios_table(found)


def test_a_server_is_compared_with_ours_that_is_reached_in_the_same_way() -> None:
    found = results(
        sdk={"recall_given": timed(1.0)}, stdio={"recall_given": timed(4.0)}, mcp_memory={"recall_given": timed(8.0)}
    )
    assert ratio(found, "recall_given p50", "mcp-memory") == 2.0


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [({}, {"recall_given": timed(1.0)}), ({"recall_given": timed(1.0)}, {"failed": "it would not open"}),
     ({"failed": "gone"}, {"failed": "gone"})],
)  # fmt: skip
def test_what_was_not_measured_is_not_compared(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    found = results(sdk=ours, chromadb=theirs)
    assert list(compared(found)) == []
    report.ratios_table(found)


def test_a_system_that_failed_is_a_row_that_says_why() -> None:
    found = results(sdk={"recall_given": timed(1.0)}, mem0={"failed": "mem0ai could not be installed"})
    found.quality = {"mem0": {"failed": "quality: no answer within 600 s"}}
    shown = report.tables(found)
    assert "| mem0 | – | – | – | – | – | – |" in shown
    assert "mem0 could not be measured to the end: mem0ai could not be installed." in shown
    assert "no answer within 600 s" in shown


def test_an_embedder_that_could_not_be_fetched_is_named() -> None:
    found = results(chromadb={"embedder_note": "its own embedder is not there: ConnectError: no such name"})
    assert "Chroma was given our embedder: its own embedder is not there: ConnectError" in report.tables(found)


def test_peers_are_compared_with_ours_judging_and_not() -> None:
    found = results(
        sdk={"recall_own": timed(20.0), "recall_unjudged": timed(5.0)}, chromadb={"recall_own": timed(10.0)}
    )
    assert ratio(found, "recall_own p50", "chromadb") == 0.5
    assert ratio(found, "recall_unjudged p50", "chromadb") == 2.0


def test_a_system_that_finds_less_than_it_was_asked_for_is_named() -> None:
    found = results(memorywire={"recall_filtered": {**timed(1.0), "hits": 1.2}, "recall_given": timed(1.0)})
    shown = report.tables(found)
    assert "memorywire gave 1.2 of 5 memories on average (vector given, a tenth of the memories)." in shown
    assert shown.count("of 5 memories") == 1


# losses


def lost(measure: str, system: str, size: int | None = 1000) -> Compared:
    known = next(each for each in (*SIZED, *QUALITY) if each.name == measure)
    ours, theirs = (0.5, 0.9) if known.higher_is_better else (2.0, 1.0)
    return Compared(known, system, size, ours, theirs)


@pytest.mark.parametrize(("ours", "theirs", "is_lost"), [(2.0, 1.0, True), (1.0, 1.0, False), (1.04, 1.0, False)])
def test_a_twentieth_is_no_loss(ours: float, theirs: float, is_lost: bool) -> None:
    assert Compared(SIZED[0], "chromadb", 1000, ours, theirs).lost is is_lost


def test_a_reason_is_of_measure_and_system_before_measure_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {("disk", "mem0"): "of both", ("disk", reasons.ANY): "of disk", ("recall_given", "mem0"): "of its family"}
    monkeypatch.setattr(reasons, "REASONS", known)
    assert [reasons.reason(*key) for key in [("disk", "mem0"), ("disk", "lancedb"), ("start", "mem0")]] == [
        "of both", "of disk", None,
    ]  # fmt: skip
    assert reasons.reason("recall_given p95", "mem0") == "of its family"


def test_every_loss_leads_to_its_sentence_and_the_same_sentence_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasons, "REASONS", {("recall_given", reasons.ANY): "It reads less."})
    found = results(
        sdk={"recall_given": timed(2.0), "disk_bytes": 50},
        chromadb={"recall_given": timed(1.0), "disk_bytes": 10},
        lancedb={"recall_given": timed(1.0)},
    )
    shown = report.ratios_table(found)
    assert shown.count("**0.5 ×** [1]") == 6
    assert "**0.2 ×** [2]" in shown
    assert shown.endswith(f"1. It reads less.\n2. {report.UNEXPLAINED}")
    assert [(each.measure.name, each.system) for each in unexplained(found)] == [("disk", "chromadb")]


def test_every_sentence_is_one_and_of_a_measure_and_a_system_that_exist() -> None:
    families = {each.name.partition(" ")[0] for each in (*SIZED, *QUALITY)} | {each.name for each in (*SIZED, *QUALITY)}
    for (measure, system), sentence in reasons.REASONS.items():
        assert measure in families
        assert system == reasons.ANY or system in SYSTEMS
        assert sentence.endswith(".")
        assert sentence[0].isupper() or sentence.startswith(("mem0", "memorywire", "sqlite-vec"))


def test_the_page_explains_every_loss_it_shows() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    assert report.UNEXPLAINED not in page
    assert publishing.BEGIN in page
    assert publishing.END in page


# the corpus


def asked(id: str, split: str, *gold: str) -> Question:
    return Question(id, "?", frozenset(gold), "in_domain", split=split)


def answer(id: str, score: float | None, *found: str) -> dict[str, Any]:
    return {"id": id, "found": list(found), "score": score, "empty": not found}


def test_quality_is_of_one_half_and_the_cut_off_of_the_other() -> None:
    held = [asked("a", "test", "m1"), asked("b", "test", "m2"), asked("c", "test"), asked("d", "test")]
    held += [asked("e", "tune", "m1")]
    given = [answer("a", 0.9, "m1"), answer("b", 0.8, "x", "m2"), answer("c", 0.85, "m1"), answer("d", None)]
    given += [answer("e", 0.87, "m1")]
    found = measures.quality(given, held, "test")
    assert (found["answerable"], found["unanswerable"]) == (2, 2)
    assert (found["recall@5"], found["mrr"]) == (1.0, 0.75)
    assert (found["rightly_empty"], found["wrongly_empty"]) == (0.5, 0.0)
    assert found["auc"] == 0.75
    assert (found["rightly_empty_cut"], found["wrongly_empty_cut"]) == (1.0, 0.5)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=200))
def test_the_cut_off_is_the_highest_that_is_allowed(scores: list[float]) -> None:
    cut = measures.cut_off(scores)
    assert sum(score < cut for score in scores) <= measures.MAX_FALSE_EMPTY * len(scores)
    higher = [score for score in scores if score > cut]
    if higher:
        assert sum(score < min(higher) for score in scores) > measures.MAX_FALSE_EMPTY * len(scores)


@pytest.mark.parametrize(
    ("positive", "negative", "area"),
    [([1.0], [0.0], 1.0), ([0.0], [1.0], 0.0), ([1.0], [1.0], 0.5), ([], [1.0], 0.0), ([float("-inf")], [0.0], 0.0)],
)
def test_auc(positive: list[float], negative: list[float], area: float) -> None:
    assert measures.auc(positive, negative) == area


def test_every_question_of_the_corpus_is_asked_and_every_memory_kept() -> None:
    held = [question for _, question in questions()]
    assert (sum(bool(q.gold) for q in held), sum(not q.gold for q in held)) == (325, 299)
    plain = [row for space in corpus() for row in rows(space, fields=False)]
    assert len(plain) == 359
    assert all(not row.fields and row.vector is None for row in plain)


def test_a_cut_off_is_for_those_that_do_not_decide_themselves_and_stands_beside_our_decision() -> None:
    row = {"recall@5": 0.5, "mrr": 0.5, "rightly_empty": 0.0, "wrongly_empty": 0.0, "auc": 0.5}
    row |= {"rightly_empty_cut": 0.25, "wrongly_empty_cut": 0.03}
    found = results()
    found.quality = {"sdk": {**row, "rightly_empty": 0.5}, "chromadb": row}
    shown = report.quality_table(found.quality)
    assert "| Commonplace, SDK | 0.500 | 0.500 | 50% | 0% | 0.500 | – | – |" in shown
    assert "| Chroma | 0.500 | 0.500 | 0% | 0% | 0.500 | 25% | 3% |" in shown
    assert ratio(found, "no-match cut", "chromadb") == 2.0


# the page and its plots


def test_what_is_measured_goes_between_the_marks() -> None:
    page = f"before\n{publishing.BEGIN}\nold\n{publishing.END}\nafter\n"
    once = publishing.between(page, "new")
    assert once == f"before\n{publishing.BEGIN}\n\nnew\n\n{publishing.END}\nafter\n"
    assert publishing.between(once, "new") == once
    with pytest.raises(SystemExit, match="lost its marks"):
        publishing.between("nothing here", "new")


def test_publishing_writes_a_page_and_plots_that_it_shows(tmp_path: Path) -> None:
    (tmp_path / "benchmarks.md").write_text(f"{publishing.BEGIN}{publishing.END}")
    found = results(sdk={"recall_given": timed(1.0)}, chromadb={"recall_given": timed(9.0)})
    found.quality = {"sdk, texts alone": {"recall@5": 0.8, "rightly_empty": 0.5}}
    found.versions, found.minutes = {"sdk": "1.0", "chromadb": "2.0"}, 21.5
    page, *images = publishing.publish(found, tmp_path)
    text = page.read_text()
    assert "Commonplace 1.0" in text
    assert "Chroma 2.0" in text
    assert "21.5 minutes" in text
    assert "Commonplace, texts alone" in text
    for image in images:
        assert f"images/{image.name}" in text
        ElementTree.fromstring(image.read_text())


@given(
    st.dictionaries(
        st.text("ab<&\"'", min_size=1, max_size=8),
        st.lists(st.tuples(st.floats(1, 1e6), st.floats(1e-3, 1e6)), max_size=4),
        max_size=9,
    )
)
def test_every_plot_is_well_formed(series: dict[str, list[tuple[float, float]]]) -> None:
    ElementTree.fromstring(chart.lines("a < b", "ms", series))
    ElementTree.fromstring(chart.bars("a & b", dict.fromkeys(series, (0.5, 0.0)), ("x", "y")))


@given(st.lists(st.floats(0, 400), max_size=12))
def test_names_beside_a_plot_do_not_lie_upon_one_another(heights: list[float]) -> None:
    placed = sorted(chart.spread({str(n): y for n, y in enumerate(heights)}, apart=15).values())
    assert all(after - before >= 15 - 1e-6 for before, after in itertools.pairwise(placed))


# a run


def test_a_system_that_cannot_be_installed_is_a_row_and_nothing_is_started_for_it(tmp_path: Path) -> None:
    vectors = np.zeros((2, 4), np.float32)
    material = Material(["a", "b"], vectors, ["q", "r"], vectors, "made-up")
    environment = Environment(tmp_path, missing={"chromadb": "chromadb could not be installed"})
    plan = Plan(environment, ["chromadb"], material, Kept(tmp_path, 2), tmp_path / "work")
    kept: list[Any] = []
    assert run_size(plan, 10, lambda _: None, kept.append) == {
        "chromadb": {"failed": "chromadb could not be installed"}
    }
    assert len(kept) >= 3, "what was measured is kept after every step"


def test_questions_that_are_to_be_embedded_were_never_asked_before(tmp_path: Path) -> None:
    vectors = np.zeros((200, 4), np.float32)
    material = Material(["a"], vectors, [f"question {n}" for n in range(200)], vectors, "made-up")
    plan = Plan(Environment(tmp_path), ["sdk"], material, Kept(tmp_path, 1), tmp_path)
    asked = {each.measure: each.items for each in questions_of(plan, 1000)}
    assert asked["recall_filtered"] == asked["recall_given"]
    fresh = [*asked["recall_given"], *asked["recall_unjudged"], *asked["recall_own"]]
    assert len(set(fresh)) == 300
    assert min(asked["remember_given"]) == 1000
    assert not set(asked["remember_given"]) & set(asked["remember_own"])


@pytest.mark.process
def test_a_process_that_ends_or_says_an_error_is_a_sentence(tmp_path: Path) -> None:
    environment = Environment(tmp_path, embedder="hashing")
    talk = Talk(environment, "sdk", Kept(tmp_path, 5), tmp_path / "log")
    with pytest.raises(Failed, match="load: AttributeError"):
        talk.ask("load", size=3, vectors=False)  # nothing was opened
    with pytest.raises(Failed, match="open: no answer within 0 s"):
        talk.ask("open", seconds=0, folder=str(tmp_path / "data"))
    talk.end()
    with pytest.raises(Failed, match="open: its process is gone"):
        talk.ask("open", folder=str(tmp_path / "data"))


@pytest.mark.slow
@pytest.mark.process
def test_a_connection_that_was_closed_while_others_had_their_turn_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
    system = commonplace_http.Adapter()
    system.open(tmp_path / "data", 4, lambda text: np.zeros(4, np.float32))
    try:
        system._line.sock.shutdown(socket.SHUT_RDWR)
        system.begin()
        system.remember(Row("m1", "Alice likes green tea"))
        assert [hit.label for hit in system.recall("green tea", None, AGENT, None, 5)] == ["m1"]
    finally:
        system.close()


@pytest.mark.slow
@pytest.mark.process
def test_a_small_run_measures_the_three_doors_and_keeps_what_it_found(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.peers", "--systems", "sdk,http,stdio", "--sizes", "30", "--calls", "4"]
    command += ["--starts", "1", "--embedder", "hashing", "--texts", "60", "--no-quality", "--no-syncs"]
    command += ["--folder", str(tmp_path / "peers"), "--results", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "peers.json").read_text())
    assert document["complete"] == [30]
    for name in ("sdk", "http", "stdio"):
        row = document["sizes"]["30"][name]
        assert "failed" not in row
        assert row["recall_given"]["hits"] > 0
        assert row["recall_filtered"]["hits"] > 0
        assert all(row[part]["p50_ms"] > 0 for part in ("recall_own", "remember_given", "remember_own", "recall_given"))
        assert row["start"]["resident_bytes"] > 1e6
        assert row["disk_bytes"] > 1e4
    assert "### 30 memories" in done.stdout
    again = subprocess.run([*command, "--resume"], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert again.returncode == 0, again.stderr
    assert "30: taken from" in again.stderr
    assert "loading" not in again.stderr
    assert json.loads((tmp_path / "peers.json").read_text())["sizes"] == document["sizes"]
    assert not (tmp_path / "peers" / "work").exists()
