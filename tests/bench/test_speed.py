"""The speed benchmarks run; what they measure is nobody's business here."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.__main__ import BENCHMARKS, main  # noqa: E402
from bench.speed.crowd import _overtaken  # noqa: E402
from bench.speed.material import Material, real_texts  # noqa: E402
from bench.speed.report import Figure  # noqa: E402


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loaded")


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_runs_and_writes_json(name: str, cache: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", name, "--tiny", "--cache", str(cache), "--results", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / f"{name}.json").read_text())
    assert document["title"] in done.stdout
    if name == "vector" and not document["figures"]:
        pytest.skip(document["notes"][0])
    assert document["figures"]
    assert all(math.isfinite(figure["value"]) for figure in document["figures"])
    assert list(cache.glob("tmp*")) == [], "something was left behind"


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sprint"])
    assert "there is no benchmark 'sprint'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("figure", "met"),
    [
        (Figure("f", 2.0, "×", at_most=2.5), True),
        (Figure("f", 3.0, "×", at_most=2.5), False),
        (Figure("f", 40.0, "×", at_least=40), True),
        (Figure("f", 39.0, "×", at_least=40), False),
        (Figure("f", 39.0, "×"), None),
    ],
)
def test_a_target_is_met_or_missed(figure: Figure, met: bool | None) -> None:
    assert figure.met is met


def test_overtaking_is_being_served_before_someone_who_asked_earlier() -> None:
    assert _overtaken([(0, 1), (2, 3), (4, 5)]) == 0
    assert _overtaken([(0, 10), (1, 2), (3, 4), (5, 11)]) == 2


def test_what_is_made_up_is_the_same_every_time_and_of_length_one() -> None:
    texts, questions = real_texts()
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((50, 16)).astype(np.float32)
    material = Material(texts[:50], vectors, questions[:5], vectors[:5], "made-up")
    assert [material.text(n) for n in range(200)] == [material.text(n) for n in range(200)]
    assert len({material.text(n) for n in range(200)}) > 190
    some = material.some_vectors(40, 140)
    np.testing.assert_array_equal(some, material.some_vectors(40, 140))
    np.testing.assert_allclose(np.linalg.norm(some, axis=1), 1, rtol=1e-5)
    assert material.some_tokens(7) is None
    material.tokens = [rng.integers(0, 256, (n % 5 + 2, 8), np.uint8) for n in range(50)]
    for number in (7, 120):
        (own,), (again,) = material.some_tokens(number), material.some_tokens(number)
        assert own.tolist() == again.tolist()
        assert own.shape[1] == 8
