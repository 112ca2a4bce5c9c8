"""The encoders of masked models (BERT, RoBERTa, ALBERT, ModernBERT) as one more kind of the one transformer.

They differ in their layers, in how a token is embedded and in the head; queries, buffer and packing are the same.
Letters: B rows, Q queried positions, S positions they may see, D width, E width of an embedding, V vocabulary.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from starr.model.network.layers import Attention, Embedding, Layer, Linear
from starr.model.network.shape import EncoderShape, Shape
from starr.model.network.transformer import KVBuffer, Queries, Transformer


def make_network(shape: Shape) -> Transformer:
    """The network of a shape."""
    return Transformer(shape) if shape.encoder is None else EncoderNetwork(shape, shape.encoder)


def activate(x: Tensor, name: str) -> Tensor:
    """The activation of this name: gelu, or gelu_new, its approximation."""
    return F.gelu(x, approximate="tanh" if name == "gelu_new" else "none")


class EncoderMLP(nn.Module):
    """Plain with biases, or gated without: then ``gate_proj`` multiplies what ``up_proj`` activates."""

    def __init__(self, shape: Shape, kind: EncoderShape) -> None:
        super().__init__()
        self.activation = kind.activation
        self.up_proj = Linear(shape.width, shape.mlp_width, bias=not kind.modern)
        self.gate_proj = Linear(shape.width, shape.mlp_width, bias=False) if kind.modern else None
        self.down_proj = Linear(shape.mlp_width, shape.width, bias=not kind.modern)

    def forward(self, x: Tensor) -> Tensor:
        """(…, width) to the same."""
        inner = activate(self.up_proj(x), self.activation)
        return self.down_proj(inner if self.gate_proj is None else inner * self.gate_proj(x))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """The parts of one layer, under the names that ``Transformer`` puts together.

    ``input_norm`` stands before the attention; a layer with its norms after attention and MLP has none there.
    """

    def __init__(self, shape: Shape, kind: EncoderShape, index: int) -> None:
        super().__init__()
        norms = [nn.LayerNorm(shape.width, shape.norm_eps, bias=not kind.modern) for _ in range(2)]
        self.modern = kind.modern
        self.input_norm = norms[0] if kind.modern and index > 0 else nn.Identity()
        self.attention = Attention(shape)
        self.attention_norm = nn.Identity() if kind.modern else norms[0]
        self.mlp = EncoderMLP(shape, kind)
        self.mlp_norm = norms[1]

    def finish(self, x: Tensor, mixed: Tensor) -> Tensor:
        """The states after the layer: ``x`` (B, Q, D) before it, and what was attended to (B, Q, heads * ·)."""
        x = self.attention_norm(x + self.attention.o_proj(mixed))
        return x + self.mlp(self.mlp_norm(x)) if self.modern else self.mlp_norm(x + self.mlp(x))  # type: ignore[no-any-return]


class EncoderNetwork(Transformer):
    """Tokens in, hidden states out; ``head`` is a layer of its own and the embedding."""

    def __init__(self, shape: Shape, kind: EncoderShape) -> None:
        nn.Module.__init__(self)
        wide, inner, bias = shape.width, shape.embed_width, not kind.modern
        self.shape, self.kind = shape, kind
        self.embed = Embedding(shape.vocab_size, inner)
        self.position = None if kind.modern else Embedding(shape.max_length + kind.offset, inner)
        self.token_type = Embedding(kind.types, inner) if kind.types else None
        self.embed_norm = nn.LayerNorm(inner, shape.norm_eps, bias=bias)
        self.embed_proj = Linear(inner, wide) if kind.embed_width else None
        self.layers = nn.ModuleList(EncoderLayer(shape, kind, index) for index in range(kind.groups or shape.layers))
        self.norm = nn.LayerNorm(wide, shape.norm_eps, bias=False) if kind.modern else nn.Identity()  # type: ignore[assignment]
        self.head_dense = Linear(wide, inner, bias=bias)
        self.head_norm = nn.LayerNorm(inner, shape.norm_eps, bias=bias)
        self.head_bias = nn.Parameter(torch.zeros(shape.vocab_size))
        self.lm_head = None

    def layer(self, index: int) -> Layer:
        """The layer of this number; layers of one group are the same."""
        return cast(Layer, self.layers[index * len(self.layers) // self.shape.layers])

    def head(self, hidden: Tensor) -> Tensor:
        """Logits (..., V) of hidden states (..., D): ask only for the rows you need."""
        inner = self.head_norm(activate(self.head_dense(hidden), self.kind.activation))
        return F.linear(inner, self.embed.weight, self.head_bias)

    def embed_tokens(self, tokens: Tensor, queries: Queries, added: Tensor | None = None) -> Tensor:
        """(B, Q, D): tokens, their type and their positions; ``added`` (B, Q, E) as in ``forward``."""
        x: Tensor = super().embed_tokens(tokens, queries, added)
        if self.token_type is not None:
            x = x + self.token_type.weight[0]
        if self.position is not None:  # a spare column may stand one beyond the last position
            x = x + self.position((queries.positions + self.kind.offset).clamp(max=len(self.position.weight) - 1))
        x = self.embed_norm(x)
        return x if self.embed_proj is None else self.embed_proj(x)

    def queries_per_layer(self, queries: Queries, buffer: KVBuffer | None) -> list[Queries]:
        """As in ``Transformer``; local layers see neighbours only and have a theta of their own."""
        if not self.kind.window:
            return super().queries_per_layer(queries, buffer)
        near = self.narrow(queries, buffer)
        return [near if index % self.kind.every else queries for index in range(self.shape.layers)]

    def narrow(self, queries: Queries, buffer: KVBuffer | None) -> Queries:
        """Let each query see its neighbours only; a query of padding, which has none, sees what it saw."""
        here = keys = queries.positions
        if queries.packing is not None:
            here = keys = torch.arange(queries.packing.columns, device=here.device)[None]
        elif buffer is not None:
            keys = torch.arange(buffer.slots, device=here.device)[None]
        if queries.keys is not None:
            keys = queries.keys
            here = keys if queries.packing is not None else here
        close = ((here[:, :, None] - keys[:, None, :]).abs() <= self.kind.window)[:, None]
        if queries.attend is not None:
            seen = queries.attend & close
            close = seen | (queries.attend & ~seen.any(dim=-1, keepdim=True))
        shape = replace(self.shape, rope_theta=self.kind.local_theta)
        cos, sin = self.build_tables(queries.positions, shape)
        return replace(queries, shape=shape, cos=cos, sin=sin, attend=close)
