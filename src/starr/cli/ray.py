"""The flags of the verbs that can use many workers or replicas, and ``--ray``, whose address may be left out."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.errors import InputError
from starr.optional import need

if TYPE_CHECKING:
    from starr.cluster.replica import Replicas
    from starr.cluster.start import Size

ADDRESS = re.compile(r"auto|local|(ray://)?[\w.\[\]-]+:\d+")


@dataclass(frozen=True, kw_only=True)
class Workers:
    """How many workers, where, and what each gets."""

    ray: Annotated[
        str | None,
        typer.Option("--ray", metavar="[ADDRESS]", help="Use Ray's workers: on this machine, or on a cluster (auto)."),
    ] = None
    workers: Annotated[
        int | None, typer.Option(help="With --ray: number of workers.", show_default="one per GPU, or per core")
    ] = None
    gpus_per_worker: Annotated[
        float | None, typer.Option(help="With --ray: GPUs for each.", show_default="1 if the cluster has any")
    ] = None
    cpus_per_worker: Annotated[float, typer.Option(help="With --ray: cores for each.")] = 1.0

    def size(self) -> Size | None:
        """None without ``--ray``; raises one line where Ray is not installed, before any work."""
        if self.ray is None:
            given = {"--workers": self.workers, "--gpus-per-worker": self.gpus_per_worker}
            for flag in (flag for flag, value in given.items() if value is not None):
                raise InputError(f"{flag} needs --ray.", param=flag)
            return None
        need("ray", "--ray")
        from starr.cluster.start import Size

        return Size(self.ray, self.workers, self.gpus_per_worker, self.cpus_per_worker)


@dataclass(frozen=True, kw_only=True)
class ReplicaFlags:
    """How many servers, where, and what each gets."""

    ray: Annotated[
        str | None,
        typer.Option("--ray", metavar="[ADDRESS]", help="Serve with Ray Serve: on this machine, or on a cluster."),
    ] = None
    replicas: Annotated[int | None, typer.Option(help="With --ray: number of servers.", show_default="1")] = None
    max_replicas: Annotated[
        int | None, typer.Option(help="With --ray: add servers under load, up to this many.", show_default="fixed")
    ] = None
    gpus_per_replica: Annotated[float | None, typer.Option(help="With --ray: GPUs for each.", show_default="0")] = None
    cpus_per_replica: Annotated[float | None, typer.Option(help="With --ray: cores for each.", show_default="1")] = None
    write_config: Annotated[
        Path | None, typer.Option(help="With --ray: write a file for `serve deploy` instead.", metavar="FILE")
    ] = None

    def numbers(self) -> Replicas | None:
        """None without ``--ray``; raises one line where Ray Serve is not installed, before any work."""
        given = {f.name: getattr(self, f.name) for f in fields(ReplicaFlags)}
        if self.ray is None:
            for name in (name for name, value in given.items() if value is not None):
                flag = "--" + name.replace("_", "-")
                raise InputError(f"{flag} needs --ray.", param=flag)
            return None
        need("ray-serve", "starr serve --ray")
        from starr.cluster.replica import Replicas

        named: dict[str, Any] = {"least": self.replicas, "most": self.max_replicas}
        named |= {"gpus": self.gpus_per_replica, "cpus": self.cpus_per_replica}
        return Replicas(**{name: value for name, value in named.items() if value is not None})


def with_address(arguments: list[str]) -> list[str]:
    """``--ray`` without an address gets ``local``: what follows it is an address only if it looks like one."""
    return [
        "--ray=local" if word == "--ray" and not ADDRESS.fullmatch(after) else word
        for word, after in pairwise([*arguments, ""])
    ]
