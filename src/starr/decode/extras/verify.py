"""Held tokens are verified: what the rest of the text does not support is taken back.

In every forward shadows (``extras.queries``) read the held tokens of the window. A token is doubted, and revoked, where
its leave-one-out probability is below ``verify`` times that of the likeliest token there.

- Nothing is doubted that was given, and nothing after the first held end-of-text, which is no part of the text.
- A position is revoked at most once. It is committed again where its confidence is at least 0.9, or where nothing else
  can be committed. The strategy decides about all other masks as it always does.
- A window without masks stays open, and so does a row that has ended, until its last tokens are checked: those that
  were committed below 0.9. A token that was committed alone needs no check: the forward that proposed it had a mask in
  its place.

So a run is bounded. Let L be the masks at its start and V the revocations made here, V <= L. A step that finds masks
commits at least one, and what the strategy revokes itself is bounded by ``enforce``: such steps are at most L + V with
its strict rule, and L (1 + r) + V with its bounded one. A step that finds no mask revokes a token, at most V times, or
closes its window. Hence steps <= L + 2 V + windows <= 3 L + windows, r L more where enforce is bounded. Strategies that
end by themselves are held to one commit a step as soon as a token of theirs is revoked here.

Letters: B rows, C columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from starr.decode.advance import first_true, stop_after
from starr.decode.caches.exact import BLOCK, find_block
from starr.decode.canvas import Canvas
from starr.decode.enforce import BARRED, DOUBTED, TAMED, Step
from starr.decode.extras.queries import BEST, OWN, ShadowReader
from starr.decode.forward import Seen
from starr.decode.request import Request

if TYPE_CHECKING:
    from starr.model.load import Model

UNREAD, TIMES = "verify.unread", "verify.times"  # notes (B, C): bool, held and to be checked; int64, revoked here


class Verify(ShadowReader):
    """Option ``verify``: a ratio for each row, 0 for the rows without it."""

    rounds: ClassVar[int] = 1  # how often a position may be revoked
    sure: ClassVar[float] = 0.9  # the confidence of a second commit
    safe: ClassVar[float] = 0.9  # the confidence of a first one that needs no last check

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        device = model.device
        self.ratio = torch.tensor([request.options.verify for request in requests], device=device)[:, None]
        flags = [(r.options.enforce == "literal", not r.cache.buffered, r.ends) for r in requests]
        self.literal, self.fresh, self.ends = torch.tensor(flags, device=device).unbind(1)
        self.eos_ids = torch.tensor(model.spec.eos_ids, device=device)

    @classmethod
    def serves(cls, request: Request) -> bool:
        return request.options.verify > 0

    def asks(self, canvas: Canvas) -> Tensor:
        """The window's held tokens that may be revoked, up to the first end-of-text.

        The first token of a block comes from the sealed block before it where logits are shifted: nothing doubts it.
        """
        held = canvas.in_window & ~(canvas.masked | canvas.frozen) & (canvas.column_index < canvas.goal[:, None])
        eos = torch.isin(canvas.tokens, self.eos_ids) & ~(canvas.masked | canvas.frozen) & self.ends[:, None]
        found = held & (canvas.column_index <= first_true(eos)[:, None]) & (self.ratio > 0)
        if TIMES in canvas.notes:
            found = found & (canvas.notes[TIMES] < self.rounds)
        if self.model.spec.shift and BLOCK in canvas.notes:
            found = found & (canvas.column_index != find_block(canvas)[0][:, None])
        return found

    def observe(self, canvas: Canvas, seen: Seen) -> Canvas:
        """Leave word of what is doubted, and of what must be sure to be committed."""
        canvas = super().observe(canvas, seen)
        times = canvas.notes.get(TIMES, torch.zeros_like(canvas.tokens))
        doubted = self.asks(canvas) & self.unsupported(canvas)
        barred = (times > 0) & (canvas.last.confidence < self.sure)
        return canvas.noted({DOUBTED: doubted, BARRED: barred, TAMED: (times > 0).any(dim=1) & ~self.literal})

    def unsupported(self, canvas: Canvas) -> Tensor:
        """(B, C) bool: what the shadows say against a token."""
        return canvas.notes[OWN] < self.ratio * canvas.notes[BEST]

    def apply(self, canvas: Canvas, step: Step) -> Canvas:
        """Note what is new, and keep the row open until it is checked."""
        times, unread = (canvas.notes.get(name) for name in (TIMES, UNREAD))
        times = torch.zeros_like(canvas.tokens) if times is None else times
        read, written = canvas.notes[BEST] >= 0, canvas.changed & ~canvas.masked
        revoked = canvas.changed & canvas.masked
        alone = (written.sum(dim=1) == 1) & ~revoked.any(dim=1) & self.fresh
        proven = alone[:, None] & (canvas.last.confidence >= self.ratio * canvas.last.best)
        new = written & ~proven & (canvas.last.confidence < self.safe)
        unread = new if unread is None else (unread & ~read & ~revoked) | new
        canvas = canvas.noted({UNREAD: unread, TIMES: times + (revoked & canvas.notes[DOUBTED])})
        over = canvas.total >= stop_after(canvas, step.verdict).limit
        waits = (self.asks(canvas) & unread).any(dim=1) & ~over
        return replace(canvas, window=replace(canvas.window, kept_open=canvas.window.kept_open | waits))
