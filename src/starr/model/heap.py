"""Keeps freed memory with the process, for forwards on CPU.

glibc hands large blocks back to the system as soon as a tensor is freed, so that the next operation faults every page
in again: about a tenth of a small model's forward (``python -m benchmarks.memory``). The limits here are the ones to
which glibc raises its own at most; other C libraries are left alone.
"""

from __future__ import annotations

import ctypes
import sys

TRIM, MAP = -1, -3  # mallopt's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD
LARGEST_BLOCK = 32 * 2**20


def keep_freed_memory() -> bool:
    """Whether the limits could be set; blocks up to 32 MB then come from the heap, which shrinks only above 64 MB."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(MAP, LARGEST_BLOCK) and mallopt(TRIM, 2 * LARGEST_BLOCK))
