"""Whole decoding loops, word for word: the bare network, float64 probabilities without any grid, one row, no cache.

``llada`` and ``dream`` are transcriptions of whole loops; ``by_rule`` drives any of the slow transcriptions beside it.
Nothing of the decoding engine is used, so that what agrees with it agrees for a reason. Rows end as the engine ends
them: at an end-of-text with everything before it held. Forwards are counted up to that point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tests.decode.strategies.driver import Row


@dataclass
class Loop:
    """A prompt, a canvas of masks behind it, and the network that sees both."""

    model: object
    prompt: list[int]
    length: int
    forwards: int = 0
    canvas: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mask, self.ends = self.model.spec.mask_id, set(self.model.spec.eos_ids)
        self.canvas, self.shadow = [self.mask] * self.length, [0.0] * self.length

    @property
    def masked(self) -> list[bool]:
        return [token == self.mask for token in self.canvas]

    @property
    def done(self) -> bool:
        """No mask is left, or an end-of-text has none before it."""
        for token in self.canvas:
            if token == self.mask:
                return False
            if token in self.ends:
                return True
        return True

    @torch.inference_mode()
    def logits(self) -> Tensor:
        """(length, V) float64 of the canvas after one forward, the mask's own at -inf."""
        self.forwards += 1
        tokens = torch.tensor([self.prompt + self.canvas])
        return self.predicted(self.model.net(tokens)[0])

    def predicted(self, states: Tensor) -> Tensor:
        """(length, V) float64 of the canvas, from the states of the whole row."""
        first = len(self.prompt) - (1 if self.model.spec.shift else 0)
        found = self.model.net.head(states[first : first + self.length]).double()
        found[:, self.mask] = -torch.inf
        return found

    @property
    def text(self) -> list[int]:
        """Tokens before the first end-of-text."""
        kept = []
        for token in self.canvas:
            if token in self.ends or token == self.mask:
                break
            kept.append(token)
        return kept


def llada(loop: Loop, steps: int, block: int) -> None:
    """LLaDA's ``generate`` at temperature 0 with low-confidence remasking."""
    blocks = loop.length // block
    steps_of_block = steps // blocks
    for number in range(blocks):
        start, end = number * block, (number + 1) * block
        masks = sum(loop.masked[start:end])
        base, more = divmod(masks, steps_of_block)
        for step in range(steps_of_block):
            if loop.done:
                return
            probability, token = loop.logits().softmax(dim=-1).max(dim=-1)
            hidden = torch.tensor([not m or at >= end for at, m in enumerate(loop.masked)])
            confidence = probability.masked_fill(hidden, -math.inf)
            for at in confidence.topk(base + (step < more)).indices.tolist():
                loop.canvas[at] = int(token[at])


def dream(loop: Loop, steps: int, score: str, eps: float = 1e-3) -> None:
    """Dream's ``diffusion_generate`` at temperature 0; a step that it leaves empty commits one, as ours does."""
    times = torch.linspace(1, eps, steps + 1).tolist()
    for step in range(steps):
        if loop.done:
            return
        probability = loop.logits().softmax(dim=-1)
        top = probability.topk(2, dim=-1)
        value = {
            "confidence": top.values[:, 0],
            "margin": top.values[:, 0] - top.values[:, 1],
            "entropy": (probability * (probability + 1e-10).log()).sum(dim=-1),
        }[score]
        masks = sum(loop.masked)
        share = 1 if step == steps - 1 else 1 - times[step + 1] / times[step]
        count = max(int(masks * share), 1)
        value = value.masked_fill(~torch.tensor(loop.masked), -math.inf)
        for at in value.topk(count).indices.tolist():
            loop.canvas[at] = int(top.indices[at, 0])


@dataclass(frozen=True)
class Reach:
    """Which part of the canvas a rule sees: a block, or more; ``back`` from the start, ``ahead`` to the end."""

    block: int
    back: bool = False
    ahead: bool = False


def by_rule(loop: Loop, rule, reach: Reach, most: int, distribution: bool = False) -> None:
    """Drive a slow transcription over the canvas, block by block, for at most ``most`` forwards."""
    windows, step, opened = -(-loop.length // reach.block), 0, None
    while not loop.done and loop.forwards < most:
        first = loop.masked.index(True) // reach.block
        if reach.back and opened is not None:
            first = max(first, opened)
        if opened is None or (first > opened and not reach.ahead):
            rule.open()
            opened, step = first, 0
        start = 0 if reach.back or reach.ahead else opened * reach.block
        end = loop.length if reach.ahead else min((opened + 1) * reach.block, loop.length)
        row = row_of(loop, start, end, step, windows, reach.block, distribution)
        word = rule.step(row)
        action, tokens = (word, None) if isinstance(word, list) else (word.action, word.tokens)
        carry_out(loop, action, tokens or row.proposal, start)
        step += 1


def carry_out(loop: Loop, action: list[int], tokens: list[int], start: int) -> None:
    """Write what was committed or revised, and mask what was revoked."""
    for at, act in enumerate(action):
        if act in (1, 3):
            loop.canvas[start + at] = tokens[at]
        elif act == 2:
            loop.canvas[start + at] = loop.mask


def row_of(loop: Loop, start: int, end: int, step: int, windows: int, block: int, distribution: bool) -> Row:
    """What a transcription reads of one forward, without rounding."""
    logits = loop.logits()[start:end]
    probability = logits.softmax(dim=-1)
    top = probability.topk(2, dim=-1)
    tokens, masked = loop.canvas[start:end], loop.masked[start:end]
    own = probability.gather(1, torch.tensor(tokens)[:, None])[:, 0]
    confidence = torch.where(torch.tensor(masked), top.values[:, 0], own)
    entropy = torch.distributions.Categorical(probs=probability).entropy()
    return Row(
        tokens=tokens, masked=masked, frozen=[False] * (end - start), proposal=top.indices[:, 0].tolist(),
        confidence=confidence.tolist(), best=top.values[:, 0].tolist(), step=step, width=end - start,
        windows=windows, block=block, entropy=entropy.tolist(),
        margin=(top.values[:, 0] - top.values[:, 1]).tolist(),
        distribution=logits.tolist() if distribution else [], shadow=loop.shadow[start:end],
        noise=[0.0] * (end - start),
    )  # fmt: skip
