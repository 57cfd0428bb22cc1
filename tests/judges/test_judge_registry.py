from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.judges import minilm
from commonplace.judges.base import open_judge
from commonplace.judges.llm import LLMJudge
from commonplace.judges.minilm import NAME, MiniLMJudge
from commonplace.wire.errors import ValidationError


def test_auto_is_the_judge_that_ships(judge: MiniLMJudge) -> None:
    opened, note = open_judge("auto")
    assert opened is not None
    assert (opened.name, note) == (NAME, None)


def test_none_is_none_without_a_word() -> None:
    assert open_judge("none") == (None, None)


def test_no_file_outside_the_package_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path))
    opened, _ = open_judge()
    assert opened is not None
    assert opened.judge("When is the dentist?", ["Alice sees the dentist on Tuesday at nine."])[0] > 0


def test_without_its_file_there_is_no_judge_and_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "MODEL", tmp_path / "judge.onnx")
    opened, note = open_judge()
    assert opened is None
    assert "install commonplace-memory again" in (note or "")


def test_a_language_model_judges_alone_where_the_other_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minilm, "MODEL", tmp_path / "judge.onnx")
    opened, note = open_judge("llm://127.0.0.1:9/v1?model=small")
    assert isinstance(opened, LLMJudge)
    assert note is not None


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("judgement", "there is no judge 'judgement'"),
        ("llm:small", "write it as llm://HOST/v1"),
        ("llm://host/v1", "write it as llm://HOST/v1"),
        ("llm://alice@host/v1?model=x", "write it as llm://HOST/v1"),
        ("llm://host/v1?model=x&speed=9", "unknown setting 'speed'"),
        ("llm://host/v1?model=x&calls=none", "calls must be a whole number"),
        ("llm://host:port/v1?model=x", "write it as llm://HOST/v1"),
    ],
)
def test_what_is_wrong_with_a_spec_is_said(spec: str, complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        open_judge(spec)
