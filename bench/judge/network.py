"""The cross-encoder in torch: MiniLM's six layers, the mean of their states, one number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from commonplace.embedders.convert import MINILM

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
    def __init__(self, layers: int = MINILM.layers) -> None:
        super().__init__()
        width = MINILM.width
        self.words = nn.Embedding(WORDS, width)
        self.positions = nn.Embedding(POSITIONS, width)
        self.kinds = nn.Embedding(KINDS, width)
        self.first_norm = nn.LayerNorm(width, eps=MINILM.epsilon)
        self.drop = nn.Dropout(_DROPOUT)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
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


#: Of the encoder's layers, those that a judge of so many starts from.
_STARTS = {6: (0, 1, 2, 3, 4, 5), 3: (1, 3, 5)}


def cross_encoder(path: Path, seed: int = 0) -> CrossEncoder:
    """With the published weights of all-MiniLM-L6-v2; only the verdict starts from chance."""
    published = load_file(str(path))
    return _filled(seed, {ours: published[theirs] for ours, theirs in published_names().items()}, MINILM.layers)


def from_encoder(path: Path, layers: int, seed: int = 0) -> CrossEncoder:
    """With weights that `bench.encoder train` wrote."""
    given = load_file(str(path))
    state = {name: value for name, value in given.items() if name.split(".")[0] in (*_TABLES, "first_norm")}
    for place, layer in enumerate(_STARTS[layers]):
        prefix = f"layers.{layer}."
        state |= {f"layers.{place}.{n.removeprefix(prefix)}": v for n, v in given.items() if n.startswith(prefix)}
    return _filled(seed, state, layers)


def _filled(seed: int, weights: Mapping[str, Tensor], layers: int) -> CrossEncoder:
    torch.manual_seed(seed)
    model = CrossEncoder(layers)
    left = model.load_state_dict({name: value.float() for name, value in weights.items()}, strict=False)
    fresh = {name.split(".")[0] for name in left.missing_keys}
    if left.unexpected_keys or fresh != {"last_norm", "verdict"}:
        raise SystemExit("the weights do not fit the network")
    return model


def load(path: Path) -> CrossEncoder:
    """What `save` wrote."""
    given = load_file(str(path))
    model = CrossEncoder(1 + max(int(name.split(".")[1]) for name in given if name.startswith("layers.")))
    model.load_state_dict({name: value.float() for name, value in given.items()})
    return model.eval()


def save(model: CrossEncoder, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: value.half().cpu().contiguous() for name, value in model.state_dict().items()}, str(path))


def averaged(models: Sequence[CrossEncoder]) -> CrossEncoder:
    """One model with the mean of the weights: runs that started alike and saw the data in other orders."""
    states = [model.state_dict() for model in models]
    mean = {name: torch.stack([state[name].float() for state in states]).mean(0) for name in states[0]}
    result = CrossEncoder(len(models[0].layers)).to(next(models[0].parameters()).device)
    result.load_state_dict(mean)
    return result.eval()
