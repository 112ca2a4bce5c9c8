"""What happened: records of steps, the trace of a run, its figures, and the result. File format 1.

Arrays of a record cover the step's window, before the step's action. ``decided`` is what the strategy said, ``action``
what ``enforce`` let through. Positions are relative to the canvas start, the first position after the prompt.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict, dataclass, field, fields
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from starr.decode.trace_format import LONGEST, MOST_BYTES, VERSION, check_trace
from starr.errors import InputError, LoadError, WorkError, counted

COLUMNS = ("queried", "tokens", "masked", "proposal", "best", "confidence", "threshold", "decided", "action")


@dataclass(frozen=True, slots=True)
class Record:
    """One step of one row."""

    step: int
    seconds: float  # since the row started
    positions: int  # positions this forward recomputed for the row
    window: tuple[int, int]  # [start, end) on the canvas
    queried: list[int]  # 1 where this forward gave a fresh confidence
    tokens: list[int]
    masked: list[bool]
    proposal: list[int]
    best: list[float]
    confidence: list[float]
    threshold: list[float] | None
    decided: list[int]
    action: list[int]
    label: list[int] | None = None
    allowed: list[int] | None = None  # which of the trace's ``sets`` a confidence is restricted to

    def __repr__(self) -> str:
        start, end = self.window
        done = f"{counted(self.action.count(1), 'commit')}, {counted(self.action.count(2), 'revocation')}"
        return f"<Record of step {self.step}: window {start} to {end}, {done}>"


@dataclass(slots=True)
class PhaseCost:
    """What a block-causal row spent on K/V that are kept: on the prompt (prefill) or on finished blocks (seal).

    Forwards that did nothing else; positions; seconds, as the positions' share of their forwards.
    """

    forwards: int = 0
    positions: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Stats:
    """The figures of one run. Tokens are counted up to the first end-of-text, never prompt, never padding."""

    forwards: int
    full_forwards: int  # forwards that recomputed every position of the row
    positions: int  # positions recomputed, over all forwards; padding not counted
    padded_positions: int  # positions computed only because rows of one forward share a shape
    tokens: int
    canvas_tokens: int
    seconds: float
    commits: int
    revocations: int
    revisions: int
    row_positions: int  # positions of prompt and canvas together
    buffer_bytes: int
    prefill: PhaseCost = field(default_factory=PhaseCost)
    seal: PhaseCost = field(default_factory=PhaseCost)

    @property
    def denoise(self) -> PhaseCost:
        """All that is neither prefill nor seal."""
        spent = [(part.forwards, part.positions, part.seconds) for part in (self.prefill, self.seal)]
        forwards, positions, seconds = (sum(values) for values in zip(*spent, strict=True))
        return PhaseCost(int(self.forwards - forwards), int(self.positions - positions), self.seconds - seconds)

    @property
    def tokens_per_forward(self) -> float:
        """Tokens of the text for each forward."""
        return self.tokens / max(self.forwards, 1)

    @property
    def tokens_per_second(self) -> float:
        """Tokens of the text for each second."""
        return self.tokens / max(self.seconds, 1e-9)

    @property
    def positions_per_token(self) -> float:
        """Positions recomputed for each token of the text."""
        return self.positions / max(self.tokens, 1)

    @property
    def reused_share(self) -> float:
        """Share of a cacheless run's positions that were not computed; 0 where more were (a shadow block)."""
        return max(0.0, 1.0 - self.positions / max(self.forwards * self.row_positions, 1))

    def to_dict(self) -> dict[str, Any]:
        """All figures, derived ones included, as they stand in JSON."""
        derived = ("tokens_per_forward", "tokens_per_second", "positions_per_token", "reused_share")
        body = asdict(self) | {name: round(getattr(self, name), 4) for name in derived}
        if not (self.prefill.positions or self.seal.positions):
            del body["prefill"], body["seal"]
            return body
        return body | {"denoise": asdict(self.denoise)}


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """All steps of a run, and what is needed to show them without the model."""

    model: str
    strategy: str
    cache: str
    prompt: str
    prompt_tokens: int
    length: int
    mask_id: int
    steps: list[Record]
    tokens: list[int]  # the whole canvas after the last step
    pieces: dict[int, str]  # text of every token id that occurs
    text: str
    stats: Stats
    answer: str | None = None
    right: bool | None = None
    formed: bool | None = None
    constraint: str = ""  # what the answer had to keep to; confidences are then those of restricted distributions
    sets: list[list[Any]] = field(default_factory=list)  # what ``Record.allowed`` names: [tokens, the first as text]
    blocks: list[int] = field(default_factory=list)  # where the blocks of a block-causal model begin on the canvas

    def to_dict(self) -> dict[str, Any]:
        """Format 1, ready for ``json.dumps``."""
        body = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in () if self.constraint else ("constraint", "sets"):
            del body[name]
        if not self.blocks:
            del body["blocks"]
        body["steps"] = [record_dict(record) for record in self.steps]
        body["stats"] = self.stats.to_dict()
        body["pieces"] = {str(token): piece for token, piece in self.pieces.items()}
        return {"version": VERSION} | body

    def __repr__(self) -> str:
        size = f"{counted(len(self.steps), 'step')}, {counted(self.length, 'position')}"
        return f"<Trace of {self.strategy}: {size}, {begin(self.text)}>"

    def _repr_html_(self) -> str:
        """The viewer, inside a notebook."""
        return show_inline([self.to_dict()])

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """A trace from a file of format 1."""
        body = read(path)
        known = {f.name for f in fields(cls)}
        steps = [Record(**step | {"window": tuple(step["window"])}) for step in body["steps"]]
        own = {f.name for f in fields(Stats)}
        figures = {name: value for name, value in body["stats"].items() if name in own}
        phases = {name: PhaseCost(**value) for name, value in figures.items() if isinstance(value, dict)}
        stats = Stats(**figures | phases)
        pieces = {int(token): piece for token, piece in body["pieces"].items()}
        rest = {name: value for name, value in body.items() if name in known}
        return cls(**rest | {"steps": steps, "stats": stats, "pieces": pieces})

    def to_numpy(self) -> dict[str, NDArray[Any]]:
        """Each column of the steps as (steps, length); NaN (-1 in whole numbers) where no window reached."""
        found: dict[str, NDArray[Any]] = {}
        for name in COLUMNS:
            whole = name not in ("confidence", "best", "threshold")
            values = np.full((len(self.steps), self.length), -1 if whole else np.nan)
            for place, step in enumerate(self.steps):
                column = getattr(step, name)
                if column is not None:
                    values[place, slice(*step.window)] = [np.nan if value is None else value for value in column]
            found[name] = values.astype(np.int64) if whole else values
        return found

    def save(self, path: str | Path) -> None:
        """Write the trace as a file of format 1."""
        try:
            Path(path).write_text(json.dumps(self.to_dict(), ensure_ascii=False), encoding="utf8")
        except OSError as error:
            raise WorkError(f"Cannot write the trace to {path}: {error.strerror}.") from None


