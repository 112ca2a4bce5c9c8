"""A model in another process whose forwards are counted, and wait or end their thread while a file is there."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

import starr
from tests.deploy.proxy import wait_for


@dataclass(frozen=True)
class Held:
    """``source`` is a checkpoint, ``folder`` holds the files."""

    source: str
    folder: str

    @property
    def stop(self):
        """Names the process whose forwards wait; all wait where it is empty."""
        return Path(self.folder) / "hold"

    @property
    def waits(self):
        """There while a forward waits."""
        return Path(self.folder) / "waits"

    @property
    def count(self):
        return Path(self.folder) / "forwards"

    @property
    def end(self):
        return Path(self.folder) / "end"

    def go_on(self):
        self.stop.unlink(missing_ok=True)
        self.waits.unlink(missing_ok=True)

    def forwards(self):
        return self.count.stat().st_size if self.count.exists() else 0

    def hold(self, seconds, process=""):
        """Return when a forward waits."""
        self.stop.write_text(str(process))
        wait_for(self.waits.exists, seconds)

    def holds(self):
        """Whether forwards of this process are to wait."""
        try:
            return self.stop.read_text() in ("", str(os.getpid()))
        except FileNotFoundError:
            return False

    def load(self):
        """The model, in the process of a replica."""
        model = starr.load(self.source)
        return replace(model, net=HeldNet(model.net, self))


class HeldNet:
    """The network, waiting and counting."""

    def __init__(self, net, files):
        self.net, self.files = net, files

    def __getattr__(self, name):
        return getattr(self.net, name)

    def __call__(self, *given, **named):
        with self.files.count.open("ab") as file:
            file.write(b".")
        while self.files.holds():
            self.files.waits.touch()
            time.sleep(0.01)
        if self.files.end.exists():
            raise SystemExit  # not an error that the engine survives: its thread ends
        return self.net(*given, **named)
