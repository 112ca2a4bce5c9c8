"""The parts of a transformer layer, the same for every family: RMSNorm, RoPE in float32, grouped K/V heads, SwiGLU.

Letters: B rows, Q queried positions, S positions they may see, D width, H heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a transformer, in the project's own words (the checkpoint's keys are mapped in ``llada``/``dream``)."""

    vocab_size: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    mlp_width: int
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5
    qkv_bias: bool = False
    tied: bool = False
    max_length: int = 4096

    @property
    def head_width(self) -> int:
        return self.width // self.heads


class Linear(nn.Linear):
    """Without random values on the meta device: drawing them there imports torch's compiler, seconds for nothing."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()


class Embedding(nn.Embedding):
    """As ``Linear``: no random values on the meta device."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()


class RMSNorm(nn.Module):
    """x / rms(x) in float32, cast back, then scaled: the order the released checkpoints were trained with."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype == torch.float32:
            return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


def rope_tables(positions: Tensor, head_width: int, theta: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines for ``positions`` (B, Q), each (B, 1, Q, head_width) in float32, halves repeated."""
    exponent = torch.arange(0, head_width, 2, dtype=torch.float32, device=positions.device) / head_width
    angle = positions[:, None, :, None].float() * theta**-exponent
    return angle.cos().repeat(1, 1, 1, 2), angle.sin().repeat(1, 1, 1, 2)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding by split halves, in float32 and cast back (LLaDA's ``rope_full_precision``)."""
    wide = x.float()
    first, second = wide.chunk(2, dim=-1)
    return (wide * cos + torch.cat((-second, first), dim=-1) * sin).to(x.dtype)


class Attention(nn.Module):
    """Bidirectional attention with grouped K/V heads; projecting and attending are apart, for the buffer between."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        kv_width = shape.kv_heads * shape.head_width
        self.q_proj = Linear(shape.width, shape.width, bias=shape.qkv_bias)
        self.k_proj = Linear(shape.width, kv_width, bias=shape.qkv_bias)
        self.v_proj = Linear(shape.width, kv_width, bias=shape.qkv_bias)
        self.o_proj = Linear(shape.width, shape.width, bias=False)

    def queries(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotated queries (B, H, Q, head_width)."""
        return rotate(self.heads(self.q_proj(x)), cos, sin)

    def keys_values(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Rotated keys and values, each (B, kv_heads, Q, head_width)."""
        return rotate(self.heads(self.k_proj(x)), cos, sin), self.heads(self.v_proj(x))

    def heads(self, x: Tensor) -> Tensor:
        """(B, Q, heads * head_width) to (B, heads, Q, head_width)."""
        return x.view(*x.shape[:2], -1, self.shape.head_width).transpose(1, 2)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, attend: Tensor | None) -> Tensor:
        """(B, Q, D) before ``o_proj``: (B, H, Q, ·) over (B, kv_heads, S, ·); ``attend`` (B, 1, 1 or Q, S) or None."""
        group = self.shape.heads // self.shape.kv_heads
        if group > 1:
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=attend).transpose(1, 2).flatten(2)


class MLP(nn.Module):
    """SwiGLU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = Linear(shape.width, shape.mlp_width, bias=False)
        self.up_proj = Linear(shape.width, shape.mlp_width, bias=False)
        self.down_proj = Linear(shape.mlp_width, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))  # type: ignore[no-any-return]


class Layer(nn.Module):
    """The parts of one layer; ``Transformer`` puts them together."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_norm = RMSNorm(shape.width, shape.norm_eps)
        self.attention = Attention(shape)
        self.mlp_norm = RMSNorm(shape.width, shape.norm_eps)
        self.mlp = MLP(shape)

    def finish(self, x: Tensor, mixed: Tensor) -> Tensor:
        """The states after the layer: ``x`` (B, Q, D) before it, and what was attended to (B, Q, D)."""
        x = x + self.attention.o_proj(mixed)
        return x + self.mlp(self.mlp_norm(x))  # type: ignore[no-any-return]
