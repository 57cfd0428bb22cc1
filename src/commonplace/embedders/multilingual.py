"""The optional embedder for many languages: Google's universal-sentence-encoder-multilingual, version 3, in int8.

A small convolutional network: the vectors of a text's pieces, read in windows of 2, 3 and 5, summed up and sent through
four layers. The table of pieces is nine tenths of the published file; it stays on the disk but for the rows in use.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.embedders import multilingual_files, onnx_reader, onnx_writer as onnx
from commonplace.embedders.base import BaseEmbedder, Vectors
from commonplace.embedders.convert import Graph
from commonplace.embedders.onnx_encoder import CHARACTERS_PER_TOKEN, load_session, readable, return_freed_memory
from commonplace.embedders.registry import shown_spec
from commonplace.embedders.unigram import UnigramTokenizer
from commonplace.wire.errors import Unavailable, ValidationError

NAME, _DIMENSION = multilingual_files.NAME, multilingual_files.DIMENSION
_PARTITIONS = 17  # the table of pieces lies in so many, piece by piece in turn
_WINDOWS = (2, 3, 5)
_EPSILON = 1e-12
_TO_THE_END = np.iinfo(np.int64).max
_ENCODER = "StatefulPartitionedCall/EncoderDNN/"


class MultilingualEmbedder(BaseEmbedder):
    """One text at a time, so that a text has the same vector whatever it is embedded with."""

    name = NAME
    _declared = _DIMENSION

    def __init__(self, file: Callable[[], Path] = multilingual_files.checked) -> None:
        self._file = file
        self._loaded: tuple[UnigramTokenizer, _Network] | None = None
        self._loading = threading.Lock()

    def unload(self) -> None:
        self._loaded = None
        return_freed_memory()

    def _encode(self, texts: list[str]) -> list[Vectors]:
        tokenizer, network = self._load()
        limit = multilingual_files.MAX_TOKENS
        return [network(tokenizer.encode(readable(text, limit * CHARACTERS_PER_TOKEN), limit)) for text in texts]

    def _load(self) -> tuple[UnigramTokenizer, _Network]:
        with self._loading:  # or two threads would have a model each
            if self._loaded is None:
                path = self._file()
                try:
                    mapped = _mapped(path)
                    pieces = onnx_reader.attribute(mapped, "SentencepieceTokenizer", "model")
                    self._loaded = UnigramTokenizer(memoryview(pieces)), _Network(onnx_reader.tensors(mapped))
                except (ValueError, KeyError, IndexError, StopIteration) as error:
                    raise Unavailable(f"the multilingual model cannot be read: {error}") from error
                return_freed_memory()
            return self._loaded


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class _Network:
    """From pieces to a vector: the graph is written anew from the published numbers, in plain float arithmetic."""

    def __init__(self, tensors: dict[str, NDArray[Any]]) -> None:
        parts = [f"Func/StatefulPartitionedCall/input/_{part + 1}:0" for part in range(_PARTITIONS)]
        self._tables = [tensors[f"{part}_quantized"] for part in parts]
        self._scales = np.array([tensors[f"{part}_scale"] for part in parts], np.float32)
        self._zeros = np.array([tensors[f"{part}_zero_point"] for part in parts], np.float32)
        self._session = load_session(_graph(tensors), "the multilingual model", threads=1)

    def __call__(self, ids: list[int]) -> Vectors:
        row, part = np.divmod(np.array(ids), _PARTITIONS)
        raw = np.stack([self._tables[p][r] for p, r in zip(part.tolist(), row.tolist(), strict=True)])
        pieces = (raw.astype(np.float32) - self._zeros[part, None]) * self._scales[part, None]
        vector: Vectors = self._session.run(None, {"pieces": pieces, "length": np.array([len(ids)], np.float32)})[0][0]
        return vector


def _graph(tensors: dict[str, NDArray[Any]]) -> bytes:
    g = Graph()

    def constant(name: str) -> str:
        return g.constant(name, tensors[_ENCODER + name])

    def multiply(x: str, name: str) -> str:
        whole, zero, scale = (tensors[f"{_ENCODER}{name}_{of}"] for of in ("quantized", "zero_point", "scale"))
        return g.apply("MatMul", x, g.constant(name, (whole.astype(np.float32) - np.float32(zero)) * scale))

    def normalise(x: str, name: str) -> str:
        gain, bias = constant(f"{name}/gamma:0"), constant(f"{name}/beta:0")
        return g.apply("LayerNormalization", x, gain, bias, axis=-1, epsilon=_EPSILON)

    def dense(x: str, name: str) -> str:
        return g.apply("Add", multiply(x, f"{name}/kernel:0"), constant(f"{name}/bias:0"))

    def windows(x: str, size: int) -> str:
        # Each row beside its neighbours, zeros beyond the ends; of an even window the larger half comes after.
        before = (size - 1) // 2
        padded = g.apply("Pad", x, g.integers(before, 0, size - 1 - before, 0))
        ends = [*range(1 - size, 0), _TO_THE_END]
        rows = [
            g.apply("Slice", padded, g.integers(i), g.integers(end), g.constant("rows", np.array([0], np.int64)))
            for i, end in enumerate(ends)
        ]
        return g.apply("Concat", *rows, axis=1)

    read = ["pieces"]
    for size in _WINDOWS:
        name = f"CNN_layers/ngram_order_{size}"
        x = normalise(dense("pieces", f"{name}/input_size_projection/dense"), f"{name}/LayerNorm")
        for layer in (f"{name}/Ngram-{size}-Conv", f"{name}/Ngram-{size}-Conv_1"):
            convolved = g.apply("Add", multiply(windows(x, size), f"{layer}/weights:0"), constant(f"{layer}/bias:0"))
            x = g.apply("Add", g.apply("Relu", convolved), x)
        read.append(x)
    each = dense(normalise(g.apply("Concat", *read, axis=1), "CNN_layers/LayerNorm"), "CNN_layers/dense")
    x = g.apply("Div", g.apply("ReduceSum", each, g.integers(0), keepdims=1), g.apply("Sqrt", "length"))
    for first, second, squash in ((0, 1, "Relu"), (2, 3, "Tanh")):
        hidden = g.apply("Relu", multiply(x, f"DNN/ResidualHidden_{first}/dense/kernel:0"))
        skipped = multiply(x, f"DNN/ResidualHidden_{second}/AdjustDepth/projection/kernel:0")
        added = g.apply("Add", multiply(hidden, f"DNN/ResidualHidden_{second}/dense/kernel:0"), skipped)
        x = g.apply(squash, added, out="vector" if second == 3 else "")
    return onnx.model(
        "multilingual-sentence-embedding",
        nodes=g.nodes,
        tensors=g.tensors.values(),
        inputs=[onnx.value("pieces", onnx.FLOAT, ["pieces", _DIMENSION]), onnx.value("length", onnx.FLOAT, [1])],
        outputs=[onnx.value("vector", onnx.FLOAT, [1, _DIMENSION])],
    )


def open_embedder(spec: str = "multilingual") -> MultilingualEmbedder:
    if spec not in ("multilingual", NAME):
        raise ValidationError(f"embedder {shown_spec(spec)!r}: multilingual takes no settings")
    return MultilingualEmbedder()
