"""What a strategy is: a frozen dataclass of options and one pure method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol, Self

from torch import Tensor

from starr.decode.strategies.sweep import Sweep
from starr.decode.view import Carry, Decision, StepView
from starr.named import Registry, check


class KnownShape(Protocol):
    """Sizes of the model's network."""

    @property
    def vocab_size(self) -> int: ...


class KnownSpec(Protocol):
    """Facts about the model's format."""

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def mask_id(self) -> int: ...
    @property
    def eos_ids(self) -> tuple[int, ...]: ...
    @property
    def shape(self) -> KnownShape: ...


class KnownTokenizer(Protocol):
    """Text to tokens and back."""

    def encode(self, text: str) -> list[int]: ...
    def piece(self, token: int) -> str: ...


class KnownNet(Protocol):
    """The network; a strategy reads the output weights only, to know which model they are."""

    @property
    def head_weight(self) -> Tensor: ...


class KnownModel(Protocol):
    """What a strategy may ask of the model it is bound to."""

    @property
    def spec(self) -> KnownSpec: ...
    @property
    def tokenizer(self) -> KnownTokenizer: ...
    @property
    def net(self) -> KnownNet: ...


class Strategy:
    """Options, checked when made, and one pure method over a step's view.

    Subclasses add ``@register`` above ``@dataclass(frozen=True, kw_only=True)``. The class attributes tell the loop
    what the strategy needs:

    - ``sweep``: the family and the main option that ``starr reproduce front`` measures it with; None leaves it out.
    - ``signals``: optional StepView fields to compute, and guests' signals, which come in ``view.extras``.
    - ``keeps``: carry entries that outlive a window, (B,) or zero outside the window; all others start over with each.
    - ``files``: options that name files; a server refuses them.
    - ``scope``: the window. "block" is one block. "ahead" is the whole rest of the canvas: the strategy handles blocks
      itself. "moving" is that, and ``Decision.end`` shortens it. "back" reaches from the canvas's first position to the
      block's end, so that earlier blocks stay revocable.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    sweep: ClassVar[Sweep | None] = None
    signals: ClassVar[frozenset[str]] = frozenset()
    keeps: ClassVar[frozenset[str]] = frozenset()
    files: ClassVar[frozenset[str]] = frozenset()
    scope: ClassVar[str] = "block"

    def __post_init__(self) -> None:
        check(self)

    def bind(self, model: KnownModel) -> Self:
        """The strategy for this model: a copy with options that depend on it filled in, or itself."""
        return self

    def revokes(self) -> bool:
        """Whether it may act on held tokens. Then held positions are observed, and text settles with its window."""
        return False

    def ends_within(self, masks: int, length: int, windows: int) -> int | None:
        """Steps within which its own rule has filled a canvas; None if nothing says so.

        ``masks`` are those of the canvas, ``length`` all its positions. Such a strategy goes without the progress rules
        of ``enforce``, up to that many steps; those of the guest ``extra_steps`` come on top.
        """
        return None

    def needs(self) -> Mapping[str, float]:
        """The guests of the loop (``decode.extras``) that it needs, by name, each with its setting; 0 is none."""
        return {}

    def begin(self, view: StepView) -> Carry:
        """The memory before the first step of a window."""
        return {}

    @abstractmethod
    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        """The decision on each position of the window, and the memory after it. Reads its arguments, writes nothing."""
        raise NotImplementedError


STRATEGIES: Registry[Strategy] = Registry("strategy", Strategy, "starr.strategies")
