"""Constraints in the loop: what is proposed, and which commits go together.

Two things cross to the host a step, for the constrained rows alone: the canvas, and what is about to be done. There
the walks cost one look-up per position. What comes back are the allowed sets, as rows of one table over the vocabulary.
Letters: B rows, K rows of the guest, C columns, W window positions, O observed positions, M sets, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.decode.canvas import ALLOWED_SET, Canvas
from starr.decode.enforce import Step
from starr.decode.extras.base import Guest
from starr.decode.extras.constraints.compile import Constraint
from starr.decode.extras.constraints.walks import GOES_ON, MASK, SetTable, Walk, commit_surest, find_best_path
from starr.decode.forward import ForwardCall
from starr.decode.propose import ProposalRequest
from starr.decode.query import Wishes
from starr.decode.request import Request
from starr.decode.view import COMMIT, KEEP, REVISE, REVOKE
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.load import Model

MAX_WORK = 1 << 27  # masks times moves, which the best path of a last step looks at: about half a second


@dataclass(frozen=True, slots=True)
class RowWalk:
    """One row before a step, on the host. Positions count from the start of its canvas."""

    walk: Walk  # without the positions that the result leaves out, which may hold anything
    start: int  # column of the canvas's first position
    window: tuple[int, int]  # cut where the walk ends
    last: bool  # this step commits every mask
    literal: bool
    as_mask: list[int]  # the symbol of each position as a mask: any token, or any but end-of-text
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
        """Look up the classes of tokens (K, ...), each row in its own automaton."""
        return torch.stack([table.class_of[row] for table, row in zip(self.tables, tokens, strict=True)])

    def plan(self, wishes: Wishes) -> Wishes:
        """Walk over the canvas of every row, and query the masks whose remembered proposal is not allowed any more."""
        canvas = self.walk_rows(wishes.canvas)
        wishes = replace(wishes, canvas=canvas)
        if not any(each.unfit for each in self.walks):
            return wishes
        again = torch.zeros_like(canvas.masked)
        for k, each in enumerate(self.walks):
            again[self.rows[k], [each.start + position for position in each.unfit]] = True
        return wishes.add(query=(again.roll(-1, dims=1) if self.model.spec.shift else again) | again)

    def walk_rows(self, canvas: Canvas) -> Canvas:
        """Walk over the canvas of every row; traced rows note the set of every position of the window."""
        part = self.rows
        masked = canvas.masked[part]
        as_mask = torch.where(canvas.rules.endless[part] | self.never[:, None], GOES_ON, MASK)
        symbols = torch.where(masked, as_mask, self.classes(canvas.tokens[part]))
        figures = torch.stack(
            [
                *(canvas.rules.start, canvas.goal, canvas.window.start, canvas.window.end),
                *(canvas.total >= canvas.limit - 1, canvas.rules.literal),
            ],
            dim=1,
        )[part]
        seen, proposed = canvas.last.seen[part].long(), self.classes(canvas.last.proposal[part])
        rows = torch.cat([figures, symbols, as_mask, proposed, seen], dim=1).tolist()
        self.walks = [self.walk_row(k, row, canvas.columns) for k, row in enumerate(rows)]
        if not any(request.options.trace for request in self.requests):
            return canvas
        note = torch.zeros_like(canvas.tokens)
        for k, each in enumerate(self.walks):
            if self.requests[k].options.trace:
                numbers = [self.constraints[k].number_set(each.walk, position) for position in range(*each.window)]
                columns = slice(each.start + each.window[0], each.start + each.window[1])
                note[self.rows[k], columns] = torch.tensor(numbers, dtype=note.dtype, device=note.device)
        return canvas.noted({ALLOWED_SET: note})

    def walk_row(self, k: int, row: list[int], columns: int) -> RowWalk:
        """Build the walk of a row from its figures and its columns."""
        start, goal, window_start, window_end, last, literal = row[:6]
        parts = [row[6 + i * columns : 6 + (i + 1) * columns] for i in range(4)]
        symbols, as_mask, proposed, seen = (part[start:goal] for part in parts)
        walk = self.constraints[k].walk(symbols)
        window = (window_start - start, min(window_end, goal) - start)
        unfit = []
        if self.requests[k].cache.skips:
            inside = [i for i in range(*window) if symbols[i] < 0]
            unfit = [i for i in inside if not (seen[i] and not last and walk.allows(i, proposed[i]))]
        return RowWalk(walk, start, window, bool(last), bool(literal), as_mask, unfit)

    def propose(self, request: ProposalRequest, call: ForwardCall) -> ProposalRequest:
        """Restrict every observed position to its allowed set; where all will be committed, keep the distribution."""
        sets = SetTable(self.model.spec.shape.vocab_size, self.model.device)
        canvas, observed = call.canvas, call.observed
        chosen = torch.zeros_like(canvas.tokens[self.rows])
        for k, each in enumerate(self.walks):
            positions = range(len(each.walk.symbols)) if self.watched[k] else range(*each.window)
            numbers = [sets.number(self.tables[k], each.walk, position) for position in positions]
            columns = slice(each.start + positions.start, each.start + positions.stop)
            chosen[k, columns] = torch.tensor(numbers, device=chosen.device)
        here = torch.where(observed.real[self.rows], chosen.gather(1, observed.index[self.rows]), 0)
        which = torch.zeros_like(observed.index).index_copy(0, self.rows, here)
        signals = request.signals
        if any(each.last or at_once for each, at_once in zip(self.walks, self.at_once, strict=True)):
            signals = signals | {"distribution"}
        forbidden, set_of = ~sets.stack(), which.reshape(-1)

        def restrict(logits: Tensor, part: slice) -> None:
            logits.masked_fill_(forbidden.index_select(0, set_of[part]), -torch.inf)

        return replace(request, signals=signals, edits=(*request.edits, restrict))

    def amend(self, step: Step) -> Step:
        """Drop commits that the surer ones rule out; where everything is committed, choose all tokens together."""
        part, view, action, written = self.rows, step.view, step.action, step.written
        order = view.confidence[part].argsort(dim=1, descending=True, stable=True)
        copied = torch.stack(
            [action[part].long(), self.classes(written[part]), self.classes(view.proposal[part]), order], dim=1
        ).tolist()
        action, written = action.clone(), written.clone()
        for k, each in enumerate(self.walks):
            row, width = self.order[k], each.window[1] - each.window[0]
            asked = [line[:width] for line in copied[k][:3]]
            order_here = [i for i in copied[k][3] if i < width]
            if (each.last and list_masks(each)) or (self.at_once[k] and commits_all(each, asked[0])):
                assert view.distribution is not None
                action[row] = view.masked[row] * COMMIT
                masks = list_masks(each)
                where = [position - each.window[0] for position in masks]
                written[row, where] = self.choose_together(k, each, view.distribution[row, where], masks)
                continue
            done, instead = reconcile(each, asked[0], asked[1], asked[2], order_here)
            action[row, :width] = torch.tensor(done, dtype=action.dtype, device=action.device)
            if instead:
                written[row, instead] = view.proposal[row, instead]
        return replace(step, action=action, written=written)

    def choose_together(self, k: int, each: RowWalk, logits: Tensor, masks: list[int]) -> Tensor:
        """Choose the tokens (M,) of M masks of a row with the largest product, from logits (M, V)."""
        table = self.tables[k]
        scores = table.best_of_classes(logits.log_softmax(dim=1)).double().cpu().numpy()
        classes = find_best_path(each.walk, dict(zip(masks, scores, strict=True)))
        chosen = torch.tensor([classes[position] for position in masks], device=logits.device)
        inside = table.class_of == chosen[:, None]
        return logits.clamp(min=-1e30).masked_fill(~inside, -torch.inf).argmax(dim=1)


def list_masks(each: RowWalk) -> list[int]:
    """List the masks of a row."""
    return [position for position, symbol in enumerate(each.walk.symbols) if symbol < 0]


def commits_all(each: RowWalk, action: list[int]) -> bool:
    """Test whether a step leaves no mask of the row."""
    masks, done = list_masks(each), {each.window[0] + i for i, kind in enumerate(action) if kind == COMMIT}
    return bool(masks) and done.issuperset(masks)


def reconcile(
    each: RowWalk, action: list[int], written: list[int], proposed: list[int], order: list[int]
) -> tuple[list[int], list[int]]:
    """Choose the actions of a row's window that go together, and the positions that take their proposal instead.

    Revoked positions are masks again before the commits are tested. If none of the commits fits, because the
    strategy wrote tokens of its own, the surest position takes its proposal, which does. Where a commit is dropped,
    revocations are dropped too, until they are fewer than the commits that are left; not in literal rows.
    """
    walk, first = Walk(each.walk.reach, each.walk.symbols), each.window[0]
    done = list(action)
    for i, kind in enumerate(action):
        if kind == REVOKE:
            walk.fill(first + i, each.as_mask[first + i])
    moves = [i for i in order if action[i] in (COMMIT, REVISE)]
    kept = commit_surest(walk, [(first + i, written[i]) for i in moves])
    for i, fits in zip(moves, kept, strict=True):
        if not fits:
            done[i] = KEEP
    instead = []
    commits = [i for i in moves if action[i] == COMMIT]
    if commits and COMMIT not in done and walk.allows(first + commits[0], proposed[commits[0]]):
        done[commits[0]] = COMMIT
        instead.append(commits[0])
    if not each.literal and done.count(COMMIT) < action.count(COMMIT):
        revoked = [i for i in order if done[i] == REVOKE]
        for i in revoked[: max(0, len(revoked) - done.count(COMMIT) + 1)]:
            done[i] = KEEP
    return done, instead


def list_symbols(request: Request) -> list[int]:
    """List the symbols of a row's canvas, without the positions that the result leaves out."""
    assert request.constraint is not None
    class_of = request.constraint.automaton.class_of
    never = request.options.eos == "never"
    parts = zip(request.tokens, request.masked, request.endless, strict=True)
    whole = [(GOES_ON if never or endless else MASK) if masked else int(class_of[t]) for t, masked, endless in parts]
    return whole[request.start : len(whole) - request.surplus]


