"""Languages: a guess that knows when it cannot tell."""

from __future__ import annotations

import pytest

from commonplace.engine.recall.languages import language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is the key?", "en"),
        ("Der Schlüssel liegt unter der Matte", "de"),
        ("Was ist das für ein Schlüssel", "de"),
        ("La clé est sous le paillasson, avec les autres", "fr"),
        ("¿Qué cepa necesita gentamicina? Es para el lunes", "es"),
        ("鍵はマットの下", "ja"),
        ("钥匙在垫子下面", "zh"),
        ("열쇠는 매트 아래", "ko"),
        ("BF-E417", None),
        ("🔑", None),
    ],
)
def test_language(text: str, expected: str | None) -> None:
    assert language(text) == expected
