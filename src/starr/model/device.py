"""Where a model runs and in which dtype. No choice may crash Python, so half precision on CPU is tried in a child."""

from __future__ import annotations

import os
import warnings

import torch

from starr.errors import InputError, did_you_mean
from starr.model.numbers import HERE, ISA, NO_AMX, WORTH, outcome

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DEVICES = ("cpu", "cuda", "mps")


def choose_device(name: str | None) -> torch.device:
    """The device named ("cpu", "cuda", "cuda:1", "mps"); None takes a CUDA device if there is one, else the CPU."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, index = name.partition(":")
    if kind not in DEVICES or not (index == "" or index.isdecimal()):
        raise InputError(f"Unknown device {name!r}.", hint=did_you_mean(kind, DEVICES), param="device")
    count = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}[kind]
    if int(index or 0) >= count:
        hint = "Use cpu." if count == 0 else f"The last one is {kind}:{count - 1}."
        raise InputError(f"Device {name!r} is not available here.", hint=hint, param="device")
    return torch.device(name)


def choose_dtype(name: str | None, device: torch.device, width: int = 0) -> torch.dtype:
    """The dtype named; None is bfloat16 on CUDA, float32 on MPS, and on CPU the fastest that is safe for ``width``.

    On CPU, safe is what a trial in a child process showed: it does not die, its numbers are near those of float32, and
    a row is the same alone and in a batch. The variable STARR_DTYPE stands for a name that is not given. Half precision
    that is asked for and does not work falls back to float32, with one warning.
    """
    name = asked_dtype(name)
    if name is None and device.type == "cpu":
        return torch.bfloat16 if outcome("bfloat16").gain(width) >= WORTH else torch.float32
    if name is None:
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if device.type == "cpu" and name != "float32":
        trouble = half_trouble(name)
        if trouble:
            warnings.warn(
                f"{name} does not work on this CPU ({trouble}); using float32. "
                f"Setting {ISA}={NO_AMX} before Python starts may help.",
                stacklevel=3,
            )
            return torch.float32
    return DTYPES[name]


def asked_dtype(name: str | None) -> str | None:
    """The name given, or that of STARR_DTYPE; None where the machine decides."""
    name = name or os.environ.get("STARR_DTYPE") or None
    if name is not None and name not in DTYPES:
        raise InputError(f"Unknown dtype {name!r}.", hint=did_you_mean(name, DTYPES), param="dtype")
    return name


def half_trouble(name: str) -> str:
    """Why half precision does not work on the CPU in this process; empty if it does."""
    found = outcome(name)
    if found.isa != HERE.active:
        return "only without AMX, from the next start on"
    return found.trouble


def why_dtype(dtype: torch.dtype, width: int) -> str:
    """One line on the dtype that was chosen by default on a CPU."""
    found = outcome("bfloat16")
    if dtype == torch.bfloat16:
        return f"bfloat16: {found.gain(width):.1f} x as fast as float32 on this CPU (or choose --dtype float32)."
    reason = half_trouble("bfloat16") or (
        f"bfloat16 is {max(found.gains.values(), default=0.0):.1f} x as fast on this CPU"
        if found.even
        else "in bfloat16 a row gives different numbers alone than in a batch"
    )
    return f"float32: {reason}."