def check_canvas(request: Request) -> None:
    """Raise unless the canvas can be filled with an answer that satisfies the constraint."""
    constraint = request.constraint
    assert constraint is not None
    name = constraint.spec.kind
    if request.strategy.needs().get("growth"):
        raise InputError(f"{request.strategy.name} cannot be used with {name}: it moves positions.", param="strategy")
    dropping = [rule.name for rule in request.rules if rule.drops()]
    if dropping:
        raise InputError(
            f"{dropping[0]} cannot be used with {name}: it drops masks from the text.",
            hint="Let it fill them (ice:fill=true).",
            param=dropping[0],
        )
    symbols = list_symbols(request)
    masks, moves = sum(symbol < 0 for symbol in symbols), constraint.automaton.live
    if masks * moves > MAX_WORK:
        raise InputError(
            f"{name} is too large for {masks} masks: it has {moves} moves, at most {MAX_WORK // masks} are allowed.",
            hint="Lower max_tokens, or ask for less at once.",
            param=name,
        )
    if constraint.walk(symbols).feasible:
        return
    shortest, free = constraint.automaton.shortest, all(symbol < 0 for symbol in symbols)
    if free and shortest is not None and shortest > len(symbols):
        raise InputError(
            f"The canvas is too short: {name} needs at least {shortest} tokens, max_tokens is {len(symbols)}.",
            hint="Raise max_tokens.",
            param="max_tokens",
        )
    what = f"a text of exactly {len(symbols)} tokens" if free else "the text on the canvas"
    raise InputError(f"{name} cannot be satisfied by {what}.", hint="Change the holes or the constraint.", param=name)
