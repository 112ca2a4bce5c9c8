"""Random numbers that depend only on (seed, step, position, index): no state, so a row draws the same in any batch.

A counter is hashed by two rounds of multiply-xorshift on 32 bits, held in int64 so that CPU and GPU agree to the bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

_LOW = 0xFFFFFFFF


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
    """Gumbel noise (N, size) for keys (N,)."""
    index = torch.arange(1, size + 1, device=key.device)
    return -torch.log(-torch.log(uniform(mix(key[:, None] + 0x9E3779B9 * index))))
