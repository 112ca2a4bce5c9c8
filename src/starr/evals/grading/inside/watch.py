"""What a program and all its children take together: memory, and bytes on disk where no small disk bounds them."""

from __future__ import annotations

import os
from contextlib import suppress

PAGE = os.sysconf("SC_PAGE_SIZE")
LEAST = 1 << 14  # bytes that a file counts at least


def resident(pid: int) -> int:
    """Bytes of memory of a process and its descendants; pages they share are counted for each. 0 without /proc."""
    total = 0
    for process in family(pid):
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{process}/statm") as file:
            total += int(file.read().split()[1]) * PAGE
    return total


def family(pid: int) -> list[int]:
    """The process and its descendants."""
    found = [pid]
    for process in found:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{process}/task"):
                with suppress(OSError), open(f"/proc/{process}/task/{task}/children") as file:
                    found += map(int, file.read().split())
    return found


def on_disk(folder: str, pid: int) -> int:
    """Bytes of a folder's files, each at least LEAST, and of files that the processes hold open though deleted."""
    total = 0
    for root, _, names in os.walk(folder):
        total += LEAST
        for name in names:
            with suppress(OSError):
                total += max(os.lstat(os.path.join(root, name)).st_size, LEAST)
    for process in family(pid):
        with suppress(OSError):
            for handle in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    held = os.stat(f"/proc/{process}/fd/{handle}")
                    total += held.st_size if held.st_nlink == 0 else 0
    return total
