"""Keyword analysis: what words a text is found by, and how much each of them counts.

A term is the 64-bit hash of a word, so that rows and indexes hold numbers only. The same analysis runs on
memories and on questions; questions then lose the words that carry no meaning.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.stores.stemmer import stem

#: Raise it when the same text would give other terms: indexes made by another version are rebuilt.
ANALYSER = 1

K1 = 1.2
B = 0.75

Hashes = NDArray[np.uint64]
Counts = NDArray[np.uint8]

# Scripts written without spaces: Thai, Lao, Myanmar, Khmer, Hangul, kana, Han.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs and accents are part of a word, but `\w` leaves them out.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711"
    "\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0816-\u082d\u0859-\u085b\u08d3-\u0963\u0981-\u0dff\u0f18-\u0f87"
    "\u135d-\u135f\u1712-\u1734\u18a9\u1920-\u193b\u1a17-\u1a7f\u1ab0-\u1ace\u1b00-\u1bf3\u1c24-\u1c37\u1dc0-\u1dff"
    "\u200c\u200d\u20d0-\u20f0\ua66f-\ua67d\ua802-\ua827\ua880-\ua8c5\ua8e0-\ua8f1\ua926-\ua953\ua980-\uabef"
    "\ufb1e\ufe20-\ufe2f"
)
_EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}|"
    "[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
)
_JOINTS = r"[-./:@'’\\+=&#~?%]{1,3}"
_LETTER = rf"[^\W{_DENSE}](?:[^\W{_DENSE}]|[{_MARKS}])*+"

# A token is a word, or words held together by joints: foo_bar.baz, etc/hosts, LP-2217, a@example.com, c++.
_ASCII_TOKEN = re.compile(rf"\w++(?:{_JOINTS}\w++)*+(?:\+\+|#)?", re.ASCII)
_SPLIT = re.compile(r"[-._/:@'’\\+=&#~?%]+")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_VERSION = re.compile(r"v[0-9]+\.")
_LONG_RUN = re.compile(r"\S{256}")
_RUN = re.compile(r"\S{1,256}")

# What English and French attach with an apostrophe: not a word of its own.
_ELISIONS = frozenset({"s", "t", "ll", "re", "ve", "d", "m", "l", "j", "qu", "c", "n"})

_MAX_WHOLE_CHARS = 256
_MAX_STEM_CHARS = 64
_CACHED_TOKENS = 32_768
_cache: dict[str, tuple[int, ...]] = {}


@functools.cache
def _unicode_token() -> re.Pattern[str]:
    """Compiled when first needed: these sets take ten milliseconds, and most processes never see such text."""
    return re.compile(rf"{_LETTER}(?:{_JOINTS}{_LETTER})*+(?:\+\+|#)?|[{_DENSE}]++|{_EMOJI}")


@functools.cache
def _dense_run() -> re.Pattern[str]:
    return re.compile(rf"[{_DENSE}]")


def terms(text: str) -> bytes:
    """A memory's terms: hashes, ascending (little-endian uint64), then how often each occurs (uint8)."""
    found = [term for token in _tokens(text) for term in _cache.get(token) or _token_terms(token)]
    hashes = sorted(set(found))
    packed = struct.pack(f"<{len(hashes)}Q", *hashes)
    if len(hashes) == len(found):
        return packed + b"\x01" * len(hashes)
    counts = Counter(found)
    return packed + bytes([min(counts[term], 255) for term in hashes])


def distinct_terms(text: str) -> set[int]:
    """The terms that `terms` would pack, for whoever only asks which there are."""
    found: set[int] = set()
    for token in _tokens(text):
        found.update(_cache.get(token) or _token_terms(token))
    return found


def query_terms(text: str) -> list[int]:
    """The distinct terms of a question, in its order, without stop-words unless it has nothing else."""
    words = list(dict.fromkeys(word for token in _tokens(text) for word in _words(token)))
    telling = [word for word in words if word not in STOPWORDS] or words
    return list(dict.fromkeys(_term(word) for word in telling))


def decode(blob: bytes) -> tuple[Hashes, Counts]:
    n = len(blob) // 9
    return np.frombuffer(blob, "<u8", n), np.frombuffer(blob, np.uint8, n, n * 8)


