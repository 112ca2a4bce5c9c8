"""Random numbers that depend only on (seed, step, position, index): no state, so a row draws the same in any batch.

A counter is hashed by two rounds of multiply-xorshift on 32 bits, held in int64 so that CPU and GPU agree to the bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

_LOW = 0xFFFFFFFF
ROWS_ON_CPU = 2


def mix(x: Tensor) -> Tensor:
    """A bijective 32-bit hash, elementwise."""
    x = x & _LOW
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & _LOW
    x = ((x ^ (x >> 15)) * 0x846CA68B) & _LOW
    return x ^ (x >> 16)


def keys(seed: Tensor, step: Tensor, position: Tensor, stream: int) -> Tensor:
    """One key per place, by hashing the coordinates one after another; shapes broadcast."""
    return mix(mix(mix(mix(seed) + 0x9E3779B9 * (step + 1)) + 0x85EBCA6B * (position + 1)) + stream)


def uniform(key: Tensor) -> Tensor:
    """Float32 in the open interval (0, 1): 23 bits, centred so that neither end occurs."""
    return ((key >> 9).float() + 0.5) * 2.0**-23


def gumbel(key: Tensor, size: int) -> Tensor:
    """Gumbel noise (N, size) for keys (N,): -log(-log(u)), u = uniform(mix(key + golden * index)), index from 1.

    A CPU makes it a few rows at a time, so that every pass over them stays in its cache.
    """
    index = torch.arange(1, size + 1, device=key.device)
    counter = (0x9E3779B9 * index).int()  # modulo 2^32, as all that follows
    rows = ROWS_ON_CPU if key.device.type == "cpu" else max(len(key), 1)
    return torch.cat([gumbel_rows(some.int()[:, None] + counter) for some in torch.split(key, rows)])


def gumbel_rows(x: Tensor) -> Tensor:
    """Gumbel noise of counters (N, size) int32, which are overwritten; its bits are those of ``mix``, ``uniform``."""
    x ^= (x >> 16).bitwise_and_(0xFFFF)
    x *= 0x7FEB352D
    x ^= (x >> 15).bitwise_and_(0x1FFFF)
    x *= 0x846CA68B - (1 << 32)
    x ^= (x >> 16).bitwise_and_(0xFFFF)
    draw = (x >> 9).bitwise_and_(0x7FFFFF).float().add_(0.5).mul_(2.0**-23)
    return draw.log_().neg_().log_().neg_()
