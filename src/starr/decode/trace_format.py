"""Trace format 1: its actions, and the one check of everything that claims to be a trace.

Every value is looked at, because traces come from strangers too. What is no whole trace is refused in one line, before
anything is drawn or counted from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeGuard

from starr.errors import LoadError

VERSION = 1
AGAIN = "Write it again with `starr run … --trace FILE.json`."
NUMBERS = ("confidence", "best", "threshold")
COLUMNS = ("queried", "tokens", "masked", "proposal", "confidence", "best", "decided", "action")
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
    for key in (*COLUMNS, *optional):
        column = step.get(key)
        if not isinstance(column, list) or len(column) != window[1] - window[0]:
            size = len(column) if isinstance(column, list) else "no"
            lacks = "" if key in step else f": a step lacks one of {', '.join(COLUMNS)}"
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
