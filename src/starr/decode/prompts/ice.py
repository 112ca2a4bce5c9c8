"""In-place chain of thought (ICE, arXiv:2508.10736): thinking sections and an answer section on one canvas.

The canvas is "Step 1:" masks "Step 2:" masks ... lead-in, masks. Template text is frozen. While thinking, the strategy
decodes thinking positions only. Before each commit the mean confidence of the answer is compared with the threshold
(>=); when it is reached, or no thinking mask is left, or no step is left, the answer is committed whole and the run
ends. Thinking masks that remain are dropped from the text, or committed with it if ``fill``.

No end-of-text is proposed while thinking, nor as the answer's first token: the template says that the text goes on. The
mean is taken over the answer's tokens; positions where an end-of-text is proposed are no part of it, else a short
answer in a long section would always be sure. With a cache an answer that is sure by old K/V is looked at again: the
next forward computes every position, and only such a one ends the run early.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from starr.decode.prompts.layout import Layout, lay_out
from starr.decode.stops.base import Moment, StopRule, Verdict
from starr.decode.view import StepView
from starr.errors import InputError
from starr.named import Entry, Registry, check, option

if TYPE_CHECKING:
    from starr.decode.canvas import Canvas
    from starr.decode.request import Request

ICES: Registry[Ice] = Registry("ice")


@ICES.add
@dataclass(frozen=True, kw_only=True)
class Ice:
    """Thinking sections and an answer section on one canvas."""

    name: ClassVar[str] = "ice"
    paper: ClassVar[str] = "ICE, arXiv:2508.10736"
    steps: int = option(3, "thinking sections", low=1, high=1024)
    length: int | None = option(None, "masks of a thinking section, on average; none fills max_tokens", low=1)
    answer: int = option(8, "masks of the answer section", low=1)
    allocation: str = option("even", "where thinking masks go", choices=("even", "front", "back"))
    threshold: float = option(0.8, "mean confidence of the answer that ends the run", low=0.0, high=2.0)
    fill: bool = option(False, "commit the thinking masks that remain, instead of dropping them")
    mark: str = option("Step {}:", "text before each thinking section; {} is its number")
    lead: str = option("####", "text before the answer")

    def __post_init__(self) -> None:
        check(self)

    def layout(self, encode: Callable[[str], list[int]], mask_id: int, max_tokens: int) -> tuple[Layout, int]:
        """The canvas, and the place of the answer's first mask on it."""
        marks = [self.mark.replace("{}", str(n)) for n in range(1, self.steps + 1)]
        texts = [*(f"\n{mark}" if n else mark for n, mark in enumerate(marks)), f"\n{self.lead}"]
        tokens = {text: encode(text) for text in texts}  # each text once
        template = sum(len(tokens[text]) for text in texts)
        room = max_tokens - template - self.answer
        thinking = room if self.length is None else self.length * self.steps
        if max(thinking, self.steps) > room:
            raise InputError(
                f"The {self.name} template needs {template + self.answer + max(thinking, self.steps)} positions "
                f"({template} of text, {self.answer} for the answer), max_tokens is {max_tokens}.",
                hint="Raise max_tokens, or take fewer or shorter steps.",
                param="ice",
            )
        sizes = allocate(thinking, self.steps, self.allocation)
        parts = [part for text, size in zip(texts, [*sizes, self.answer], strict=True) for part in (text, size)]
        found = lay_out(parts, tokens.__getitem__, mask_id)
        return found, len(found.tokens) - self.answer

    def rule(self, answer_start: int) -> Answer:
        """The stop rule of a canvas whose answer starts there."""
        return Answer(start=answer_start, threshold=self.threshold, fill=self.fill)


@ICES.add
@dataclass(frozen=True, kw_only=True)
class SpeedIce(Ice):
    """ICE with speed first: threshold 0.8."""

    name: ClassVar[str] = "ice-sp"


@ICES.add
@dataclass(frozen=True, kw_only=True)
class PerformanceIce(Ice):
    """ICE with accuracy first: threshold 0.9."""

    name: ClassVar[str] = "ice-pp"
    threshold: float = option(0.9, "mean confidence of the answer that ends the run", low=0.0, high=2.0)


def ices() -> list[Entry[Ice]]:
    """All templates, by name, with paper, options and defaults."""
    return ICES.all()


def allocate(total: int, sections: int, allocation: str) -> list[int]:
    """Masks of each section, at least one: equal shares, or shares falling (front) or rising (back) evenly.

    One mask goes to every section; the rest by the largest remainder, ties to the earlier section.
    """
    weights = {"even": [1] * sections, "front": list(range(sections, 0, -1)), "back": list(range(1, sections + 1))}
    chosen, rest = weights[allocation], total - sections
    exact = [rest * weight / sum(chosen) for weight in chosen]
    sizes = [int(share) for share in exact]
    order = sorted(range(sections), key=lambda i: (sizes[i] - exact[i], i))
    for i in order[: rest - sum(sizes)]:
        sizes[i] += 1
    return [size + 1 for size in sizes]


@dataclass(frozen=True, kw_only=True)
class Answer(StopRule):
    """Think first; commit the answer in one step when it is sure enough."""

    name: ClassVar[str] = "ice"
    paper: ClassVar[str] = "ICE, arXiv:2508.10736"
    start: int = option(0, "the answer's first position on the canvas", low=0)
    threshold: float = option(0.8, "mean confidence of the answer that ends the run", low=0.0, high=2.0)
    fill: bool = option(False, "commit the thinking masks that remain, instead of dropping them")

    def check_request(self, request: Request) -> None:
        why = None
        if request.block_length is not None:
            why = "it watches the whole canvas, and block_length shows only part of it"
        elif request.strategy.scope == "moving":
            why = f"{request.strategy.name} moves the end of the window"
        if why:
            raise InputError(f"In-place prompting cannot be used: {why}.", hint="Leave one of them out.", param="ice")

    def ends_now(self) -> bool:
        return True

    def looks_again(self) -> bool:
        return True

    def drops(self) -> bool:
        return not self.fill

    def answer(self, view: StepView, moment: Moment) -> Tensor:
        """(B, W) bool: masks of the answer section."""
        position = moment.offset[:, None] + torch.arange(view.masked.shape[1], device=view.masked.device)
        return view.masked & (position >= self.start)

    def hides(self, view: StepView, moment: Moment) -> Tensor:
        return self.answer(view, moment)

    def sure(self, confidence: Tensor, spoken: Tensor) -> Tensor:
        """(B,) bool: the mean confidence of the ``spoken`` positions (B, any) is at least the threshold."""
        total = confidence.masked_fill(~spoken, 0.0).sum(dim=1)
        return total >= self.threshold * spoken.sum(dim=1).clamp(min=1)

    def nears(self, canvas: Canvas, eos_ids: Tensor) -> Tensor:
        """Only positions of the window that were seen count; before the first forward there are none."""
        place = canvas.column_index - canvas.rules.start[:, None]
        answer = canvas.masked & canvas.last.seen & (place >= self.start)
        return answer.any(dim=1) & self.sure(
            canvas.last.confidence, answer & ~torch.isin(canvas.last.proposal, eos_ids)
        )

    def judge(self, view: StepView, moment: Moment) -> Verdict:
        answer = self.answer(view, moment)
        sure = self.sure(view.confidence, answer & ~moment.ending)
        thinking = (view.masked & ~answer).any(dim=1)
        end = (sure & moment.fresh) | ~thinking | moment.last
        return Verdict(end, view.masked if self.fill else answer, drop=end)
