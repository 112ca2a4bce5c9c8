"""Small random models and a tokenizer of letters, for tests of the engine."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from starr.decode.strategies.calibrated.features import NAMES
from starr.decode.strategies.calibrated.rule import FittedRule
from starr.decode.strategies.learn2pd.filter import BlockFilter
from starr.model.load import Model
from starr.model.network.shape import Routing, Shape
from starr.model.network.transformer import Transformer
from starr.model.spec import Habits, ModelSpec

MASK, EOS, BOS = 1, 2, 0


class Letters:
    """One token a character; enough of a Tokenizer for the engine."""

    has_chat = False
    digest = "letters"
    special_ids = frozenset({MASK, EOS, BOS})

    def bytes_of(self, token: int) -> bytes:
        return self.decode([token]).encode()

    def encode(self, text: str) -> list[int]:
        return [3 + ord(c) % 90 for c in text]

    def decode(self, ids, skip_special: bool = True) -> str:
        return "".join(chr(33 + (i - 3) % 90) for i in ids if i > EOS)

    def piece(self, token: int) -> str:
        return self.decode([token])


def tiny_model(
    *,
    shift: bool = False,
    seed: int = 0,
    sharpness: float = 3.0,
    vocab: int = 96,
    length: int = 256,
    block: int | None = None,
    window: int | None = None,
    routing: Routing | None = None,
) -> Model:
    """Random weights; ``sharpness`` scales the head so that confidences spread over (0, 1).

    With ``block`` its attention is block-causal, decided in windows of ``window``; with ``routing`` it has experts.
    """
    shape = Shape(
        vocab_size=vocab, width=32, layers=2, heads=4, kv_heads=2, mlp_width=64, qkv_bias=shift, routing=routing
    )
    generator = torch.Generator().manual_seed(seed)
    net = Transformer(shape).eval().requires_grad_(False)
    for name, parameter in net.named_parameters():
        if parameter.dim() >= 2:
            scale = sharpness if "lm_head" in name else 1.5
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale / parameter.shape[-1] ** 0.5)
        elif "bias" in name:
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
    spec = ModelSpec("tiny", "dream" if shift else "llada", shape, MASK, (EOS,), BOS, EOS, shift, length)
    if block is not None:
        spec = replace(spec, block_length=block, habits=Habits(strategy="threshold", cache="exact", window=window))
    return Model(spec, net, Letters(), "tiny")  # type: ignore[arg-type]


SOFTMAX = Routing(experts=8, chosen=2, width=24, normalised=True)
SIGMOID = Routing(
    experts=8,
    chosen=2,
    width=24,
    router="sigmoid",
    normalised=True,
    scale=1.5,
    bias=True,
    groups=4,
    open_groups=2,
    first=1,
)


@cache
def form_of(name: str) -> str:
    """A strategy's text form that any model takes: what is fitted on a model gets random weights."""
    made = {"calibrated": ("rule", random_rule), "learn2pd": ("filter", random_filter)}
    if name not in made:
        return name
    option, make = made[name]
    path = Path(tempfile.mkdtemp(prefix="starr-rule-")) / "rule.json"
    path.write_text(json.dumps(make().to_dict()))
    return f"{name}:{option}={path},foreign=true"


def random_filter(block: int = 6, seed: int = 0) -> BlockFilter:
    """A block filter of random weights, which says yes about as often as no."""
    random = torch.Generator().manual_seed(seed)
    shapes = ((block, 4), (4,), (4, block), (block,))
    return BlockFilter(*[2 * torch.randn(shape, generator=random) for shape in shapes])


def random_rule(seed: int = 0) -> FittedRule:
    """A rule of random weights."""
    random = torch.Generator().manual_seed(seed)
    shapes = ((2, len(NAMES), 4), (2, 1, 4), (2, 4, 2), (2, 1, 2))
    weights = [torch.randn(shape, generator=random) for shape in shapes]
    habits = torch.randn(300, generator=random).round()
    return FittedRule(torch.zeros(len(NAMES)), torch.ones(len(NAMES)), *weights, habits, budget=0.6)
