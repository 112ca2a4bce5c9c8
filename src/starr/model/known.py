"""What a small model knows, from ``known.json`` beside its weights, to recognise a prompt unlike its training.

The file holds every pair of neighbouring words that the prompts of its training have, with each digit written as 0 and
quoted signs and words with a digit written as one 0. A prompt is strange when more than ``limit`` of its pairs are not
among them, when a number has more digits than any had after the same word, or when it tells a story without a
question. ``python -m training.known`` writes the file.
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
START, END, NUMBER, ASKS = "^", "$", "0", "?"
HOLE = re.compile(r"\[MASK(?::\d+)?\]")
NAMED = 3  # words or numbers at most
Prompt = str | Sequence[Any]
"""A text, messages or token ids."""


@dataclass(frozen=True, slots=True)
class Known:
    """``about`` names the training in a few words; ``turns`` is 1 where the model never saw a second question.

    ``stories`` are the words that begin a prompt which ends with a question.
    """

    about: str
    turns: int
    limit: float
    pairs: frozenset[str]
    stories: frozenset[str]

    def doubt(self, prompt: Prompt) -> str:
        """Say why the answer to a prompt may be nonsense; "" where the prompt is like those of the training."""
        text = read_last(prompt)
        if not text.strip():
            return ""
        strange = self.measure_strangeness(text) > self.limit
        if strange and (words := self.list_unseen(text)):
            return "it has never seen " + " or ".join(f'"{word}"' for word in words[:NAMED])
        if numbers := self.list_too_large(text):
            return f"it has never seen a number as large as {' or '.join(numbers[:NAMED])} here"
        if strange:
            return "this prompt is unlike those"
        return "this story asks no question" if self.asks_nothing(text) else ""

    def remark(self, name: str, prompt: Prompt) -> str:
        """Say in one line that the model of this name may answer with nonsense, and why; "" where it need not."""
        doubt = self.doubt(prompt)
        return f"{name} knows only {self.about}: {doubt}, so the answer may be nonsense" if doubt else ""

    def measure_strangeness(self, text: str) -> float:
        """Measure the share of a text's pairs, in [0, 1], that the training never had."""
        pairs = list_pairs(text)
        return sum(pair not in self.pairs for pair in pairs) / max(1, len(pairs))

    def list_unseen(self, text: str) -> list[str]:
        """List the words of a text that the training never had, in lower case, each once."""
        seen = {word for pair in self.pairs for word in pair.split()}
        words = dict.fromkeys(word for pair in list_pairs(text) for word in pair.split())
        return [word for word in words if word not in seen and word.isalpha()]

    def list_too_large(self, text: str) -> list[str]:
        """List the numbers of a text, each once, that have more digits than any had beside the same word."""
        pairs = [pair for line in split_lines(text) for pair in pairwise(line) if self.is_too_large(*pair)]
        return list(dict.fromkeys(word for pair in pairs for word in pair if word.isdecimal()))

    def is_too_large(self, left: str, right: str) -> bool:
        """Test whether one of two neighbours is a number, and the training has the other with shorter numbers only."""
        if left.isdecimal() == right.isdecimal() or f"{normalize(left)} {normalize(right)}" in self.pairs:
            return False
        shorter = [NUMBER * size for size in range(1, len(left if left.isdecimal() else right))]
        return any((f"{zeros} {right}" if left.isdecimal() else f"{left} {zeros}") in self.pairs for zeros in shorter)

    def asks_nothing(self, text: str) -> bool:
        """Test whether a text tells a story without a question; a text with holes needs none."""
        return ASKS not in text and not HOLE.search(text) and split_lines(text)[0][1] in self.stories


def read_last(prompt: Prompt) -> str:
    """Read the text of a prompt; of a chat, its last message; "" of token ids."""
    if isinstance(prompt, str):
        return prompt
    last = prompt[-1] if prompt else ""
    return str(last.get("content") or "") if isinstance(last, Mapping) else ""


def split_lines(text: str) -> list[list[str]]:
    """Split a text into words and signs in lower case, with its start and end; a hole (``[MASK:2]``) ends a line."""
    parts = HOLE.split(re.sub(r"(?<=\d),(?=\d{3}\b)", "", text))  # 1,000 is one number
    words = [re.findall(r"\w+|\.+|[^\w\s]", re.sub(r'"[^"]*"', NUMBER, part).lower()) for part in parts]
    words[0].insert(0, START)
    words[-1].append(END)
    return words


def list_pairs(text: str) -> list[str]:
    """List neighbouring words of a text, with digits written as 0."""
    return [f"{normalize(left)} {normalize(right)}" for line in split_lines(text) for left, right in pairwise(line)]


def normalize(word: str) -> str:
    """Write a word as pairs hold it: 000 for a number of three digits, 0 for any other word with a digit."""
    if word.isdecimal():
        return NUMBER * len(word)
    return NUMBER if re.search(r"\d", word) else word


def read_known(folder: Path) -> Known | None:
    """Read what a model folder says about its training; None where it says nothing."""
    path = folder / FILE
    if not path.exists():
        return None
    body: Mapping[str, Any] = read_json(path)
    pairs, stories = (frozenset(body[name]) for name in ("pairs", "stories"))
    return Known(str(body["about"]), int(body["turns"]), float(body["limit"]), pairs, stories)
