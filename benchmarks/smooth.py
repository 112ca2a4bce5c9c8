"""Whether smoothed iteration gains anything: `python -m benchmarks.smooth --limit 100 --out docs/results`.

dInfer (arXiv:2510.08666) feeds back what a forward predicted: the embedding of a mask becomes E[mask] + w sum q(v) E[v]
over the vocabulary, q being the prediction of the forward before and w = min(0.15 + 0.02 k, 0.3) in forward k; and its
bar falls from 1 to tau by 0.02 a forward. Here both are tried apart, on a bare loop with Fast-dLLM's threshold (c >=
bar, and always the best; one row, the whole canvas). A guest of the engine would be worth it if fewer forwards gave
texts as good.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import starr
from benchmarks.stored import Stored
from starr.evals.reproduce import context
from starr.evals.reproduce.bench import difference
from starr.evals.run.runs import choose, settings_for
from starr.evals.stats import paired, wilson
from starr.evals.tasks import Item, Task, load_task
from tests.reference.loops import Loop

NOTES = (
    "weight: how much of the predicted embeddings is added to those of masks; falling bar: c >= max(1 - 0.02 k, tau) "
    "in forward k, as in dInfer, instead of tau.",
    "to plain: the paired difference in both to plain decoding with tau 0.9. A gain is a row with fewer forwards than "
    "a plain one (weight 0) with the same both.",
)


@dataclass(frozen=True)
class Way:
    """How masks are fed back, and which bar is compared with."""

    tau: float = 0.9
    first: float = 0.0
    growth: float = 0.0
    most: float = 0.0
    falling: bool = False

    def weight(self, forwards: int) -> float:
        return min(self.first + self.growth * forwards, self.most)

    def bar(self, forwards: int) -> float:
        return max(1.0 - 0.02 * forwards, self.tau) if self.falling else self.tau

    @property
    def name(self) -> str:
        smooth = f"{self.most:g}" if self.first == self.most else f"{self.first:g} to {self.most:g}"
        return f"tau {self.tau:g}, weight {smooth}, {'falling' if self.falling else 'fixed'} bar"


DINFER = {"first": 0.15, "growth": 0.02, "most": 0.3}
WAYS = (
    Way(),
    Way(tau=0.8),
    Way(tau=0.7),
    Way(tau=0.5),
    Way(**DINFER),
    Way(**DINFER, falling=True),
    Way(first=0.5, most=0.5),
    Way(first=1.0, most=1.0),
    Way(tau=0.97, first=1.0, most=1.0),
)


class Smooth(Loop):
    """A canvas whose masks carry what was predicted for them."""

    weight = 0.0
    predicted: Tensor | None = None  # (length, V) of the forward before

    @torch.inference_mode()
    def logits(self) -> Tensor:
        self.forwards += 1
        net, first = self.model.net, len(self.prompt)  # type: ignore[attr-defined]
        tokens = torch.tensor([self.prompt + self.canvas])
        x = net.embed(tokens)
        if self.predicted is not None and self.weight:
            mixed = self.predicted.to(x.dtype) @ net.embed.weight
            x[0, first:] += self.weight * mixed * torch.tensor(self.masked)[:, None]
        place = net.place(tokens, None, None, None)
        for index in range(len(net.layers)):
            x = net.through(index, x, place, None)
        found: Tensor = net.head(net.norm(x)[0, first:]).float()
        found[:, self.mask] = -torch.inf
        return found


def decode(loop: Smooth, way: Way) -> None:
    """Commit c >= bar and the best, until the text is there."""
    while not loop.done:
        bar = way.bar(loop.forwards)
        loop.predicted = loop.logits().softmax(dim=-1)
        loop.weight = way.weight(loop.forwards - 1)
        confidence, token = loop.predicted.max(dim=-1)
        confidence = confidence.masked_fill(~torch.tensor(loop.masked), -1.0)
        chosen = confidence >= min(bar, float(confidence.max()))
        for at in chosen.nonzero()[:, 0].tolist():
            loop.canvas[at] = int(token[at])


def graded(model: Any, task: Task, item: Item, way: Way, length: int) -> tuple[bool, bool, int]:
    """Right, both and forwards of one item."""
    loop = Smooth(model, model.tokenizer.chat([{"role": "user", "content": item.chat}]), length)
    decode(loop, way)
    text = model.tokenizer.decode(loop.text)
    right = task.grade(item, text).scores[task.primary]
    return right, right and (task.formed is None or task.formed(item, text)), loop.forwards


def row(way: Way, found: list[tuple[bool, bool, int]], plain: list[tuple[bool, bool, int]]) -> dict[str, Any]:
    n, both = len(found), [b for _, b, _ in found]
    low, high = wilson(sum(both), n)
    pair = paired(both, [b for _, b, _ in plain])
    return {
        "way": way.name,
        "n": n,
        "right %": round(100 * sum(r for r, _, _ in found) / n, 1),
        "both %": round(100 * sum(both) / n, 1),
        "95 % interval": f"{100 * low:.1f} to {100 * high:.1f}",
        "to plain": None if way == Way() else difference({"difference": pair.difference, "interval": pair.interval}),
        "forwards": round(sum(f for _, _, f in found) / n, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Grades and forwards with and without smoothed iteration.")
    parser.add_argument("--task", default="word-problems")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder for smooth.json and smooth.md")
    options = parser.parse_args()
    model, task = starr.load(dtype=options.dtype), load_task(options.task)
    settings = settings_for(model, task)
    command = f"python -m benchmarks.smooth --task {options.task} --limit {options.limit} --dtype {options.dtype}"
    where = context(command, f"{model.name} (weights {settings.weights}, {settings.dtype})", task.name)
    stored = Stored("smooth", f"Smoothed iteration ({task.name}, n = {options.limit})", "smooth.md", NOTES)
    items, rows, plain = choose(task, options.limit), [], []
    for way in WAYS:
        found = [graded(model, task, item, way, settings.max_tokens) for _, item in items]
        plain = plain or found
        rows.append(row(way, found, plain))
        print(json.dumps(rows[-1]), flush=True)
    stored.write(options.out, where, rows)


if __name__ == "__main__":
    main()
