"""STaRR: thresholds that follow each position's own past and its neighbours (arXiv:2601.04205).

A position is decoded after the step iff its confidence c > tau, with tau = p * T_base + (1 - p) * T_neighbour: masked
positions above it are committed, held ones not above it are revoked; then the labels correct near misses. One file per
part: ``temporal`` (Eq. 2, 5), ``spatial`` (Eq. 3, 6), ``blend`` (Eq. 4), ``responsive`` (section 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from starr.decode.strategies.base import Strategy
from starr.decode.strategies.starr.blend import blended, read_shares, share_now
from starr.decode.strategies.starr.responsive import Margins, respond
from starr.decode.strategies.starr.spatial import spatial_threshold
from starr.decode.strategies.starr.temporal import empty_history, remember, temporal_threshold
from starr.decode.strategies.sweep import REVOKE, Sweep
from starr.decode.view import Carry, Decision, Label, StepView, actions
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Starr(Strategy):
    """Commit and revoke by thresholds from each position's past and neighbours, with labels for near misses.

    Dynamics, steps and shares belong to the window: with blocks, to the block. Without ``spatial`` tau is T_base,
    without ``temporal`` it is T_neighbour (the blend plays no part in either), without both it is tau_fixed.
    """

    name: ClassVar[str] = "starr"
    paper: ClassVar[str] = "STaRR, arXiv:2601.04205"
    sweep: ClassVar[Sweep] = Sweep(REVOKE, "scale", (1.0, 2.0, 3.0, 4.0))
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "math500": {"temporal_window": 5, "spatial_window": 2},
        "case_study": {"temporal_window": 5, "warmup_threshold": 0.95},
        "careful": {"scale": 1.0, "blend": "0.5"},  # ours: what starr tune chose by both on word problems
    }

    temporal_window: int = option(3, "W_t: past steps a confidence is compared with", low=1, high=256)
    spatial_window: int = option(3, "W_n: neighbours on either side", low=1, high=256)
    scale: float = option(3.0, "m: weight of the temporal variance", low=0.0, high=100.0)
    warmup_threshold: float = option(0.9, "tau_fixed: used as T_base in the first W_t steps", low=0.0, high=2.0)
    blend: str = option("0.6/0.5/0.6", "p: share of T_base below 20 % decoded, between, above 80 %")
    fast_steps: int = option(10, "t_start: first steps in which fresh tokens are watched", low=0)
    fast_margin: float = option(0.1, "c_fast: a commit at most this far above tau is watched", low=0.0, high=10.0)
    slow_margin: float = option(0.1, "c_slow: at most this far below tau is a near miss", low=0.0, high=10.0)
    patience: int = option(3, "t_max: consecutive near misses until a commit is forced", low=1)
    left_pad: float = option(1.0, "confidence assumed left of the window", low=0.0, high=1.0)
    right_pad: float = option(0.0, "confidence assumed right of the window", low=0.0, high=1.0)
    temporal: bool = option(True, "use the temporal part")
    spatial: bool = option(True, "use the spatial part")
    responsive: bool = option(True, "use the slow and fast labels")
    variance: str = option(
        "signed", "how the temporal variance (Eq. 2) is used", choices=("signed", "positive", "absolute")
    )
    deviance: str = option("signed", "how the spatial deviance (Eq. 3) is used", choices=("signed", "absolute"))
    held_confidence: str = option(
        "best", "confidence of a held token: of the likeliest token, or its own", choices=("best", "own")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        read_shares(self.blend)

    def revokes(self) -> bool:
        return True

    def begin(self, view: StepView) -> Carry:
        carry: dict[str, Tensor] = {}
        if self.temporal:
            carry["history"] = empty_history(view.confidence, self.temporal_window)
        if self.responsive:
            carry["near"] = torch.zeros_like(view.tokens)
            carry["watched"] = torch.zeros_like(view.masked)
        return carry

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        confidence = self.confidence(view)
        threshold = self.threshold(view, confidence, carry)
        after = dict(carry)
        if self.temporal:
            after["history"] = remember(carry["history"], confidence)
        gap = threshold - confidence
        wanted = gap < 0
        commit, revoke = view.masked & wanted, view.held & ~wanted
        if not self.responsive:
            return Decision(actions(commit, revoke), threshold, doubt=gap), after
        margins = Margins(self.fast_steps, self.fast_margin, self.slow_margin, self.patience)
        labels = respond(view, gap, carry["near"], carry["watched"], margins)
        after |= {"near": labels.near, "watched": labels.watched}
        slow = view.masked & labels.forced
        action = actions(commit | slow, (revoke & ~labels.forced) | labels.changed)
        label = slow * int(Label.SLOW) + labels.changed * int(Label.FAST)
        return Decision(action, threshold, label.to(torch.int8), doubt=gap), after

    def confidence(self, view: StepView) -> Tensor:
        """c (B, W): of the proposal where masked; where held, what ``held_confidence`` says."""
        if self.held_confidence == "own":
            return view.confidence
        return torch.where(view.masked, view.confidence, view.best)

    def threshold(self, view: StepView, confidence: Tensor, carry: Carry) -> Tensor:
        """tau (B, W), Eq. 4, or the one part that is switched on."""
        if not self.spatial:
            return self.base(confidence, carry)
        pads = (self.left_pad, self.right_pad)
        neighbour = spatial_threshold(view, confidence, window=self.spatial_window, pads=pads, kind=self.deviance)
        if not self.temporal:
            return neighbour
        share = share_now(view.masked, view.held, read_shares(self.blend))
        return blended(share, self.base(confidence, carry), neighbour)

    def base(self, confidence: Tensor, carry: Carry) -> Tensor:
        """T_base (B, W), Eq. 5; without the temporal part the warm-up never ends."""
        if not self.temporal:
            return torch.full_like(confidence, self.warmup_threshold)
        past, warmup = carry["history"], self.warmup_threshold
        return temporal_threshold(confidence, past, scale=self.scale, warmup=warmup, kind=self.variance)
