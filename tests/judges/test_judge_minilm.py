from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commonplace.embedders import packaged_files
from commonplace.embedders.base import Unloadable
from commonplace.judges import minilm
from commonplace.judges.base import Judge
from commonplace.judges.minilm import MiniLMJudge
from commonplace.wire.errors import Unavailable

QUESTION = "When is Alice's dentist appointment?"
TEXTS = [
    "Alice sees the dentist on Tuesday at nine.",
    "Bob's bicycle is red.",
    "word " * 400,
    "",
    "lone \ud800 surrogate",
    "会議は三時です",
]


def test_the_file_that_ships_is_the_pinned_one() -> None:
    assert hashlib.sha256(minilm.MODEL.read_bytes()).hexdigest() == minilm.SHA256


def test_an_answer_is_above_everything_else(judge: MiniLMJudge) -> None:
    assert isinstance(judge, Judge)
    assert isinstance(judge, Unloadable)
    answer, *others = judge.judge(QUESTION, TEXTS)
    assert answer > 0 > max(others)


def test_no_texts_no_logits(judge: MiniLMJudge) -> None:
    assert judge.judge(QUESTION, []) == []


def test_the_same_pair_gives_the_same_logit_even_after_unloading(judge: MiniLMJudge) -> None:
    first = judge.judge(QUESTION, TEXTS)
    judge.unload()
    assert judge.judge(QUESTION, TEXTS) == first


def test_a_logit_does_not_depend_on_what_is_judged_with_it(judge: MiniLMJudge) -> None:
    together = judge.judge(QUESTION, TEXTS)
    alone = [MiniLMJudge(remembered=0).judge(QUESTION, [text])[0] for text in TEXTS[:2]]
    backwards = MiniLMJudge(remembered=0).judge(QUESTION, TEXTS[::-1])[::-1]
    np.testing.assert_allclose(together[:2], alone, atol=1e-3)
    np.testing.assert_allclose(together, backwards, atol=1e-3)


def test_several_threads_get_what_one_gets(judge: MiniLMJudge) -> None:
    fresh = MiniLMJudge()
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: fresh.judge(QUESTION, TEXTS), range(4)))
    assert all(result == judge.judge(QUESTION, TEXTS) for result in results)


def test_a_pair_is_judged_once_while_it_is_remembered(judge: MiniLMJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    one = MiniLMJudge(remembered=2)
    first = one.judge(QUESTION, TEXTS[:2])
    asked: list[str] = []
    monkeypatch.setattr(one, "_logits", lambda question, texts: asked.extend(texts) or [0.0 for _ in texts])
    assert one.judge(QUESTION, TEXTS[:2]) == first
    assert asked == []
    assert one.judge("Another question?", TEXTS[:1]) == [0.0]
    assert one.judge(QUESTION, TEXTS[:2]) == [0.0, first[1]]  # the older one made room


def test_a_damaged_model_is_refused(judge: MiniLMJudge, tmp_path: Path) -> None:
    data = minilm.MODEL.read_bytes()
    damaged = tmp_path / "judge.onnx"
    damaged.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(Unavailable, match="judge is damaged"):
        MiniLMJudge(damaged).judge(QUESTION, ["x"])


def test_a_damaged_tokenizer_is_refused(judge: MiniLMJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    damaged = replace(packaged_files.TOKENIZER, path=tmp_path / "tokenizer.json")
    monkeypatch.setattr(packaged_files, "TOKENIZER", damaged)
    with pytest.raises(Unavailable, match="the tokenizer of the encoder and the judge is damaged: install"):
        MiniLMJudge().judge(QUESTION, ["x"])


def test_opening_loads_nothing_heavy() -> None:
    script = (
        "import sys; from commonplace.judges.base import open_judge; open_judge('auto');"
        "print([m for m in ('onnxruntime', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
