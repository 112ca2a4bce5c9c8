"""One row to decode: its canvas layout and every option (``check`` says whether a model can decode it)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from starr.decode.caches.base import Cache
from starr.decode.stops.base import StopRule
from starr.decode.strategies.base import Strategy
from starr.errors import InputError, LengthError
from starr.options import check_option

if TYPE_CHECKING:
    from starr.decode.extras.constraints.compile import Constraint
    from starr.model.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a proposal is drawn from the model's distribution."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0  # 0 is no limit
    guidance: float = 0.0  # classifier-free, LLaDA's cfg_scale
    eos: str = "normal"  # "never": end-of-text is not proposed; "last": it is committed last

    def __post_init__(self) -> None:
        for option in fields(self):
            check_option(option.name, getattr(self, option.name))


@dataclass(frozen=True, slots=True)
class Blocks:
    """Block-causal attention of a row."""

    length: int
    origin: int = 0  # a block starts here, and at every multiple of ``length`` from here
    surplus: int = 0  # masks at the canvas's end that only fill the last block; they are cut off from the result


@dataclass(frozen=True, slots=True)
class Request:
    """A row: ``tokens`` from the first prompt token to the last canvas position, masks where ``masked`` says."""

    tokens: list[int]
    masked: list[bool]
    start: int  # the first canvas position: what comes before is prompt
    strategy: Strategy
    cache: Cache
    sampling: Sampling = field(default_factory=Sampling)
    block_length: int | None = None
    seed: int = 0
    max_forwards: int | None = None
    enforce: str = "safe"
    max_revocations: int = 2  # of one position, where enforce is bounded
    smoothing: float = 0.0  # how much of its last prediction a mask is given
    trace: bool = False
    stream: bool = False
    ends: bool = True  # an end-of-text with everything before it held ends the row
    rules: tuple[StopRule, ...] = ()
    prompt: str = ""
    constraint: Constraint | None = None  # what the canvas's text must keep to
    blocks: Blocks | None = None  # ``in_blocks`` fills it in for block-causal models
    tail: int = 0  # canvas positions at the end with text that follows the answer, and is cut off from it
    candidates: int = 0  # the likeliest tokens of every commit that are kept

    @property
    def length(self) -> int:
        """Canvas positions."""
        return len(self.tokens) - self.start

    @property
    def step_limit(self) -> int:
        """The last step commits whatever is left. Without ``max_forwards`` it is one that safe runs never need.

        That is the bound that ``enforce`` proves, or the one that the strategy gives; literal runs get one step for
        each mask. A guided step is two forwards.
        """
        if self.max_forwards is not None:
            return max(1, self.max_forwards // (2 if self.sampling.guidance else 1))
        most = sum(self.masked)
        if self.ends_itself is not None and self.enforce != "strict":
            most = self.ends_itself
        elif self.enforce == "bounded" and self.strategy.revokes():
            most *= 1 + self.max_revocations
        return most + int(self.strategy.needs().get("extra_steps", 0)) * self.windows

    @property
    def ends_itself(self) -> int | None:
        """Steps within which the strategy's own rule ends the run, if it says so."""
        return self.strategy.ends_within(sum(self.masked), self.length, self.windows)

    @property
    def literal(self) -> bool:
        """Whether the progress rules are off: because that was asked for, or because the strategy ends by itself."""
        return self.enforce == "literal" or (self.enforce != "strict" and self.ends_itself is not None)

    @property
    def endless(self) -> list[bool]:
        """Masks where no end-of-text is proposed, because the template says that the text goes on.

        Where an end-of-text does not end the row: those before the last template token, and the first after it.
        """
        places = range(self.start, len(self.tokens))
        last = max((i for i in places if not self.masked[i]), default=-1) if not self.ends else -1
        return [masked and 0 < i <= last + 1 for i, masked in enumerate(self.masked)]

    @property
    def windows(self) -> int:
        """Windows that the canvas is split into."""
        if self.block_length is None:
            return 1
        before = (self.start - self.origin) % self.block_length  # of the first window, where it holds prompt too
        return -(-(self.length + before) // self.block_length)

    @property
    def origin(self) -> int:
        """Windows end at multiples of ``block_length`` from here."""
        return self.start if self.blocks is None else self.blocks.origin

    @property
    def surplus(self) -> int:
        """Canvas positions at the end that are cut off from the result."""
        return self.tail if self.blocks is None else self.blocks.surplus

    @property
    def kept(self) -> bool:
        """Whether its steps are kept."""
        return self.trace or self.candidates > 0

    def block_starts(self) -> list[int]:
        """Where blocks of attention begin on the canvas, its own start included; empty for full attention."""
        if self.blocks is None:
            return []
        starts = range(self.blocks.origin, len(self.tokens) - self.surplus, self.blocks.length)
        return [0, *(start - self.start for start in starts if start > self.start)]

    def refuse_cache(self, why: str) -> None:
        """Raise: the row cannot be decoded with its cache."""
        raise InputError(f"Cache {self.cache.name} cannot be used: {why}.", hint="Use cache none.", param="cache")


def in_blocks(request: Request, spec: ModelSpec) -> Request:
    """The request as a block-causal model decodes it; itself for other models.

    ``block_length`` is the length of the attention's blocks, and of the windows unless the family has shorter ones. The
    canvas is filled up with masks to whole blocks, as far as the model's context goes.
    """
    if spec.block_length is None or request.blocks is not None:
        return request
    length = spec.block_length if request.block_length is None else request.block_length
    check_option("block_length", length)
    origin = spec.origin(request.start) % length
    total = len(request.tokens)
    surplus = max(0, min((origin - total) % length, spec.max_length - total))
    return replace(
        request,
        tokens=request.tokens + [spec.mask_id] * surplus,
        masked=request.masked + [True] * surplus,
        block_length=min(spec.habits.window or length, length),
        blocks=Blocks(length, origin, surplus),
    )


def check_length(prompt: int, canvas: int, limit: int) -> None:
    """Raise unless both fit; called before a canvas is laid out, too, so that a huge one costs nothing."""
    if prompt + canvas > limit:
        raise LengthError(
            f"Prompt and canvas need {prompt} + {canvas} = {prompt + canvas} positions, the model has {limit}.",
            hint="Shorten the prompt or lower max_tokens.",
            param="max_tokens",
        )


def check_ids(tokens: list[int], size: int) -> None:
    """Raise unless every token id is within a vocabulary of this size."""
    wrong = [token for token in tokens if not 0 <= token < size]
    if wrong:
        raise InputError(f"Token ids must be within [0, {size - 1}], got {wrong[0]}.", param="prompt")
