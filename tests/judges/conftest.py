from __future__ import annotations

import pytest

from commonplace.judges.minilm import MiniLMJudge


@pytest.fixture(scope="session")
def judge() -> MiniLMJudge:
    """The judge that ships."""
    return MiniLMJudge()
