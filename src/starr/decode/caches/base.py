"""What a cache is: which positions the next forward recomputes. Everything else is read from the K/V buffer.

Letters: B rows, C columns. Whatever a rule says, ``starr.decode.query.plan_query`` adds the positions that the buffer
does not hold yet (so the first forward of a row is always full), window positions not observed since the window opened,
and tokens that the last step wrote or revoked. Where logits are shifted (Dream), it adds the position that predicts
each of them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from starr.named import Registry, check, option

if TYPE_CHECKING:
    from starr.decode.canvas import Canvas


class Cache:
    """A frozen dataclass of options and one pure method over the canvas; options are checked when made.

    ``buffered`` is False where there is no buffer at all. ``skips`` says that masks of the window may go without a
    fresh prediction: a strategy that compares whole distributions cannot use such a cache. ``measures`` says that the
    rule reads the note ``moved``, which costs one layer over the canvas before every forward.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    buffered: ClassVar[bool] = True
    skips: ClassVar[bool] = False
    measures: ClassVar[bool] = False
    block_causal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check(self)

    @abstractmethod
    def query(self, canvas: Canvas) -> Tensor:
        """(B, C) bool: the positions to recompute in the next step; padding is dropped by the caller."""
        raise NotImplementedError


CACHES: Registry[Cache] = Registry("cache", Cache, "starr.caches")


def never(help: str) -> int:
    """An option counted in steps, 0 (the default) for never."""
    value: int = option(0, f"{help}; 0 is never", low=0)
    return value


def every(step: Tensor, interval: int) -> Tensor:
    """(B,) bool: the step is a multiple of the interval; 0 is never."""
    return step % interval == 0 if interval else step < 0


def response(canvas: Canvas) -> Tensor:
    """(B, C) bool: columns after the prompt, padding included."""
    return canvas.column_index >= canvas.rules.start[:, None]
