"""The parts of a transformer layer, for every family: RMSNorm, RoPE, grouped K/V heads, SwiGLU or experts.

Letters: B rows, Q queried positions, S positions they may see, D width, H heads.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from starr.model.network.attention import attention
from starr.model.network.experts import Experts
from starr.model.network.shape import Shape, Yarn


class Linear(nn.Linear):
    """Draws no random weights on the meta device: drawing them there imports torch's compiler, which takes seconds."""

    def reset_parameters(self) -> None:
        """Draw weights, but not on the meta device."""
        if not self.weight.is_meta:
            super().reset_parameters()


class Embedding(nn.Embedding):
    """Draws no random weights on the meta device, as ``Linear``."""

    def reset_parameters(self) -> None:
        """Draw weights, but not on the meta device."""
        if not self.weight.is_meta:
            super().reset_parameters()


class RMSNorm(nn.Module):
    """x / rms(x) in float32, cast back, then scaled: the order the released checkpoints were trained with."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """(…, width) to the same: divided by its root mean square in float32, times the weight."""
        if x.dtype == torch.float32:
            return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


def rope_tables(positions: Tensor, shape: Shape, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines for ``positions`` (B, Q), each (B, 1, Q, rotary_width), halves repeated.

    They are made in float32. Frequencies are 1 / theta^e, not theta^-e: the released code does so, and the difference
    in the last bit reaches the logits. LLaDA-8B keeps the tables in float32, the others cast them to ``dtype``.
    """
    width = shape.rotary_width
    exponent = torch.arange(0, width, 2, dtype=torch.float32, device=positions.device) / width
    frequency = 1.0 / shape.rope_theta**exponent
    scale = 1.0
    if shape.yarn is not None:
        frequency, scale = stretch(frequency, shape.rope_theta, shape.yarn), shape.yarn.attention
    angle = positions[:, None, :, None].float() * frequency
    kind = torch.float32 if shape.rope_float32 else dtype
    cos, sin = (table if scale == 1.0 else table * scale for table in (angle.cos(), angle.sin()))
    return cos.repeat(1, 1, 1, 2).to(kind), sin.repeat(1, 1, 1, 2).to(kind)


def stretch(frequency: Tensor, theta: float, yarn: Yarn) -> Tensor:
    """YaRN: slow frequencies are divided by the factor, fast ones are kept, and a ramp joins them."""
    width = 2 * len(frequency)

    def entry(turns: float) -> float:
        """Find the entry whose frequency makes this many turns over the original length."""
        return width * math.log(yarn.original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = max(math.floor(entry(yarn.beta_fast)), 0), min(math.ceil(entry(yarn.beta_slow)), width - 1)
    at = torch.arange(len(frequency), dtype=torch.float32, device=frequency.device)
    kept = 1 - ((at - low) / max(high - low, 0.001)).clamp(0, 1)
    return frequency / yarn.factor * (1 - kept) + frequency * kept


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding by split halves in the tables' dtype, cast back; entries beyond the tables' width are kept."""
    width = cos.shape[-1]
    if width == 0:
        return x
    turned, rest = (x, None) if width == x.shape[-1] else (x[..., :width], x[..., width:])
    wide = turned.to(cos.dtype)
    first, second = wide.chunk(2, dim=-1)
    turned = (wide * cos + torch.cat((-second, first), dim=-1) * sin).to(x.dtype)
    return turned if rest is None else torch.cat((turned, rest), dim=-1)


class Attention(nn.Module):
    """Attention with grouped K/V heads; projecting and attending are apart, for the buffer between."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        q_width, kv_width = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
        self.q_proj = Linear(shape.width, q_width, bias=shape.qkv_bias)
        self.k_proj = Linear(shape.width, kv_width, bias=shape.qkv_bias)
        self.v_proj = Linear(shape.width, kv_width, bias=shape.qkv_bias)
        self.o_proj = Linear(q_width, shape.width, bias=shape.qkv_bias and shape.encoder is not None)
        self.q_norm = RMSNorm(shape.head_width, shape.norm_eps) if shape.qk_norm else None
        self.k_norm = RMSNorm(shape.head_width, shape.norm_eps) if shape.qk_norm else None

    def queries(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotated queries (B, H, Q, head_width)."""
        return rotate(self.heads(self.q_proj(x), self.q_norm), cos, sin)

    def keys_values(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Rotated keys and values, each (B, kv_heads, Q, head_width)."""
        return rotate(self.heads(self.k_proj(x), self.k_norm), cos, sin), self.heads(self.v_proj(x))

    def heads(self, x: Tensor, norm: RMSNorm | None = None) -> Tensor:
        """(B, Q, heads * head_width) to (B, heads, Q, head_width), each head normed."""
        x = x.view(*x.shape[:2], -1, self.shape.head_width)
        return (x if norm is None else norm(x)).transpose(1, 2)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, attend: Tensor | None) -> Tensor:
        """(B, Q, heads * head_width): (B, H, Q, ·) over (B, kv_heads, S, ·); ``attend`` (B, 1, 1 or Q, S) or None."""
        group = self.shape.heads // self.shape.kv_heads
        if group > 1:
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        return attention(q, k, v, attend).transpose(1, 2).flatten(2)


class MLP(nn.Module):
    """SwiGLU."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = Linear(width, inner, bias=False)
        self.up_proj = Linear(width, inner, bias=False)
        self.down_proj = Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(…, width) to the same: down(silu(gate(x)) * up(x))."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))  # type: ignore[no-any-return]


class Layer(nn.Module):
    """The parts of one layer; ``Transformer`` puts them together."""

    def __init__(self, shape: Shape, index: int = 0) -> None:
        super().__init__()
        self.input_norm = RMSNorm(shape.width, shape.norm_eps)
        self.attention = Attention(shape)
        self.mlp_norm = RMSNorm(shape.width, shape.norm_eps)
        self.mlp = feed_forward(shape, index)

    def finish(self, x: Tensor, mixed: Tensor) -> Tensor:
        """The states after the layer: ``x`` (B, Q, D) before it, and what was attended to (B, Q, heads * ·)."""
        x = x + self.attention.o_proj(mixed)
        return x + self.mlp(self.mlp_norm(x))  # type: ignore[no-any-return]


def feed_forward(shape: Shape, index: int) -> nn.Module:
    """A layer's MLP, or its experts."""
    routing = shape.routing
    if routing is None or not shape.routed(index):
        return MLP(shape.width, shape.mlp_width)
    shared = MLP(shape.width, routing.shared_width) if routing.shared_width else None
    return Experts(shape.width, routing, shared)