def begin(text: str, most: int = 80) -> str:
    """A text's beginning, quoted."""
    return repr(text if len(text) <= most else f"{text[: most - 1]}…")


def show_inline(traces: list[dict[str, Any]]) -> str:
    """The viewer's page in a frame. It is named here as text: the loop does not depend on how it is shown."""
    frame: str = importlib.import_module("starr.viewer.inline").frame(traces)
    return frame


def read(path: str | Path) -> dict[str, Any]:
    """A trace file of format 1 as a dictionary, checked; anything else is one clear line."""
    try:
        size = Path(path).stat().st_size
        if size > MOST_BYTES:
            raise LoadError(f"{path} has {size} bytes; a trace may have at most {MOST_BYTES}.")
        body = json.loads(Path(path).read_text(encoding="utf8"))
    except OSError as error:
        raise LoadError(f"Cannot read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise LoadError(f"{path} is not a trace: it is cut off or not JSON.") from None
    return check_trace(body, str(path), LONGEST)


def record_dict(record: Record) -> dict[str, Any]:
    """One step in format 1."""
    body: dict[str, Any] = {f.name: getattr(record, f.name) for f in fields(record)}
    body["window"] = list(record.window)
    body["seconds"] = round(record.seconds, 6)
    for name in ("best", "confidence", "threshold"):
        if body[name] is not None:
            body[name] = [round(value, 5) for value in body[name]]
    for name in ("label", "allowed"):
        if body[name] is None:
            del body[name]
    return body


@dataclass(frozen=True, slots=True, repr=False)
class Generation:
    """The result of one run; ``str(generation)`` is its text."""

    text: str
    tokens: list[int]  # up to the first end-of-text, which is left out
    finish_reason: str  # "stop" | "length"
    model: str
    strategy: str
    cache: str
    seed: int
    prompt_tokens: int
    stats: Stats
    trace: Trace | None = field(default=None, repr=False)
    commit_steps: list[int] = field(default_factory=list, repr=False)  # the step each token was last committed at
    logprobs: list[float] = field(default_factory=list, repr=False)  # log confidence of each token at that step

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        figures = f"{counted(self.stats.forwards, 'forward')}, {self.stats.tokens_per_forward:.2f} tokens per forward"
        return f"<Generation by {self.strategy}: {begin(self.text)}, {self.finish_reason}, {figures}>"

    def _repr_html_(self) -> str:
        """The text and its figures; every step in the viewer where there is a trace."""
        told = f"<pre>{escape(self.text)}</pre><small>{escape(repr(self))}</small>"
        return told if self.trace is None else show_inline([self.trace.to_dict()])

    def to_dict(self) -> dict[str, Any]:
        """The object that ``starr run --json`` prints."""
        names = ("text", "tokens", "finish_reason", "model", "strategy", "cache", "seed")
        return {name: getattr(self, name) for name in names} | {"stats": self.stats.to_dict()}


class Generations(list[Generation]):
    """The results of many prompts, in order: a list that also makes a table."""

    def to_pandas(self) -> Any:
        """One row per generation: text, finish_reason, strategy, cache, seed and every figure."""
        try:
            import pandas
        except ImportError:
            raise InputError("to_pandas needs pandas.", hint="pip install pandas") from None
        names = ("text", "finish_reason", "model", "strategy", "cache", "seed", "prompt_tokens")
        rows = [{name: getattr(each, name) for name in names} | each.stats.to_dict() for each in self]
        return pandas.DataFrame(rows)
