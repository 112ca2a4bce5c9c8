"""What is no whole trace of a known version is refused in one line, before anything is drawn from it.

``starr.trace.read`` opens files; this looks at every value, because traces come from strangers too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

from starr.errors import LoadError
from starr.trace import VERSION

AGAIN = "Write it anew with `starr run … --trace FILE.json`."
NUMBERS = ("confidence", "best", "threshold")
COLUMNS = ("queried", "tokens", "masked", "proposal", "confidence", "best", "decided", "action")
LIMIT = 8192


def check(found: Any, name: str) -> dict[str, Any]:
    """The trace itself when it is one; otherwise a LoadError that names the first thing wrong."""
    if not isinstance(found, dict) or "version" not in found or not isinstance(found.get("steps"), list):
        raise LoadError(f"{name}: not a trace (no object with 'version' and 'steps').", hint=AGAIN)
    version = found["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise LoadError(f"{name}: trace version {version!r} is not a whole number from 1.", hint=AGAIN)
    if version > VERSION:
        raise LoadError(
            f"{name}: trace format {version} is newer than format {VERSION}, the newest this starr reads.",
            hint="Update starr.",
        )
    length = found.get("length")
    if not whole(length) or not 0 < length <= LIMIT:
        raise LoadError(f"{name}: 'length' is {length!r}, not a number of positions from 1 to {LIMIT}.", hint=AGAIN)
    for index, step in enumerate(found["steps"]):
        check_step(step, index, name)
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


def check_header(found: Mapping[str, Any], name: str) -> None:
    """The parts outside the steps, where they are present."""
    kinds: dict[str, type | tuple[type, ...]] = {
        "model": str, "strategy": str, "cache": str, "prompt": str, "text": str, "pieces": dict, "stats": dict,
        "tokens": list, "answer": (str, type(None)), "correct": (bool, type(None)),
    }  # fmt: skip
    for key, kind in kinds.items():
        if key in found and not isinstance(found[key], kind):
            raise LoadError(f"{name}: {key!r} is {type(found[key]).__name__}, not what a trace holds.", hint=AGAIN)
    if not all(is_token(token) for token in [*found.get("tokens", []), found.get("mask_id", 0)]):
        raise LoadError(f"{name}: 'tokens' or 'mask_id' holds something that is no token id.", hint=AGAIN)
    if not all(is_number(value) and math.isfinite(value) for value in found.get("stats", {}).values()):
        raise LoadError(f"{name}: 'stats' holds something that is no number.", hint=AGAIN)
    if not all(isinstance(piece, str) for piece in found.get("pieces", {}).values()):
        raise LoadError(f"{name}: 'pieces' holds something that is no text.", hint=AGAIN)


def check_step(step: Any, index: int, name: str) -> None:
    """One step: a window inside the limit, and every column exactly as wide."""
    where = f"{name}: step {index}"
    if not isinstance(step, dict):
        raise LoadError(f"{where} is no object.", hint=AGAIN)
    window = step.get("window")
    if not (isinstance(window, list) and len(window) == 2 and all(whole(end) for end in window)):
        raise LoadError(f"{where}: 'window' is {window!r}, not [start, end].", hint=AGAIN)
    if not 0 <= window[0] <= window[1] <= LIMIT:
        raise LoadError(f"{where}: window {window} is outside 0 to {LIMIT}.", hint=AGAIN)
    optional = [key for key in ("threshold", "label") if step.get(key) is not None]
    for key in (*COLUMNS, *optional):
        column = step.get(key)
        if not isinstance(column, list) or len(column) != window[1] - window[0]:
            size = len(column) if isinstance(column, list) else "no"
            raise LoadError(f"{where}: {key!r} has {size} values for a window of {window[1] - window[0]}.", hint=AGAIN)
        fits = is_measure if key in NUMBERS else is_count
        if not all(fits(value) for value in column):
            raise LoadError(f"{where}: {key!r} holds something that is no number.", hint=AGAIN)
    for key in ("seconds", "positions"):
        if not (is_number(step.get(key, 0)) and 0 <= step.get(key, 0) < 2**31):
            raise LoadError(f"{where}: {key!r} is {step[key]!r}, not a number.", hint=AGAIN)
    if not all(is_token(value) for key in ("tokens", "proposal") for value in step[key]):
        raise LoadError(f"{where}: holds something that is no token id.", hint=AGAIN)
    if not all(0 <= value <= 3 for key in ("action", "decided") for value in step[key]):
        raise LoadError(f"{where}: an action is outside 0 keep, 1 commit, 2 revoke, 3 revise.", hint=AGAIN)
