"""Random commits and random revocations on a noise schedule.

ReMDM, arXiv:2503.00307. A window takes T steps; step k goes from time t = 1 - k/T to s = 1 - (k+1)/T. With alpha the
share of tokens meant to be decoded (1 - t), a held token is revoked with probability sigma, a masked position
committed with probability (alpha_s - (1 - sigma) alpha_t) / (1 - alpha_t); the last step (s = 0) commits all. An
event of probability p happens where noise < p.

- cap: sigma = min(eta, sigma_max), sigma_max = min(1, (1 - alpha_s) / alpha_t)
- rescale: sigma = eta sigma_max
- conf: sigma = sigma_max softmax(-psi) over held positions, psi the confidence a token was committed with; 0 where
  masked
- loop: no revocation until t_on while alpha rises to alpha_on, then alpha stays there with sigma = eta until t_off,
  then no revocation while alpha rises to 1

A masked position gets the proposal; temperature 1 gives the paper's sampling. Where a step must commit
(``enforce=strict``) and draws nothing, it is the position with the least noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.strategies.base import Strategy
from starr.decode.strategies.schedule import steps_per_window
from starr.decode.strategies.sweep import REVOKE, TOKENS_PER_STEP, Sweep
from starr.decode.view import Carry, Decision, StepView, actions
from starr.errors import InputError
from starr.named import option
from starr.plugins import register

ETA = {"cap": 0.008, "rescale": 0.015, "loop": 0.02}


@register
@dataclass(frozen=True, kw_only=True)
class ReMDM(Strategy):
    """Commit and revoke at random, on a schedule that ends with everything committed."""

    name: ClassVar[str] = "remdm"
    paper: ClassVar[str] = "ReMDM, arXiv:2503.00307"
    sweep: ClassVar[Sweep] = Sweep(REVOKE, "steps", TOKENS_PER_STEP)
    signals: ClassVar[frozenset[str]] = frozenset({"noise"})
    variant: str = option("cap", "how the probability of revoking is set", choices=("cap", "rescale", "conf", "loop"))
    eta: float | None = option(
        None, "size of that probability (conf: unused); none is cap 0.008, rescale 0.015, loop 0.02", low=0.0, high=1.0
    )
    steps: int | None = option(
        None, "steps over all windows; none takes as many as the window has positions", low=1, high=4096
    )
    t_on: float = option(0.55, "loop: the time at which revoking starts", low=0.0, high=0.999)
    t_off: float = option(0.05, "loop: the time at which revoking ends; at most t_on", low=0.0, high=0.999)
    alpha_on: float = option(0.9, "loop: the share decoded while revoking", low=0.0, high=0.999)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.t_off > self.t_on:
            raise InputError(f"remdm: t_off must be at most t_on ({self.t_on:g}), got {self.t_off:g}.", param="t_off")

    def revokes(self) -> bool:
        return True

    def ends_within(self, masks: int, length: int, windows: int) -> int:
        """Its last step of a window commits all."""
        return length if self.steps is None else max(self.steps // windows, 1) * windows

    def begin(self, view: StepView) -> Carry:
        zeros = torch.zeros_like(view.confidence)
        return {"masked": view.masked, "seen": zeros, "psi": zeros} if self.variant == "conf" else {}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        assert view.noise is not None
        total = steps_per_window(view, self.steps)
        t = (1.0 - view.step.double() / total)[:, None]
        s = (1.0 - (view.step + 1).double() / total)[:, None].clamp_min(0.0)
        alpha_t, alpha_s = self.alpha(t, t), self.alpha(s, t)
        carry = self.remember(view, carry)
        sigma = self.sigma(view, carry, t, torch.where(alpha_t > 0, (1.0 - alpha_s) / alpha_t, 1.0).clamp(0.0, 1.0))
        chance = (alpha_s - (1.0 - sigma) * alpha_t) / (1.0 - alpha_t)
        last = s <= 0.0
        chosen = view.masked & (last | (view.noise < chance))
        revoked = view.held & ~last & (view.noise < sigma)
        return Decision(actions(chosen, revoked), order=-view.noise), carry

    def alpha(self, time: Tensor, phase: Tensor) -> Tensor:
        """Share (B, 1) meant to be decoded at a time, within the phase that the time ``phase`` lies in."""
        if self.variant != "loop":
            return 1.0 - time
        before = (1.0 - time) * self.alpha_on / (1.0 - self.t_on)
        after = 1.0 - time * (1.0 - self.alpha_on) / max(self.t_off, 1e-9)
        looping = torch.full_like(time, self.alpha_on)
        return torch.where(phase > self.t_on, before, torch.where(phase > self.t_off, looping, after))

    def sigma(self, view: StepView, carry: Carry, t: Tensor, most: Tensor) -> Tensor:
        """Probability (B, 1) or (B, W) of revoking, given its largest value ``most`` (B, 1) on the schedule."""
        if self.variant == "conf":
            weights = (-carry["psi"].double()).masked_fill(~view.held, -torch.inf).softmax(dim=1)
            return most * weights.masked_fill(~view.held, 0.0)
        eta = ETA[self.variant] if self.eta is None else self.eta
        if self.variant == "cap":
            return most.clamp_max(eta)
        if self.variant == "rescale":
            return eta * most
        return eta * ((t <= self.t_on) & (t > self.t_off)).double()

    def remember(self, view: StepView, carry: Carry) -> Carry:
        """For conf: what each position was last committed with, from the step before: not all decisions are done."""
        if self.variant != "conf":
            return carry
        psi = torch.where(carry["masked"] & view.held, carry["seen"], carry["psi"])
        return {"masked": view.masked, "seen": view.confidence, "psi": psi}
