"""What a decoder must know about a model, whatever family it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

from starr.model.network.shape import Shape


@dataclass(frozen=True, slots=True)
class Habits:
    """How a model's authors run it: the defaults of options that nobody sets."""

    strategy: str = "starr"
    cache: str = "none"
    block_length: int | None = None  # of the canvas; None is the whole of it, or the blocks of a block-causal model
    window: int | None = None  # positions decided together; None is the whole block of a block-causal model


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One checkpoint in the project's own words; the families translate config.json to and from it."""

    name: str
    family: str  # a key of ``families.FAMILIES``
    shape: Shape
    mask_id: int
    eos_ids: tuple[int, ...]  # every token that ends a text: end-of-text first, then end-of-turn and padding
    bos_id: int | None
    pad_id: int
    shift: bool  # True (Dream): the logits of position i come from row i - 1, those of position 0 from row 0
    max_length: int
    block_length: int | None = None  # attention is block-causal in blocks of this length; None is full attention
    from_prompt: bool = False  # blocks are counted from the prompt's end, not from position 0
    habits: Habits = field(default_factory=Habits)
    last_id: int | None = None  # closes a text that is filled: [SEP] of encoders
    buffered: bool = True  # the network keeps K/V, so that caches work
    extra_queries: bool = True  # a query may stand anywhere and see anything

    @property
    def before(self) -> list[int]:
        """What stands before a text that is filled."""
        return [] if self.bos_id is None else [self.bos_id]

    @property
    def behind(self) -> list[int]:
        """What stands behind it."""
        return [] if self.last_id is None else [self.last_id]

    def origin(self, start: int) -> int:
        """A position where a block begins, for a canvas from ``start`` on."""
        return start if self.from_prompt else 0
