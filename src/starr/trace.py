"""What happened: records of steps, the trace of a run, its figures, and the result. File format 1.

Arrays of a record cover the step's window, before the step's action. ``decided`` is the strategy's word, ``action``
what ``enforce`` let through. Positions are relative to the canvas start, the first position after the prompt.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from starr.errors import LoadError, WorkError

VERSION = 1


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

    @property
    def tokens_per_forward(self) -> float:
        return self.tokens / max(self.forwards, 1)

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / max(self.seconds, 1e-9)

    @property
    def positions_per_token(self) -> float:
        return self.positions / max(self.tokens, 1)

    @property
    def reused_share(self) -> float:
        """Share of a cacheless run's positions that were not computed; 0 where more were (a shadow block)."""
        return max(0.0, 1.0 - self.positions / max(self.forwards * self.row_positions, 1))

    def to_dict(self) -> dict[str, Any]:
        """All figures, derived ones included, as they stand in JSON."""
        derived = ("tokens_per_forward", "tokens_per_second", "positions_per_token", "reused_share")
        return asdict(self) | {name: round(getattr(self, name), 4) for name in derived}


@dataclass(frozen=True, slots=True)
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
    correct: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Format 1, ready for ``json.dumps``."""
        body = {f.name: getattr(self, f.name) for f in fields(self)}
        body["steps"] = [record_dict(record) for record in self.steps]
        body["stats"] = self.stats.to_dict()
        body["pieces"] = {str(token): piece for token, piece in self.pieces.items()}
        return {"version": VERSION} | body

    def save(self, path: str | Path) -> None:
        try:
            Path(path).write_text(json.dumps(self.to_dict(), ensure_ascii=False), encoding="utf8")
        except OSError as error:
            raise WorkError(f"Cannot write the trace to {path}: {error.strerror}.") from None


def read(path: str | Path) -> dict[str, Any]:
    """A trace file of format 1 as a dictionary, checked; anything else is one clear line."""
    try:
        body = json.loads(Path(path).read_text(encoding="utf8"))
    except OSError as error:
        raise LoadError(f"Cannot read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise LoadError(f"{path} is not a trace: it is cut off or not JSON.") from None
    if not isinstance(body, dict) or "version" not in body or not isinstance(body.get("steps"), list):
        raise LoadError(f"{path} is not a trace: it needs 'version' and 'steps'.")
    if body["version"] != VERSION:
        raise LoadError(f"{path} has trace format {body['version']!r}; this version of starr reads {VERSION}.")
    needed = {"window", "tokens", "masked", "confidence", "action"}
    if any(not isinstance(step, dict) or not needed <= step.keys() for step in body["steps"]):
        raise LoadError(f"{path} is not a trace: a step lacks one of {', '.join(sorted(needed))}.")
    return body


def record_dict(record: Record) -> dict[str, Any]:
    """One step in format 1."""
    body: dict[str, Any] = {f.name: getattr(record, f.name) for f in fields(record)}
    body["window"] = list(record.window)
    body["seconds"] = round(record.seconds, 6)
    for name in ("best", "confidence", "threshold"):
        if body[name] is not None:
            body[name] = [round(value, 5) for value in body[name]]
    if record.label is None:
        del body["label"]
    return body


@dataclass(frozen=True, slots=True)
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

    def to_dict(self) -> dict[str, Any]:
        """The object that ``starr run --json`` prints."""
        names = ("text", "tokens", "finish_reason", "model", "strategy", "cache", "seed")
        return {name: getattr(self, name) for name in names} | {"stats": self.stats.to_dict()}
