"""Attention whose result for a row does not depend on the rows beside it, bit by bit, in half precision on a CPU.

There one changed bit is as large as what decisions are made of. torch's fused attention sums in an order that depends
on the number of keys, so that padding changes the last bit; in float32 that is below what any decision sees. Here keys
are padded to whole steps and summed in whole pieces, so that padding adds exact zeros at the end and nothing else.
Letters: B rows, H heads, Q queries, S keys.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

STEP = 16  # keys: the widest vector of a sum
SCORES = 1 << 21  # of one part of the queries: 8 MB
LEAST_QUERIES = 32
PIECE = 1024  # keys: a product over more is summed in parts whose size depends on their number


def attention(q: Tensor, k: Tensor, v: Tensor, attend: Tensor | None) -> Tensor:
    """(B, H, Q, ·) over (B, H, S, ·): softmax(q k / sqrt(width)) v; ``attend`` (B, 1, 1 or Q, S) bool or None."""
    if q.device.type == "cpu" and q.dtype != torch.float32 and not q.requires_grad:
        return even_attention(q, k, v, attend)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=attend)


def even_attention(q: Tensor, k: Tensor, v: Tensor, attend: Tensor | None) -> Tensor:
    """As ``attention``, with the softmax in float32; the result of a query that sees nothing is finite.

    Queries go through in parts whose scores fit into a processor's cache. A query's bits do not depend on its part.
    """
    keys = k.shape[2]
    spare = (0, 0, 0, -keys % STEP)
    q, k, v = q.contiguous(), F.pad(k, spare).contiguous(), F.pad(v, spare).contiguous()
    size = max(LEAST_QUERIES, SCORES // (q.shape[0] * q.shape[1] * k.shape[2]))
    if size >= q.shape[2]:
        return attend_part(q, k, v, keys, attend)
    parts = torch.split(q, size, dim=2)
    own = attend is not None and attend.shape[2] > 1  # each query has a mask of its own
    seen = torch.split(attend, size, dim=2) if own and attend is not None else [attend] * len(parts)
    return torch.cat([attend_part(part, k, v, keys, mask) for part, mask in zip(parts, seen, strict=True)], dim=2)


def attend_part(q: Tensor, k: Tensor, v: Tensor, keys: int, attend: Tensor | None) -> Tensor:
    """(B, H, Q, ·) of some queries over padded keys (B, H, S, ·), of which the first ``keys`` are real."""
    score = (q @ k.transpose(2, 3)).float()
    weight = torch.add(build_bias(score, keys, attend), score, alpha=q.shape[3] ** -0.5).softmax(dim=3).to(v.dtype)
    mixed = weight[..., :PIECE] @ v[:, :, :PIECE]
    for start in range(PIECE, k.shape[2], PIECE):
        mixed += weight[..., start : start + PIECE] @ v[:, :, start : start + PIECE]
    return mixed


def build_bias(score: Tensor, keys: int, attend: Tensor | None) -> Tensor:
    """(B or 1, 1, 1 or Q, S) float32: 0 for keys that are seen, and so low for the others that their weight is 0.

    One small tensor is added to the scores, because filling the scores themselves is several times slower.
    """
    lowest = torch.finfo(score.dtype).min
    shape = (1, 1, 1) if attend is None else attend.shape[:3]
    hidden = score.new_full((*shape, score.shape[3]), lowest)
    hidden[..., :keys] = 0.0 if attend is None else (~attend).to(score.dtype).mul_(lowest)
    return hidden
