"""A rule: how one family of secrets is told, and the literals without which it cannot occur."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256

#: Characters that credentials are written in; a run of this many must be there before token rules are tried at all.
TOKEN_CHARS = r"A-Za-z0-9_+/=.~$:-"
TOKEN_RUN = 16

#: A value that stands where a secret would: shown in documentation, filled in later, or code that fetches it.
_PLACEHOLDERS = frozenset(
    (
        "password", "passwd", "pass", "pwd", "pw", "secret", "token", "apikey", "api_key", "api-key", "key", "username",
        "user", "none", "null", "nil", "undefined", "true", "false", "string", "str", "text", "number", "hidden",
        "required", "optional", "changeme", "change_me", "change-me", "redacted", "masked", "removed", "empty",
        "placeholder", "dummy", "example", "todo", "tbd", "unset", "unknown", "default", "prompt", "bearer", "basic",
        "value", "foobar",
    )
)  # fmt: skip
_PLACEHOLDER = re.compile(
    r"(?i)your[_ -]|placeholder|(?-i:xxxx|XXXX)|\*\*\*|\.\.\.|…|redacted|[_-]here\b|insert[_-]|replace[_-]?(?:me|with)"
)
_NAMES_IT = re.compile(  # api_key does, monkey does not
    r"(?i)[a-z_-]*(?:password|passwd|secret|token|(?<!mon|don|tur|hoc|joc|mic|lac|smo)(?<!whis)key|(?<!com)pass|user|"
    r"credential)s?[a-z_-]*\Z|[x*.•_-]+\Z|%[sd]\Z"
)
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_MAX_PLACEHOLDER_CHARS = 200
_MANY_DIFFERENT = 30  # characters; what is filled in for show repeats its own
_AFTER_A_WORD = ".,;:)]}。，"
_RUNS_ON = ("word", "random")
_REFERENCE = re.compile(r"[<{\[(]|\\?\$[A-Za-z_{(]|%(?:[A-Za-z_]+%|\(|[sd]\Z)|!vault|&[a-z]+;")
_ENOUGH = 100  # characters of a value that tell what it is; looking at all of a long one, many times, would take long
_FILLED_IN = re.compile(r"\$\{|\$\(|\{\{|%\(")
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_WORDY = re.compile(r"[A-Za-z]{0,15}+\d{0,5}+(?:[._/:-]++[A-Za-z]{0,15}+\d{0,5}+)*+\Z")
_BLANK = re.compile(r"\s")
_DIGIT, _LETTER, _SPECIAL = re.compile(r"\d"), re.compile(r"[^\W\d_]"), re.compile(r"[!@#$%^&*+=?~]")
_CALL = re.compile(r"[A-Za-z_.]+[(\[]")
_DATE_OR_NUMBER = re.compile(r"[\d.,:/+~–-]+[A-Za-z%]{0,2}\Z")
_TECHNICAL = re.compile(
    r"(?i)(?:sha|md|aes|rsa|utf|base|argon|pbkdf|bcrypt|scrypt|oauth|http|tls|ssl|ipv|2fa|mfa|otp|iso|rfc|v)[-_]?\d+(?![A-Za-z0-9])"
    r"|\d{1,4}[-–]?\d{0,4}[-–+]?(?:character|char|digit|day|hour|minute|month|year|bit|byte|word|time|factor|fa)|[a-z]+-encoded"
)


@dataclass(frozen=True, eq=False)
class Rule:
    """`pattern` has no nested quantifier, and what it repeats without bound it takes possessively: time is linear.

    A rule with a `lead` is tried only behind it: the lead is looked for in the text in lower case, the pattern starts
    where it ends. The named group is the secret; without one all of the match is.
    """

    label: str
    triggers: tuple[str, ...]  # at least one of them is in any text that the rule can match
    pattern: str
    accepts: Callable[[str], bool] | None = None
    lead: str = ""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        # When first needed: a hundred patterns compiled at every start would be felt.
        return re.compile(self.pattern)

    def spans(self, text: str, leads: LeadIndex) -> Iterator[tuple[int, int]]:
        accepts = self.accepts
        if not self.lead:
            for match in self.compiled.finditer(text):
                group = match.lastgroup or 0
                if accepts is None or accepts(match[group]):
                    yield match.span(group)
            return
        done = 0
        for end in leads.ends(self.lead):
            behind = self.compiled.match(text, end) if end >= done else None
            if behind is not None:
                group = behind.lastgroup or 0
                if accepts is None or accepts(behind[group]):
                    start, done = behind.span(group)
                    while group in _RUNS_ON and text[done - 1] in _AFTER_A_WORD:  # the sentence's, not the secret's
                        done -= 1
                    yield start, done


class LeadIndex:
    """Where the leads of a text end, each looked for once however many rules share it."""

    def __init__(self, lowered: str) -> None:
        self._lowered = lowered
        self._ends: dict[str, list[int]] = {}

    def ends(self, lead: str) -> list[int]:
        if lead not in self._ends:
            self._ends[lead] = [match.end() for match in _compiled(lead).finditer(self._lowered)]
        return self._ends[lead]


@cache
def _compiled(lead: str) -> re.Pattern[str]:
    return re.compile(lead)


def lower(text: str) -> str:
    """In lower case, every character where it was."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    return lowered


