"""What every benchmark says along with its numbers, and how it prints them."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch


def machine() -> dict:
    """The hardware and versions a number belongs to."""
    cpu = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in cpu.read_text().splitlines() if "model name" in line]
        if cpu.exists()
        else []
    )
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def table(title: str, rows: list[dict]) -> str:
    """Rows as a Markdown table under a title that names the machine."""
    about = machine()
    head = list(rows[0])
    cells = [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
    lines = [
        f"{title} ({about['cpu']}, {about['cores']} cores, {about['threads']} threads, torch {about['torch']})",
        "",
    ]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in cells]) + "\n"
