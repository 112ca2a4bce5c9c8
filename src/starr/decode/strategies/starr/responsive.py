"""Responsiveness: the Suspected Slow and Suspected Fast labels (paper section 5).

Slow: a position left or made masked with 0 <= tau - c <= c_slow in t_max consecutive steps is committed all the same.
Fast: a token committed in the first t_start steps with 0 < c - tau <= c_fast is watched until then, and revoked as
soon as the model's first choice is another token.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from starr.decode.view import StepView


@dataclass(frozen=True, slots=True)
class Margins:
    """t_start, c_fast, c_slow and t_max of the paper."""

    fast_steps: int
    fast_margin: float
    slow_margin: float
    patience: int


@dataclass(frozen=True, slots=True)
class Labels:
    """What the labels do in this step, and what is remembered of them; all (B, W)."""

    forced: Tensor  # bool: near misses whose patience is over; a masked one is committed, a held one stays
    changed: Tensor  # bool: watched tokens that the model would now write otherwise, to be revoked
    near: Tensor  # int64: consecutive near misses so far
    watched: Tensor  # bool: carrying the Suspected Fast label


def respond(view: StepView, gap: Tensor, near: Tensor, watched: Tensor, margins: Margins) -> Labels:
    """Labels (B, W) from the gap tau - c (B, W) and what was remembered.

    A held token starts its count over, because a commit ends it; so it can only be forced when patience is 1. A token
    that is held no more loses its watch here, one step after its revocation, so a revocation that ``enforce`` did not
    let through stays watched.
    """
    early = (view.step < margins.fast_steps)[:, None]
    watched = watched & view.held & early
    changed = watched & (view.proposal != view.tokens)
    narrow = view.masked & (gap < 0) & (gap >= -margins.fast_margin)
    missed = ~view.frozen & (gap >= 0) & (gap <= margins.slow_margin)
    count = (near * view.masked + 1) * missed
    return Labels(count >= margins.patience, changed, count, watched | narrow)
