"""The one JSON decoder and encoder for documents that travel: UTF-8, no NaN or Infinity, compact.

It knows no transport: what is wrong is said in words that a transport completes to its own sentence.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_PLAIN_KEY = re.compile(r"[A-Za-z_]{1,32}\Z")


class InvalidJson(ValueError):
    """Not one JSON document. Its text completes "the body is …"; `line` and `column` are known for wrong syntax."""

    def __init__(self, problem: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(problem)
        self.line, self.column = line, column


class NestedTooDeeply(InvalidJson):
    """Whatever is still to come cannot make it right, unlike a document that may not have arrived to its end."""


def decode(text: bytes | str, *, unique_keys: bool = False) -> Any:
    """The document; raises InvalidJson. `unique_keys`: also of an object that says a thing twice, of which the last
    would be kept. It takes longer."""
    try:
        said = text if isinstance(text, str) else text.decode("utf-8")
        pairs = refuse_repeated_keys if unique_keys else None
        return json.loads(said, parse_constant=refuse_constant, object_pairs_hook=pairs)
    except UnicodeDecodeError as error:
        raise InvalidJson(f"not UTF-8 text: byte {error.start} is wrong") from error
    except RecursionError as error:
        raise NestedTooDeeply("nested too deeply") from error
    except json.JSONDecodeError as error:
        raise InvalidJson(f"not valid JSON: {syntax_problem(error)}", line=error.lineno, column=error.colno) from error
    except ValueError as error:  # a constant that is not JSON, or an integer of thousands of digits
        raise InvalidJson(f"not valid JSON: {str(error)[:80]}") from error


def syntax_problem(error: json.JSONDecodeError) -> str:
    """Python's words without the place that some of them go on with, which each caller says in its own way."""
    return error.msg.removesuffix(" at").removesuffix(" starting")


def dumps(document: Any) -> str:
    return _ENCODER.encode(document)


def encode(document: Any) -> bytes:
    """Half a surrogate pair, which JSON text may escape and UTF-8 cannot hold, becomes a question mark."""
    return _ENCODER.encode(document).encode("utf-8", "replace")


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `object_pairs_hook`: readers of JSON would keep the last value of a key."""
    found = dict(pairs)
    if len(found) != len(pairs):
        last = {name: place for place, (name, _) in enumerate(pairs)}
        name = next(name for place, (name, _) in enumerate(pairs) if last[name] != place)
        # What is no plain name may be a secret, of which a part would not be recognised as one.
        raise ValueError(f"it has the key {name!r} twice" if _PLAIN_KEY.match(name) else "it has a key twice")
    return found
