"""What leaves the loop: values. An event per step for rows that are watched, a Generation when a row is done."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from torch import Tensor

from starr.decode.text import CanvasText
from starr.decode.trace import Generation, Record, Stats, Trace
from starr.named import text_form

if TYPE_CHECKING:
    from starr.decode.request import Request
    from starr.model.load import Model
    from starr.model.text.tokenizer import Tokenizer

LIKELY = (
    "likely",
    "likely_logs",
)  # (B, W, K): the likeliest tokens and their log probabilities, where a row wants them


@dataclass(frozen=True, slots=True)
class StepTensors:
    """One step of the whole batch, kept on the device until a row that is traced needs it."""

    columns: dict[str, Tensor]  # (B, W) each, but for LIKELY
    width: Tensor  # (B,) int64
    offset: Tensor  # (B,) int64: window start relative to the canvas start
    cached: dict[str, list[list[float]]] = field(default_factory=dict)

    def row(self, name: str, row: int, width: int) -> list[float] | None:
        """One row's values; each tensor crosses to the host once, whoever asks."""
        if name not in self.columns:
            return None
        if name not in self.cached:
            self.cached[name] = self.columns[name].tolist()
        return self.cached[name][row][:width]


@dataclass(frozen=True, slots=True)
class KeptStep:
    """One step of one row: where its tensors are, and what it cost."""

    step: int
    tensors: StepTensors
    row: int
    seconds: float  # since the row started
    positions: int
    goal: int | None = None  # canvas positions of the result; None is all

    def likely(self, place: int) -> list[tuple[int, float]]:
        """The likeliest tokens of the step at a canvas position of its window, with log probabilities."""
        at = place - int(self.tensors.offset[self.row])
        tokens, logs = (self.tensors.columns[name][self.row, at].tolist() for name in LIKELY)
        return list(zip(tokens, logs, strict=True))

    def record(self) -> Record:
        """The step as it stands in a trace; positions beyond ``goal`` are left out."""
        tensors, row = self.tensors, self.row
        offset = int(tensors.offset[row])
        width = int(tensors.width[row])
        width = width if self.goal is None else max(0, min(width, self.goal - offset))
        values = {name: tensors.row(name, row, width) for name in tensors.columns if name not in LIKELY}
        threshold, label = values.pop("threshold", None), values.pop("label", None)
        allowed = values.pop("allowed", None)
        if threshold is not None and all(math.isnan(v) for v in threshold):
            threshold = None
        return Record(
            step=self.step,
            seconds=self.seconds,
            positions=self.positions,
            window=(offset, offset + width),
            threshold=threshold,
            label=None if label is None or not any(label) else [int(v) for v in label],
            allowed=None if allowed is None or not any(allowed) else [int(v) for v in allowed],
            **values,  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A row's canvas after a step, on the host."""

    text: CanvasText
    committed_at: list[int]
    committed_with: list[float]
    history: list[KeptStep] = field(default_factory=list, repr=False)  # the row's steps so far, where they are kept

    def logprob(self, place: int) -> float:
        """Log confidence of a token at the step that committed it; 0 for template text, which is certain."""
        return 0.0 if self.text.frozen[place] else math.log(max(self.committed_with[place], 1e-6))

    def likely(self, place: int) -> list[tuple[int, float]]:
        """The likeliest tokens at the step that committed this one, with log probabilities; none for template text."""
        return [] if self.text.frozen[place] else self.history[self.committed_at[place]].likely(place)


@dataclass(frozen=True)
class Event:
    """A step of one row. ``text`` is settled text: it only grows, and no later event contradicts it."""

    id: int
    text: str
    done: bool
    settled: int  # leading canvas positions that can never change again
    places: list[int] = field(repr=False)  # settled canvas positions whose tokens make the text
    snapshot: Snapshot = field(repr=False)
    stats: Stats = field(repr=False)  # figures so far
    kept: KeptStep | None = field(repr=False)
    tokenizer: Tokenizer = field(repr=False, compare=False)
    generation: Generation | None = field(default=None, repr=False)
    delta: str = ""  # the text that is new since the event before

    @property
    def tokens(self) -> list[int]:
        """The whole canvas; the mask id where masked."""
        return self.snapshot.text.tokens

    @property
    def masked(self) -> list[bool]:
        """Which canvas positions are masked."""
        return self.snapshot.text.masked

    @cached_property
    def canvas(self) -> list[tuple[str, str]]:
        """(text of the token, state) for every canvas position; state is masked, held or settled."""
        piece = self.tokenizer.piece
        return [
            ("", "masked") if masked else (piece(token), "settled" if i < self.settled else "held")
            for i, (token, masked) in enumerate(zip(self.tokens, self.masked, strict=True))
        ]

    @cached_property
    def record(self) -> Record | None:
        """The step's record, where the request asked for a trace."""
        return None if self.kept is None else self.kept.record()


def generation_of(
    request: Request, snapshot: Snapshot, text: str, places: list[int], stats: Stats, model: Model, *, stopped: bool
) -> Generation:
    """The result of a row that is over: its text, the canvas positions of its tokens, and why it ended."""
    canvas = snapshot.text
    stopped = stopped or len(places) < len(canvas.tokens) or not request.ends or request.constraint is not None
    return Generation(
        text=text,
        tokens=[canvas.tokens[place] for place in places],
        finish_reason="stop" if stopped else "length",
        model=model.name,
        strategy=text_form(request.strategy),
        cache=text_form(request.cache),
        seed=request.options.seed,
        prompt_tokens=request.start,
        stats=replace(stats, tokens=canvas.made(places)),
        commit_steps=[snapshot.committed_at[place] for place in places],
        logprobs=[snapshot.logprob(place) for place in places],
    )


def trace_of(request: Request, snapshot: Snapshot, text: str, stats: Stats, model: Model) -> Trace:
    """Everything a viewer needs, with the text up to no stop string; dropped masks show as end-of-text."""
    canvas = snapshot.text
    whole = [model.spec.eos_ids[0] if m else t for t, m in zip(canvas.tokens, canvas.masked, strict=True)]
    records = [record for kept in snapshot.history if (record := kept.record()).tokens]
    asked, piece = request.constraint, model.tokenizer.piece
    used = {token for r in records for token in (*r.tokens, *r.proposal)} | set(whole)
    return Trace(
        model=model.name,
        strategy=text_form(request.strategy),
        cache=text_form(request.cache),
        prompt=request.prompt,
        prompt_tokens=request.start,
        length=len(whole),
        mask_id=model.spec.mask_id,
        steps=records,
        tokens=whole,
        pieces={token: piece(token) for token in sorted(used)},
        text=text,
        stats=stats,
        constraint="" if asked is None else f"{asked.spec.kind}: {asked.spec.text}",
        sets=[] if asked is None else [[count, list(map(piece, tokens))] for count, tokens in asked.traced_sets],
        blocks=request.block_starts(),
    )
