"""Keeps freed memory with the process, for forwards on CPU.

glibc hands large blocks back to the system as soon as a tensor is freed, so that the next operation faults every page
in again: a tenth of a small model's forward, and most of one over 1,024 positions or more (``python -m
benchmarks.memory``). Here blocks of up to 256 MB come from the heap, which shrinks only when 512 MB at its end are
free. There is one heap: those that glibc makes for further threads cannot hold large blocks. Other C libraries are left
alone.
"""

from __future__ import annotations

import ctypes
import sys

TRIM, MAP, HEAPS = -1, -3, -8  # mallopt's M_TRIM_THRESHOLD, M_MMAP_THRESHOLD and M_ARENA_MAX
LARGEST_BLOCK = 256 * 2**20


def keep_freed_memory() -> bool:
    """Set the limits; whether that was possible."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    limits = ((MAP, LARGEST_BLOCK), (TRIM, 2 * LARGEST_BLOCK), (HEAPS, 1))
    return mallopt is not None and all(mallopt(name, value) for name, value in limits)