def is_placeholder(value: str) -> bool:
    """Whether it is a placeholder or a name rather than a value."""
    bare = value.strip("\"'`<>[](){}.,;:!?$%# ")
    if not bare or bare.lower() in _PLACEHOLDERS:
        return True
    return len(value) <= _MAX_PLACEHOLDER_CHARS and bool(_PLACEHOLDER.search(value) or _NAMES_IT.match(bare))


def is_token(value: str) -> bool:
    """For forms with a prefix of their own: anything but a placeholder."""
    if len(value) > _MAX_PLACEHOLDER_CHARS or len(set(value)) >= _MANY_DIFFERENT:
        return True  # "xxxx" is in one of many that are drawn by lot, too
    return not _PLACEHOLDER.search(value)


def is_mixed_token(value: str) -> bool:
    """For forms whose prefix is also an ordinary word: it must look drawn by lot, not spelled."""
    return is_token(value) and not is_wordy(value)


def is_wordy(value: str) -> bool:
    return _WORDY.match(value) is not None


def is_random(value: str) -> bool:
    """Letters and digits, many different, and not words joined together: nobody spelled this."""
    value = value[:_ENOUGH]
    if len(value) < 8 or is_placeholder(value) or _REFERENCE.match(value) or _FILLED_IN.search(value):
        return False
    if _WORDY.match(value) or _is_camel(value):
        return False
    if len(set(value)) < min(8, len(value) * 2 // 3) or not _LETTER.search(value):
        return False
    # Without a digit capitals tell: camelCase has fewer of them.
    return _DIGIT.search(value) is not None or 0.3 < sum(map(str.isupper, value)) / len(value) < 0.7


def is_password(value: str) -> bool:
    """Unquoted, after a word that announces a password: what ordinary words, numbers, dates and code are not."""
    value = value.rstrip(".,;:!?…\"'”’。")
    if len(value) < 6 or _BLANK.search(value) or is_placeholder(value) or _REFERENCE.match(value) or "://" in value:
        return False
    if is_term(value) or "passw" in value.lower():
        return False
    if _DATE_OR_NUMBER.match(value):
        return value.isdigit()
    if _DIGIT.search(value) and _LETTER.search(value):
        return True
    return _SPECIAL.search(value, 0, len(value) - 1) is not None or value.count("-") >= 3


def is_term(value: str) -> bool:
    """A name of code or of the trade: f(x), config.db, SHA-256."""
    return bool(_TECHNICAL.match(value) or _CALL.match(value) or _dotted(value))


def is_quoted_password(value: str) -> bool:
    """In quotes even a plain word is meant; a capitalised one is a label of a form."""
    if len(value) < 4 or _BLANK.search(value) or is_placeholder(value) or _REFERENCE.match(value):
        return False
    if _FILLED_IN.search(value):
        return False
    return not (value.isalpha() and (value[:1].isupper() or not value.isascii() or len(value) < 6)) and "(" not in value


def is_assigned(value: str) -> bool:
    """After NAME_PASSWORD= on a line of settings: whatever it is, unless it stands for something else."""
    return len(value) >= 4 and not is_placeholder(value) and not _REFERENCE.match(value)


def is_passphrase(value: str) -> bool:
    return len(value.split()) >= 3 and len(value) >= 12 and not is_placeholder(value) and value == value.lower()


def is_url_password(value: str) -> bool:
    return not is_placeholder(value) and not _REFERENCE.match(value)


def is_base58_key(value: str) -> bool:
    """A Bitcoin key, in the form for wallets or for imports: the last four bytes are the check sum of the rest."""
    number = 0
    for c in value:
        number = number * 58 + _BASE58.index(c)
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return len(raw) in (37, 38, 82) and raw[-4:] == sha256(sha256(raw[:-4]).digest()).digest()[:4]


def is_bech32(value: str) -> bool:
    """BIP 173: the check sum over prefix and data comes to one."""
    prefix, _, data = value.rpartition("1")
    values = [*(ord(c) >> 5 for c in prefix), 0, *(ord(c) & 31 for c in prefix), *map(_BECH32.index, data)]
    checked = 1
    for each in values:
        top = checked >> 25
        checked = (checked & 0x1FFFFFF) << 5 ^ each
        for i, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            checked ^= generator if top >> i & 1 else 0
    return checked == 1


def is_basic_login(value: str) -> bool:
    """Base64 of user:password, as registries keep it."""
    try:
        login = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode("utf-8")
    except ValueError:  # not base64, not ASCII, or not text once it is decoded
        return False
    user, colon, password = login.partition(":")
    return bool(user and colon) and login.isprintable() and is_assigned(password)


def _is_camel(value: str) -> bool:
    """A name in code: PKCS7PrivateKeyTypes, not q7W2xB9."""
    if not value.isalnum() or not value.isascii():
        return False
    pieces = _PIECES.findall(value)
    if sum(map(str.isdigit, value)) > 2:
        return False
    return sum(len(piece) >= 3 for piece in pieces) >= 0.75 * len(pieces)


def _dotted(value: str) -> bool:
    """self.password, config.db1.secret: a path through code."""
    steps = value.split(".")
    return len(steps) > 1 and all(step.isidentifier() and not step[-1:].isdigit() for step in steps)
