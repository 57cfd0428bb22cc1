"""Any endpoint that speaks the OpenAI embeddings request.

`openai://HOST[:PORT]/PATH?model=NAME` with, as needed: `key=VARIABLE` (the environment variable that holds
the key; none is sent unless it is named), `dimension=N` (what to expect), `shorten=yes` (ask the server for
that dimension), `tls=no`. Plain HTTP is the default on this machine only.
"""

from __future__ import annotations

import json
import random
import re
import time
import urllib.error
from collections.abc import Callable, Sequence
from functools import cached_property
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode

import numpy as np

from commonplace.embedders.base import DimensionCheck, Vectors, unit_rows
from commonplace.embedders.registry import shown_spec
from commonplace.wire.errors import RateLimited, Unavailable, ValidationError
from commonplace.wire.http_client import unreachable_url
from commonplace.wire.model_endpoint import ModelEndpoint, parse_endpoint

_BATCH = 128
_ATTEMPTS = 5
_FIRST_WAIT, _MAX_WAIT = 0.5, 20.0
_TIMEOUT = 60.0
_MAX_ANSWER = 64 << 20
_SETTINGS = ("dimension", "key", "model", "shorten", "tls")


class OpenAI(DimensionCheck):
    """Texts go to the endpoint and nowhere else: no message or log of ours contains one."""

    slice_chars = 64_000  # each request takes a way there and back, whatever it carries

    def __init__(
        self,
        url: str,
        model: str,
        *,
        name: str,
        key_variable: str | None = None,
        dimension: int | None = None,
        shorten: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self._model = model
        self._key_variable = key_variable
        self._declared = dimension
        self._shorten = shorten
        self._sleep = sleep
        self._endpoint = ModelEndpoint(url, name, key_variable, _MAX_ANSWER)

    @cached_property
    def dimension(self) -> int:
        return self._declared or self._ask(["dimension"]).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        batches = [self._ask(list(texts[i : i + _BATCH])) for i in range(0, len(texts), _BATCH)]
        return np.concatenate(batches)

    def _ask(self, texts: list[str]) -> Vectors:
        # Servers refuse an empty string, and a space says as little.
        body: dict[str, Any] = {"model": self._model, "input": [text or " " for text in texts]}
        body["encoding_format"] = "float"
        if self._shorten:
            body["dimensions"] = self._declared
        answer = self._post(body)
        try:
            rows = [entry["embedding"] for entry in sorted(answer["data"], key=lambda entry: entry["index"])]
        except (KeyError, TypeError) as error:
            raise Unavailable(f"{self.name} answered something other than embeddings") from error
        vectors = unit_rows(rows, count=len(texts), source=self.name)
        self._check_dimension(vectors, self.name)
        return vectors

    def _post(self, body: dict[str, Any]) -> Any:
        for attempt in range(1, _ATTEMPTS + 1):
            wait = min(_MAX_WAIT, _FIRST_WAIT * 2 ** (attempt - 1)) * random.uniform(0.75, 1.25)
            try:
                return self._endpoint.post(body, _TIMEOUT)
            except urllib.error.HTTPError as error:
                with error:
                    if (error.code != 429 and error.code < 500) or attempt == _ATTEMPTS:
                        raise self._refusal(error) from None
                    wait = _retry_after(error, wait)
            # URLError and timeouts are OSErrors, bad JSON a ValueError; what is no HTTP at all is neither.
            except (OSError, ValueError, HTTPException) as error:
                if isinstance(error, ValueError):
                    raise Unavailable(f"{self.name} cannot be understood: {type(error).__name__}") from None
                if attempt == _ATTEMPTS:
                    reason = getattr(error, "reason", None)
                    cause = reason if isinstance(reason, Exception) else error
                    why = unreachable_url(cause, self._endpoint.url, ours=False)
                    raise Unavailable(f"{self.name} cannot be reached: {why}") from None
            self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        code = _error_code(error)
        said = f"HTTP {error.code}{f' {code}' if code else ''}"
        if error.code in (401, 403):
            holder = f"the key in {self._key_variable}" if self._key_variable else "a request without a key"
            return Unavailable(f"{self.name} refused {holder} ({said})")
        if error.code == 404:
            return Unavailable(f"{self.name} has no such address or model ({said})")
        if error.code in (400, 413, 422):
            return ValidationError(f"{self.name} refused the text or a setting ({said})")
        if error.code == 429:
            return RateLimited(f"{self.name} is limiting requests ({said})")
        return Unavailable(f"{self.name} failed ({said})")


def _error_code(error: urllib.error.HTTPError) -> str:
    """The server's short word for it. Never its sentence: that may quote the text."""
    try:
        fault = json.loads(error.read(65536))["error"]
        word = fault.get("code") or fault.get("type") or ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return word if isinstance(word, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", word) else ""


def _retry_after(error: urllib.error.HTTPError, otherwise: float) -> float:
    try:
        return min(_MAX_WAIT, max(0.0, float(error.headers.get("Retry-After", ""))))
    except ValueError:
        return otherwise


def open_embedder(spec: str, *, sleep: Callable[[float], None] = time.sleep) -> OpenAI:
    try:
        endpoint = parse_endpoint(spec, _SETTINGS)
        dimension = endpoint.whole_number("dimension", 1_000_000)
    except ValueError as error:
        raise ValidationError(f"embedder {shown_spec(spec)!r}: {error}") from None
    model, shorten = endpoint.settings["model"], endpoint.settings.get("shorten") == "yes"
    if shorten and not dimension:
        raise ValidationError(f"embedder {shown_spec(spec)!r}: shorten=yes needs dimension=N")
    # Where the key is kept changes no vector, so it is no part of the name.
    made = {"model": model, **({"dimension": dimension, "shorten": "yes"} if shorten else {})}
    return OpenAI(
        f"{endpoint.url}/embeddings",
        model,
        name=f"openai://{endpoint.address}?{urlencode(made, safe='/:')}",
        key_variable=endpoint.settings.get("key"),
        dimension=dimension,
        shorten=shorten,
        sleep=sleep,
    )
