"""What a fitted rule looks at: numbers of every position, from the view and the carry alone.

Letters: B rows, W window positions, F features, V vocabulary. A change of this file that changes a number must raise
``VERSION``. Groups of features: *now* (confidence, margin, entropy), *past* (temporal variance as in Eq. 2, streak of
the same proposal), *near* (neighbours within REACH, spatial deviance as in Eq. 3, runs of masks), *row* (share decoded,
place), *token* (the habit of the proposal and of those nearby: how much more often than its confidence says it stands).
"""

from __future__ import annotations

import torch
from torch import Tensor

from starr.decode.confidence import spatial_deviance
from starr.decode.ranking import rank_of
from starr.decode.strategies.ids import is_one_of
from starr.decode.view import Carry, StepView

VERSION = 2
REACH = 4
HABIT_REACH = 3
PAST = 3  # W_t of Eq. 2
LOWEST = -6.0  # the logarithm of a confidence is cut here

NOW = ("logit", "confidence", "margin", "entropy", "ends")
PAST_NAMES = ("last", "variance", "streak", "age")
NEAR = (
    *(f"confidence{d:+d}" for d in (*range(-REACH, 0), *range(1, REACH + 1))),
    *(f"masked{d:+d}" for d in (*range(-REACH, 0), *range(1, REACH + 1))),
    *("run_left", "run_right", "doubt_left", "doubt_right", "peak", "deviance"),
)
ROW = ("rank", "decoded", "place", "masks")
TOKEN = tuple(f"habit{d:+d}" for d in range(-HABIT_REACH, HABIT_REACH + 1))
SEEN = (*NOW, *PAST_NAMES, *NEAR, *ROW)  # what a state shows by itself
NAMES = (*SEEN, *TOKEN)
GROUPS = {"now": NOW, "past": PAST_NAMES, "near": NEAR, "row": ROW, "token": TOKEN}


def no_past(view: StepView) -> Carry:
    """The memory before a window's first step."""
    history = torch.full((*view.confidence.shape, PAST), torch.nan, device=view.confidence.device)
    return {"history": history, "proposal": torch.full_like(view.proposal, -1), "streak": torch.zeros_like(view.tokens)}


def remember(view: StepView, carry: Carry) -> Carry:
    """The memory with this step: the last PAST confidences, and for how many steps the proposal has been the same."""
    same = view.proposal == carry["proposal"]
    history = torch.cat((carry["history"][:, :, 1:], view.confidence[:, :, None]), dim=2)
    return {"history": history, "proposal": view.proposal, "streak": (carry["streak"] + 1) * same}


def features_of(view: StepView, carry: Carry, ends: tuple[int, ...]) -> Tensor:
    """(B, W, len(SEEN)) float32 in that order; ``carry`` is the memory before this step, ``ends`` end a text."""
    columns = {**now(view, ends), **past(view, carry), **near(view), **of_row(view)}
    return torch.stack([columns[name] for name in SEEN], dim=2)


def proposals_near(view: StepView) -> Tensor:
    """(B, W, len(TOKEN)) int64: the proposals around each position and its own, -1 where there is no mask."""
    shown = torch.where(view.masked, view.proposal, -1)
    padded = torch.nn.functional.pad(shown, (HABIT_REACH, HABIT_REACH), value=-1)
    return padded.unfold(1, len(TOKEN), 1)


def with_habits(features: Tensor, proposals: Tensor, habits: Tensor) -> Tensor:
    """(..., F) in the order of NAMES: ``features`` and the habits (V,) of ``proposals``, 0 where there is none."""
    known = torch.where((proposals >= 0) & (proposals < len(habits)), habits[proposals.clamp(0, len(habits) - 1)], 0.0)
    return torch.cat((features, known), dim=-1)


