"""One row to decode: its canvas layout and every option, checked once, here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starr.errors import InputError, LengthError
from starr.query import Cache
from starr.stop import StopRule
from starr.strategy.base import Strategy

if TYPE_CHECKING:
    from starr.model.load import Model

EOS_MODES = ("normal", "never", "last")
ENFORCE_MODES = ("safe", "literal")
MANY = 10**9  # stands for no upper bound


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a proposal is drawn from the model's distribution."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0  # 0 is no limit
    guidance: float = 0.0  # classifier-free, LLaDA's cfg_scale
    eos: str = "normal"  # "never": end-of-text is not proposed; "last": it is committed last

    def __post_init__(self) -> None:
        rule("temperature", self.temperature, 0.0, 100.0)
        rule("top_p", self.top_p, 0.0, 1.0, open_low=True)
        rule("top_k", self.top_k, 0, MANY)
        rule("guidance", self.guidance, 0.0, 100.0)
        one_of("eos", self.eos, EOS_MODES)


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
    trace: bool = False
    stream: bool = False
    ends: bool = True  # an end-of-text with everything before it held ends the row
    rules: tuple[StopRule, ...] = ()
    prompt: str = ""

    @property
    def length(self) -> int:
        """Canvas positions."""
        return len(self.tokens) - self.start

    @property
    def forward_limit(self) -> int:
        """The last forward commits whatever is left. Without ``max_forwards`` it is one that safe runs never need."""
        return self.max_forwards or sum(self.masked) + self.strategy.extra_steps * self.windows

    @property
    def endless(self) -> list[bool]:
        """Masks where no end-of-text is proposed, because the template says that the text goes on.

        Where an end-of-text does not end the row: those before the last template token, and the first behind it.
        """
        places = range(self.start, len(self.tokens))
        last = max((i for i in places if not self.masked[i]), default=-1) if not self.ends else -1
        return [masked and 0 < i <= last + 1 for i, masked in enumerate(self.masked)]

    @property
    def windows(self) -> int:
        return 1 if self.block_length is None else -(-self.length // self.block_length)


def check_request(request: Request, model: Model) -> None:
    """Raise unless the model can decode the row."""
    if request.masked[: request.start + 1] == [True]:
        raise InputError("A mask cannot come first.", hint="Give at least one token of text before it.", param="prompt")
    if request.length < 1:
        raise InputError(f"max_tokens must be at least 1, got {request.length}.", param="max_tokens")
    check_length(request.start, request.length, model.spec.max_length)
    if request.strategy.grows and not all(request.masked[request.start :]):
        raise InputError(f"{request.strategy.name} cannot be used: it moves frozen text.", param="strategy")
    if request.block_length is not None:
        rule("block_length", request.block_length, 1, MANY)
    if request.max_forwards is not None:
        rule("max_forwards", request.max_forwards, 1, MANY)
    rule("seed", request.seed, 0, 2**63 - 1)
    one_of("enforce", request.enforce, ENFORCE_MODES)
    check_cache(request)
    for stop in request.rules:
        stop.check_request(request)


def check_length(prompt: int, canvas: int, limit: int) -> None:
    """Raise unless both fit; called before a canvas is laid out, too, so that a huge one costs nothing."""
    if prompt + canvas > limit:
        raise LengthError(
            f"Prompt and canvas need {prompt} + {canvas} = {prompt + canvas} positions, the model has {limit}.",
            hint="Shorten the prompt or lower max_tokens.",
            param="max_tokens",
        )


def check_ids(tokens: list[int], size: int) -> None:
    wrong = [token for token in tokens if not 0 <= token < size]
    if wrong:
        raise InputError(f"Token ids must be within [0, {size - 1}], got {wrong[0]}.", param="prompt")


def check_cache(request: Request) -> None:
    """Refuse what a buffer of old K/V cannot serve."""
    if not request.cache.buffered:
        return
    name, why = request.strategy.name, None
    if request.strategy.grows:
        why = f"{name} moves positions"
    elif "shadow" in request.strategy.signals:
        why = f"{name} needs its shadow block in a whole forward"
    elif "distribution" in request.strategy.signals and request.cache.skips:
        why = f"{name} compares distributions, and this cache leaves some masks without one"
    elif request.sampling.guidance > 0:
        why = "guidance runs a second canvas"
    if why:
        raise InputError(f"Cache {request.cache.name} cannot be used: {why}.", hint="Use cache none.", param="cache")


def rule(name: str, value: float, low: float, high: float, *, open_low: bool = False) -> None:
    """Raise unless low <= value <= high (low < value if ``open_low``); NaN and booleans fail.

    Where ``low`` is an int, the value must be one too.
    """
    number = isinstance(value, int if isinstance(low, int) else int | float) and not isinstance(value, bool)
    if number and low <= value <= high and not (open_low and value == low):
        return
    kind = "a whole number within" if isinstance(low, int) else "within"
    bounds = f"{'(' if open_low else '['}{low}, {'∞)' if high == MANY else f'{high}]'}"
    raise InputError(f"{name} must be {kind} {bounds}, got {value!r}.", param=name)


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}.", param=name)
