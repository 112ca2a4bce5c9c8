"""What happened: records of steps, the trace of a run, its figures, and the result. File format 1.

Arrays of a record cover the step's window, before the step's action. ``decided`` is what the strategy said, ``action``
what ``enforce`` let through. Positions are relative to the canvas start, the first position after the prompt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import IntEnum
from html import escape
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

import starr
from starr.errors import InputError, LoadError, WorkError, counted

VERSION = 1
AGAIN = "Write it again with `starr run … --trace FILE.json`."
NUMBERS = ("confidence", "best", "threshold")
REQUIRED = ("queried", "tokens", "masked", "proposal", "confidence", "best", "decided", "action")
LONGEST = 2**20  # positions that a file may have
MOST_STEPS = 20_000  # no run has as many: it ends within as many forwards as it has masks
MOST_BYTES = 2**29  # of a file
DRAWN = 8192  # positions that a page or a plot may have
PHASES, PHASE = ("prefill", "denoise", "seal"), {"forwards", "positions", "seconds"}  # of ``stats``


class Action(IntEnum):
    """What happens to a position in a step; also the alphabet of traces."""

    KEEP = 0
    COMMIT = 1
    REVOKE = 2
    REVISE = 3


ACTIONS = {int(action): f"{action} {action.name.lower()}" for action in Action}


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
        return starr.show_inline([self.to_dict()])

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
        for name in (*REQUIRED, "threshold"):
            is_whole = name not in NUMBERS
            values = np.full((len(self.steps), self.length), -1 if is_whole else np.nan)
            for place, step in enumerate(self.steps):
                column = getattr(step, name)
                if column is not None:
                    values[place, slice(*step.window)] = [np.nan if value is None else value for value in column]
            found[name] = values.astype(np.int64) if is_whole else values
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
        return told if self.trace is None else starr.show_inline([self.trace.to_dict()])

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


def check_trace(found: Any, name: str, longest: int = DRAWN) -> dict[str, Any]:
    """The trace itself when it is one of at most ``longest`` positions; else a LoadError that names what is wrong."""
    if not isinstance(found, dict) or "version" not in found or not isinstance(found.get("steps"), list):
        raise LoadError(f"{name}: not a trace: it needs 'version' and 'steps'.", hint=AGAIN)
    version = found["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise LoadError(f"{name}: trace version {version!r} is not a whole number from 1.", hint=AGAIN)
    if version > VERSION:
        raise LoadError(
            f"{name}: trace format {version} is newer than format {VERSION}, the newest this starr reads.",
            hint="Update starr.",
        )
    if len(found["steps"]) > MOST_STEPS:
        raise LoadError(f"{name}: {len(found['steps'])} steps; a trace may have at most {MOST_STEPS}.")
    for index, step in enumerate(found["steps"]):
        check_step(step, index, name, longest)
    length = found.get("length")
    if not whole(length) or not 0 < length <= longest:
        raise LoadError(f"{name}: 'length' is {length!r}, not a number of positions from 1 to {longest}.", hint=AGAIN)
    check_header(found, name)
    return found


def whole(value: Any) -> TypeGuard[int]:
    """Whether a value is an int and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_token(value: Any) -> bool:
    """Whether a value can be a token id."""
    return whole(value) and 0 <= value < 2**31


def is_number(value: Any) -> bool:
    """Whether a value is a float (infinite or NaN too: JSON from Python has them) or an int that fits one."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**31)


def is_measure(value: Any) -> bool:
    """What confidence, best and threshold hold; None where there is none."""
    return value is None or is_number(value)


def is_count(value: Any) -> bool:
    """What every other column holds: an int or a bool."""
    return isinstance(value, int) and abs(value) < 2**31


def is_figure(key: str, value: Any) -> bool:
    """What ``stats`` holds: a number, or those of a phase of a block-causal run."""
    if key in PHASES and isinstance(value, dict):
        return value.keys() <= PHASE and all(is_figure("", each) for each in value.values())
    return is_number(value) and math.isfinite(value)


def is_set(value: Any) -> bool:
    """What ``sets`` holds: a number of tokens, and the first of them as text."""
    return isinstance(value, list) and len(value) == 2 and is_count(value[0]) and isinstance(value[1], list)


def check_header(found: Mapping[str, Any], name: str) -> None:
    """The parts outside the steps, where they are present."""
    kinds: dict[str, type | tuple[type, ...]] = {
        "model": str, "strategy": str, "cache": str, "prompt": str, "text": str, "pieces": dict, "stats": dict,
        "tokens": list, "answer": (str, type(None)), "right": (bool, type(None)),
        "formed": (bool, type(None)), "constraint": str, "sets": list,
    }  # fmt: skip
    for key, kind in kinds.items():
        if key in found and not isinstance(found[key], kind):
            raise LoadError(f"{name}: {key!r} is {type(found[key]).__name__}, not what a trace holds.", hint=AGAIN)
    if not all(is_token(token) for token in [*found.get("tokens", []), found.get("mask_id", 0)]):
        raise LoadError(f"{name}: 'tokens' or 'mask_id' holds something that is not a token id.", hint=AGAIN)
    if not all(is_figure(key, value) for key, value in found.get("stats", {}).items()):
        raise LoadError(f"{name}: 'stats' holds something that is not a number.", hint=AGAIN)
    if not all(is_set(each) for each in found.get("sets", [])):
        raise LoadError(f"{name}: 'sets' holds something that is not a set of tokens.", hint=AGAIN)
    if not all(isinstance(piece, str) for piece in found.get("pieces", {}).values()):
        raise LoadError(f"{name}: 'pieces' holds something that is not text.", hint=AGAIN)


def check_step(step: Any, index: int, name: str, longest: int) -> None:
    """One step: a window inside the limit, and every column exactly as wide."""
    where = f"{name}: step {index}"
    if not isinstance(step, dict):
        raise LoadError(f"{where} is not an object.", hint=AGAIN)
    window = step.get("window")
    if not (isinstance(window, list) and len(window) == 2 and all(whole(end) for end in window)):
        raise LoadError(f"{where}: 'window' is {window!r}, not [start, end].", hint=AGAIN)
    if not 0 <= window[0] <= window[1] <= longest:
        raise LoadError(f"{where}: window {window} is outside 0 to {longest}.", hint=AGAIN)
    optional = [key for key in ("threshold", "label", "allowed") if step.get(key) is not None]
    for key in (*REQUIRED, *optional):
        column = step.get(key)
        if not isinstance(column, list) or len(column) != window[1] - window[0]:
            size = len(column) if isinstance(column, list) else "no"
            lacks = "" if key in step else f": a step lacks one of {', '.join(REQUIRED)}"
            width = window[1] - window[0]
            raise LoadError(f"{where}: {key!r} has {size} values for a window of {width}{lacks}.", hint=AGAIN)
        fits = is_measure if key in NUMBERS else is_count
        if not all(fits(value) for value in column):
            raise LoadError(f"{where}: {key!r} holds something that is not a number.", hint=AGAIN)
    for key in ("seconds", "positions"):
        if not (is_number(step.get(key, 0)) and 0 <= step.get(key, 0) < 2**31):
            raise LoadError(f"{where}: {key!r} is {step[key]!r}, not a number.", hint=AGAIN)
    if not all(is_token(value) for key in ("tokens", "proposal") for value in step[key]):
        raise LoadError(f"{where}: holds something that is not a token id.", hint=AGAIN)
    if not all(value in ACTIONS for key in ("action", "decided") for value in step[key]):
        raise LoadError(f"{where}: an action is outside {', '.join(ACTIONS.values())}.", hint=AGAIN)
