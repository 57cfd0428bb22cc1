from __future__ import annotations

from pathlib import Path

import pytest

from commonplace import config
from commonplace.wire.errors import ValidationError


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA", "AGENT", "EMBEDDER", "STORE", "INDEX_MB"):
        monkeypatch.delenv(f"COMMONPLACE_{name}", raising=False)


def test_flags_then_environment_then_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert config.load(data=tmp_path).agent == "default"
    (tmp_path / "commonplace.toml").write_text('agent = "file"\nindex_mb = 64\n')
    assert config.load(data=tmp_path).agent == "file"
    monkeypatch.setenv("COMMONPLACE_AGENT", "environment")
    assert config.load(data=tmp_path).agent == "environment"
    assert config.load(data=tmp_path, agent="flag").agent == "flag"
    assert config.load(data=tmp_path).index_mb == 64


def test_the_data_folder_comes_from_the_environment_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path / "here"))
    assert config.load().data == tmp_path / "here"
    assert config.load().store_url.endswith("/here/commonplace.db")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('colour = "red"', "unknown setting 'colour'"),
        ("agent = ", "not valid TOML"),
        ('index_mb = "many"', "whole number"),
        ("index_mb = 0", "at least 1"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "commonplace.toml").write_text(text)
    with pytest.raises(ValidationError, match=says):
        config.load(data=tmp_path)
