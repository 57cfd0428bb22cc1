"""How far whoever asks is told why a store fails. Its own sentence may say where it is and who logs in there, which
concerns operators; everyone else is told what kind of failure it is. Pure.

What is said here of itself is known, sentence by sentence; any other is a store's own, whatever it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from commonplace.engine.outbox.replicas import SAYS_DOWN, SEARCHES_FAIL
from commonplace.wire.record import Principal

UNREACHABLE = "it could not be reached"
REFUSED_CREDENTIALS = "it refused its credentials"
FAILED = "it failed"

_OWN_PREFIXES = re.compile(
    r"(?:not asked for \d+ s more: |it failed \d+ times in a row, last: |"
    + re.escape(SEARCHES_FAIL)
    + r": |the store [^\s:]{1,256} (?:does not answer: |takes what is written, but ))"
)
_NAME = r"[^\s;:]{1,256}"
_RESYNC = rf"(?:`commonplace stores resync {_NAME}`|`await memory\.resync\('{_NAME}'\)`)"
_OWN_SENTENCES = re.compile(
    "|".join(
        (
            *map(re.escape, (SAYS_DOWN, UNREACHABLE, REFUSED_CREDENTIALS, FAILED, SEARCHES_FAIL)),
            "it is kept and tried again",
            "it answered a search with something that is no list of what it found",
            "it listed something that is no memory",
            "it named something that is no (?:agent|tenant)",
            "it answers, but not (?:with a page of memories|as memorywire has it|as a memorywire server does)",
            "it has this memory itself, under the same id: a store cannot have copies of its own",
            r"\d+ of what it was to forget is left",
            "what it says of its health cannot be read",
            "its capabilities cannot be read: [A-Za-z ]{1,64}",
            "the pages of its listing do not end",
            "its listing has more than [0-9,]{1,20} memories of one agent",
            "it could not be delivered",
            "it is still starting(?: after [0-9.e+-]+ s)?",
            "it did not (?:answer|confirm) within [0-9.e+-]+ s",
            r"it did not answer within [0-9.e+-]+ s for all of \d+ agents, so what it would find is missing",
            "ask of fewer",
            "(?:it failed|it refused): [A-Za-z_]{1,64}",
            "another process is delivering it",
            "others took too long before it",
            "an earlier write may still arrive",
            "it is delivered once more then",
            "what came as a copy from another server is not passed on",
            "it does not keep [a-z]+(?: or [a-z]+)* memories",
            "it lets what it is given wait for approval, so it has no copy yet",
            "it lets what it is to forget wait for approval, so the copy is still there",
            r"it has another text for \d+ of the memories it named, which were left out",
            f"(?:run )?{_RESYNC}(?: puts it right| makes it equal)?",
            "what waited for it was discarded, so it may still have copies of what was erased: "
            f"{_RESYNC} makes it equal",
            "never resynced: memories from before it was attached are not there",
            'what was written under write = "primary_only" is not there',
            "its file or folder was gone or empty, and was begun anew: it lacks what it had, and the one before may "
            "have copies of what was erased: put that back if it is somewhere",
            f"then run {_RESYNC}",
            f"the name {_NAME} was given to another address while changes waited for the store that had it, which may "
            "still have copies of what was erased: attach that one under a name of its own and resync it",
            f"{_RESYNC} then ends this notice, or at once where the same store has moved",
            "something was changed by a process that did not have it, such as a command without --store: it may lack "
            "memories, and have copies of what was erased",
            "it is not among the configured stores",
            "what waits for it is delivered when it is again, at the same address or with this name in its URL "
            r"\(name=\)",
            "`commonplace stores discard NAME` drops it",
        )
    )
)
_UNREACHABLE = re.compile(
    "could not be reached|cannot be reached|unreachable|no route|no answer in time|connection", re.I
)
_CREDENTIALS = re.compile("password|credential|token|refused user|authenticat", re.I)


def shown_problem(who: Principal | None, sentence: str) -> str:
    """As it is to an operator; to everyone else what is not known to be ours is a kind of failure."""
    if who is not None and who.is_operator:
        return sentence
    begun = 0
    while begins := _OWN_PREFIXES.match(sentence, begun):
        begun = begins.end()
    parts = sentence[begun:].split("; ")
    known = [part for part in parts if _OWN_SENTENCES.fullmatch(part)]
    theirs = "; ".join(part for part in parts if not _OWN_SENTENCES.fullmatch(part))
    return sentence[:begun] + "; ".join([*([_kind(theirs)] if theirs else []), *known])


def _kind(sentence: str) -> str:
    if _CREDENTIALS.search(sentence):
        return REFUSED_CREDENTIALS
    return UNREACHABLE if _UNREACHABLE.search(sentence) else FAILED


def shown_problems(who: Principal | None, problems: Mapping[str, str]) -> dict[str, str]:
    return {store: shown_problem(who, why) for store, why in problems.items()}


def shown_sentences(who: Principal | None, sentences: Iterable[str]) -> list[str]:
    return [shown_problem(who, sentence) for sentence in sentences]


def shown_stores(who: Principal, stores: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As `Stores.list` gives them."""
    said = ("error", "last_error")
    return [{name: shown_problem(who, v) if name in said else v for name, v in each.items()} for each in stores]
