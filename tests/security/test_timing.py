"""Nobody finds a secret by the time a refusal takes: every way in compares all of it, whatever was wrong."""

from __future__ import annotations

import ast
import asyncio
import hmac
from pathlib import Path
from typing import Any

import pytest

import commonplace
from commonplace.config import Config
from commonplace.engine import Engine, tokens as engine_tokens
from commonplace.serve import auth
from commonplace.serve.auth import Authenticator
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unauthenticated

SOURCE = Path(commonplace.__file__).parent
#: Names whose values only their owner knows.
SECRETS = {"presented", "secret", "authorization", "shared_token", "_shared", "token_hash"}

GUESSES = {
    "nothing of it": "cp_000000000000_{wrong}",
    "its id": "cp_{id}_{wrong}",
    "all but its last character": "cp_{id}_{almost}",
    "its secret under another id": "cp_000000000000_{secret}",
    "its secret and another prefix": "xx_{id}_{secret}",
    "no form at all": "{wrong}",
}


@pytest.mark.parametrize("guess", GUESSES)
def test_every_guess_is_compared_in_the_same_way(guess: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def recording(a: Any, b: Any) -> bool:
        compared.append((len(a), len(b)))
        return real(a, b)

    async def run() -> list[tuple[int, int]]:
        clock = FakeClock()
        engine = await Engine.open(InMemory(clock), clock=clock)
        try:
            token, spelled = await engine.tokens.create(WHO)
            secret = spelled.rpartition(f"{token.id}_")[2]
            wrong, almost = "A" * len(secret), secret[:-1] + ("A" if secret[-1] != "A" else "B")
            shared = "S" * 43
            door = Authenticator(engine, Config(Path("nowhere")), loopback=True, shared_token=shared)
            given = GUESSES[guess].format(id=token.id, secret=secret, wrong=wrong, almost=almost)
            await door.usable()
            monkeypatch.setattr(hmac, "compare_digest", recording)
            with pytest.raises(Unauthenticated):
                await door.admit(f"Bearer {given}")
            return compared
        finally:
            monkeypatch.undo()
            await engine.close()

    found = asyncio.run(run())
    # Once with the shared embedder's token, then twice with a hash: before and after the tokens are read again.
    assert len(found) == 3
    assert found[1:] == [(64, 64)] * 2


def test_the_modules_that_admit_compare_in_no_other_way() -> None:
    for module in (auth, engine_tokens):
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Eq, ast.NotEq, ast.In)) for op in node.ops):
                named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                named |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
                assert not named & (SECRETS | {"hash"}), f"{module.__name__}, line {node.lineno}"


def test_every_way_in_asks_the_authenticator() -> None:
    """Whoever reads the header hands it on; nobody else compares it."""
    for path in sorted((SOURCE / "serve").rglob("*.py")):
        if path.name == "auth.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Compare):
                text = ast.unparse(node)
                assert "authorization" not in text or "None" in text, f"{path.name}, line {node.lineno}: {text}"
