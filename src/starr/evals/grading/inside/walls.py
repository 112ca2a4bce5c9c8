"""Namespaces, a private root, dropped rights and limits: the walls that need no filter."""

from __future__ import annotations

import ctypes
import os
import random
import resource
import signal
import sys
import sysconfig
from contextlib import suppress
from typing import Any

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 1 << 17, 1 << 27, 1 << 28, 1 << 29, 1 << 30
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
LOCKED_FLAGS = 2 | 4 | 8 | 1024 | 2048  # nosuid, nodev, noexec, noatime, nodiratime: a remount must repeat them
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
OPEN_FILES = 64


class Closed(Exception):
    """The rights of root cannot be dropped, because Python's library would be lost with them."""


def call(name: str, *arguments: object) -> None:
    """A libc function that returns 0 on success; OSError otherwise."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends (Linux)."""
    if sys.platform == "linux":
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def allow_inspection(*, allowed: bool) -> None:
    """Whether another process of the same user may read and write this one's memory (Linux)."""
    if sys.platform == "linux":
        call("prctl", PR_SET_DUMPABLE, int(allowed), 0, 0, 0)


def libraries() -> list[str]:
    """Folders that hold Python's standard library and what it links to."""
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), os.path.dirname(os.__file__)}
    return [path for path in (*LIBRARIES, *sorted(standard)) if os.path.isdir(path)]


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount a file system; raises where the kernel refuses."""
    texts = [None if t is None else t.encode() for t in (source, target, kind)]
    call("mount", *texts, ctypes.c_ulong(flags), None if data is None else data.encode())


def enter_namespaces() -> None:
    """New network, process, IPC and mount namespaces; an ordinary user needs a user namespace for that."""
    flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
    user, group = os.getuid(), os.getgid()
    if user == 0:
        call("unshare", flags)
        return
    call("unshare", flags | CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def private_root(folder: str, disk: int) -> None:
    """Make ``folder`` a tmpfs of ``disk`` bytes with read-only libraries, a few devices and an empty /box; enter it."""
    paths = libraries()
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, f"size={disk},nr_inodes=5000,mode=755")
    for path in paths:
        target = folder + path
        os.makedirs(target, exist_ok=True)
        mount(path, target, None, MS_BIND | MS_REC)
        kept = os.statvfs(path).f_flag & LOCKED_FLAGS
        mount("none", target, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | kept)
    os.mkdir(folder + "/dev")
    for device in DEVICES:
        open(folder + device, "w").close()
        mount(device, folder + device, None, MS_BIND)
    os.mkdir(folder + "/box")
    os.chmod(folder + "/box", 0o777)
    os.chroot(folder)
    os.chdir("/box")


def open_to_all(path: str) -> bool:
    """Whether a stranger may walk to this file; a library in root's home would be out of reach."""
    while (path := os.path.dirname(path)) != os.sep:
        if not os.stat(path).st_mode & 0o001:
            return False
    return True


def drop_rights(folder: str | None, *, owner: bool) -> None:
    """As root: become a user id nobody has, the ``owner`` of ``folder``. As a user: give up the capabilities.

    ``folder`` is None inside namespaces. Raises Closed where root would have to stay root.
    """
    if os.getuid() == 0:
        if folder is not None and not open_to_all(os.__file__):
            raise Closed(f"only root may read Python's library in {os.path.dirname(os.__file__)}")
        stranger = random.SystemRandom().randrange(200_000, 2_000_000)
        if folder is not None and owner:
            os.chown(folder, stranger, stranger)
        os.setgroups([])
        os.setgid(stranger)
        os.setuid(stranger)
    elif folder is None:
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        call("capset", header, (ctypes.c_uint32 * 6)())
    if sys.platform == "linux":
        call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        die_with_parent()  # a change of user id forgets it


def set_limits(request: dict[str, Any]) -> None:
    """What the kernel counts for each process; the watch counts what all of them take together."""
    forks = request["processes"] if request["mode"] == "namespaces" else 0
    limits = {
        "RLIMIT_AS": request["memory"],
        "RLIMIT_CPU": request["cpu_seconds"],
        "RLIMIT_FSIZE": request["file_bytes"],
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_NPROC": forks,
    }
    for name, value in limits.items():
        # macOS refuses some of them; the others still hold
        with suppress(ValueError, OSError, AttributeError):
            resource.setrlimit(getattr(resource, name), (value, value))
