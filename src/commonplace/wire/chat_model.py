"""A language model behind an endpoint that speaks the OpenAI chat request, asked for little and within a budget.

`llm://HOST[:PORT]/PATH?model=NAME` with, as needed: `key=VARIABLE` (the environment variable that holds the key; none
is sent unless it is named), `calls=N` and `tokens=N` (the budget of this process), `timeout=SECONDS`, `tls=no`. Plain
HTTP is the default on this machine only. Texts go to the endpoint and nowhere else: no message or log of ours has one.
"""

from __future__ import annotations

import threading
import urllib.error
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, TypeVar

from commonplace.wire.errors import Fault, Unavailable, ValidationError
from commonplace.wire.http_client import unreachable_url
from commonplace.wire.model_endpoint import ModelEndpoint, parse_endpoint
from commonplace.wire.shown_urls import shown_url

SCHEME = "llm:"
_SETTINGS = ("model", "key", "calls", "tokens", "timeout", "tls")
_MAX_ANSWER = 1 << 20

T = TypeVar("T")


@dataclass(slots=True)
class UsageCounter:
    """What was spent since the process started."""

    calls: int = 0
    tokens: int = 0
    failures: int = 0


class ChatModel:
    """`role` is what it is asked as, for the sentences that name it: "the judge"."""

    def __init__(
        self,
        role: str,
        url: str,
        model: str,
        *,
        name: str,
        key_variable: str | None = None,
        calls: int = 1000,
        tokens: int = 1_000_000,
        timeout: float = 10.0,
    ) -> None:
        self.name = name
        self.usage = UsageCounter()
        self._called = f"{role} {name}"
        self._model = model
        self._calls = calls
        self._tokens = tokens
        self._timeout = timeout
        self._usage_lock = threading.Lock()
        self._endpoint = ModelEndpoint(url, self._called, key_variable, _MAX_ANSWER)

    def ask(self, task: str, asked: str, read: Callable[[str], T], max_tokens: int = 100) -> T:
        """What `read` makes of its answer; whatever goes wrong, there too, is Unavailable."""
        body = {
            "model": self._model,
            "temperature": 0,
            "max_tokens": max_tokens,
            "messages": [{"role": "system", "content": task}, {"role": "user", "content": asked}],
        }
        self._spend()
        try:
            answer = self._post(body)
            said = answer["choices"][0]["message"]["content"]
            self._count(answer.get("usage"))
            return read(said)
        except Exception as error:
            with self._usage_lock:
                self.usage.failures += 1
            if isinstance(error, Fault):
                raise
            # Not the error's own words: they may quote what was sent.
            raise Unavailable(f"{self._called} answered something else than asked for") from None

    def _spend(self) -> None:
        with self._usage_lock:
            if self.usage.calls >= self._calls or self.usage.tokens >= self._tokens:
                raise Unavailable(
                    f"{self._called} has spent its budget ({self.usage.calls} calls, {self.usage.tokens} tokens); "
                    "raise `calls` or `tokens` of its setting"
                )
            self.usage.calls += 1

    def _count(self, usage: Any) -> None:
        total = usage.get("total_tokens") if isinstance(usage, dict) else None
        with self._usage_lock:
            self.usage.tokens += total if isinstance(total, int) and total > 0 else 0

    def _post(self, body: dict[str, Any]) -> Any:
        try:
            return self._endpoint.post(body, self._timeout)
        except urllib.error.HTTPError as error:
            with error:
                raise Unavailable(f"{self._called} refused (HTTP {error.code})") from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None)
            why = unreachable_url(reason if isinstance(reason, Exception) else error, self._endpoint.url, ours=False)
            raise Unavailable(f"{self._called} cannot be reached: {why}") from None


def open_chat_model(spec: str, field: str) -> ChatModel:
    """`field` is the setting that names it, and what it is asked as."""
    try:
        endpoint = parse_endpoint(spec, _SETTINGS)
        numbers = {name: endpoint.whole_number(name, 1_000_000_000) for name in ("calls", "tokens", "timeout")}
    except ValueError as error:
        raise ValidationError(f"{field} {shown_url(spec, _SETTINGS)!r}: {error}", field=field) from None
    model = endpoint.settings["model"]
    return ChatModel(
        f"the {field}",
        f"{endpoint.url}/chat/completions",
        model,
        name=f"llm://{endpoint.address}?model={model}",
        key_variable=endpoint.settings.get("key"),
        **{name: number for name, number in numbers.items() if number is not None},
    )
