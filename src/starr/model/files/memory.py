"""The memory that a model needs (weights, the largest tensor while loading, one forward), and the memory that is free.

The files' headers give the sizes, so that a model that does not fit is refused in a second instead of swapping.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from starr.errors import LoadError, counted
from starr.model.files.weights import FLOATS, StoredTensor, read_headers, weight_files
from starr.model.network.shape import Shape

DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2}
POSITIONS = 1024  # of the forward that must fit, by default
PROMPT = 256  # positions of a prompt before a canvas
GROUPS = (  # folders of control groups, version 2 and 1, and the names of limit and use
    ("", "sys/fs/cgroup", "memory.max", "memory.current"),
    ("memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
CHUNK = 256  # rows of logits at a time, in float32


@dataclass(frozen=True, slots=True)
class Room:
    """The size of a forward: this many rows of a canvas; 0 if not known."""

    rows: int = 1
    canvas: int = 0

    def positions(self, longest: int) -> int:
        """Positions of one forward of a model that has at most ``longest`` in a row."""
        return self.rows * (min(self.canvas + PROMPT, longest) if self.canvas else POSITIONS)


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes, part by part."""

    weights: int
    tensor: int
    forward: int

    @property
    def total(self) -> int:
        """All of them: the peak."""
        return self.weights + self.tensor + self.forward


def need(found: Mapping[str, StoredTensor], shape: Shape, size: int, room: Room | None = None) -> Need:
    """Count what a checkpoint with these tensors takes in numbers of ``size`` bytes, with one forward."""
    counts = [math.prod(entry.shape) for entry in found.values()]
    stored = [count * FLOATS.get(entry.dtype, 8) for count, entry in zip(counts, found.values(), strict=True)]
    each = size * (8 * shape.width + 3 * shape.mlp_width + 2 * shape.layers * shape.kv_heads * shape.head_width)
    forward = (room or Room()).positions(shape.max_length) * each + 2 * 4 * CHUNK * shape.vocab_size
    return Need(sum(counts) * size, max(stored, default=0), forward)


def available(device: torch.device) -> int | None:
    """Read the bytes free on the device, or in memory within the control group's limit; None where that is unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    found = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    found += read_group_room()
    return min(found) if found else None


def read_group_room(root: Path = Path("/")) -> list[int]:
    """Read the bytes left in this process's control group and in every group around it that has a limit."""
    lines: list[str] = []
    with suppress(OSError):
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    paths = {kind: path for _, kinds, path in (line.split(":", 2) for line in lines) for kind in kinds.split(",")}
    found = []
    for kind, top, limit, used in GROUPS:
        inner = Path(paths.get(kind, "/"))
        for group in (inner, *inner.parents):
            folder = root / top / group.relative_to("/")
            with suppress(OSError, ValueError):  # no such group, or a limit of "max"
                found.append(int((folder / limit).read_text()) - int((folder / used).read_text()))
    return found


def check_memory(
    folder: Path, shape: Shape, device: torch.device, dtype: torch.dtype, room: Room | None = None
) -> None:
    """Raise LoadError, with the numbers and the nearest setting that fits, where the model does not."""
    room = room or Room()
    found = read_headers(weight_files(folder))
    if len(found) < shape.layers:
        raise LoadError(f"config.json has {shape.layers} layers, the files only {len(found)} tensors.")
    free = available(device)
    name = str(dtype).removeprefix("torch.")
    wanted = need(found, shape, dtype.itemsize, room).total
    if free is None or wanted <= free:
        return
    where = "of GPU memory are" if device.type == "cuda" else "are"
    rows = f" for {counted(room.rows, 'row')} of {counted(room.canvas, 'position')}" if room.canvas else ""
    raise LoadError(
        f"The model needs {gigabytes(wanted)} in {name}{rows}, {gigabytes(free)} {where} free.",
        hint=suggest_setting(found, shape, dtype.itemsize, room, free),
    )


def suggest_setting(found: Mapping[str, StoredTensor], shape: Shape, size: int, room: Room, free: int) -> str:
    """Suggest the smallest change that fits: half precision, then fewer rows, then both."""
    smaller = need(found, shape, 2, room).total
    if size > 2 and smaller <= free:
        return f"--dtype bfloat16 needs {gigabytes(smaller)}."
    for bytes_each, flag in ((size, ""), (2, " with --dtype bfloat16")):
        none, one = (need(found, shape, bytes_each, Room(rows, room.canvas)).total for rows in (0, 1))
        rows = min(room.rows - 1, (free - none) // (one - none))
        if rows >= 1:
            total = none + rows * (one - none)
            return f"{counted(rows, 'row')} in one forward{flag} {'needs' if rows == 1 else 'need'} {gigabytes(total)}."
    return "No dtype fits: use a smaller model."


def gigabytes(size: int) -> str:
    """A size as people read it."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
