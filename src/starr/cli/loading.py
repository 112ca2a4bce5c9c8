"""A progress bar on standard error while a large model's tensors are read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

PATIENCE = 1.0  # seconds without a bar: a small model is there before


@contextmanager
def loading_bar(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """What ``starr.load`` calls with the tensors read so far and their total; None unless on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        began, task = monotonic(), bar.add_task("reading weights", visible=False)
        yield lambda done, of: bar.update(task, completed=done, total=of, visible=monotonic() - began > PATIENCE)
