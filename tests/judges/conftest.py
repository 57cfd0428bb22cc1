from __future__ import annotations

import pytest

from commonplace.embedders import model_files
from commonplace.judges.minilm import MiniLMJudge


@pytest.fixture(scope="session")
def judge() -> MiniLMJudge:
    """The judge that ships; the model whose tokenizer it needs is built first where it is absent."""
    model_files.build()
    return MiniLMJudge()
