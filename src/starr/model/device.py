"""Where a model runs and in which numbers. No choice may crash Python, so half precision on CPU is tried in a child."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from functools import cache

import torch

from starr.errors import InputError, did_you_mean

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DEVICES = ("cpu", "cuda", "mps")

ISA = "ONEDNN_MAX_CPU_ISA"
# oneDNN reads the variable once, so a later change would reach the child but not this process: pass on what was set.
ISA_AT_IMPORT = os.environ.get(ISA)

# One row, a few and many: the libraries choose different instructions by shape.
PROBE = """\
import sys, torch
weight = torch.ones(256, 256, dtype=getattr(torch, sys.argv[1])) / 256
for rows in (1, 17, 128):
    x = torch.nn.functional.linear(weight[:rows], weight).view(1, rows, 4, 64).transpose(1, 2)
    y = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    assert torch.isfinite(y.float()).all()
"""


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


def choose_dtype(name: str | None, device: torch.device) -> torch.dtype:
    """The dtype named; None is float32 on CPU and MPS, whatever the file holds, and bfloat16 on CUDA.

    Half precision on CPU falls back to float32, with one warning, where the child process that tries it dies.
    """
    if name is None:
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if name not in DTYPES:
        raise InputError(f"Unknown dtype {name!r}.", hint=did_you_mean(name, DTYPES), param="dtype")
    if device.type == "cpu" and name != "float32":
        trouble = probe(name)
        if trouble:
            warnings.warn(
                f"{name} does not work on this CPU ({trouble}); using float32. "
                f"Setting {ISA}=AVX512_CORE_BF16 before Python starts may help.",
                stacklevel=3,
            )
            return torch.float32
    return DTYPES[name]


@cache
def probe(name: str) -> str:
    """Try matrix products and attention of dtype ``name`` on CPU in a child process: "" if fine, else what happened."""
    env = {key: value for key, value in os.environ.items() if key != ISA}
    if ISA_AT_IMPORT is not None:
        env[ISA] = ISA_AT_IMPORT
    command = [sys.executable, "-c", PROBE, name]
    try:
        child = subprocess.run(command, env=env, capture_output=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the trial failed: {type(error).__name__}"
    if child.returncode < 0:
        return f"the trial process died of signal {-child.returncode}"
    return "" if child.returncode == 0 else f"the trial process ended with {child.returncode}"
