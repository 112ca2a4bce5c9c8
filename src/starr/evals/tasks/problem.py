"""One problem of a generated task, and its JSON-lines form."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Any

from starr.errors import InputError, did_you_mean

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Problem:
    """``answer`` is one reference solution; ``tests`` are (arguments, expected value) pairs, empty without code.

    ``kind`` names the operation or tier that results are split by; ``facts`` is what grading needs besides.
    """

    id: str
    task: str
    prompt: str
    answer: str
    steps: int
    tests: tuple[tuple[list[Any], Any], ...] = ()
    kind: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def check_split(split: str) -> None:
    """Raise unless the split exists."""
    if split not in SPLITS:
        raise InputError(
            f"split must be one of {SPLITS}, got {split!r}.", hint=did_you_mean(split, SPLITS), param="split"
        )


def held_out(kinds: Iterable[str], one_in: int) -> bool:
    """Whether a sequence of step kinds belongs to the test split: a fixed hash, the same on every machine."""
    return zlib.crc32(" ".join(kinds).encode()) % one_in == 0


def dump(problems: Iterable[Problem]) -> str:
    """Problems as JSON lines."""
    return "".join(json.dumps(asdict(problem)) + "\n" for problem in problems)


def load_packaged(name: str) -> list[Problem]:
    """The fixed test problems in the package's ``data/{name}.jsonl``."""
    text = (resources.files("starr.evals.tasks") / "data" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [parse(line) for line in text.splitlines()]


def parse(line: str) -> Problem:
    """A problem from its JSON line."""
    row = json.loads(line)
    tests = tuple((arguments, expected) for arguments, expected in row.pop("tests"))
    return Problem(**row, tests=tests)
