"""Token dynamics in traces: the paper's temporal and spatial patterns, detected, and its confidence zones.

The paper names the patterns in words only; the numbers in ``Cuts`` are ours. Only positions of the text are looked at
(up to the first end-of-text), and only steps whose forward gave the position a fresh confidence. Confidence is that of
the most likely token (Eq. 1), also where another one is held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from starr.decode import confidence as scores
from starr.errors import LoadError

TEMPORAL = ("stable", "surge", "fluctuation", "other")
SPATIAL = ("consistent", "anchor", "laggard")
ZONES = ("regular", "stall", "erratic", "both")
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where one pattern ends and the next begins; confidences are in [0, 1]."""

    span: int = 5  # fresh confidences that are judged together
    steady: float = 0.1  # stable: they differ by at most this
    swing: float = 0.1  # fluctuation: they turn at least twice, each leg at least this long
    surge: float = 0.3  # surge: they rise by at least this, without turning twice
    outlier: float = 0.2  # outlier: further than this from the weighted mean of the neighbours
    temporal_window: int = 3  # W_t of Eq. 2
    spatial_window: int = 3  # W_n of Eq. 3
    high: float = 0.75  # zones: "high" is above this quantile of all tokens


@dataclass(frozen=True, slots=True)
class Token:
    """One position of one trace over all its steps."""

    trace: int
    position: int
    piece: str
    steps: tuple[int, ...]  # steps with a fresh confidence
    confidence: tuple[float, ...]  # at these steps
    patterns: tuple[str, ...]  # from the ``span``-th of these steps on
    deviance: tuple[float, ...]  # spatial, signed, at these steps
    variance: float  # mean of |Eq. 2|
    whole_deviance: float  # mean of |Eq. 3|


def tokens_of(number: int, trace: dict[str, Any], cuts: Cuts) -> list[Token]:
    """Every text position of a trace that was observed at least once."""
    length = min(int(trace["stats"]["tokens"]), int(trace["length"]))
    fresh: list[list[tuple[int, float, float]]] = [[] for _ in range(length)]
    for step in trace["steps"]:
        start = step["window"][0]
        field = np.array(step.get("best") or step["confidence"], dtype=float)
        deviance = spatial_deviance(field, cuts.spatial_window)
        queried = step.get("queried") or [1] * len(field)
        for place in range(min(len(field), length - start)):
            if queried[place]:
                fresh[start + place].append((step["step"], float(field[place]), float(deviance[place])))
    return [token(number, i, trace, seen, cuts) for i, seen in enumerate(fresh) if seen]


def token(
    number: int, position: int, trace: dict[str, Any], seen: Sequence[tuple[int, float, float]], cuts: Cuts
) -> Token:
    """The life of one position: its confidence, its patterns and its residuals at every step that saw it."""
    steps, values, deviance = zip(*seen, strict=True)
    residual = temporal_residual(np.array(values), cuts.temporal_window)
    piece = trace["pieces"].get(str(trace["tokens"][position]), "")
    return Token(
        number, position, piece, steps, values, temporal_patterns(values, cuts), deviance,
        float(np.abs(residual).mean()) if len(residual) else 0.0, float(np.abs(deviance).mean()),
    )  # fmt: skip


def spatial_deviance(field: Array, window: int) -> Array:
    """Eq. 3 (W,), signed, with the paper's pads: 1 beyond the left edge, 0 beyond the right."""
    row = torch.from_numpy(field)[None]
    found: Array = scores.spatial_deviance(row, row, window, (1.0, 0.0))[0].numpy()
    return found


def temporal_residual(values: Array, window: int) -> Array:
    """Eq. 2 at every step that has ``window`` values before it."""
    if len(values) <= window:
        return np.zeros(0)
    means = np.convolve(values, np.ones(window) / window, "valid")[:-1]
    residual: Array = values[window:] - means
    return residual


