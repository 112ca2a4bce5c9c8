"""Small random models and a tokenizer of letters, for tests of the engine."""

from __future__ import annotations

import torch

from starr.model.layers import Shape
from starr.model.load import Model
from starr.model.spec import ModelSpec
from starr.model.transformer import Transformer

MASK, EOS, BOS = 1, 2, 0


class Letters:
    """One token a character; enough of a Tokenizer for the engine."""

    has_chat = False

    def encode(self, text: str) -> list[int]:
        return [3 + ord(c) % 90 for c in text]

    def decode(self, ids, skip_special: bool = True) -> str:
        return "".join(chr(33 + (i - 3) % 90) for i in ids if i > EOS)

    def piece(self, token: int) -> str:
        return self.decode([token])


def tiny_model(
    *, shift: bool = False, seed: int = 0, sharpness: float = 3.0, vocab: int = 96, length: int = 256
) -> Model:
    """Random weights; ``sharpness`` scales the head so that confidences spread over (0, 1)."""
    shape = Shape(vocab_size=vocab, width=32, layers=2, heads=4, kv_heads=2, mlp_width=64, qkv_bias=shift)
    generator = torch.Generator().manual_seed(seed)
    net = Transformer(shape).eval().requires_grad_(False)
    for name, parameter in net.named_parameters():
        if parameter.dim() == 2:
            scale = sharpness if "lm_head" in name else 1.5
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale / parameter.shape[1] ** 0.5)
        elif "bias" in name:
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
    spec = ModelSpec("tiny", "dream" if shift else "llada", shape, MASK, (EOS,), BOS, EOS, shift, length)
    return Model(spec, net, Letters(), "tiny")  # type: ignore[arg-type]