def now(view: StepView, ends: tuple[int, ...]) -> dict[str, Tensor]:
    """This step's prediction at the position itself."""
    assert view.margin is not None
    assert view.entropy is not None
    score = view.confidence.clamp(1e-5, 1 - 1e-5)
    return {
        "logit": (score / (1.0 - score)).log() / 4.0,
        "confidence": view.confidence,
        "margin": view.margin,
        "entropy": view.entropy.log1p(),
        "ends": is_one_of(view.proposal, ends).float(),
    }


def past(view: StepView, carry: Carry) -> dict[str, Tensor]:
    """How the prediction came about: where there is no past yet, as if it had always been so."""
    history, score = carry["history"], view.confidence
    last = history[:, :, -1]
    variance = score - history.nanmean(dim=2)
    streak = (carry["streak"] + 1) * (view.proposal == carry["proposal"])
    return {
        "last": torch.where(last.isnan(), score, last),
        "variance": variance.nan_to_num(0.0),
        "streak": streak.float().log1p(),
        "age": view.step.float().log1p()[:, None].expand_as(score),
    }


def near(view: StepView) -> dict[str, Tensor]:
    """The surroundings: held and template tokens count as sure, what lies right of the window as unknown."""
    inside, width = view.inside, view.masked.shape[1]
    known = torch.where(inside, torch.where(view.masked, view.confidence, 1.0), 0.0)
    masked = view.masked.float()
    found: dict[str, Tensor] = {}
    for name, field, left in (("confidence", known, 1.0), ("masked", masked, 0.0)):
        padded = torch.nn.functional.pad(field, (REACH, 0), value=left)
        padded = torch.nn.functional.pad(padded, (0, REACH), value=0.0)
        for distance in (*range(-REACH, 0), *range(1, REACH + 1)):
            found[f"{name}{distance:+d}"] = padded.narrow(1, REACH + distance, width)
    doubt = (view.confidence.clamp_min(1e-6).log().clamp_min(LOWEST) * masked).double()
    run_left, doubt_left = run_before(view.masked, doubt)
    run_right, doubt_right = (part.flip(1) for part in run_before(view.masked.flip(1), doubt.flip(1)))
    sides = torch.maximum(found["confidence-1"] * found["masked-1"], found["confidence+1"] * found["masked+1"])
    return found | {
        "run_left": run_left.float().log1p(),
        "run_right": run_right.float().log1p(),
        "doubt_left": doubt_left.float().clamp_min(4 * LOWEST) / 4.0,
        "doubt_right": doubt_right.float().clamp_min(4 * LOWEST) / 4.0,
        "peak": (view.confidence > sides).float(),
        "deviance": spatial_deviance(view.confidence, known, 3, (1.0, 0.0)),
    }


def run_before(masked: Tensor, doubt: Tensor) -> tuple[Tensor, Tensor]:
    """Of the run of masks that ends just before each position: its length, and its summed log confidence (B, W)."""
    place = torch.arange(masked.shape[1], device=masked.device).expand_as(masked)
    wall = torch.where(masked, -1, place).cummax(dim=1).values  # the last position up to here that is no mask
    before = torch.nn.functional.pad(wall, (1, 0), value=-1)[:, :-1]
    total = torch.nn.functional.pad(doubt.cumsum(dim=1), (1, 0))  # total[i]: of the positions before i
    length = place - before - 1
    return length, total.gather(1, place) - total.gather(1, before + 1)


def of_row(view: StepView) -> dict[str, Tensor]:
    """Where in its row and in its decoding the position stands."""
    size = view.confidence.shape
    masks = view.masked.sum(dim=1)
    decoded = view.held.sum(dim=1) / (view.held.sum(dim=1) + masks).clamp_min(1)
    place = torch.arange(size[1], device=masks.device) / view.width[:, None].clamp_min(1)
    return {
        "rank": rank_of(view.confidence, view.masked).float().log1p(),
        "decoded": decoded[:, None].expand(size),
        "place": place,
        "masks": masks.float().log1p()[:, None].expand(size),
    }
