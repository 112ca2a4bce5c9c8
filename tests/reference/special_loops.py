"""Loops that need more of the network than a plain forward, or whose windows or canvases move.

Like ``loops`` they use nothing of the decoding engine: K/V are kept position by position, as the caches' papers say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from starr.model.network.transformer import KVBuffer
from tests.reference.loops import Loop, carry_out, row_of


@dataclass
class CachedLoop(Loop):
    """Forwards over some positions, against the K/V that earlier forwards left.

    The first forward of a block is a whole one. Then prefix: from the block's start on. dual: the block. dkv: all but
    what was held before the last forward, and everything in the block's second forward and every 8th.
    """

    cache: str = "prefix"
    block: int = 32
    opened: int = -1
    step: int = 0
    old: set[int] = field(default_factory=set)  # held before the last forward

    def __post_init__(self) -> None:
        super().__post_init__()
        net, size = self.model.net, len(self.prompt) + self.length
        self.buffer = KVBuffer.empty(net.shape, 1, size, net.embed.weight)
        self.states = net.embed.weight.new_zeros(size, net.shape.width)

    def query(self) -> list[int]:
        """Positions of the next forward, the prompt's included."""
        size, number = len(self.prompt) + self.length, self.masked.index(True) // self.block
        self.opened, self.step = number, 0 if number > self.opened else self.step + 1
        start = len(self.prompt) + number * self.block
        held = {i for i in range(size) if i < len(self.prompt) or not self.masked[i - len(self.prompt)]}
        chosen = {
            "prefix": set(range(start, size)),
            "dual": set(range(start, min(start + self.block, size))),
            "dkv": set(range(size)) - self.old,
        }[self.cache]
        whole = self.step == 0 or (self.cache == "dkv" and (self.step == 1 or self.step % 8 == 0))
        self.old = held
        return sorted(range(size)) if whole else sorted(chosen)

    @torch.inference_mode()
    def logits(self) -> Tensor:
        self.forwards += 1
        at = torch.tensor([self.query()])
        tokens = torch.tensor([self.prompt + self.canvas]).gather(1, at)
        self.states[at[0]] = self.model.net(tokens, at, None, self.buffer, at)[0]
        return self.predicted(self.states)


@dataclass
class ShadowLoop(Loop):
    """WINO: a second block of masks at the open block's positions, each blind to the token that it stands for.

    Where logits are shifted: for each token a copy of the one before it and a mask, which see each other and the row
    without these two.
    """

    block: int = 32

    @torch.inference_mode()
    def logits(self) -> Tensor:
        first = self.masked.index(True) // self.block * self.block
        if self.model.spec.shift:
            for j in range(first, first + self.block):
                self.shadow[j] = 0.0 if self.masked[j] else leave_one_out(self, j)[self.canvas[j]]
            return super().logits()
        self.forwards += 1
        size = len(self.prompt) + self.length
        start = len(self.prompt) + first
        tokens = torch.tensor([self.prompt + self.canvas + [self.mask] * self.block])
        positions = torch.tensor([[*range(size), *range(start, start + self.block)]])
        sees = torch.ones(size + self.block, size + self.block, dtype=torch.bool)
        sees[:size, size:] = False
        for j in range(self.block):
            sees[size + j, start + j] = False
        states = self.model.net(tokens, positions, sees[None])[0]
        alone = self.model.net.head(states[size:]).double()
        alone[:, self.mask] = -torch.inf
        probability = alone.softmax(dim=-1)
        self.shadow = [0.0] * self.length
        for j in range(self.block):
            self.shadow[first + j] = float(probability[j, self.canvas[first + j]])
        return self.predicted(states[:size])


