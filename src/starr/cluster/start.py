"""A connection to Ray, and how many workers of which size to start on it."""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from starr.errors import InputError, WorkError
from starr.named import check_range
from starr.optional import need

LOCAL = "local"  # start Ray on this machine, and stop it at the end
STORE_BYTES = 128 << 20  # results are small; Ray's own default is a third of the memory
TRIES = 4
PATIENT = {  # for Ray's own processes, which inherit it: a busy machine needs longer than Ray thinks
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # Ray's 15 leaves a worker next to nothing beside other programs
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",
    "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "60",
}


@dataclass(frozen=True, slots=True)
class Size:
    """How many workers, and what each gets; None is chosen by what the cluster has."""

    address: str = LOCAL
    workers: int | None = None
    gpus: float | None = None
    cpus: float = 1.0

    def __post_init__(self) -> None:
        if self.address.startswith("ray://"):
            hint = "Run on a node of the cluster with --ray auto."
            raise InputError("--ray takes the address of a cluster, not of a Ray client.", hint=hint, param="ray")
        check_range("--cpus-per-worker", self.cpus, 0, whole=False, open_low=True)
        if self.gpus is not None:
            check_range("--gpus-per-worker", self.gpus, 0, whole=False)
        if self.workers is not None:
            check_range("--workers", self.workers, 1)

    def fit(self, resources: dict[str, float]) -> Size:
        """Choose what is None: a GPU for each worker where the cluster has any, and as many workers as fit."""
        gpus = self.gpus if self.gpus is not None else float(resources.get("GPU", 0) > 0)
        room = resources.get("GPU", 0) / gpus if gpus else resources.get("CPU", 1) / self.cpus
        return Size(self.address, self.workers or max(1, math.floor(room)), gpus, self.cpus)


@contextmanager
def connect(size: Size) -> Iterator[tuple[Any, Size]]:
    """Connect to Ray; give its module and the size with every number known.

    A Ray that this process is already connected to is used as it is; one started here is stopped at the end.
    """
    need("ray", "--ray")
    ray: Any = import_module("ray")
    if ray.is_initialized():
        yield ray, size.fit(ray.cluster_resources())
        return
    start_ray(ray, size.address, make_arguments(size))
    try:
        with redirect_stdout(sys.stderr):  # Ray reports a worker's death on standard output, which is for results
            yield ray, size.fit(ray.cluster_resources())
    finally:
        ray.shutdown()


def start_ray(ray: Any, address: str, given: dict[str, Any]) -> None:
    """Call ``ray.init``, several times if our own Ray does not come up in its half minute."""
    before = list_children()
    for left in reversed(range(TRIES if address == LOCAL else 1)):
        try:
            ray.init(**given, log_to_driver=False, logging_level=logging.CRITICAL)
            return
        except Exception as error:  # Ray raises plain ones
            ray.shutdown()
            for process in list_children() - before:  # it leaves those that have come up
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            if left:
                continue
            why = next(iter(str(error).splitlines()), type(error).__name__)
            if address == LOCAL:
                raise WorkError(f"Ray did not start: {why}") from error
            hint = "Start one: ray start --head."
            raise WorkError(f"There is no Ray cluster at {address} ({why}).", hint=hint) from None


def list_children() -> set[int]:
    """List the processes that this one has started; none where the system does not say."""
    return {int(word) for path in Path("/proc/self/task").glob("*/children") for word in path.read_text().split()}


def make_arguments(size: Size) -> dict[str, Any]:
    """Make the arguments of ``ray.init``: our own Ray, large enough for the workers, or the one at the address."""
    for name, value in PATIENT.items():
        os.environ.setdefault(name, value)
    if size.address != LOCAL:
        return {"address": size.address}
    from starr.model.threads import count_cores

    asked = math.ceil((size.workers or 0) * size.cpus)
    folder = os.environ.get("RAY_TMPDIR")
    more = {"_temp_dir": folder} if folder else {}
    return {
        "address": LOCAL,
        "num_cpus": max(count_cores(), asked),
        "include_dashboard": False,
        "object_store_memory": STORE_BYTES,
    } | more
