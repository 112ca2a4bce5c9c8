"""The number of threads of a forward on a machine that other programs use too.

A parallel product ends when its last thread does. If that one shares a core with another program, all wait for it, many
times a forward. So a model gets no more threads than a measured forward gains from, and never more than the cores that
other programs leave free, which is measured again while decoding. Waiting threads sleep (see ``starr/__init__``).
"""

from __future__ import annotations

import math
import os
import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

import torch

from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.network.transformer import Transformer

PERIOD = 0.25  # seconds between two measurements of the machine
GAIN = 1.15  # a second thread must make a forward this much faster
LONG = 0.25  # seconds: a forward that takes longer is large enough for every core
POSITIONS = 64  # of the measured forward
SLACK = 0.25  # part of a core that other programs may use and it still counts as free


class Machine:
    """The cores of this process, and what other processes leave of them."""

    def __init__(self) -> None:
        self.most = torch.get_num_threads()  # follows OMP_NUM_THREADS and the cores that we may use
        self.fixed: int | None = None
        self.at_work = 1  # engine threads that step at the same time
        self.lock = threading.Lock()
        self.seen = (monotonic(), *read_clocks())
        self.free = float(self.most)

    def threads(self, useful: int = 0) -> int:
        """Choose the threads of the next forward of a model that can use ``useful`` (0: not measured)."""
        if self.fixed is not None:
            return self.fixed
        with self.lock:
            if monotonic() - self.seen[0] >= PERIOD:
                self.measure()
        share = math.floor(self.free + SLACK) // max(1, self.at_work)
        return max(1, min(useful or self.most, self.most, share))

    def measure(self) -> None:
        """Measure what others used since the last time: the busy time of our cores without our own."""
        now, busy, own = monotonic(), *read_clocks()
        elapsed = max(now - self.seen[0], 1e-3)
        others = max(0.0, (busy - self.seen[1]) - (own - self.seen[2])) / elapsed
        self.free = read_quota(count_cores()) - others
        self.seen = (now, busy, own)

    def use(self, useful: int = 0) -> None:
        """Set the calling thread's number of threads."""
        count = self.threads(useful)
        if torch.get_num_threads() != count:
            torch.set_num_threads(count)


def count_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_quota(count: int) -> float:
    """Read how many cores the control group grants, at most ``count``."""
    with suppress(OSError, ValueError):
        granted, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return min(count, max(1.0, int(granted) / int(period)))
    return float(count)


def read_clocks() -> tuple[float, float]:
    """Read the seconds that our cores and this process were busy; both 0 where the system does not say."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
        allowed = os.sched_getaffinity(0)
    except (OSError, AttributeError):
        return 0.0, 0.0
    busy = 0
    for words in (line.split() for line in lines if line.startswith("cpu")):
        if words[0][3:].isdecimal() and int(words[0][3:]) in allowed:
            user, nice, system, _idle, _wait, irq, soft, steal = map(int, words[1:9])
            busy += user + nice + system + irq + soft + steal
    spent = os.times()
    return busy / os.sysconf("SC_CLK_TCK"), spent.user + spent.system


MACHINE = Machine()


def fix_threads(count: int | None) -> None:
    """Always use ``count`` threads; None follows the machine again."""
    if count is not None and not 1 <= count <= count_cores():
        raise InputError(
            f"threads must be from 1 to {count_cores()}, the cores of this process, got {count}.", param="threads"
        )
    MACHINE.fixed = count


@torch.inference_mode()
def measure_useful_threads(net: Transformer) -> int:
    """Find the fewest threads with which a short forward is about as fast as with any number up to the free cores."""
    if MACHINE.fixed is not None or net.embed.weight.device.type != "cpu":
        return 0
    before, most = torch.get_num_threads(), MACHINE.threads()
    best, best_time = 1, time_forward(net, 1)
    count = 2
    while count <= most and best_time < LONG:
        taken = time_forward(net, count)
        if best_time / taken >= GAIN:
            best, best_time = count, taken
        count = min(2 * count, most) if count < most else most + 1
    torch.set_num_threads(before)
    return MACHINE.most if best_time >= LONG else best


def time_forward(net: Transformer, count: int) -> float:
    """Time three short forwards with ``count`` threads, one if it is long; return the best."""
    torch.set_num_threads(count)
    tokens = torch.zeros(1, POSITIONS, dtype=torch.long)
    times = []
    for _ in range(3):
        began = perf_counter()
        net(tokens)
        times.append(perf_counter() - began)
        if times[0] >= LONG:
            break
    return min(times)
