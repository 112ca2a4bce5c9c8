"""Three local signs of redundancy on top of a fixed threshold: sure clusters, repeated tokens, settled predictions.

R2-dLLM, arXiv:2604.18995. First commit masked c >= tau and the best one (Fast-dLLM). Then, each seeing the masks left:
(a) every ``cluster`` consecutive positions with at most ``decoded`` of them not masked: if the mean c of their masks is
    >= tau_cluster, commit them all;
(b) every run of two or more adjacent masks with the same proposal, the best c of which is > tau_run: commit one of them
    (the most confident or the middle one);
(c) masks whose proposal has been the same for ``steps`` steps, with the last, mean or largest c of these >= tau_steady.
Ties go to the lower position. Thresholds above 1 switch a part off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from starr.decode.ranking import with_best
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import NEAR, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class R2(Strategy):
    """Commit where confidence >= tau, in confident clusters, in repetitions, and where the proposal is steady."""

    name: ClassVar[str] = "r2"
    paper: ClassVar[str] = "R2-dLLM, arXiv:2604.18995"
    sweep: ClassVar[Sweep] = Sweep(NEAR)
    tau: float = option(0.9, "commit where confidence is at least this", low=0.0, high=2.0)
    cluster: int = option(3, "positions of a cluster", low=1, high=64)
    decoded: int = option(1, "at most this many of a cluster may be decoded", low=0)
    tau_cluster: float = option(0.8, "commit a cluster whose mean confidence is at least this", low=0.0, high=2.0)
    tau_run: float = option(0.8, "commit one of a repetition with a confidence above this", low=0.0, high=2.0)
    pick: str = option("confident", "which one of a repetition", choices=("confident", "middle"))
    steps: int = option(3, "a proposal is steady after this many equal steps", low=1)
    tau_steady: float = option(0.8, "commit a steady proposal of at least this confidence", low=0.0, high=2.0)
    steady: str = option("last", "which confidence of the equal steps", choices=("last", "mean", "max"))

    def begin(self, view: StepView) -> Carry:
        """(B, W): the proposal of the last step (-1: none), for how many steps, their summed and largest confidence."""
        zero = torch.zeros_like(view.confidence)
        equal = torch.zeros_like(view.tokens)
        return {"token": equal - 1, "equal": equal, "sum": zero, "max": zero}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        chosen = view.masked & (view.confidence >= self.tau)
        chosen = with_best(chosen, view.sureness, view.masked)
        chosen |= self.clusters(view, view.masked & ~chosen)
        chosen |= self.runs(view, view.masked & ~chosen)
        carry = follow(view, carry)
        value = {"last": view.confidence, "mean": carry["sum"] / carry["equal"].clamp(min=1), "max": carry["max"]}
        chosen |= view.masked & (carry["equal"] >= self.steps) & (value[self.steady] >= self.tau_steady)
        return Decision(commits(chosen), torch.full_like(view.confidence, self.tau)), carry

    def clusters(self, view: StepView, left: Tensor) -> Tensor:
        """(a) as (B, W) bool: a cumulative sum gives every cluster's masks and their confidence at once."""
        size, width = self.cluster, left.shape[1]
        if width < size:
            return torch.zeros_like(left)
        value = torch.stack([left.double(), view.confidence.double() * left])
        sums = functional.pad(value.cumsum(dim=2), (1, 0))
        masks, confidence = sums[..., size:] - sums[..., :-size]  # (B, W - size + 1), by the cluster's first position
        sure = (masks >= max(size - self.decoded, 1)) & (confidence >= self.tau_cluster * masks)
        sure &= view.inside[:, size - 1 :]
        starts = functional.pad(sure.long(), (1, width - sure.shape[1]))
        covers = functional.pad(starts.cumsum(dim=1), (size - 1, 0))
        return left & (covers[:, size:] > covers[:, :-size])

    def runs(self, view: StepView, left: Tensor) -> Tensor:
        """(b) as (B, W) bool; ``run`` numbers the runs of a row, 0 being what comes before the first."""
        joined = torch.zeros_like(left)
        joined[:, 1:] = left[:, 1:] & left[:, :-1] & (view.proposal[:, 1:] == view.proposal[:, :-1])
        run = (left & ~joined).long().cumsum(dim=1)
        among = left.long()
        index = torch.arange(left.shape[1], device=left.device).expand_as(run)
        zero = torch.zeros(left.shape[0], left.shape[1] + 1, device=left.device)
        length = zero.long().scatter_add_(1, run, among).gather(1, run)
        top = zero.scatter_reduce(1, run, view.confidence * among, "amax").gather(1, run)
        wanted = left & (length >= 2) & (top > self.tau_run)
        if self.pick == "confident":
            wanted &= view.confidence == top
            first = torch.full_like(zero, left.shape[1]).long()
            first = first.scatter_reduce(1, run, index.masked_fill(~wanted, left.shape[1]), "amin").gather(1, run)
            return wanted & (index == first)
        begins = zero.long().scatter_add_(1, run, index * (left & ~joined)).gather(1, run)
        return wanted & (index == begins + length // 2)


def follow(view: StepView, carry: Carry) -> dict[str, Tensor]:
    """The record of equal proposals after this step; positions that are not masked start over."""
    stays = view.masked & (view.proposal == carry["token"])
    return {
        "token": view.proposal.masked_fill(~view.masked, -1),
        "equal": carry["equal"] * stays + 1,
        "sum": carry["sum"] * stays + view.confidence,
        "max": torch.maximum(carry["max"] * stays, view.confidence),
    }