@torch.inference_mode()
def leave_one_out(loop: Loop, j: int) -> list[float]:
    """What a shadow of canvas position ``j`` predicts there, from a forward of its own."""
    row, at = loop.prompt + loop.canvas, len(loop.prompt) + j
    size, shift = len(row), loop.model.spec.shift
    extra = [at - 1, at] if shift else [at]
    tokens = torch.tensor([row + ([row[at - 1]] if shift else []) + [loop.mask]])
    sees = torch.zeros(1, size + len(extra), size + len(extra), dtype=torch.bool)
    sees[0, :size, :size] = True
    sees[0, size:] = True
    sees[0, size:, extra] = False
    state = loop.model.net(tokens, torch.tensor([[*range(size), *extra]]), sees)[0, size]
    logits = loop.model.net.head(state).double()
    logits[loop.mask] = -torch.inf
    return logits.softmax(dim=-1).tolist()


@dataclass
class SmoothedLoop(Loop):
    """dInfer: an observed mask is E[mask] plus ``weight`` times the mean embedding of what was predicted there."""

    weight: float = 1.0
    block: int = 10**6

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seen = [None] * self.length  # the last distribution of each position

    @torch.inference_mode()
    def logits(self) -> Tensor:
        self.forwards += 1
        embeddings, prompt = self.model.net.embed.weight.double(), len(self.prompt)
        added = torch.zeros(1, prompt + self.length, embeddings.shape[1])
        for at in range(self.length):
            if self.masked[at] and self.seen[at] is not None:
                added[0, prompt + at] = self.weight * (self.seen[at] @ embeddings)
        found = self.predicted(self.model.net(torch.tensor([self.prompt + self.canvas]), added=added)[0])
        first = self.masked.index(True) // self.block * self.block
        for at in range(first, min(first + self.block, self.length)):
            self.seen[at] = found[at].softmax(dim=-1)
        return found


def moving_end(loop: Loop, rule) -> None:
    """AdaBlock: a window opens over the whole rest, and the rule says where it ends."""
    start, end, step = 0, loop.length, 0
    while not loop.done:
        row = row_of(loop, start, end, step, 1, loop.length, False)
        word = rule.step(row)
        carry_out(loop, word.action, row.proposal, start)
        end, step = start + word.end, step + 1
        if not any(loop.masked[start:end]):
            start, end, step = end, loop.length, 0


def editing(loop: Loop, rule, block: int, extra: int = 16) -> None:
    """LLaDA2.1: a block without masks is gone over until a step changes nothing, at most ``extra`` times."""
    for start in range(0, loop.length, block):
        end, again, changed = min(start + block, loop.length), 0, True
        while any(loop.masked[start:end]) or (again < extra and changed):
            full = not any(loop.masked[start:end])
            if loop.done and not full:
                return
            row = row_of(loop, start, end, loop.forwards, loop.length // block, block, False)
            before = list(loop.canvas)
            carry_out(loop, rule.step(row).action, row.proposal, start)
            again, changed = again + full, loop.canvas != before
        if loop.done:
            return


def growing(loop: Loop, rule) -> None:
    """DAEDAL: the rule may insert masks, or end-of-texts, behind a position."""
    rule.open()
    step = 0
    while not loop.done:
        row = row_of(loop, 0, loop.length, step, 1, loop.length, False)
        action, count, behind, ended = rule.step(row)
        carry_out(loop, action, row.proposal, 0)
        loop.canvas[behind + 1 : behind + 1] = [min(loop.ends) if ended else loop.mask] * count
        loop.length, step = loop.length + count, step + 1


def early(loop: Loop, start: int, count: int) -> None:
    """Prophet on LLaDA's order, one a step: all masks at once when the answer's logits lie far enough apart."""
    steps = loop.length
    for step in range(1, steps + 1):
        if loop.done:
            return
        logits = loop.logits()
        two = logits.topk(2, dim=-1)
        gap = two.values[:, 0] - two.values[:, 1]
        mean = sum(float(gap[at]) for at in range(start, start + count)) / count
        bar = 7.5 if step / steps < 0.33 else 5.0 if step / steps < 0.67 else 2.5
        masks = [at for at in range(loop.length) if loop.masked[at]]
        if mean < bar:
            best = logits.softmax(dim=-1).amax(dim=-1)
            masks = [max(masks, key=lambda at: (float(best[at]), -at))]
        for at in masks:
            loop.canvas[at] = int(two.indices[at, 0])
