"""The encoder in torch: MiniLM's six layers, and in one pass a pooled vector, token vectors and token weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.encoder.examples import FIRST, LAST
from bench.judge.network import KINDS, POSITIONS, WORDS, Layer, published_names
from commonplace.embedders.convert import MINILM

TOKEN_WIDTH = 96


class Encoded(NamedTuple):
    pooled: Tensor  # texts × 384, of length 1
    tokens: Tensor  # texts × tokens × 96, of length 1; zero where there is no token
    present: Tensor  # texts × tokens
    weights: Tensor  # texts × tokens: how much each counts in a question


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        width = MINILM.width
        self.words = nn.Embedding(WORDS, width)
        self.positions = nn.Embedding(POSITIONS, width)
        self.kinds = nn.Embedding(KINDS, width)
        self.first_norm = nn.LayerNorm(width, eps=MINILM.epsilon)
        self.layers = nn.ModuleList(Layer() for _ in range(MINILM.layers))
        self.token_head = nn.Linear(width, TOKEN_WIDTH, bias=False)
        self.weight_head = nn.Linear(width, 1)
        # Where "nothing answers" stands among the similarities; learned, and of use when cut-offs are fitted.
        self.null = nn.Parameter(torch.tensor(0.35))
        self.late_null = nn.Parameter(torch.tensor(0.6))
        nn.init.orthogonal_(self.token_head.weight)
        nn.init.zeros_(self.weight_head.weight)
        nn.init.zeros_(self.weight_head.bias)

    def forward(self, ids: Tensor, present: Tensor) -> Encoded:
        device = ids.device.type
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            places = torch.arange(ids.shape[1], device=ids.device)
            x = self.words(ids) + self.positions(places)[None] + self.kinds.weight[0]
            x = self.first_norm(x)
            penalty = ((1 - present)[:, None, None, :] * -1e9).expand(-1, MINILM.heads, ids.shape[1], -1)
            for layer in self.layers:
                x = layer(x, penalty)
        x = x.float()
        shown = present[:, :, None]
        pooled = functional.normalize((x * shown).sum(1), dim=-1)
        tokens = functional.normalize(self.token_head(x), dim=-1) * shown
        return Encoded(pooled, tokens, present, torch.sigmoid(self.weight_head(x)[:, :, 0]) * present)

    def read(self, texts: Sequence[Sequence[int]], parts: int = 1) -> Encoded:
        """Of token ids without their first and last; in `parts` of like length, because padding costs as text does."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        length = len(texts[order[-1]]) + 2
        size = -(-len(order) // parts)
        read = [self._read([texts[i] for i in order[n : n + size]], length) for n in range(0, len(order), size)]
        back = torch.tensor(np.argsort(order), device=self.null.device)
        return Encoded(*(torch.cat(each)[back] for each in zip(*read, strict=True)))

    def _read(self, texts: Sequence[Sequence[int]], length: int) -> Encoded:
        own = max(map(len, texts)) + 2
        ids = np.zeros((len(texts), own), np.int64)
        present = np.zeros((len(texts), own), np.float32)
        for row, tokens in enumerate(texts):
            ids[row, : len(tokens) + 2] = (FIRST, *tokens, LAST)
            present[row, : len(tokens) + 2] = 1
        device = self.null.device
        read = self(*(torch.from_numpy(each).to(device, non_blocking=True) for each in (ids, present)))
        short = length - own
        tokens = functional.pad(read.tokens, (0, 0, 0, short))
        return Encoded(read.pooled, tokens, *(functional.pad(each, (0, short)) for each in read[2:]))


def late_scores(question: Tensor, weights: Tensor, memory: Tensor, present: Tensor) -> Tensor:
    """Questions × memories: for each token of a question its best match in the memory, averaged by weight."""
    matches = torch.einsum("qld,nkd->qnlk", question, memory)
    best = matches.masked_fill(present[None, :, None, :] == 0, -1).amax(-1)
    return (best * weights[:, None, :]).sum(-1) / weights.sum(-1)[:, None]


def from_published(path: Path, seed: int = 0) -> Encoder:
    """With the weights of all-MiniLM-L6-v2 from a safetensors file; only the heads are new."""
    from safetensors.torch import load_file

    torch.manual_seed(seed)
    model = Encoder()
    given = load_file(str(path))
    model.load_state_dict({o: given[t].float() for o, t in published_names().items()}, strict=False)
    return model


def load(path: Path) -> Encoder:
    """With weights that `train` wrote."""
    from safetensors.torch import load_file

    model = Encoder()
    model.load_state_dict({name: value.float() for name, value in load_file(str(path)).items()})
    return model


def averaged(models: Sequence[Encoder]) -> Encoder:
    """One model with the mean of the weights, of runs that started alike."""
    states = [model.state_dict() for model in models]
    mean = {name: torch.stack([state[name].float() for state in states]).mean(0) for name in states[0]}
    result = Encoder().to(models[0].null.device)
    result.load_state_dict(mean)
    return result.eval()
