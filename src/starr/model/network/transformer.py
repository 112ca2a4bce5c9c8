"""One transformer for every family; which positions attend to which is the caller's choice, all to all by default.

Letters: B rows, Q queried positions, O wanted ones of them, S buffer slots, D width, V vocabulary.

A forward recomputes only the *queried* positions. Their K/V go into the buffer's slots, and every query attends over
the slots that ``attend`` allows. So a cache only chooses what to query (see ``starr.decode.caches``). Without a buffer
the queries are the keys: the plain forward, used for training and for ``cache="none"``. The last layer computes
states for the *wanted* queries only; the other queries give it their K/V.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from starr.model.network.experts import Experts
from starr.model.network.layers import Embedding, Layer, Linear, RMSNorm, rope_tables
from starr.model.network.packing import Packing
from starr.model.network.shape import Shape


@dataclass(frozen=True, slots=True)
class KVBuffer:
    """K and V of every layer over a row's slots; written in place by ``Transformer.forward``."""

    keys: Tensor  # (layers, B, kv_heads, S, head_width)
    values: Tensor  # (layers, B, kv_heads, S, head_width)

    @classmethod
    def empty(cls, shape: Shape, rows: int, slots: int, like: Tensor) -> KVBuffer:
        """A buffer of zeros for this many rows and slots."""
        size = (shape.layers, rows, shape.kv_heads, slots, shape.head_width)
        return cls(like.new_zeros(size), like.new_zeros(size))

    def until(self, slots: int) -> KVBuffer:
        """A view of the first slots; it shares their memory."""
        return KVBuffer(self.keys[:, :, :, :slots], self.values[:, :, :, :slots])

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values."""
        return self.keys.nbytes + self.values.nbytes

    @property
    def slots(self) -> int:
        """Positions that a row has room for."""
        return self.keys.shape[3]


@dataclass(frozen=True, slots=True)
class Queries:
    """The queries of one forward: their positions, and the slots that each may see."""

    shape: Shape  # its rotary sizes
    positions: Tensor  # (B or 1, Q) int64
    cos: Tensor  # (B or 1, 1, Q, rotary_width)
    sin: Tensor
    attend: Tensor | None  # (B, 1, 1 or Q, S) bool
    slots: Tensor  # (B or 1, Q) int64: where the queries' K/V go in a buffer
    packing: Packing | None = None
    aside: int = 0  # the last queries, whose K/V do not go there
    keys: Tensor | None = None  # (B, S) int64: positions of what is seen, where they are not those of the columns


@dataclass(frozen=True, slots=True)
class Wanted:
    """The queries whose states leave the last layer."""

    index: Tensor  # (B, O) int64: their index among the queries of all rows, row after row
    cos: Tensor  # (B, 1, O, rotary_width)
    sin: Tensor
    attend: Tensor | None  # (B, 1, 1 or O, S) bool

    def of(self, x: Tensor) -> Tensor:
        """(B, O, D) of the queries' (B, Q, D), or of packed ones (1, T, D)."""
        return x.flatten(0, 1).index_select(0, self.index.flatten()).view(*self.index.shape, -1)


