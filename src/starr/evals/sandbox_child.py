"""The child's side of the sandbox: run as a script with ``python -I -S``, needing only the standard library.

Three processes: this one builds the walls; its child is the warden (process 1 of the new namespace, so that its end
ends every process inside) and keeps the clock; the warden's child runs the program and has no handle but its verdict's.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import resource
import select
import signal
import sys
import sysconfig
from collections.abc import Callable
from contextlib import suppress
from typing import Any

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 1 << 17, 1 << 27, 1 << 28, 1 << 29, 1 << 30
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
LOCKED_FLAGS = 2 | 4 | 8 | 1024 | 2048  # nosuid, nodev, noexec, noatime, nodiratime: a remount must repeat them
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
VERDICT_BYTES = 400
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")


def call(name: str, *arguments: object) -> None:
    """A libc function that returns 0 on success; OSError otherwise."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), name)


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
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


def private_root(folder: str) -> None:
    """Make ``folder`` a small tmpfs with read-only libraries, a few devices and an empty /box, and live in it."""
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), os.path.dirname(os.__file__)}
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=755")
    for path in [p for p in (*LIBRARIES, *sorted(standard)) if os.path.isdir(p)]:
        target = folder + path
        os.makedirs(target, exist_ok=True)
        mount(path, target, None, MS_BIND | MS_REC)
        kept = os.statvfs(path).f_flag & LOCKED_FLAGS
        mount("none", target, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | kept)
    os.mkdir(folder + "/dev")
    for device in ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"):
        open(folder + device, "w").close()
        mount(device, folder + device, None, MS_BIND)
    os.mkdir(folder + "/box")
    os.chmod(folder + "/box", 0o777)
    os.chroot(folder)
    os.chdir("/box")


def open_to_all(path: str) -> bool:
    """Whether a stranger may walk to this file; a library in root's home would be lost to him."""
    while (path := os.path.dirname(path)) != os.sep:
        if not os.stat(path).st_mode & 0o001:
            return False
    return True


def drop_rights(folder: str | None) -> None:
    """As root: become a user id nobody has, who owns ``folder``. As a user: give up the namespace's capabilities."""
    if os.getuid() == 0 and (folder is None or open_to_all(os.__file__)):
        stranger = random.SystemRandom().randrange(200_000, 2_000_000)
        if folder is not None:
            os.chown(folder, stranger, stranger)
        os.setgroups([])
        os.setgid(stranger)
        os.setuid(stranger)
    elif folder is None:
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        call("capset", header, (ctypes.c_uint32 * 6)())
    if sys.platform == "linux":
        call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def set_limits(request: dict[str, Any]) -> None:
    forks = request["processes"] if request["mode"] == "namespaces" else 0
    limits = {
        "RLIMIT_AS": request["memory"],
        "RLIMIT_CPU": request["cpu_seconds"],
        "RLIMIT_FSIZE": request["file_bytes"],
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": 64,
        "RLIMIT_NPROC": forks,
    }
    for name, value in limits.items():
        # macOS refuses some of them; the others still hold
        with suppress(ValueError, OSError, AttributeError):
            resource.setrlimit(getattr(resource, name), (value, value))


def refuse_outside(folder: str) -> None:
    """Audit hook: only files of the folder and, to read, of the library; no sockets, processes or foreign functions."""
    readable = (folder + os.sep, os.path.dirname(os.__file__) + os.sep)
    with_paths = ("os.listdir", "os.scandir", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chdir")
    makers = ("os.fork", "os.exec", "os.spawn", "os.posix_spawn", "os.system", "os.kill", "subprocess.", "ctypes.")
    changers = ("os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate", "shutil.", "socket.")
    barred = (*with_paths, *makers, *changers)

    def inside(path: object, places: tuple[str, ...]) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return True
        return (os.path.realpath(os.fsdecode(path)) + os.sep).startswith(places)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            flags = arguments[2] if isinstance(arguments[2], int) else 0
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if not inside(arguments[0], readable[:1] if writes else readable):
                raise PermissionError(f"{arguments[0]!s} is outside the sandbox")
        elif event.startswith(barred):
            places = readable if event in ("os.listdir", "os.scandir") else readable[:1]
            if event not in with_paths or not all(inside(a, places) for a in arguments[:2]):
                raise PermissionError(f"{event} is refused in the sandbox")

    sys.addaudithook(hook)


def run(program: str, pipe: int) -> None:
    """Execute the program in this process and write the verdict; never returns."""
    write, leave = os.write, os._exit  # the program may replace them
    try:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
        verdict = "passed"
    except BaseException as error:  # SystemExit and KeyboardInterrupt are failures too
        verdict = f"{type(error).__name__}: {error!s:.300}".strip()
    write(pipe, verdict.encode(errors="replace")[:VERDICT_BYTES])
    leave(0)


def only_keep(pipe: int) -> None:
    """Standard streams to nowhere; every other handle closed."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.closerange(3, pipe)
    os.closerange(pipe + 1, 4096)


def guard(start: Callable[[int], None], seconds: float) -> str:
    """The warden: start the program in a child, wait for its verdict or the clock."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        start(writer)
        os._exit(1)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], seconds)
    text = os.read(reader, VERDICT_BYTES) if ready else b"timed out"
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if text:
        return text.decode(errors="replace")
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        return "out of processor time or killed"
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)}"
    return f"left early with status {os.WEXITSTATUS(status)}"


def confine(request: dict[str, Any], pipe: int) -> None:
    """In the program's process: the last walls, then the program."""
    only_keep(pipe)
    namespaces = request["mode"] == "namespaces"
    drop_rights(None if namespaces else request["folder"])
    set_limits(request)
    if not namespaces:
        refuse_outside(os.path.realpath(request["folder"]))
    run(request["program"], pipe)


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    if sys.platform == "linux":
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if request["mode"] == "namespaces":
        enter_namespaces()
        warden = os.fork()
        if warden:
            os.waitpid(warden, 0)
            return
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        private_root(request["folder"])
    verdict = guard(lambda pipe: confine(request, pipe), request["timeout"])
    os.write(1, verdict.encode())


if __name__ == "__main__":
    main()
