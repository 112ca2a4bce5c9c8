"""Run programs in each kind of sandbox that this machine can make."""

import os
import shutil
import sys

import pytest

from starr.evals.grading.inside.walls import open_to_all
from starr.evals.grading.sandbox import ask, isolation

MODES = ["namespaces", "limits", "accident guard"]


def python_for_strangers() -> str | None:
    """An interpreter whose library everybody may read; without one, root cannot drop its rights outside namespaces."""
    if os.getuid() != 0 or open_to_all(os.__file__):
        return sys.executable
    return shutil.which("python3", path="/usr/bin:/usr/local/bin")


class Mode:
    """One kind of sandbox; a call gives a program's verdict."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.name = "namespaces" if mode == "namespaces" else "limits"
        self.python = sys.executable if mode == "namespaces" else python_for_strangers()

    def __call__(self, program: str, timeout: float = 30.0, memory: int = 2**29, tests: str = "") -> str:
        filters = self.mode != "accident guard"
        return ask([program], tests, self.name, timeout, memory, filters=filters, python=self.python)


@pytest.fixture(params=MODES)
def verdict(request):
    if request.param == "namespaces" and isolation().weak:
        pytest.skip("this kernel or user cannot make namespaces")
    mode = Mode(request.param)
    if mode.python is None:
        pytest.skip("no Python here that a stranger may read")
    return mode
