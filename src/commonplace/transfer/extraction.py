"""What of a conversation is worth keeping, found by rules and without a language model. Pure; English only.

Only what a person says counts: preferences, decisions, corrections, facts, and what they ask to remember. Questions,
tasks, guesses, code and what points at something only the conversation shows are left alone: what cannot be understood
by itself is no memory, and a question is not its answer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from commonplace.transfer.transcripts import Turn

KINDS = ("note", "correction", "decision", "preference", "fact")
_MIN_CHARS, _MAX_CHARS = 12, 400
_FENCE = re.compile(r"`{3,}|~{3,}")
_OPENING = re.compile(r"<([a-z][\w-]*)(?:[\s/][^<>]*)?>", re.IGNORECASE)
_CLOSING = re.compile(r"</([a-z][\w-]*)>", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])|\n+")
_BULLET = re.compile(r"^\s*(?:(?:[-*•]|\d+[.)])\s+)+")
_NOT_PROSE = re.compile(r"^\s*(?:[>$#|{}<]|//|at \w|\w+Error\b|https?://\S+$|[\w./-]+:\d+)")
_NOT_PROSE_IN_LIST = re.compile(r"[>$#|{}<]|//")  # fewer: "- at home I use tabs" is no line of a traceback

_QUESTION = re.compile(
    r"\?\W*$|^\W*(?:what|who|whom|whose|when|where|why|which|how|is|are|was|were|do(?! not\b)|does|did|can|could|"
    r"should(?! (?:be|have been)\b)|would|will|have|has|may|shall)\b",
    re.IGNORECASE,
)
# As people type them in a hurry, without a mark: "so where do we deploy", "tell me what our port is". What is always to
# be told or checked is a wish, not a question.
_INVERTED = re.compile(
    r"\b(?:do|does|did|can|could|should|would|will|shall|have|are|were) (?:i|we|you|they)\b", re.IGNORECASE
)
_ASKED = re.compile(
    rf"{_INVERTED.pattern}|"
    r"^(?!\W*(?:please )?(?:always|never|don't ever|do not ever)\b).*\b(?:tell|show|explain|remind|ask|asking|wonder|"
    r"wondering|curious|(?<!as you )know|idea|clue|remember|recall|forgot|(?<!not )(?<!n't )forget|"
    r"find out|figure out|look up|look into|see|check|verify|confirm|understand|investigate|determine)\b.{0,40}?"
    r"\b(?:what|who|whom|whose|when|where|why|which|how|whether|if)\b",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"^\W*(?:(?:(?:please )?(?:remember|note|keep in mind|don't forget|do not forget)(?P<that> that)?|for the record|"
    r"fyi|for future reference|from now on|by the way|btw|nope|no|actually|wrong|not quite|that's (?:wrong|incorrect)|"
    r"hey|hi|hello|ok|okay|so|and|but|well|wait|hmm|oh|also|yes|yeah|sorry|quick question|question)\b\W*)+",
    re.IGNORECASE,
)
_SUBJECT = (
    r"(?:(?:i|we|you|they|he|she|it|the|our|my|your|this|that|these|those|there|people|all|an?|any\w*|some\w*|every\w*)\b|"
    r"(?-i:[A-Z]))"
)
# What follows a lead-in is a question where the verb stands before its subject: "what is", "is our", "which port do
# we". The first word alone does not tell: "remember that when we deploy, …", "from now on do …", "FYI can't come".
_LED_QUESTION = re.compile(
    rf"(?:is|are|was|were|does|did|can|could|would|has|shall) {_SUBJECT}|should {_SUBJECT}[^,]*$|"
    r"(?:do|have|will|may) (?:i|we|you|they|people)\b|will (?:the|our|my|it|this|that|there)\b|"
    r"(?:i|we) (?:\w+ )?(?:forget|forgot|wonder|(?:don't|do not|can't|cannot) (?:know|remember|recall)) "
    r"(?:what|who|whom|whose|when|where|why|which|how|whether|if)\b",
    re.IGNORECASE,
)
_LED_WH_QUESTION = re.compile(
    r"(?:what|who|whom|whose|when|where|why|which|how)(?:'s| (?:is|are|was|were|do|does|did|has))\b|"
    rf"(?:what|when|where|why|which|how) (?:can|could|should|would|will|have|shall|may) {_SUBJECT}|"
    r"(?:what|which|whose|how)(?: (?!(?:i|we|you|they|he|she|it|the|our|my|your|an?|to)\b)[\w-]+){1,3} "
    r"(?:is|are|was|were|do|does|did|has|have|can|could|should|would|will|shall)\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|i think|i guess|i wonder|not sure|not clear|if (?:i|we|you|it)|would you|"
    r"could you|can you|suppose|imagine|for example|e\.g\.)\b",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"\b(?:want|need|like|asking|expect) you to\b|(?:^\W*|\bplease |\bgo ahead and )(?:fix|add|make|write|run|"
    r"rerun|check|look|show|explain|update|create|implement|remove|delete|change|try|continue|tell|give|help|find|"
    r"refactor|rename|rewrite|move|investigate|debug|search|review|summari[sz]e|list|describe|compare|test)\b",
    re.IGNORECASE,
)
# "Review meetings are on Mondays": a word that is a command elsewhere, in the name of something that does or is.
_NAMED = re.compile(
    r"^\W*(?:review|test|list|change|update|search|debug|check|run|move|help)"
    r"(?: (?!(?:that|which|where|when|what|who|how|why|if|whether|so|and|or|as|because|until|our|my|your|the|an?|all|"
    r"it|them|me|us)\b)[\w-]+){1,2} "
    r"(?:is|are|was|were|has|have|runs?|lives?|uses?|go|goes|happens?|starts?|ends?|takes?|needs?)\b",
    re.IGNORECASE,
)
_POINTING = re.compile(r"\b(?:this|these|those|above|below|here)\b", re.IGNORECASE)

_ADVERB = r"(?:(?:really|always|usually|generally|strongly|definitely|much|still|also|just) )*"
_LIKING = r"prefer|love|hate|dislike|can't stand|don't like|do not like|like|enjoy|avoid|never use|never want"
_CHOOSING = (
    r"go with|going with|stick with|settled? on|decided|agreed|chose|switch(?:ed)? to|moved? to|standardi[sz]ed? on"
)
_BEING = r"a|an|allergic|from|based|vegetarian|vegan|left-handed|colou?r-?blind|responsible|on"
#: (kind, confidence, pattern), the first that fits is the one.
_RULES: tuple[tuple[str, float, re.Pattern[str]], ...] = tuple(
    (kind, confidence, re.compile(pattern, re.IGNORECASE))
    for kind, confidence, pattern in (
        ("note", 0.9, r"^\W*(?:please )?(?:remember|note|keep in mind|don't forget|do not forget)(?: that|:|,)\s"),
        ("note", 0.9, r"^\W*(?:for the record|fyi|for future reference|from now on)\b"),
        ("correction", 0.7, r"^\W*(?:no|nope|actually|wrong|not quite|that's (?:wrong|incorrect))[,.:;—-]+ ?\w"),
        ("correction", 0.7, r"\bi meant\b|\bshould (?:be|have been) .+ (?:not|instead of|rather than) "),
        ("decision", 0.7, rf"\b(?:let's|we'll|we will|i'll|we|i)(?: have|'ve)? (?:{_CHOOSING})\b"),
        ("decision", 0.7, r"^\W*(?:let's|we'll|we will) use\b|\bthe decision (?:is|was)\b"),
        ("preference", 0.7, rf"\b(?:i|we) {_ADVERB}(?:{_LIKING})\b"),
        ("preference", 0.7, r"^\W*(?:please )?(?:always|never|don't ever|do not ever)\s+\w+|\bmy favou?rite\b"),
        ("fact", 0.6, rf"\b(?:i am|i'm) (?:{_BEING})\b"),
        ("fact", 0.6, rf"\bi {_ADVERB}(?:work|live|moved|study|studied|use|own|speak|maintain)\b"),
        ("fact", 0.6, r"\b(?:my|our) (?:[\w-]+ ){1,4}(?:is|are|was|lives?|runs?|uses?|has|have|starts?|ends?)\b"),
        ("fact", 0.6, rf"\bwe {_ADVERB}(?:run|deploy|host|use|ship|release|support|target|store|log|test)\b"),
    )
)


@dataclass(slots=True, frozen=True)
class Proposal:
    """Something to remember: the words as they were said, and the rule that found them."""

    kind: str  # one of KINDS
    text: str
    confidence: float
    turn: Turn
    by: str = ""  # who found it, where that were no rules
    answers: str = ""  # all that was said just before, which a correction is about


def proposals(turns: Sequence[Turn], redact: Callable[[str], str]) -> list[Proposal]:
    """Of all that people said, in order; each wording once. `redact` takes the secrets out of a text."""
    found: dict[str, Proposal] = {}
    before = ""
    for turn in turns:
        if turn.speaker == "user":
            for sentence in sentences_outside_secrets(turn.text, redact):
                kind, confidence = classify(sentence)
                if kind and (key := _folded(sentence)) not in found:
                    answers = before if kind == "correction" else ""
                    found[key] = Proposal(kind, sentence, confidence, turn, answers=answers)
        else:
            before = turn.text
    return list(found.values())


def sentences(text: str) -> list[str]:
    """The prose of a message: no code, no quotes, no output, nothing in tags."""
    plain = _without_tagged(_without_fenced(text))
    parts = (_BULLET.sub("", part).strip() for part in _SENTENCE.split(plain) if part and not _NOT_PROSE.match(part))
    return [part for part in parts if _MIN_CHARS <= len(part) <= _MAX_CHARS and not _NOT_PROSE_IN_LIST.match(part)]


def sentences_outside_secrets(text: str, redact: Callable[[str], str]) -> list[str]:
    """Without those that are part of a larger secret: a line of a pasted key, seen alone, looks like none."""
    whole = redact(text)
    if whole == text:
        return sentences(text)
    left = set(sentences(whole))
    return [sentence for sentence in sentences(text) if redact(sentence) in left]


def _without_fenced(text: str) -> str:
    """A fence ends with the next of its kind that is at least as long: one of three may stand within one of four. What
    is never closed goes to the end. Every run is looked at once, since a back reference compares each with all."""
    kept, at, opened = [], 0, ""
    for fence in _FENCE.finditer(text):
        if not opened:
            kept.append(text[at : fence.start()])
            opened = fence[0]
        elif fence[0].startswith(opened):
            at, opened = fence.end(), ""
    return "\n".join([*kept, "" if opened else text[at:]])


def _without_tagged(text: str) -> str:
    """Without what stands between a tag and the next one that closes it. Every closing tag is found once: looking on to
    the end from each opening one takes hours for a page that somebody pasted."""
    ends: dict[str, list[int]] = {}
    for closing in _CLOSING.finditer(text):
        ends.setdefault(closing[1].lower(), []).append(closing.end())
    kept, at = [], 0
    for opening in _OPENING.finditer(text):
        those = ends.get(opening[1].lower(), [])
        which = bisect_right(those, opening.end())
        if opening.start() >= at and which < len(those):
            kept.append(text[at : opening.start()])
            at = those[which]
    return "\n".join([*kept, text[at:]])


def is_question(sentence: str) -> bool:
    """Also one without a mark."""
    sentence = _straight(sentence)
    return any(each.search(sentence) for each in (_QUESTION, _ASKED)) or _is_led_question(sentence)


def _is_led_question(sentence: str) -> bool:
    """Whether it is one behind "remember:", "no," or "hey"."""
    if (lead_in := _LEAD_IN.match(sentence)) is None:
        return False
    led = sentence[lead_in.end() :]
    if _LED_QUESTION.match(led):
        return True
    # "Remember that what is pushed on a Friday breaks on a Monday": a clause, unless somebody is asked.
    return bool(_LED_WH_QUESTION.match(led)) and (lead_in["that"] is None or bool(_INVERTED.search(led)))


def classify(sentence: str) -> tuple[str, float]:
    """Its kind and how sure that is; no kind where it is not to be kept."""
    sentence = _straight(sentence)
    if _QUESTION.search(sentence) or _is_led_question(sentence):
        return "", 0.0
    for kind, confidence, pattern in _RULES:
        if not pattern.search(sentence):
            continue
        if kind == "note":  # they said so themselves
            return kind, confidence
        unfit = any(each.search(sentence) for each in (_ASKED, _UNSURE, _POINTING))
        return ("", 0.0) if unfit or _TASK.search(_NAMED.sub("", sentence)) else (kind, confidence)
    return "", 0.0


def _straight(text: str) -> str:
    return text.replace("’", "'")  # as keyboards of phones and exports of chats write it


def _folded(text: str) -> str:
    """Symbols stay, since C++ is not C#; whatever else says the same is found where it is compared with the known."""
    return " ".join(text.casefold().split()).rstrip(".!")
