"""The blend of both thresholds (Eq. 4) and the schedule of its share p."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from starr.errors import InputError


@lru_cache(maxsize=64)
def read_shares(text: str) -> tuple[float, float, float]:
    """The three shares of ``0.6/0.5/0.6``: below 20 % decoded, between, above 80 %; each within [0, 1].

    ``0.3`` is 0.3 throughout.
    """
    parts = text.split("/")
    try:
        early, middle, late = (float(part) for part in (parts * 3 if len(parts) == 1 else parts))
    except ValueError:
        raise wrong_shares(text) from None
    if not all(0.0 <= share <= 1.0 for share in (early, middle, late)):
        raise wrong_shares(text)
    return early, middle, late


def wrong_shares(text: str) -> InputError:
    rule = "starr: blend must be one share or three within [0, 1]"
    return InputError(f"{rule}, got {text!r}.", hint="Write it like 0.6/0.5/0.6, or 0.3.", param="blend")


def share_now(masked: Tensor, held: Tensor, shares: tuple[float, float, float]) -> Tensor:
    """p (B, 1) by the decoded share of the window's open positions before this step; both cuts are strict.

    Counted in whole numbers, so that exactly 20 % and exactly 80 % belong to the middle.
    """
    early, middle, late = shares
    decoded = held.sum(dim=1, keepdim=True)
    total = decoded + masked.sum(dim=1, keepdim=True)
    share = torch.where(decoded * 5 > total * 4, late, torch.full(total.shape, middle, device=total.device))
    return torch.where(decoded * 5 < total, early, share)


def blended(share: Tensor, base: Tensor, neighbour: Tensor) -> Tensor:
    """Eq. 4 (B, W): p * T_base + (1 - p) * T_neighbour, never clipped."""
    return share * base + (1.0 - share) * neighbour
