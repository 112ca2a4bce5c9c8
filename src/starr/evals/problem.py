"""One problem of a generated task, and its JSON-lines form."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

from starr.errors import InputError, did_you_mean

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Problem:
    """``answer`` is one reference solution; ``tests`` are (arguments, expected value) pairs, empty without code."""

    id: str
    task: str
    prompt: str
    answer: str
    steps: int
    tests: tuple[tuple[list[Any], Any], ...] = ()


def check_split(split: str) -> None:
    if split not in SPLITS:
        raise InputError(
            f"split must be one of {SPLITS}, got {split!r}.", hint=did_you_mean(split, SPLITS), param="split"
        )


def held_out(kinds: Iterable[str], one_in: int) -> bool:
    """Whether a sequence of step kinds belongs to the test split: a fixed hash, the same on every machine."""
    return zlib.crc32(" ".join(kinds).encode()) % one_in == 0


def dump(problems: Iterable[Problem]) -> str:
    return "".join(json.dumps(asdict(problem)) + "\n" for problem in problems)


def load_packaged(name: str) -> list[Problem]:
    """The fixed test problems in the package's ``data/{name}.jsonl``."""
    text = (resources.files("starr.evals") / "data" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [parse(line) for line in text.splitlines()]


def parse(line: str) -> Problem:
    row = json.loads(line)
    tests = tuple((arguments, expected) for arguments, expected in row.pop("tests"))
    return Problem(**row, tests=tests)
