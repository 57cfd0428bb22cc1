"""Splits text as a SentencePiece model of the unigram kind does: the likeliest pieces, word by word.

The `tokenizers` package only normalises here, by the table in the model: its tree of 128,000 pieces took 130 MB of
memory, a dictionary of them takes 20.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable

from commonplace.embedders.onnx_reader import fields

_SPACE = "\u2581"  # what stands for a space, at the beginning of each word
_NORMAL = 1  # the type of a piece that text may be split into
_UNKNOWN_PENALTY = 10.0  # as in SentencePiece: an unknown character costs this beyond the rarest piece
_REMEMBERED_WORDS = 8192


class UnigramTokenizer:
    """`model` is what SentencePiece writes: pieces with their scores, and the table by which text is normalised."""

    unknown, begin, end = 0, 1, 2

    def __init__(self, model: memoryview, normalise: Callable[[str], str] | None = None) -> None:
        self._scores: list[float] = []
        self._ids: dict[str, int] = {}
        charsmap = b""
        for number, value in fields(model):
            if number == 1 and isinstance(value, memoryview):
                self._add(value)
            elif number == 3 and isinstance(value, memoryview):
                charsmap = next((bytes(v) for n, v in fields(value) if n == 2 and isinstance(v, memoryview)), b"")
        self._longest = max(map(len, self._ids))
        self._unknown_score = min(self._scores) - _UNKNOWN_PENALTY
        self._normalise = normalise or _normaliser(charsmap)
        self._word = functools.lru_cache(_REMEMBERED_WORDS)(self._split)

    def encode(self, text: str, limit: int) -> list[int]:
        """At most `limit` ids, the marks of beginning and end among them."""
        found = [self.begin]
        # Every piece begins a word or stands inside one, so words can be split by themselves.
        for word in self._normalise(text).split(" "):
            if word and len(found) < limit:
                found += self._word(_SPACE + word)
        return [*found[: limit - 1], self.end]

    def _add(self, piece: memoryview) -> None:
        text, score, type_ = "", 0.0, _NORMAL
        for number, value in fields(piece):
            if isinstance(value, int):
                type_ = value if number == 3 else type_
            elif number == 1:
                text = bytes(value).decode()
            elif number == 2:
                (score,) = struct.unpack("<f", value)
        if type_ == _NORMAL:
            self._ids[text] = len(self._scores)
        self._scores.append(score)

    def _split(self, word: str) -> tuple[int, ...]:
        """The pieces whose scores add up to most; neighbouring characters that are in none are one unknown."""
        size, ids, scores = len(word), self._ids, self._scores
        best = [0.0] + [float("-inf")] * size
        chosen = [(0, self.unknown)] * (size + 1)  # where the best piece that ends here began, and which it is
        for start in range(size):
            so_far = best[start]
            for end in range(start + 1, min(start + self._longest, size) + 1):
                id = ids.get(word[start:end])
                score = so_far + scores[id] if id is not None else so_far + self._unknown_score
                if id is None and end > start + 1:
                    continue
                if score > best[end]:
                    best[end], chosen[end] = score, (start, self.unknown if id is None else id)
        pieces: list[int] = []
        at = size
        while at:
            at, id = chosen[at]
            if id != self.unknown or pieces[-1:] != [self.unknown]:
                pieces.append(id)
        return tuple(reversed(pieces))


def _normaliser(charsmap: bytes) -> Callable[[str], str]:
    from tokenizers.normalizers import Precompiled

    normalise: Callable[[str], str] = Precompiled(charsmap).normalize_str
    return normalise
