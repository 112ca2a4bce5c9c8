"""One bidirectional transformer for every family: RMSNorm, RoPE in float32, grouped K/V heads, SwiGLU.

Letters: B rows, Q queried positions, S buffer slots, D width, H heads, V vocabulary.

A forward recomputes only the *queried* positions. Their K/V go into the buffer's slots and every query attends over
the slots that ``attend`` allows, so a cache is nothing but a choice of what to query (see ``starr.query``). Without a
buffer the queries are the keys: the plain forward, used for training and for ``cache="none"``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from starr.model.packing import Packing


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


@dataclass(frozen=True, slots=True)
class KVBuffer:
    """K and V of every layer over a row's slots; written in place by ``Transformer.forward``."""

    keys: Tensor  # (layers, B, kv_heads, S, head_width)
    values: Tensor  # (layers, B, kv_heads, S, head_width)

    @classmethod
    def empty(cls, shape: Shape, rows: int, slots: int, like: Tensor) -> KVBuffer:
        size = (shape.layers, rows, shape.kv_heads, slots, shape.head_width)
        return cls(like.new_zeros(size), like.new_zeros(size))

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.values.nbytes


@dataclass(frozen=True, slots=True)
class Place:
    """Where the queries of one forward stand, and what they may see."""

    cos: Tensor  # (B or 1, 1, Q, head_width) float32
    sin: Tensor
    attend: Tensor | None  # (B, 1, 1 or Q, S) bool
    write: Tensor  # (B, kv_heads, Q, head_width) int64: buffer slots
    packing: Packing | None = None


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

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries, rotated keys and values, each (B, heads, Q, head_width)."""
        rows, queries, _ = x.shape
        split = (rows, queries, -1, self.shape.head_width)
        q, k, v = (proj(x).view(split).transpose(1, 2) for proj in (self.q_proj, self.k_proj, self.v_proj))
        return rotate(q, cos, sin), rotate(k, cos, sin), v

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
    """The parts of one layer; ``Transformer.through`` puts them together."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_norm = RMSNorm(shape.width, shape.norm_eps)
        self.attention = Attention(shape)
        self.mlp_norm = RMSNorm(shape.width, shape.norm_eps)
        self.mlp = MLP(shape)


class Transformer(nn.Module):
    """Tokens in, hidden states out; ``head`` turns chosen hidden states into logits."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = Embedding(shape.vocab_size, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.width, shape.norm_eps)
        self.lm_head = None if shape.tied else Linear(shape.width, shape.vocab_size, bias=False)

    @property
    def head_weight(self) -> Tensor:
        """(V, D): the matrix that turns hidden states into logits."""
        return self.embed.weight if self.lm_head is None else self.lm_head.weight

    def head(self, hidden: Tensor) -> Tensor:
        """Logits (..., V) of hidden states (..., D): ask only for the rows you need."""
        return F.linear(hidden, self.head_weight)

    def forward(
        self,
        tokens: Tensor,  # (B, Q) int64
        positions: Tensor | None = None,  # (B, Q) or (1, Q) int64, for RoPE; None is 0..Q-1
        attend: Tensor | None = None,  # (B, S) or (B, Q, S) bool: which slots may be seen; None for all
        buffer: KVBuffer | None = None,
        slots: Tensor | None = None,  # (B, Q) int64: where each query's K/V are written; None is ``positions``
    ) -> Tensor:  # (B, Q, D)
        """Hidden states of the queried positions; with a buffer, their K/V are written before anyone attends."""
        place = self.place(tokens, positions, attend, slots)
        x = self.embed(tokens)
        for index in range(len(self.layers)):
            x = self.through(index, x, place, buffer)
        return self.norm(x)  # type: ignore[no-any-return]

    def packed(self, tokens: Tensor, length: Tensor, total: int) -> Tensor:
        """(B, S, D): ``forward`` without a buffer, for rows of different ``length`` (B,) whose sum is ``total``."""
        attend = torch.arange(tokens.shape[1], device=tokens.device) < length[:, None]
        packing = Packing.of(attend, total)
        flat = packing.pack(tokens)
        place = replace(self.place(flat, packing.positions, attend, None), packing=packing)
        x = self.embed(flat)
        for index in range(len(self.layers)):
            x = self.through(index, x, place, None)
        return packing.spread(self.norm(x))

    def moved(self, tokens: Tensor, positions: Tensor, attend: Tensor, buffer: KVBuffer) -> Tensor:
        """(B, Q): 1 - cosine between the values that layer 1 would have now and those in the buffer.

        Layer 0 runs and its K/V are written (they depend on the tokens alone); a net of one layer compares layer 0.
        """
        place = self.place(tokens, positions, attend, None)
        x = self.embed(tokens)
        index = min(1, len(self.layers) - 1)
        old = buffer.values[index].gather(2, place.write)
        if index > 0:
            x = self.through(0, x, place, buffer)
        layer = self.layers[index]
        new = layer.attention.v_proj(layer.input_norm(x))  # type: ignore[operator,union-attr]
        return 1.0 - F.cosine_similarity(new, old.transpose(1, 2).flatten(2), dim=2)

    def place(self, tokens: Tensor, positions: Tensor | None, attend: Tensor | None, slots: Tensor | None) -> Place:
        """What all layers of one forward share; the arguments are those of ``forward``."""
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        if attend is not None:
            attend = attend[:, None, None] if attend.dim() == 2 else attend[:, None]
        cos, sin = rope_tables(positions, self.shape.head_width, self.shape.rope_theta)
        return Place(cos, sin, attend, write_index(positions if slots is None else slots, tokens, self.shape))

    def through(self, index: int, x: Tensor, place: Place, buffer: KVBuffer | None) -> Tensor:
        """(B, Q, D): the states after one layer."""
        layer = self.layers[index]
        q, k, v = layer.attention.project(layer.input_norm(x), place.cos, place.sin)  # type: ignore[operator,union-attr]
        if buffer is not None:
            k = buffer.keys[index].scatter_(2, place.write, k)
            v = buffer.values[index].scatter_(2, place.write, v)
        if place.packing is not None:
            q, k, v = (place.packing.spread_heads(part) for part in (q, k, v))
        mixed = layer.attention(q, k, v, place.attend)  # type: ignore[operator]
        if place.packing is not None:
            mixed = place.packing.pack(mixed)
        x = x + layer.attention.o_proj(mixed)  # type: ignore[operator,union-attr]
        return x + layer.mlp(layer.mlp_norm(x))  # type: ignore[no-any-return,operator]


def write_index(slots: Tensor, tokens: Tensor, shape: Shape) -> Tensor:
    """Slots (B or 1, Q) as a scatter index (B, kv_heads, Q, head_width)."""
    rows, queries = tokens.shape
    return slots[:, None, :, None].expand(rows, shape.kv_heads, queries, shape.head_width)
