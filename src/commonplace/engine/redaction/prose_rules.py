"""Whether words in quotes behind "the password is" are the password or say something about it; and phrases of words."""

from __future__ import annotations

import re

from commonplace.engine.redaction.rule import is_placeholder, is_quoted_password, is_term

#: What is said of passwords: none of these is one, and a phrase that ends in one describes.
_STATES = frozenset(
    (
        "required", "optional", "correct", "incorrect", "wrong", "right", "valid", "invalid", "missing", "empty",
        "blank", "weak", "strong", "short", "long", "secret", "unknown", "known", "unset", "good", "fine", "okay",
        "same", "different", "lost", "forgotten", "stolen", "broken", "hidden", "shown", "plain", "cleartext",
        "plaintext", "obsolete", "old", "default", "random", "unique", "safe", "unsafe", "secure", "insecure",
        "strict", "sensitive", "mandatory", "numeric", "alphanumeric", "temporary", "permanent", "common", "simple",
        "easy", "obvious", "null", "none", "string", "text", "true", "false", "enough", "only", "again", "here",
        "there", "below", "above", "later", "soon", "characters", "words", "digits", "hash", "field", "yours", "mine",
        "open", "active", "inactive", "ready", "erforderlich", "falsch", "richtig", "ungültig", "gültig", "leer",
        "schwach", "kurz", "lang", "abgelaufen", "geheim", "vergessen", "obligatoire", "invalide", "vide", "faible",
        "court", "requis", "oublié", "expiré", "obligatoria", "requerida", "incorrecta", "inválida", "vacía", "corta",
        "débil", "caducada", "obbligatoria", "errata", "scaduta", "vuota",
    )
)  # fmt: skip
#: Words that a sentence has and a phrase drawn by lot has not.
_SENTENCE = frozenset(
    (
        "too", "not", "no", "never", "always", "must", "should", "shall", "can", "cannot", "may", "will", "would", "is",
        "are", "was", "were", "be", "been", "being", "has", "have", "had", "does", "do", "very", "than", "at", "least",
        "most", "your", "their", "our", "its", "this", "that", "these", "those", "which", "password", "passwords",
        "passphrase", "case", "zu", "nicht", "sehr", "trop", "pas", "très", "demasiado", "muy", "troppo", "non",
    )
)  # fmt: skip
_SAYS_A_STATE = re.compile(r"(?i)[a-z]{2,}(?:ed|less|able|ible|ful)\Z")
_CODE_BETWEEN_QUOTES = "+,.&;:|=)(}]{[/\\%"
_MAX_WORDS = 24
#: Ordinary words that no list of seed words holds; a sentence of a dozen words has one.
_NO_SEED_WORDS = frozenset(
    (
        "the", "and", "for", "with", "from", "your", "are", "was", "were", "has", "had", "not", "but", "its", "their",
        "them", "she", "his", "her", "our", "who", "which", "should", "would", "could", "may", "does", "did", "been",
        "being", "than", "some", "these", "those", "words", "per", "via",
    )
)  # fmt: skip
_SEED_WORD = rf"(?!(?:{'|'.join(sorted(_NO_SEED_WORDS))})\b)[a-z]{{3,8}}(?![A-Za-z0-9_-])"
_NEXT = r"(?:[ \t]{1,4}|[ \t]{0,4},[ \t]{0,4}|[ \t]{0,4}\r?\n[ \t]{0,8})(?:[0-9]{1,2}[.):]?[ \t]{1,4})?"
#: A dozen words, or three, six, nine or twelve more; numbered perhaps.
SEED_WORDS = (
    rf"(?:1[.):]?[ \t]{{1,4}})?{_SEED_WORD}(?:{_NEXT}{_SEED_WORD}){{11}}(?:(?:{_NEXT}{_SEED_WORD}){{3}}){{0,4}}"
)


def is_said_password(value: str) -> bool:
    """In quotes, in a sentence: one word or several, unless they say what the password is like."""
    words = value.split()
    if not words or value != value.strip() or is_placeholder(value):
        return False
    if value[0] in _CODE_BETWEEN_QUOTES and value[-1] in _CODE_BETWEEN_QUOTES:
        return False  # "the password is " + word + " and", read from the wrong quote on
    if len(words) == 1:
        return _is_said_word(value)
    spoken = [word.strip(".,;:!?").lower() for word in words]
    if len(value) < 8 or len(words) > _MAX_WORDS or not all(any(map(str.isalnum, word)) for word in words):
        return False
    return not (_SENTENCE.intersection(spoken) or _states(spoken[-1]) or _is_code(value))


def _is_said_word(value: str) -> bool:
    word = value.rstrip(".,;:!?")
    if not word.isalpha():
        return is_quoted_password(value) and not (value[0] in "/.-" or "://" in value or is_term(value))
    return len(word) >= 4 and not is_placeholder(word) and not _states(word.lower()) and word.lower() not in _SENTENCE


def _states(word: str) -> bool:
    return word in _STATES or _SAYS_A_STATE.match(word) is not None


def _is_code(value: str) -> bool:
    return any(c in value for c in "(){}[]<>=|\\$%/")


def is_seed_phrase(value: str) -> bool:
    """Words drawn by lot hardly ever come twice: what does is counting, or made to show how it looks."""
    words = re.findall(r"[a-z]+", value)
    return len(set(words)) >= 0.75 * len(words)
