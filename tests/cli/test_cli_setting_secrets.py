"""A key or a password that stands in a setting is printed nowhere: not on a terminal, not as JSON, not in a log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commonplace.serve import server

Cli = Callable[..., Any]

SECRET = "gehe1m"  # a part of every key and password below
KEY = f"sk-proj-{SECRET}-0123456789"
#: What people write after the scheme of an endpoint.
ENDPOINTS = (
    f"u:pw{SECRET}@h.invalid/v1?model=x",
    f"u:pw{SECRET}/v1?model=x",
    f"u:pw{SECRET}?model=x",
    f"u:pw/{SECRET}@h.invalid/v1?model=x",
    f"u:12?{SECRET}@h.invalid/v1?model=x",
    f"{KEY}@h.invalid/v1?model=x",
    f"h.invalid:8000/v1?model=a@b&key={KEY}",
    f"h.invalid/v1?model=x&token={KEY}",
    f"h.invalid/v1?model=x&key={KEY}",
    f"h.invalid/v1?model=x&key=sk_{SECRET}",
    f"h.invalid/v1?model=x&key={KEY}&key={KEY}",
    f"h.invalid/v1?model=x&api_key={KEY}",
    f"h.invalid/v1?model=x&{KEY}",
    f"h.invalid/v1?model=x;key={KEY}",
    f"h.invalid/v1?model=x&calls=1;key={KEY}",
    f"h.invalid/v1?key={KEY}",
    f"h.invalid/v1?model=x&tls=no#key={KEY}",
    f"h.invalid/v1?colour=1#{KEY}",
    f"h.invalid:{SECRET}/v1?model=x",
    f"u:{SECRET}@[h.invalid/v1?model=x",
    f"u:{SECRET}@h.invalid℀/v1?model=x",
)
ADDRESSES = (
    f"https://u:pw{SECRET}@h.invalid/x",
    f"https://u:pw{SECRET}/x",
    f"https://u:{SECRET}@[h.invalid/x",
    f"https://u:{SECRET}@h.invalid℀/x",
    f"https://h.invalid/x?token={KEY}",
    f"https://h.invalid/x#{KEY}",
    f"ftp://u:{SECRET}@h.invalid/x",
    f"ftp://h.invalid/x?token={KEY}",
    f"u:{SECRET}@h.invalid",
    f"h.invalid?token={KEY}",
)
WITH_ISSUER = 'public_url = "https://m.example"\n[oidc]\nissuer = "https://h.invalid"\n'
STATUS, SERVE = ("status", "--json"), ("serve", "--port", "0")
CAPTURE, HOOK = ("capture", "{transcript}", "--json"), ("capture", "--hook")
COMMANDS = {
    "store": (("status",), STATUS, ("stores",), ("doctor", "--json"), SERVE),
    "model": (("remember", "Alice drinks tea"), ("recall", "tea", "--json"), ("status",), HOOK, SERVE),
    "extractor": (CAPTURE, ("capture", "{transcript}"), HOOK),
    "server": (SERVE, (*SERVE, "--json")),
}
#: By setting: which commands read it, the file, and what is written into that.
FILES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "extractor": ("extractor", 'extractor = "{}"', tuple(f"llm://{each}" for each in ENDPOINTS)),
    "extractor of another scheme": ("extractor", 'extractor = "{0}"', tuple(f"https://{each}" for each in ENDPOINTS)),
    "judge": ("model", 'judge = "{}"', tuple(f"llm://{each}" for each in ENDPOINTS)),
    "judge without slashes": ("model", 'judge = "{}"', tuple(f"llm:{each}" for each in ENDPOINTS)),
    "judge of another scheme": ("model", 'judge = "{0}"', tuple(f"https://{each}" for each in ENDPOINTS)),
    "embedder": ("model", 'embedder = "{}"', tuple(f"openai://{each}" for each in ENDPOINTS)),
    "embedder of another scheme": ("model", 'embedder = "{}"', tuple(f"https://{each}" for each in ENDPOINTS)),
    "packaged embedder": (
        "model",
        'embedder = "{}"',
        (f"minilm?key={KEY}", f"encoder?token={KEY}", f"hashing?key={KEY}", f"multilingual?key={KEY}"),
    ),
    "model's folder": (
        "model",
        'embedder = "{}"',
        (
            f"onnx:x.onnx?key={KEY}",
            f"onnx:https://u:{SECRET}@h.invalid/x.onnx",
            f"static:x?token={KEY}",
            f"static:https://u:{SECRET}@h.invalid/x?download=yes",
            f"callable:a?key={KEY}",
        ),
    ),
    "a list for a text": ("store", 'store = ["postgresql://u:{}@h.invalid/m"]', (SECRET,)),
    "a number among texts": ("store", 'stores = ["postgresql://u:{}@h.invalid/m", 1]', (SECRET,)),
    "copy": ("store", 'stores = ["memory://", "memorywire+https://h.invalid?token_env={}"]', (KEY, f"cp_{SECRET}")),
    "copy with a user": (
        "store",
        'stores = ["memory://", "postgresql://{}"]',
        (f"h.invalid:1/m?user=a@b&password={SECRET}", f"h.invalid/m?user=a&passwd={SECRET}"),
    ),
    "traces": ("server", 'traces = "{}"', ADDRESSES),
    "root_path": ("server", 'root_path = "{}"', ADDRESSES),
    "trusted_proxies": ("server", 'trusted_proxies = ["{}"]', ADDRESSES),
    "public_url": ("server", 'public_url = "{}"', ADDRESSES),
    "oidc.issuer": ("server", 'public_url = "https://m.example"\n[oidc]\nissuer = "{}"', ADDRESSES),
    "oidc.jwks_url": ("server", WITH_ISSUER + 'jwks_url = "{}"', ADDRESSES),
    "governance.webhook": ("server", '[governance]\nwebhook = "{}"', ADDRESSES),
    "webhook_secret_env": (
        "server",
        '[governance]\nwebhook = "https://h.invalid"\nwebhook_secret_env = "{}"',
        (KEY, f"sk_{SECRET}"),
    ),
    "mrp.origins": ("server", '[mrp]\norigins = ["{}"]', ADDRESSES),
    "redaction.secrets_env": ("server", '[redaction]\nsecrets_env = ["{}"]', (KEY, f"sk_{SECRET}")),
}


class StoppedServer:
    async def serve(self, sockets: Any) -> None:
        """As one that is stopped at once."""

    def handle_exit(self, number: int, frame: Any) -> None:
        """Nothing is left to be ended."""


@pytest.fixture
def told(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "s1.jsonl"
    message = {"role": "user", "content": "I prefer tabs over spaces. Our port is the second of March."}
    path.write_text(json.dumps({"type": "user", "message": message, "sessionId": "s1", "uuid": "u"}) + "\n", "utf-8")
    hook = {"session_id": "s1", "transcript_path": str(path), "cwd": "/x", "hook_event_name": "Stop"}
    return {"transcript": str(path), "hook": json.dumps(hook)}


@pytest.mark.parametrize("setting", FILES)
def test_no_secret_of_a_setting_is_printed(
    setting: str,
    cli: Cli,
    data: Path,
    told: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(server, "_server", lambda *_: StoppedServer())
    monkeypatch.setattr("commonplace.embedders.openai._ATTEMPTS", 1)
    if "embedder" in FILES[setting][1]:
        monkeypatch.delenv("COMMONPLACE_EMBEDDER")
    monkeypatch.setenv("COMMONPLACE_DEBUG", "1")  # prints what led to a failure, too
    caplog.set_level(logging.DEBUG)
    data.mkdir(exist_ok=True)
    readers, text, values = FILES[setting]
    for value in values:
        (data / "commonplace.toml").write_text(text.format(value), "utf-8")
        for command in COMMANDS[readers]:
            ran = cli(*(each.format(**told) for each in command), stdin=told["hook"])
            assert SECRET not in ran.out + ran.err + caplog.text, f"{command}: {value}"
            assert "is a bug" not in ran.out + ran.err, f"{command}: {value}"
            caplog.clear()


def test_the_rest_of_a_setting_is_shown(cli: Cli, data: Path, told: dict[str, str]) -> None:
    data.mkdir(exist_ok=True)
    (data / "commonplace.toml").write_text(
        f'extractor = "llm://u:{SECRET}@h.invalid/v1?model=x&key=OPENAI_API_KEY&colour=1"', "utf-8"
    )
    said = cli("capture", told["transcript"]).err
    assert "extractor 'llm://…@h.invalid/v1?model=x&key=OPENAI_API_KEY&colour=…': unknown setting 'colour'" in said
    (data / "commonplace.toml").write_text(f'extractor = "llm://h.invalid/v1?model=x&key={KEY}"', "utf-8")
    said = cli("capture", told["transcript"]).err
    assert "llm://h.invalid/v1?model=x&key=…': key is the name of an environment variable, not the key itself" in said
