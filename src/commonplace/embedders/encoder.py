"""The default embedder: our own encoder, from the package. One pass gives a text's vector and those of its tokens."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.embedders import packaged_files
from commonplace.embedders.base import Encoding, Vectors, unit_rows
from commonplace.embedders.function_words import FUNCTION_WORDS, PUNCTUATION
from commonplace.embedders.onnx_encoder import OnnxEmbedder, load_session
from commonplace.embedders.registry import shown_spec
from commonplace.wire.errors import ValidationError

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

NAME, DIMENSION = packaged_files.ENCODER_NAME, packaged_files.ENCODER_DIMENSION
TOKEN_DIMENSION = 96
MAX_TOKENS = 192  # as in training; the rest of a longer text is not seen


# Processors without instructions made for it add up products of 8 bits in 16, where large ones are cut off. These
# cosines tell, at each load, whether that has happened here.
_COSINES_OF = (
    "Alice drinks green tea every morning.",
    "In the mornings Alice likes a cup of green tea.",
    "The deployment failed because the database was out of disk space.",
)
_COSINES = (0.8687, -0.0714, -0.0613)
_TOLERANCE = 0.005

log = logging.getLogger("commonplace.embedders")


class Encoder(OnnxEmbedder):
    token_dimension = TOKEN_DIMENSION
    #: It was trained on turns of chats with their speaker and day before them.
    reads_speakers = True
    #: So that a text has the same vector in any company: equal shapes are computed alike.
    _pad_to = 4

    def __init__(self) -> None:
        super().__init__(NAME, _files, max_tokens=MAX_TOKENS, dimension=DIMENSION)

    @property
    def installed(self) -> bool:
        return packaged_files.ENCODER.path.is_file() and packaged_files.TOKENIZER.path.is_file()

    def problems(self) -> list[str]:
        return packaged_files.problems(packaged_files.ENCODER, packaged_files.TOKENIZER)

    def _checked(
        self, session: onnxruntime.InferenceSession, tokenizer: tokenizers.Tokenizer, model: Path | bytes
    ) -> onnxruntime.InferenceSession:
        ids = [encoding.ids for encoding in tokenizer.encode_batch(list(_COSINES_OF))]
        vectors = np.concatenate([self._run(session, [own], ["embedding"])[0] for own in ids])
        if np.abs((vectors @ vectors.T)[np.triu_indices(len(vectors), 1)] - _COSINES).max() <= _TOLERANCE:
            return session
        # Nothing that whoever types a command could change: a server's log says it.
        log.info("this processor is not exact in int8: the encoder adds up more widely, which takes longer")
        return load_session(model, self.name, threads=1, wide_sums=True)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        if not texts:
            return []
        ids, rows = self._pass(list(texts), ["embedding", "tokens", "weights"])
        vectors = unit_rows([row[0] for row in rows], count=len(rows), source=self.name)
        # Own copies: a view would keep the whole batch alive wherever one of them is cached.
        return [
            Encoding(vector.copy(), tokens[: len(own)].copy(), weights[: len(own), 0].copy(), ~self._dropped[own])
            for vector, own, (_, tokens, weights) in zip(vectors, ids, rows, strict=True)
        ]

    def _encode(self, texts: list[str]) -> list[Vectors]:
        return [row[0] for row in self._pass(texts, ["embedding"])[1]]

    @cached_property
    def _dropped(self) -> NDArray[np.bool_]:
        """By token id. The marks of beginning and end stay, so that every text has something to match: they stand for
        all of it."""
        tokenizer = self._load()[1]
        dropped = np.zeros(tokenizer.get_vocab_size(), np.bool_)
        for token in (*FUNCTION_WORDS, *PUNCTUATION):
            if (found := tokenizer.token_to_id(token)) is not None:
                dropped[found] = True
        return dropped


def _files() -> tuple[Path, bytes]:
    return packaged_files.ENCODER.checked(), packaged_files.TOKENIZER.checked().read_bytes()


def open_embedder(spec: str = "encoder") -> Encoder:
    if spec not in ("encoder", NAME):
        raise ValidationError(f"embedder {shown_spec(spec)!r}: encoder takes no settings")
    return Encoder()
