"""What a small model knows, from ``known.json`` beside its weights: a prompt unlike its training can be recognised.

The file holds every pair of neighbouring words that the prompts of its training have, with numbers, quoted signs and
words that hold a digit written as 0. A prompt is strange when more than ``limit`` of its pairs are not among them.
``python -m training.known`` writes the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from starr.model.files.config import read_json

FILE = "known.json"
START, END, NUMBER = "^", "$", "0"
Prompt = str | Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Known:
    """``about`` names the training in a few words; ``turns`` is 1 where the model never saw a second question."""

    about: str
    turns: int
    limit: float
    pairs: frozenset[str]

    def strangeness(self, prompt: Prompt) -> float:
        """The share of a prompt's pairs, in [0, 1], that the training never had; of a chat's last message."""
        found = pairs_of(last_of(prompt))
        return sum(pair not in self.pairs for pair in found) / max(1, len(found))

    def unseen(self, prompt: Prompt) -> list[str]:
        """The words of a prompt that the training never had, in lower case, each once."""
        seen = {word for pair in self.pairs for word in pair.split()}
        words = dict.fromkeys(word for pair in pairs_of(last_of(prompt)) for word in pair.split())
        return [word for word in words if word not in seen and word.isalpha()]


def last_of(prompt: Prompt) -> str:
    """The text of a prompt; of a chat, its last message."""
    return prompt if isinstance(prompt, str) else prompt[-1]["content"]


def pairs_of(text: str) -> list[str]:
    """Neighbouring words of a text, with its start and end; a hole such as ``[MASK:2]`` separates its neighbours."""
    parts = re.split(r"\[MASK(?::\d+)?\]", text)
    words = [re.findall(r"\w+|\.+|[^\w\s]", re.sub(r'"[^"]*"', NUMBER, part).lower()) for part in parts]
    words[0].insert(0, START)
    words[-1].append(END)
    lines = [[NUMBER if re.search(r"\d", word) else word for word in line] for line in words]
    return [f"{left} {right}" for line in lines for left, right in pairwise(line)]


def read_known(folder: Path) -> Known | None:
    """What a model folder says about its training; None where it says nothing."""
    path = folder / FILE
    if not path.exists():
        return None
    body: Mapping[str, Any] = read_json(path)
    return Known(str(body["about"]), int(body["turns"]), float(body["limit"]), frozenset(body["pairs"]))
