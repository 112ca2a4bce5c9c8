"""Seccomp: system calls that no benchmark program needs answer "not permitted".

The numbers are those of x86-64 and of 64-bit ARM; on another machine there is no filter.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from starr.evals.grading.inside.walls import call

PR_SET_SECCOMP, MODE_FILTER = 22, 2
ALLOW, FAIL, KILL = 0x7FFF0000, 0x00050000, 0x80000000
LOAD, JUMP_EQUAL, JUMP_ABOVE, JUMP_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
X32 = 0x40000000  # x86-64 takes a second set of numbers from here on
NEW_NAMESPACES = 0x7E020000

# name: (x86-64, ARM); None where the machine has no such call
REFUSED: dict[str, tuple[int | None, int | None]] = {
    # the network and other processes
    "socket": (41, 198), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "kcmp": (312, 272), "ioprio_set": (251, 30),
    "migrate_pages": (256, 238), "move_pages": (279, 239), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "execve": (59, 221), "execveat": (322, 281),
    # files that are not files, and ways around paths
    "mknod": (133, None), "mknodat": (259, 33), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    # the mount table, roots and namespaces
    "mount": (165, 40), "umount2": (166, 39), "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    # memory that no process owns
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186),
    "semget": (64, 190), "mq_open": (240, 180),
    # large and rarely used parts of the kernel
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "fanotify_init": (300, 262),
    "personality": (135, 92), "syslog": (103, 116), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142),
    "acct": (163, 89), "iopl": (172, None), "ioperm": (173, None), "vhangup": (153, 58),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162),
}  # fmt: skip

# Landlock does not see these; without namespaces they reach every file of the user.
MODES: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "utime": (132, None), "utimes": (235, None), "utimensat": (280, 88), "futimesat": (261, None),
}  # fmt: skip

# name: (numbers, argument that must be 0): only for the process itself
OWN_ONLY: dict[str, tuple[tuple[int, int], int]] = {
    "prlimit64": ((302, 261), 0),
    "setpriority": ((141, 140), 1),
    "sched_setaffinity": ((203, 122), 0),
    "sched_setparam": ((142, 118), 0),
    "sched_setscheduler": ((144, 119), 0),
    "sched_setattr": ((314, 274), 0),
}
KILL_CALLS = ((62, 129), (234, 131))  # kill, tgkill: the first argument is the process
CLONE, CLONE3 = (56, 220), (435, 435)


def restrict_calls(*, namespaces: bool) -> bool:
    """Install the filter for this thread and all it starts; False where the machine or the kernel has none."""
    program = filter_program(platform.machine(), os.getpid(), namespaces=namespaces)
    if not program:
        return False
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    try:
        call("prctl", PR_SET_SECCOMP, MODE_FILTER, header, 0, 0)
    except OSError as error:
        if error.errno == errno.EINVAL:  # a kernel without seccomp
            return False
        raise
    return True


def filter_program(machine: str, pid: int, *, namespaces: bool) -> bytes:
    """The filter in the kernel's form; empty on a machine that is not known."""
    if machine not in ARCHITECTURES:
        return b""
    column, architecture = ARCHITECTURES[machine]
    code = [step(LOAD, 4), step(JUMP_EQUAL, architecture, 1, 0), step(RETURN, KILL), step(LOAD, 0)]
    if machine == "x86_64":
        code += [step(JUMP_ABOVE, X32, 0, 1), step(RETURN, FAIL | errno.EPERM)]
    for numbers in (REFUSED if namespaces else REFUSED | MODES).values():
        if (number := numbers[column]) is not None:
            code += [step(JUMP_EQUAL, number, 0, 1), step(RETURN, FAIL | errno.EPERM)]
    for pair, place in OWN_ONLY.values():
        code += only(pair[column], place, JUMP_EQUAL, 0)
    if not namespaces:
        for pair in KILL_CALLS:
            code += only(pair[column], 0, JUMP_EQUAL, pid)
    code += [step(JUMP_EQUAL, CLONE3[column], 0, 1), step(RETURN, FAIL | errno.ENOSYS)]  # libc then takes clone
    code += [step(JUMP_EQUAL, CLONE[column], 0, 3), step(LOAD, 16), step(JUMP_BITS, NEW_NAMESPACES, 0, 1)]
    code += [step(RETURN, FAIL | errno.EPERM), step(RETURN, ALLOW)]
    return b"".join(code)


def only(number: int, place: int, jump: int, value: int) -> list[bytes]:
    """Allow a call when the low half of its argument at ``place`` is ``value``, else refuse it."""
    allowed = [step(jump, value, 1, 0), step(RETURN, FAIL | errno.EPERM), step(RETURN, ALLOW)]
    return [step(JUMP_EQUAL, number, 0, 4), step(LOAD, 16 + 8 * place), *allowed]


def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One instruction; jumps count the instructions to skip."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
