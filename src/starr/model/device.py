"""The device and the dtype of a model, and its memory on CPU.

No choice may crash Python, so half precision on CPU is tried in a child process.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings

import torch

from starr.errors import InputError, did_you_mean
from starr.model.numbers import HERE, ISA, NO_AMX, WORTH, find_outcome

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DEVICES = ("cpu", "cuda", "mps")
GPU = "Use cuda, or cpu where there is none."
CLEAR_DEVICES = {"gpu": GPU, "GPU": GPU, "nvidia": GPU, "CUDA": "Use cuda.", "CPU": "Use cpu.", "metal": "Use mps."}
NO_QUANTISING = "Weights are float32, bfloat16 or float16 here."
CLEAR_DTYPES = {
    **dict.fromkeys(("fp16", "f16", "half", "16"), "Use float16."),
    **dict.fromkeys(("bf16", "bfp16"), "Use bfloat16."),
    **dict.fromkeys(("fp32", "f32", "float", "32", "full"), "Use float32."),
    **dict.fromkeys(("int8", "int4", "8bit", "4bit", "fp8", "nf4", "q4_0", "q8_0", "float64"), NO_QUANTISING),
    "auto": "Leave it out: the default is the fastest that is safe here.",
}
"""What people write for a device or a dtype → what they mean."""
TRIM, MAP, HEAPS = -1, -3, -8  # mallopt's M_TRIM_THRESHOLD, M_MMAP_THRESHOLD and M_ARENA_MAX
LARGEST_BLOCK = 256 * 2**20


def choose_device(given: str | torch.device | None) -> torch.device:
    """Choose the device named ("cpu", "cuda", "cuda:1", "mps"); None is CUDA where there is a device, else the CPU."""
    if given is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = str(given)
    kind, _, index = name.partition(":")
    if kind not in DEVICES or not (index == "" or index.isdecimal()):
        hint = CLEAR_DEVICES.get(kind) or did_you_mean(kind, DEVICES)
        raise InputError(f"Unknown device {name!r}.", hint=hint, param="device")
    count = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}[kind]
    if int(index or 0) >= count:
        hint = "Use cpu." if count == 0 else f"The last one is {kind}:{count - 1}."
        raise InputError(f"Device {name!r} is not available here.", hint=hint, param="device")
    return torch.device(name)


def choose_dtype(given: str | torch.dtype | None, device: torch.device, width: int = 0) -> torch.dtype:
    """Choose the dtype named; None is bfloat16 on CUDA, float32 on MPS, and the fastest safe one for ``width`` on CPU.

    On CPU, a trial in a child process shows what is safe: it does not die, its numbers are near those of float32, and a
    row is the same alone and in a batch. The variable STARR_DTYPE names the dtype where ``given`` is None. Half
    precision that does not work falls back to float32, with one warning.
    """
    name = read_dtype(given)
    if name is None and device.type == "cpu":
        return torch.bfloat16 if find_outcome("bfloat16").gain(width) >= WORTH else torch.float32
    if name is None:
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if device.type == "cpu" and name != "float32":
        trouble = explain_half_trouble(name)
        if trouble:
            warnings.warn(
                f"{name} does not work on this CPU ({trouble}); using float32. "
                f"Setting {ISA}={NO_AMX} before Python starts may help.",
                stacklevel=3,
            )
            return torch.float32
    return DTYPES[name]


def read_dtype(given: str | torch.dtype | None) -> str | None:
    """Check the dtype or the name given, or the name in STARR_DTYPE; None where the machine decides."""
    name = str(given or os.environ.get("STARR_DTYPE") or "").removeprefix("torch.") or None
    if name is not None and name not in DTYPES:
        hint = CLEAR_DTYPES.get(name.lower()) or did_you_mean(name, DTYPES)
        raise InputError(f"Unknown dtype {name!r}.", hint=hint, param="dtype")
    return name


def explain_half_trouble(name: str) -> str:
    """Say why half precision does not work on the CPU in this process; empty if it does."""
    outcome = find_outcome(name)
    return "only without AMX, from the next start on" if outcome.isa != HERE.active else outcome.trouble


def explain_dtype(dtype: torch.dtype, width: int) -> str:
    """Say in one line why a dtype is the default on this CPU."""
    outcome = find_outcome("bfloat16")
    if dtype == torch.bfloat16:
        return f"bfloat16: {outcome.gain(width):.1f} x as fast as float32 on this CPU (or choose --dtype float32)."
    reason = explain_half_trouble("bfloat16") or (
        f"bfloat16 is {max(outcome.gains.values(), default=0.0):.1f} x as fast on this CPU"
        if outcome.even
        else "in bfloat16 a row gives different numbers alone than in a batch"
    )
    return f"float32: {reason}."


def keep_freed_memory() -> bool:
    """Keep freed memory with the process, for forwards on CPU; return whether that was possible.

    glibc hands large blocks back to the system as soon as a tensor is freed, so that the next operation faults every
    page in again: a tenth of a small model's forward, and most of one over 1,024 positions or more (``python -m
    benchmarks.memory``). Here blocks of up to 256 MB come from the heap, which shrinks only when 512 MB at its end are
    free. There is one heap: those that glibc makes for further threads cannot hold large blocks. Other C libraries are
    left alone.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    limits = ((MAP, LARGEST_BLOCK), (TRIM, 2 * LARGEST_BLOCK), (HEAPS, 1))
    return mallopt is not None and all(mallopt(name, value) for name, value in limits)
