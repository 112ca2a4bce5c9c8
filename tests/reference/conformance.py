"""Our strategies and caches beside whole loops of their rules: how many prompts give the same tokens and forwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import starr
from tests.reference.loops import Loop


@dataclass(frozen=True)
class Case:
    """One comparison: our text forms and block length, and the loop that they should equal."""

    strategy: str
    block: int | None
    run: Callable[[Loop, int], None]  # loop and block length
    whose: str
    differs: str = "nothing known"
    cache: str = "none"
    stop: str = "none"
    loop: Callable[..., Loop] = Loop  # of model, prompt and length
    smoothing: float = 0.0
    shifted: bool = True  # whether the loop knows models that predict the next position

    @property
    def name(self) -> str:
        smooth = f"smoothing {self.smoothing:g}" if self.smoothing else "none"
        return " + ".join([self.strategy, *(part for part in (self.cache, self.stop, smooth) if part != "none")])


@dataclass(frozen=True)
class Found:
    tokens: int
    forwards: int
    prompts: int


def compared(model, case: Case, prompts: list[list[int]], length: int) -> Found:
    """Ours and theirs over the prompts, both in the model's dtype."""
    form = case.strategy.format(half=length // 2)
    given = {"strategy": form, "cache": case.cache, "stop_rule": case.stop, "smoothing": case.smoothing}
    ours = starr.generate(model, prompts, max_tokens=length, block_length=case.block, batch_size=8, **given)
    tokens = forwards = 0
    for prompt, result in zip(prompts, ours, strict=True):
        loop = case.loop(model, prompt, length)
        case.run(loop, case.block or length)
        tokens += loop.text == result.tokens
        forwards += loop.forwards == result.stats.forwards
    return Found(tokens, forwards, len(prompts))