class Transformer(nn.Module):
    """Tokens in, hidden states out; ``head`` turns chosen hidden states into logits."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = Embedding(shape.vocab_size, shape.width)
        self.layers = nn.ModuleList(Layer(shape, index) for index in range(shape.layers))
        self.norm = RMSNorm(shape.width, shape.norm_eps)
        self.lm_head = None if shape.tied else Linear(shape.width, shape.vocab_size, bias=False)

    @property
    def head_weight(self) -> Tensor:
        """(V, D): the matrix that turns hidden states into logits."""
        return self.embed.weight if self.lm_head is None else self.lm_head.weight

    @property
    def wide(self) -> frozenset[str]:
        """Names of the parameters that stay float32 whatever the model's dtype."""
        routed = ((name, part) for name, part in self.named_modules() if isinstance(part, Experts))
        return frozenset(f"{name}.{own}" for name, experts in routed for own in experts.wide)

    def layer(self, index: int) -> Layer:
        """One layer."""
        return cast(Layer, self.layers[index])

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
        wanted: Tensor | None = None,  # (B, O) int64: which queries; beyond Q anything is returned; None for all
        added: Tensor | None = None,  # (B, Q, D): added to the input embeddings
        aside: int = 0,  # the last queries: they leave the buffer as it is, and ``attend`` has them after its slots
    ) -> Tensor:  # (B, O, D), or (B, Q, D) without ``wanted``
        """Compute hidden states of the wanted queries; a buffer gets their K/V before any query attends."""
        queries = self.prepare_queries(tokens, positions, attend, slots)
        if aside and buffer is not None:
            columns = torch.arange(buffer.slots, device=tokens.device).expand(len(tokens), -1)
            queries = replace(queries, aside=aside, keys=torch.cat([columns, queries.positions[:, -aside:]], dim=1))
        return self.run(tokens, queries, buffer, wanted, added)

    def packed(
        self,
        tokens: Tensor,
        real: Tensor,
        total: int,
        wanted: Tensor,
        seen: Tensor | None = None,
        added: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """(B, O, D): ``forward`` without a buffer, for rows whose ``real`` (B, S) bool columns are ``total`` in all.

        ``seen`` (B, S, S) bool says which position sees which; None is all. ``added`` (B, S, D) and ``positions``
        (B, S) are those of ``forward``.
        """
        packing = Packing.of(real, total)
        flat = packing.pack(tokens)
        attend = real if seen is None else real[:, None] & seen
        at = packing.positions if positions is None else packing.pack(positions)
        queries = replace(self.prepare_queries(flat, at, attend, None), packing=packing, keys=positions)
        more = None if added is None else packing.pack(added)
        return self.run(flat, queries, None, wanted, more)

    def run(
        self,
        tokens: Tensor,
        queries: Queries,
        buffer: KVBuffer | None,
        chosen: Tensor | None,
        added: Tensor | None = None,
    ) -> Tensor:
        """Run all layers and the last norm; ``chosen`` is ``wanted`` of ``forward``."""
        x = self.embed_tokens(tokens, queries, added)
        *before, last = self.queries_per_layer(queries, buffer)
        for index, here in enumerate(before):
            x = self.run_layer(index, x, here, buffer)
        if chosen is None:
            x = self.run_layer(len(before), x, last, buffer)
        else:
            x = self.run_last_layer(len(before), x, last, buffer, self.find_wanted(chosen, last))
        return self.norm(x)  # type: ignore[no-any-return]

    def embed_tokens(self, tokens: Tensor, queries: Queries, added: Tensor | None = None) -> Tensor:
        """(B, Q, D): the input of the first layer."""
        x: Tensor = self.embed(tokens)
        return x if added is None else x + added

    def queries_per_layer(self, queries: Queries, buffer: KVBuffer | None) -> list[Queries]:
        """The queries of each layer; a layer may see less than another."""
        return [queries] * self.shape.layers

    def moved(self, tokens: Tensor, positions: Tensor, attend: Tensor, buffer: KVBuffer) -> Tensor:
        """(B, Q): 1 - cosine between the values that layer 1 would have now and those in the buffer.

        Layer 0 runs and its K/V are written (they depend on the tokens alone); a net of one layer compares layer 0.
        """
        queries = self.prepare_queries(tokens, positions, attend, None)
        x = self.embed_tokens(tokens, queries)
        index = min(1, self.shape.layers - 1)
        old = read(buffer.values[index], queries.slots)
        if index > 0:
            x = self.run_layer(0, x, self.queries_per_layer(queries, buffer)[0], buffer)
        layer = self.layer(index)
        new = layer.attention.v_proj(layer.input_norm(x))
        return 1.0 - F.cosine_similarity(new, old.flatten(2), dim=2)

    def prepare_queries(
        self, tokens: Tensor, positions: Tensor | None, attend: Tensor | None, slots: Tensor | None
    ) -> Queries:
        """Prepare what all layers of one forward share; the arguments are those of ``forward``."""
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        if attend is not None:
            attend = attend[:, None, None] if attend.dim() == 2 else attend[:, None]
        cos, sin = self.build_tables(positions, self.shape)
        return Queries(self.shape, positions, cos, sin, attend, positions if slots is None else slots)

    def build_tables(self, positions: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
        """Cosines and sines (B, 1, Q, rotary_width) of positions (B, Q)."""
        return rope_tables(positions, shape, self.embed.weight.dtype)

    def find_wanted(self, chosen: Tensor, queries: Queries) -> Wanted:
        """Find the queries ``chosen`` (B, O), or the columns of packed ones; a number too high gives any query."""
        rows = len(chosen)
        if queries.packing is not None:
            chosen = chosen.clamp(max=queries.packing.columns - 1)
            index = queries.packing.find(chosen)
            positions = queries.positions[0].index_select(0, index.flatten()).view(index.shape)
        else:
            count = queries.positions.shape[1]
            chosen = chosen.clamp(max=count - 1)
            index = chosen + count * torch.arange(rows, device=chosen.device)[:, None]
            positions = queries.positions.expand(rows, -1).gather(1, chosen)
        attend = queries.attend
        if attend is not None and attend.shape[2] > 1:
            attend = attend.expand(rows, -1, -1, -1)
            attend = attend.gather(2, chosen[:, None, :, None].expand(-1, -1, -1, attend.shape[3]))
        return Wanted(index, *self.build_tables(positions, queries.shape), attend)

    def run_layer(self, index: int, x: Tensor, queries: Queries, buffer: KVBuffer | None) -> Tensor:
        """Run one layer; return the states of all queries (B, Q, D)."""
        layer = self.layer(index)
        normed = layer.input_norm(x)
        k, v = self.keys_values(index, normed, queries, buffer)
        q = layer.attention.queries(normed, queries.cos, queries.sin)
        if queries.packing is None:
            return layer.finish(x, layer.attention(q, k, v, queries.attend))
        mixed = layer.attention(queries.packing.spread_heads(q), k, v, queries.attend)
        return layer.finish(x, queries.packing.pack(mixed))

    def run_last_layer(
        self, index: int, x: Tensor, queries: Queries, buffer: KVBuffer | None, wanted: Wanted
    ) -> Tensor:
        """Run the last layer; return the states of the wanted queries (B, O, D)."""
        layer = self.layer(index)
        normed = layer.input_norm(x)
        k, v = self.keys_values(index, normed, queries, buffer)
        q = layer.attention.queries(wanted.of(normed), wanted.cos, wanted.sin)
        return layer.finish(wanted.of(x), layer.attention(q, k, v, wanted.attend))

    def keys_values(
        self, index: int, normed: Tensor, queries: Queries, buffer: KVBuffer | None
    ) -> tuple[Tensor, Tensor]:
        """One layer's keys and values over everything that may be seen, each (B, kv_heads, S, head_width)."""
        k, v = self.layer(index).attention.keys_values(normed, queries.cos, queries.sin)
        if buffer is not None:
            k, v = (extend(kept[index], queries, new) for kept, new in ((buffer.keys, k), (buffer.values, v)))
        if queries.packing is not None:
            k, v = queries.packing.spread_heads(k), queries.packing.spread_heads(v)
        return k, v


def extend(kept: Tensor, queries: Queries, new: Tensor) -> Tensor:
    """(B, kv_heads, S + aside, head_width): write ``new`` into a buffer; append the queries aside."""
    written = new.shape[2] - queries.aside
    found = write(kept, queries.slots[:, :written], new[:, :, :written])
    return torch.cat([found, new[:, :, written:]], dim=2) if queries.aside else found


def read(kept: Tensor, slots: Tensor) -> Tensor:
    """(B, Q, kv_heads, head_width): what a buffer (B, kv_heads, S, head_width) holds at slots (B or 1, Q)."""
    return kept.transpose(1, 2)[torch.arange(len(kept), device=kept.device)[:, None], slots]


def write(kept: Tensor, slots: Tensor, new: Tensor) -> Tensor:
    """Write ``new`` (B, kv_heads, Q, head_width) into a buffer (B, kv_heads, S, head_width) at slots (B or 1, Q).

    Not ``scatter_``: in half precision on a CPU that copies the whole buffer, however few slots are written.
    """
    kept.transpose(1, 2)[torch.arange(len(kept), device=kept.device)[:, None], slots] = new.transpose(1, 2)
    return kept