def temporal_patterns(values: Sequence[float], cuts: Cuts) -> tuple[str, ...]:
    """The pattern of every run of ``span`` confidences; a single run of all of them when they are fewer."""
    last = max(len(values) - cuts.span, 0)
    return tuple(temporal_pattern(values[i : i + cuts.span], cuts) for i in range(last + 1))


def temporal_pattern(values: Sequence[float], cuts: Cuts) -> str:
    """stable, fluctuation, surge or other, in this order of precedence."""
    if max(values) - min(values) <= cuts.steady:
        return "stable"
    if turns(values, cuts.swing) >= 2:
        return "fluctuation"
    lowest, rise = values[0], 0.0
    for value in values:
        lowest, rise = min(lowest, value), max(rise, value - lowest)
    return "surge" if rise >= cuts.surge else "other"


def turns(values: Sequence[float], swing: float) -> int:
    """How often the direction changes, legs shorter than ``swing`` not counted."""
    pivot, direction, count = values[0], 0, 0
    for value in values[1:]:
        move = value - pivot
        if direction * move > 0:
            pivot = value
        elif abs(move) >= swing:
            count += direction != 0
            pivot, direction = value, (1 if move > 0 else -1)
    return count


def spatial_pattern(deviance: float, cuts: Cuts) -> str:
    """consistent, or an outlier: an anchor above its neighbours, a laggard below."""
    if abs(deviance) <= cuts.outlier:
        return "consistent"
    return "anchor" if deviance > 0 else "laggard"


@dataclass(frozen=True, slots=True)
class Analysis:
    """All tokens of all traces, and what they show."""

    tokens: Sequence[Token]
    temporal: Counter[str]  # over token-steps
    spatial: Counter[str]  # over token-steps
    showing: Counter[str]  # tokens that show a temporal or spatial pattern at least once
    when: dict[str, float]  # mean time of a temporal pattern, from 0 (first step) to 1 (last)
    zones: Counter[str]  # over tokens
    zone_of: Sequence[str]
    limits: tuple[float, float]  # of variance and deviance between low and high


def analyse(traces: Sequence[dict[str, Any]], cuts: Cuts | None = None) -> Analysis:
    """Patterns and zones over traces of format 1."""
    cuts = cuts or Cuts()
    tokens = [token for number, trace in enumerate(traces) for token in tokens_of(number, trace, cuts)]
    if not tokens:
        raise LoadError("The traces hold no text tokens to analyse.", hint="Give traces of finished runs with text.")
    last = [max(len(trace["steps"]) - 1, 1) for trace in traces]
    spatial = [[spatial_pattern(d, cuts) for d in token.deviance] for token in tokens]
    times: dict[str, list[float]] = {name: [] for name in TEMPORAL}
    for token in tokens:
        for place, name in enumerate(token.patterns):
            step = token.steps[min(place + cuts.span - 1, len(token.steps) - 1)]
            times[name].append(step / last[token.trace])
    showing = Counter(name for token, near in zip(tokens, spatial, strict=True) for name in {*token.patterns, *near})
    zone_of, limits = zones(tokens, cuts)
    return Analysis(
        tokens=tokens,
        temporal=Counter({name: len(found) for name, found in times.items()}),
        spatial=Counter(name for row in spatial for name in row),
        showing=showing,
        when={name: float(np.mean(found)) for name, found in times.items() if found},
        zones=Counter(zone_of),
        zone_of=zone_of,
        limits=limits,
    )


def zones(tokens: Sequence[Token], cuts: Cuts) -> tuple[list[str], tuple[float, float]]:
    """Each token's zone: stall is low variance and high deviance, erratic the reverse, regular low in both."""
    variance = float(np.quantile([t.variance for t in tokens], cuts.high))
    deviance = float(np.quantile([t.whole_deviance for t in tokens], cuts.high))
    names = {(False, False): "regular", (False, True): "stall", (True, False): "erratic", (True, True): "both"}
    return [names[t.variance > variance, t.whole_deviance > deviance] for t in tokens], (variance, deviance)
