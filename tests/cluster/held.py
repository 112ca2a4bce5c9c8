"""A model in another process whose forwards are counted, and wait or end their thread while a file is there."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

import starr


@dataclass(frozen=True)
class Held:
    """``source`` is a checkpoint, ``folder`` holds the files."""

    source: str
    folder: str

    @property
    def stop(self):
        return Path(self.folder) / "hold"

    @property
    def count(self):
        return Path(self.folder) / "forwards"

    @property
    def end(self):
        return Path(self.folder) / "end"

    def hold(self):
        self.stop.touch()

    def go_on(self):
        self.stop.unlink(missing_ok=True)

    def forwards(self):
        return self.count.stat().st_size if self.count.exists() else 0

    def wait(self):
        """Hold, and return when a forward waits: none has been counted for a while."""
        self.hold()
        before = -1
        while before != self.forwards():
            before = self.forwards()
            time.sleep(1.0)

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
        while self.files.stop.exists():
            time.sleep(0.01)
        if self.files.end.exists():
            raise SystemExit  # not an error that the engine survives: its thread ends
        return self.net(*given, **named)
