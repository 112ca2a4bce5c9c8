"""The same model with forwards that take longer, or that wait for the test."""

from __future__ import annotations

import threading
import time
from dataclasses import replace


class Around:
    """A network with something before every forward."""

    def __init__(self, net, before):
        self.net, self.before = net, before

    def __getattr__(self, name):
        return getattr(self.net, name)

    def __call__(self, *args, **more):
        self.before()
        return self.net(*args, **more)


def slowed(model, seconds):
    """Each forward is ``seconds`` longer."""
    return replace(model, net=Around(model.net, lambda: time.sleep(seconds)))


class Gate:
    """Forwards are counted, and wait while the gate is shut."""

    def __init__(self, model):
        self.model = replace(model, net=Around(model.net, self.wait))
        self.opened, self.waits = threading.Event(), threading.Event()
        self.forwards = 0
        self.open()

    def wait(self):
        self.forwards += 1
        if not self.opened.is_set():
            self.waits.set()
            assert self.opened.wait(600)

    def open(self):
        self.waits.clear()
        self.opened.set()

    def shut(self):
        """Forwards wait from now on."""
        self.opened.clear()

    def hold(self):
        """Shut the gate, and return when a forward waits."""
        self.shut()
        assert self.waits.wait(120)
