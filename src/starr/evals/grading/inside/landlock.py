"""Landlock: the kernel lets the process touch its own folder and read the library, nothing else, for ever.

Files by Linux 5.13, truncation by 6.2, TCP by 6.7, signals and abstract sockets by 6.12; older kernels hold less.
"""

from __future__ import annotations

import ctypes
import os
import struct
from contextlib import suppress

from starr.evals.grading.inside.walls import DEVICES, libraries

CREATE, ADD_RULE, RESTRICT = 444, 445, 446  # the same on every machine
WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5
MAKE_DIR, MAKE_REG, MAKE_SYM, REFER, TRUNCATE = 1 << 7, 1 << 8, 1 << 12, 1 << 13, 1 << 14
RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}  # all that a version knows
OWN = WRITE_FILE | READ_FILE | READ_DIR | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SYM | REFER | TRUNCATE
READ = READ_FILE | READ_DIR
EXTRAS = ("/etc/ld.so.cache", "/usr/share/zoneinfo")


def version() -> int:
    """What this kernel offers; 0 without Landlock."""
    return max(0, system_call(CREATE, None, ctypes.c_size_t(0), 1))


def system_call(number: int, *arguments: object) -> int:
    """Call the kernel by number; what it returns."""
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(ctypes.c_long(number), *arguments))


def restrict_files(folder: str) -> bool:
    """Lock this thread, and all it starts, into ``folder``; False where the kernel has no Landlock."""
    known = version()
    if not known:
        return False
    files = RIGHTS[max(v for v in RIGHTS if v <= known)]
    words = [files, 3, 3][: 1 if known < 4 else 2 if known < 6 else 3]  # files, TCP, abstract sockets and signals
    attributes = struct.pack(f"{len(words)}Q", *words)
    rules = system_call(CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    if rules < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "landlock_create_ruleset")
    allowed = {folder: OWN} | dict.fromkeys((*libraries(), *EXTRAS), READ)
    allowed |= dict.fromkeys(DEVICES, WRITE_FILE | READ_FILE)
    for path, rights in allowed.items():
        with suppress(FileNotFoundError):
            allow(rules, path, rights & files)
    if system_call(RESTRICT, rules, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "landlock_restrict_self")
    os.close(rules)
    return True


def allow(rules: int, path: str, rights: int) -> None:
    """Grant rights beneath a folder, or on one file, where only those of files make sense."""
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(path):
            rights &= WRITE_FILE | READ_FILE | TRUNCATE
        if system_call(ADD_RULE, rules, 1, struct.pack("=Qi", rights, handle), 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    finally:
        os.close(handle)
