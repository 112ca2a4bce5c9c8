"""Constraints in the loop: what is proposed, and which commits go together.

Two things cross to the host a step, for the constrained rows alone: the canvas, and what is about to be done. There
the walks cost one look-up per position. What comes back are the allowed sets, as rows of one table over the vocabulary.
Letters: B rows, K rows of the guest, C columns, W window positions, O observed positions, M sets, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.decode.canvas import ALLOWED_SET, Canvas
from starr.decode.extras.base import Guest
from starr.decode.extras.constraints.compiled import Constraint
from starr.decode.extras.constraints.feasible import check_canvas
from starr.decode.extras.constraints.joint import best_path, by_confidence
from starr.decode.extras.constraints.reach import GOES_ON, MASK, Walk
from starr.decode.extras.constraints.tables import SetTable
from starr.decode.places import Places
from starr.decode.propose import ProposalRequest
from starr.decode.request import Request
from starr.decode.view import Action, StepView

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.model.network.transformer import KVBuffer


@dataclass(frozen=True, slots=True)
class RowWalk:
    """One row before a step, on the host. Places count from the start of its canvas."""

    walk: Walk  # without the positions that are cut off from the result, which may hold anything
    start: int  # column of the canvas's first position
    window: tuple[int, int]  # as far as the walk goes
    last: bool  # whatever is masked will be committed
    literal: bool
    open_: list[int]  # what each position is as a mask: any token, or any but end-of-text
    unfit: list[int]  # masks whose remembered proposal is not allowed any more


class Constraints(Guest):
    """Rows whose answer must satisfy a constraint."""

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        self.constraints: list[Constraint] = [r.constraint for r in self.requests if r.constraint is not None]
        self.tables = [constraint.table(model.device) for constraint in self.constraints]
        self.never = torch.tensor([r.options.eos == "never" for r in self.requests], device=model.device)
        self.at_once = [any(rule.ends_now() for rule in r.rules) for r in self.requests]
        self.watched = [any(len(rule.watches(r)) for rule in r.rules) for r in self.requests]
        self.walks: list[RowWalk] = []

    @classmethod
    def serves(cls, request: Request) -> bool:
        return request.constraint is not None

    @classmethod
    def check(cls, request: Request) -> None:
        check_canvas(request)

    def classes(self, tokens: Tensor) -> Tensor:
        """The classes of tokens (K, ...), each row in its own automaton."""
        return torch.stack([table.class_of[row] for table, row in zip(self.tables, tokens, strict=True)])

    @classmethod
    def begin(cls, requests: Sequence[Request], canvas: Canvas) -> Mapping[str, Tensor]:
        return {ALLOWED_SET: torch.zeros_like(canvas.tokens)}

    def measure(self, canvas: Canvas, buffer: KVBuffer | None) -> Canvas:
        """Walk over the canvas of every row; traced rows note the set of every position of the window."""
        part = self.rows
        masked = canvas.masked[part]
        open_ = torch.where(canvas.endless[part] | self.never[:, None], GOES_ON, MASK)
        symbols = torch.where(masked, open_, self.classes(canvas.tokens[part]))
        figures = torch.stack(
            [
                *(canvas.start, canvas.goal, canvas.window_start, canvas.window_end),
                *(canvas.total >= canvas.limit - 1, canvas.literal),
            ],
            dim=1,
        )[part]
        seen, proposed = canvas.seen[part].long(), self.classes(canvas.proposal[part])
        rows = torch.cat([figures, symbols, open_, proposed, seen], dim=1).tolist()
        self.walks = [self.walked(k, row, canvas.columns) for k, row in enumerate(rows)]
        if not any(request.options.trace for request in self.requests):
            return canvas
        note = canvas.notes[ALLOWED_SET].clone()
        for k, each in enumerate(self.walks):
            if self.requests[k].options.trace:
                shown = [self.constraints[k].set_number(each.walk, place) for place in range(*each.window)]
                columns = slice(each.start + each.window[0], each.start + each.window[1])
                note[self.rows[k], columns] = torch.tensor(shown, dtype=note.dtype, device=note.device)
        return canvas.noted({ALLOWED_SET: note})

    def query(self, canvas: Canvas, query: Tensor) -> Tensor:
        """Masks whose remembered proposal does not fit any more are queried."""
        if not any(each.unfit for each in self.walks):
            return query
        again = torch.zeros_like(query)
        for k, each in enumerate(self.walks):
            again[self.rows[k], [each.start + place for place in each.unfit]] = True
        return query | (again.roll(-1, dims=1) if self.model.spec.shift else again) | again

    def walked(self, k: int, row: list[int], columns: int) -> RowWalk:
        start, goal, window_start, window_end, last, literal = row[:6]
        parts = [row[6 + i * columns : 6 + (i + 1) * columns] for i in range(4)]
        symbols, open_, proposed, seen = (part[start:goal] for part in parts)
        walk = self.constraints[k].walk(symbols)
        window = (window_start - start, min(window_end, goal) - start)
        unfit = []
        if self.requests[k].cache.skips:
            inside = [place for place in range(*window) if symbols[place] < 0]
            fits = [seen[place] and not last and walk.allows(place, proposed[place]) for place in inside]
            unfit = [place for place, fit in zip(inside, fits, strict=True) if not fit]
        return RowWalk(walk, start, window, bool(last), bool(literal), open_, unfit)

    def propose(self, request: ProposalRequest, canvas: Canvas, observed: Places) -> ProposalRequest:
        """Restrict every observed position to its allowed set; where all will be committed, keep the distribution."""
        sets = SetTable(self.model.spec.shape.vocab_size, self.model.device)
        chosen = torch.zeros_like(canvas.tokens[self.rows])
        for k, each in enumerate(self.walks):
            places = range(len(each.walk.symbols)) if self.watched[k] else range(*each.window)
            numbers = sets.numbers(self.tables[k], each.walk, places)
            columns = slice(each.start + places.start, each.start + places.stop)
            chosen[k, columns] = torch.tensor(numbers, device=chosen.device)
        here = torch.where(observed.real[self.rows], chosen.gather(1, observed.index[self.rows]), 0)
        which = torch.zeros_like(observed.index).index_copy(0, self.rows, here)
        signals = request.signals
        if any(each.last or at_once for each, at_once in zip(self.walks, self.at_once, strict=True)):
            signals = signals | {"distribution"}
        return replace(request, signals=signals, allowed=sets.stacked(), allowed_set=which.reshape(-1))

    def amend(self, action: Tensor, written: Tensor, view: StepView, canvas: Canvas) -> tuple[Tensor, Tensor]:
        """Drop commits that the surer ones rule out; where everything is committed, choose all tokens together."""
        part = self.rows
        order = view.confidence[part].argsort(dim=1, descending=True, stable=True)
        copied = torch.stack(
            [action[part].long(), self.classes(written[part]), self.classes(view.proposal[part]), order], dim=1
        ).tolist()
        action, written = action.clone(), written.clone()
        for k, each in enumerate(self.walks):
            row, width = self.order[k], each.window[1] - each.window[0]
            asked = [line[:width] for line in copied[k][:3]]
            order_here = [place for place in copied[k][3] if place < width]
            if (each.last and masks(each)) or (self.at_once[k] and commits_all(each, asked[0])):
                assert view.distribution is not None
                action[row] = view.masked[row] * int(Action.COMMIT)
                tokens = self.together(k, each, view.distribution[row], masks(each))
                places = [place - each.window[0] for place in tokens]
                written[row, places] = torch.tensor(list(tokens.values()), device=action.device)
                continue
            done, instead = settle(each, asked[0], asked[1], asked[2], order_here)
            action[row, :width] = torch.tensor(done, dtype=action.dtype, device=action.device)
            if instead:
                written[row, instead] = view.proposal[row, instead]
        return action, written

    def together(self, k: int, each: RowWalk, logits: Tensor, places: list[int]) -> dict[int, int]:
        """Tokens of some masks of a row, by place, from logits (W, V): those with the largest product."""
        rows = logits[[place - each.window[0] for place in places]]
        table = self.tables[k]
        scores = table.best_of_classes(rows.log_softmax(dim=1)).double().cpu().numpy()
        chosen = best_path(each.walk, dict(zip(places, scores, strict=True)))
        kinds = torch.tensor([chosen[place] for place in places], device=logits.device)
        tokens = rows.masked_fill(table.class_of != kinds[:, None], -torch.inf)
        tokens = torch.where(table.class_of == kinds[:, None], tokens.clamp(min=-1e30), tokens).argmax(dim=1)
        return dict(zip(places, tokens.tolist(), strict=True))


def masks(each: RowWalk) -> list[int]:
    return [place for place, symbol in enumerate(each.walk.symbols) if symbol < 0]


def commits_all(each: RowWalk, action: list[int]) -> bool:
    """Whether a step leaves no mask of the row."""
    left, done = masks(each), {each.window[0] + place for place, kind in enumerate(action) if kind == Action.COMMIT}
    return bool(left) and done.issuperset(left)


def settle(
    each: RowWalk, action: list[int], written: list[int], proposed: list[int], order: list[int]
) -> tuple[list[int], list[int]]:
    """The actions of a row's window that go together, and the places that take their proposal after all.

    Revoked positions are masks again before the commits are looked at. If none of the commits fits, because the
    strategy wrote tokens of its own, the surest position takes its proposal, which does. Where a commit was given up,
    revocations are, too, until they are fewer than the commits that are left; not in literal rows.
    """
    walk, first = Walk(each.walk.reach, each.walk.symbols), each.window[0]
    done = list(action)
    for place, kind in enumerate(action):
        if kind == Action.REVOKE:
            walk.fill(first + place, each.open_[first + place])
    moves = [place for place in order if action[place] in (Action.COMMIT, Action.REVISE)]
    kept = by_confidence(walk, [(first + place, written[place]) for place in moves])
    for place, fits in zip(moves, kept, strict=True):
        if not fits:
            done[place] = int(Action.KEEP)
    instead = []
    wanted = [place for place in moves if action[place] == Action.COMMIT]
    if wanted and Action.COMMIT not in done and walk.allows(first + wanted[0], proposed[wanted[0]]):
        done[wanted[0]] = int(Action.COMMIT)
        instead.append(wanted[0])
    if not each.literal and done.count(Action.COMMIT) < action.count(Action.COMMIT):
        revoked = [place for place in order if done[place] == Action.REVOKE]
        for place in revoked[: max(0, len(revoked) - done.count(Action.COMMIT) + 1)]:
            done[place] = int(Action.KEEP)
    return done, instead