def decode_all(blobs: Sequence[bytes]) -> tuple[Hashes, Counts, list[int]]:
    """The hashes and counts of many memories, one after the other, and how many each memory has."""
    sizes = [len(blob) // 9 for blob in blobs]
    sized = list(zip(blobs, sizes, strict=True))
    hashes = np.frombuffer(b"".join([blob[: n * 8] for blob, n in sized]), "<u8")
    return hashes, np.frombuffer(b"".join([blob[n * 8 : n * 9] for blob, n in sized]), np.uint8), sizes


def matched_terms(blob: bytes, wanted: Sequence[bytes]) -> int:
    """Which of the wanted terms (`packed_terms`) a memory has, one bit each; searching the bytes makes it cheap."""
    end = len(blob) // 9 * 8
    bits = 0
    for i, term in enumerate(wanted):
        at = blob.find(term, 0, end)
        while at % 8 and at > 0:  # in between two hashes, by chance
            at = blob.find(term, at + 1, end)
        if at >= 0:
            bits |= 1 << i
    return bits


def packed_terms(terms: Sequence[int]) -> list[bytes]:
    """A question's terms as `matched_terms` looks for them."""
    return [term.to_bytes(8, "little") for term in terms]


def _tokens(text: str) -> list[str]:
    if text.isascii():
        pattern = _ASCII_TOKEN
    else:
        pattern = _unicode_token()
        text = _normalised(text)
    if "," in text:
        text = _THOUSANDS.sub("", text)
    return pattern.findall(text)


def _normalised(text: str) -> str:
    """NFKC, by pieces where there are no spaces: ordering one endless run of accents is quadratic."""
    if _LONG_RUN.search(text):
        return _RUN.sub(lambda run: unicodedata.normalize("NFKC", run.group()), text)
    return unicodedata.normalize("NFKC", text)


def _token_terms(token: str) -> tuple[int, ...]:
    found = tuple(_term(word) for word in _words(token))
    if len(token) <= _MAX_STEM_CHARS:
        if len(_cache) >= _CACHED_TOKENS:
            _cache.clear()
        _cache[token] = found
    return found


def _words(token: str) -> list[str]:
    """What a token is found by: itself, and its parts where it has any."""
    if not token[0].isascii() and _dense_run().match(token):
        return [*token, *map("".join, itertools.pairwise(token))]
    if token.isalpha() and (token.islower() or token.istitle() or token.isupper()):
        return [_folded(token)]
    parts = [part for part in _SPLIT.split(token) if part]
    if len(parts) > 1 and ("'" in token or "’" in token):
        parts = [part for part in parts if part.casefold() not in _ELISIONS] or parts
        if len(parts) == 1:
            return _part_words(parts[0])
    whole = _folded(token).strip("_")
    if len(parts) <= 1:
        inner = _part_words(parts[0]) if parts else []
        return inner if whole in inner or not whole else [whole, *inner]
    words = [word for part in parts for word in _part_words(part)]
    if len(whole) <= _MAX_WHOLE_CHARS:
        words.append(whole)
        if _VERSION.match(whole):
            words.append(whole[1:])
        if "-" in whole and whole.replace("-", "").isalpha():
            words.append(whole.replace("-", ""))
    return words


def _part_words(part: str) -> list[str]:
    """fooBar, E1234 and HTTPServer as they are and in pieces; a lone letter is no piece."""
    words = [_folded(part)]
    if not part.isalpha() or not (part.islower() or part.istitle() or part.isupper()):
        pieces = _PIECE.findall(part)
        if len(pieces) > 1:
            words += [_folded(piece) for piece in pieces if len(piece) > 1 or piece.isdigit()]
    return words


def _folded(word: str) -> str:
    """Without case, and without accents where what remains is plain Latin."""
    word = word.casefold()
    if word.isascii() or len(word) > _MAX_WHOLE_CHARS:  # see `_normalised`
        return word
    bare = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    return bare if bare.isascii() else word


@functools.lru_cache(8192)  # the words of questions, which are stemmed on every recall
def _term(word: str) -> int:
    if word.isascii() and word.isalpha() and 2 < len(word) <= _MAX_STEM_CHARS:
        word = stem(word)
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


# How much a posting counts, in one byte: three bits for how often the word occurs and five for how long the
# memory is. What it weighs follows from the scope's live statistics alone, never from where it is stored.
_TF_BUCKET = np.zeros(256, np.uint8)
_TF_BUCKET[[2, 3, 4, 5, 7, 10, 16]] = 1
_TF_BUCKET = np.cumsum(_TF_BUCKET, dtype=np.uint8)
_TF_VALUE = np.array([1, 2, 3, 4, 5.5, 8, 12, 20])
_LENGTH_BOUNDS = np.sqrt(2.0) ** (np.arange(31) + 0.5)
_LENGTH_VALUE = np.sqrt(2.0) ** np.arange(32)


def code(tf: Counts, length: NDArray[Any] | int) -> NDArray[np.uint8]:
    """One byte per posting; `length` is one for all or one for each."""
    bucket = np.searchsorted(_LENGTH_BOUNDS, length).astype(np.uint8)
    return (_TF_BUCKET[tf] << np.uint8(5)) | bucket


def impact_table(average_length: float) -> NDArray[np.float32]:
    """What each code adds to a BM25 score, before the word's rarity."""
    tf = np.repeat(_TF_VALUE, 32)
    norm = 1 - B + B * np.tile(_LENGTH_VALUE, 8) / max(average_length, 1.0)
    return (tf * (K1 + 1) / (tf + K1 * norm)).astype(np.float32)


def idf(documents: int, containing: int) -> float:
    return math.log1p(max(documents - containing + 0.5, 0.5) / (containing + 0.5))


# Words that questions are made of and answers are not found by, folded as above.
_ENGLISH = """
a about again all also am an and any are aren as at be because been before being between both but by can
cannot could couldn did didn do does doesn doing don during each for from further get had hadn has hasn have
haven having he her here hers herself him himself his how i if in into is isn it its itself just let me more
most my myself no nor not of off on once only or other our ours ourselves out over own please same shall she
should shouldn so some such than that the their theirs them themselves then there these they this those
through to too under until up us very was wasn we were weren what when where which while who whom whose why
will with won would wouldn you your yours yourself yourselves tell know say said ever
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis das dass dem den der des die doch du ein eine einem einen einer
eines er es fur hat haben hatte ich ihr im in ist ja kann mein mich mir mit nach nicht noch nur oder sein
sich sie sind und uns vom von vor wann war waren warum was welche welcher welches wenn wer wie wir wird wo
zu zum zur
"""
_FRENCH = """
au aux avec ce ces cette comme comment dans de des du elle en est et etait il ils je la le les leur lui ma
mais me mes moi mon ne nous on ont ou par pas pour pourquoi qu quand que quel quelle quelles quels qui quoi
sa se ses son sont sur ta te tu un une vous
"""
_SPANISH = """
al como con cual cuales cuando de del donde el ella ellos en era es esa ese esta este ha han hay la las le
lo los mas mi mis muy no o para pero por porque que quien quienes se ser si sin sobre son su sus tiene un
una uno y ya yo
"""

STOPWORDS = frozenset(f"{_ENGLISH} {_GERMAN} {_FRENCH} {_SPANISH}".split())
