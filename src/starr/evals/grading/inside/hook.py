"""Audit hooks: what Python itself refuses. The kernel's walls hold without them, except in an accident guard."""

from __future__ import annotations

import os
import posix
import sys

# Modules whose C code opens files, shares memory or starts processes without a word to the hook.
SILENT = ("ctypes", "_ctypes", "sqlite3", "_sqlite3", "readline", "_dbm", "_gdbm", "_posixshmem", "_curses", "syslog")
WITH_PATHS = ("os.listdir", "os.scandir", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chdir")
MAKERS = ("os.fork", "os.exec", "os.spawn", "os.posix_spawn", "os.system", "os.kill", "subprocess.", "pty.")
CHANGERS = ("os.link", "os.symlink", "os.chmod", "os.chown", "os.lchown", "os.fchown", "os.truncate", "os.utime")
OTHERS = ("os.setxattr", "os.removexattr", "os.chflags", "shutil.", "resource.", "sqlite3.", "signal.pthread_kill")
OBJECTS = ("gc.get_", "sys._current_", "sys.settrace", "sys.setprofile", "ctypes.")  # ways to the hook itself
BARRED = (*WITH_PATHS, *MAKERS, *CHANGERS, *OTHERS, *OBJECTS)
UNHEARD = ("mkfifo", "mknod", "pidfd_open", "memfd_create", "open_by_handle_at", "setpriority", "sched_setaffinity")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def refuse_outside(folder: str, *, sockets: bool) -> None:
    """Without namespaces: only files of the folder and, to read, of the library; no processes, no silent modules.

    ``sockets`` are let through where the kernel refuses them, because ``asyncio`` needs a pair of its own.
    """
    readable = (folder + os.sep, os.path.dirname(os.__file__) + os.sep)
    barred = BARRED if sockets else (*BARRED, "socket.")
    resolve, isdir = os.path.realpath, os.path.isdir

    def inside(path: object, places: tuple[str, ...]) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return True
        return (resolve(os.fsdecode(path)) + os.sep).startswith(places)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, flags = arguments[0], arguments[2] if isinstance(arguments[2], int) else 0
            if not inside(path, readable[:1] if flags & WRITING else readable):
                raise PermissionError(f"{path!s} is outside the sandbox")
            if isinstance(path, str | bytes | os.PathLike) and isdir(path):  # a handle for dir_fd
                raise PermissionError(f"{path!s} is a folder")
        elif event == "import" and arguments[0] in SILENT:
            raise PermissionError(f"{arguments[0]} is refused in the sandbox")
        elif event.startswith(barred):
            places = readable if event in ("os.listdir", "os.scandir") else readable[:1]
            if event not in WITH_PATHS or not all(inside(a, places) for a in arguments[:2]):
                raise PermissionError(f"{event} is refused in the sandbox")

    for name in UNHEARD:
        for module in (os, posix):
            if hasattr(module, name):
                delattr(module, name)
    sys.addaudithook(hook)
