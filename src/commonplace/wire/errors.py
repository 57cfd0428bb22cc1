"""One small tree of faults: a code, a sentence for the caller, and details. It knows no transport."""

from __future__ import annotations

from typing import Any, TypeVar

F = TypeVar("F", bound="Fault")


class Fault(Exception):
    """Anything a caller is told went wrong; dialects map `code` to their own envelope.

    `hint` is what a person at a shell can do about it. It ends `message`; who talks to someone else, such as a model
    that has tools instead, says `summary` and its own advice.
    """

    code = "unavailable"
    #: Whether another program chose the words, which may quote anything: who passes them on to others says the code.
    is_quoted = False
    #: Instead of `summary` and `hint`, for those who are not to know where a store is and who logs in there; without
    #: a `public` the message is for everyone.
    public: str | None = None
    public_hint: str | None = None

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        self.summary = message
        self.hint = hint
        self.message = message if hint is None else f"{message}; {hint}"
        self.details = details
        super().__init__(self.message)

    def summary_for(self, *, is_operator: bool) -> str:
        return self.summary if is_operator or self.public is None else self.public

    def message_for(self, *, is_operator: bool) -> str:
        if is_operator or self.public is None:
            return self.message
        return self.public if self.public_hint is None else f"{self.public}; {self.public_hint}"

    def to_wire(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            error["details"] = self.details
        return {"error": error}


class ValidationError(Fault):
    """The request itself is wrong; the message names the field and what is allowed."""

    code = "validation_error"


class Unauthenticated(Fault):
    code = "unauthenticated"


class Forbidden(Fault):
    code = "forbidden"


class NotFound(Fault):
    code = "not_found"


class Conflict(Fault):
    """The request was right once, but the store has moved on."""

    code = "conflict"


class PayloadTooLarge(Fault):
    code = "payload_too_large"


class SecretLeakage(Fault):
    code = "secret_leakage"


class RateLimited(Fault):
    code = "rate_limited"


class Unavailable(Fault):
    """A backend could not do it; nothing is wrong with the request."""

    code = "unavailable"


class OperatorActionRequired(Unavailable):
    """It stays so until a person has done something about it: asking again cannot help."""

    public = "the store failed; its operator has to see to it"


class UnusableStore(OperatorActionRequired):
    """A store that must not be opened: damaged, written by a newer version, or half of one. It is left untouched."""


def with_public(fault: F, summary: str, hint: str | None = None) -> F:
    """The fault, which names a place, with what is said of it to those who are not to know that."""
    fault.public, fault.public_hint = summary, hint
    return fault


_BY_CODE = {kind.code: kind for kind in Fault.__subclasses__()}


def kind_and_place(error: Exception) -> str:
    """What may be told of an exception that is not ours: its text may quote a memory or a password."""
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename.rpartition('site-packages/')[2]}:{frame.lineno}"


def internal_error(what: str = "", *, id: str = "") -> Unavailable:
    """What a caller is told of a bug of ours: never the exception's text, which may quote a memory. `id` is that of the
    request in the log."""
    sentence = "internal error; the server's log says where" + (f", under {id}" if id else "")
    return Unavailable(f"{what}: {sentence}" if what else sentence)


def fault_of(document: Any) -> Fault:
    """The fault that another server's `to_wire` gave; one of an unknown code or shape is its unavailability."""
    error = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict):
        return Unavailable("the server answered with an error of an unknown shape")
    kind = _BY_CODE.get(str(error.get("code", "")), Unavailable)
    fault = kind(str(error.get("message", "the server gave no reason")))
    fault.is_quoted = True
    if isinstance(error.get("details"), dict):
        fault.details = error["details"]
    return fault
