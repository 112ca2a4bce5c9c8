"""One row to decode: its canvas and its options. A row is built and checked here, before it joins a batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from starr.decode.caches.base import Cache
from starr.decode.prompts.prepare import PreparedPrompt, check_length
from starr.decode.stops.base import StopRule
from starr.decode.strategies.base import Strategy
from starr.errors import InputError
from starr.options import ResolvedOptions

if TYPE_CHECKING:
    from starr.decode.extras.base import Guest
    from starr.decode.extras.constraints.compile import Constraint
    from starr.model.load import Model
    from starr.model.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Blocks:
    """Block-causal attention of a row."""

    length: int
    window: int  # positions of a window, at most ``length``
    origin: int = 0  # a block starts here, and at every multiple of ``length`` from here
    surplus: int = 0  # masks at the canvas's end that only fill the last block; they are cut off from the result


@dataclass(frozen=True, slots=True)
class Request:
    """A row: ``tokens`` from the first prompt token to the last canvas position, masks where ``masked`` says."""

    tokens: list[int]
    masked: list[bool]
    start: int  # the first canvas position: what comes before is prompt
    options: ResolvedOptions
    stream: bool = False  # every step gives an event
    ends: bool = True  # an end-of-text with everything before it held ends the row
    canvas_rules: tuple[StopRule, ...] = ()  # stop rules that the canvas needs
    prompt: str = ""
    blocks: Blocks | None = None  # of block-causal models
    tail: int = 0  # canvas positions at the end with text that follows the answer and is not part of it
    candidates: int = 0  # the likeliest tokens of every commit that are kept

    @property
    def strategy(self) -> Strategy:
        """When to commit and when to revoke."""
        return self.options.strategy

    @property
    def cache(self) -> Cache:
        """Which positions a forward recomputes."""
        return self.options.cache

    @property
    def constraint(self) -> Constraint | None:
        """What the text of the canvas must match."""
        return self.options.constraint

    @property
    def rules(self) -> tuple[StopRule, ...]:
        """All stop rules, in order."""
        return (*self.options.stop_rule, *self.canvas_rules)

    @property
    def block_length(self) -> int | None:
        """Length of a window; None is the whole canvas."""
        return (self.options.block_length or None) if self.blocks is None else self.blocks.window

    def change(self, **options: Any) -> Request:
        """The row with other options."""
        return replace(self, options=replace(self.options, **options))

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
        options = self.options
        if options.max_forwards is not None:
            return max(1, options.max_forwards // (2 if options.guidance else 1))
        most = sum(self.masked)
        if self.ends_itself is not None and options.enforce != "strict":
            most = self.ends_itself
        elif options.enforce == "bounded" and self.strategy.revokes():
            most *= 1 + options.max_revocations
        checks = 2 * sum(self.masked) + self.windows if options.verify else 0
        return most + checks + int(self.strategy.needs().get("extra_steps", 0)) * self.windows

    @property
    def ends_itself(self) -> int | None:
        """Steps within which the strategy's own rule ends the run, if it says so."""
        return self.strategy.ends_within(sum(self.masked), self.length, self.windows)

    @property
    def literal(self) -> bool:
        """Whether the progress rules are off: because that was asked for, or because the strategy ends by itself."""
        enforce = self.options.enforce
        return enforce == "literal" or (enforce != "strict" and self.ends_itself is not None)

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
        return self.options.trace or self.candidates > 0

    def block_starts(self) -> list[int]:
        """Where blocks of attention begin on the canvas, its own start included; empty for full attention."""
        if self.blocks is None:
            return []
        starts = range(self.blocks.origin, len(self.tokens) - self.surplus, self.blocks.length)
        return [0, *(start - self.start for start in starts if start > self.start)]

    def refuse_cache(self, why: str) -> None:
        """Raise: the row cannot be decoded with its cache."""
        raise InputError(f"Cache {self.cache.name} cannot be used: {why}.", hint="Use cache none.", param="cache")


def build_row(
    model: Model, prepared: PreparedPrompt, options: ResolvedOptions, *, stream: bool = False, candidates: int = 0
) -> Request:
    """Build the row that decodes a prepared prompt. Raise if the model cannot decode it."""
    request = Request(
        tokens=prepared.tokens + prepared.canvas.tokens,
        masked=[False] * len(prepared.tokens) + prepared.canvas.masked,
        start=len(prepared.tokens),
        options=options,
        stream=stream,
        ends=prepared.ends,
        canvas_rules=prepared.rules,
        prompt=prepared.text,
        tail=prepared.tail,
        candidates=candidates,
    )
    request = split_blocks(request, model.spec)
    check_request(request, model)
    return request


def split_blocks(request: Request, spec: ModelSpec) -> Request:
    """Split the row into the attention blocks of a block-causal model; other models leave it as it is.

    ``block_length`` is the length of the blocks, and of the windows unless the family has shorter ones. Masks fill the
    canvas up to whole blocks, as far as the model's context goes.
    """
    if spec.block_length is None:
        return request
    length = request.options.block_length or spec.block_length
    origin = spec.origin(request.start) % length
    total = len(request.tokens)
    surplus = max(0, min((origin - total) % length, spec.max_length - total))
    return replace(
        request,
        tokens=request.tokens + [spec.mask_id] * surplus,
        masked=request.masked + [True] * surplus,
        blocks=Blocks(length, min(spec.habits.window or length, length), origin, surplus),
    )


def check_request(request: Request, model: Model) -> None:
    """Raise unless the model can decode the row."""
    from starr.decode.blocks import check_blocks
    from starr.decode.extras import GUESTS  # both know the row

    if request.masked[: request.start + 1] == [True]:
        raise InputError("A mask cannot come first.", hint="Give at least one token of text before it.", param="prompt")
    if request.length < 1:
        raise InputError(f"max_tokens must be at least 1, got {request.length}.", param="max_tokens")
    check_length(request.start, request.length, model.spec.max_length)
    if request.options.max_forwards == 1 and request.options.guidance > 0:
        raise InputError("max_forwards must be at least 2 with guidance, got 1.", param="max_forwards")
    check_blocks(request)
    for guest in GUESTS:
        if guest.serves(request):
            check_queries(guest, request, model.spec)
            guest.check(request)
    check_cache(request, model.spec)
    for rule in request.rules:
        rule.check_request(request)


def check_queries(guest: type[Guest], request: Request, spec: ModelSpec) -> None:
    """Raise if a guest needs extra queries and the network has none."""
    if guest.queries and not spec.extra_queries:
        what, param = (request.strategy.name, "strategy") if guest.name else ("verify", "verify")
        rule = f"{what} needs extra queries, and {spec.name} ignores where they stand or what they see."
        raise InputError(rule, hint="Leave it out, or load the model with starr.load.", param=param)


def check_cache(request: Request, spec: ModelSpec) -> None:
    """Raise if a buffer of old K/V cannot serve the row."""
    if not request.cache.buffered:
        return
    if not spec.buffered:
        request.refuse_cache("a wrapped module keeps no K/V for it")
    if request.cache.block_causal and request.blocks is None:
        request.refuse_cache("every position of this model sees all others, so no K/V are final")
    if "distribution" in request.strategy.signals and request.cache.skips:
        why = f"{request.strategy.name} compares distributions, and this cache leaves some masks without one"
        request.refuse_cache(why)
    if request.candidates and request.cache.skips:
        request.refuse_cache("likely tokens were asked for, and this cache leaves some masks without a distribution")
    if request.options.guidance > 0:
        request.refuse_cache("guidance runs a second canvas")
