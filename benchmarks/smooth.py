"""Whether smoothed iteration gains anything: `python -m benchmarks.smooth --limit 300 --out docs/results`.

dInfer (arXiv:2510.08666) feeds back what a forward predicted: the embedding of a mask becomes E[mask] + w sum q(v) E[v]
over the vocabulary, q being the prediction of the forward before and w = min(0.15 + 0.02 k, 0.3) in forward k; and its
bar falls from 1 to tau by 0.02 a forward. Here both are tried apart, on a bare loop with Fast-dLLM's threshold (c >=
bar, and always the best; the whole canvas). All ways decode an item side by side, as rows of one batch. A guest of the
engine would be worth it if fewer forwards gave texts as good; the last line says whether they do.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import torch
from torch import Tensor

import starr
from benchmarks.stored import Stored
from starr.evals.reproduce import context
from starr.evals.reproduce.bench import difference
from starr.evals.run.runs import choose, settings_for
from starr.evals.stats import Z95, Paired, paired, wilson
from starr.evals.tasks import Item, Task, load_task

AS_GOOD = -0.03  # both: the whole interval of the difference lies above this
NOTES = (
    "weight: how much of the predicted embeddings is added to those of masks; falling bar: c >= max(1 - 0.02 k, tau) "
    "in forward k, as in dInfer, instead of tau.",
    "to plain: the paired difference to plain decoding with tau 0.9, in both (points) and in forwards.",
    "A smoothed way gains if a plain one (weight 0), and one that no other plain way beats in both figures, needs more "
    "forwards for texts that are no better, or has worse texts and no fewer forwards: the 95 % interval of forwards "
    "lies below 0 and that of both above -3 points, or that of both above 0 and that of forwards not above 0.",
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
    Way(tau=0.97),
    Way(tau=0.95),
    Way(tau=0.7),
    Way(tau=0.5),
    Way(**DINFER),
    Way(**DINFER, falling=True),
    Way(first=0.5, most=0.5),
    Way(first=1.0, most=1.0),
    Way(tau=0.97, first=1.0, most=1.0),
)


class Graded(NamedTuple):
    right: bool
    both: bool
    forwards: int


def logits(net: Any, tokens: Tensor, fed: Tensor) -> Tensor:
    """(K, L, V) float32 of the canvas, the last L positions of ``tokens``; ``fed`` (K, L, D) is added to what they are.

    The last layer computes the canvas alone.
    """
    x, length = net.embed(tokens), fed.shape[1]
    x[:, -length:] += fed
    place = net.place(tokens, None, None, None)
    for index in range(len(net.layers) - 1):
        x = net.through(index, x, place, None)
    canvas = torch.arange(tokens.shape[1] - length, tokens.shape[1]).expand(len(tokens), length)
    return net.head(net.norm(net.into(len(net.layers) - 1, x, place, None, net.wanted(canvas, place)))).float()  # type: ignore[no-any-return]


@torch.inference_mode()
def decode(model: Any, prompt: list[int], length: int, ways: Sequence[Way]) -> list[tuple[list[int], int]]:
    """Canvas and forwards of every way: commit c >= bar and the best, until the text is there."""
    net, mask = model.net, model.spec.mask_id
    ends = torch.tensor(model.spec.eos_ids)
    tokens = torch.tensor([prompt + [mask] * length] * len(ways))
    fed = net.embed.weight.new_zeros(len(ways), length, net.embed.weight.shape[1])
    left, found, forwards = torch.arange(len(ways)), {}, 0
    while len(left):
        masked = tokens[left, -length:] == mask
        seen = logits(net, tokens[left], fed[left] * masked[..., None])
        seen[..., mask] = -torch.inf
        predicted = seen.softmax(dim=-1)
        weight = torch.tensor([ways[row].weight(forwards) for row in left.tolist()])
        fed[left] = (weight[:, None, None] * (predicted.to(fed.dtype) @ net.embed.weight)).to(fed.dtype)
        best, token = predicted.max(dim=-1)
        best = best.masked_fill(~masked, -1.0)
        bar = torch.tensor([ways[row].bar(forwards) for row in left.tolist()]).minimum(best.amax(dim=1))
        canvas = torch.where(masked & (best >= bar[:, None]), token, tokens[left, -length:])
        tokens[left, -length:] = canvas
        forwards += 1
        open_ = canvas == mask
        done = ~(open_ & (torch.isin(canvas, ends).cumsum(dim=1) == 0)).any(dim=1)
        found |= {row: (tokens[row, -length:].tolist(), forwards) for row in left[done].tolist()}
        left = left[~done]
    return [found[row] for row in range(len(ways))]


def text_of(model: Any, canvas: list[int]) -> str:
    """What stands before the first end-of-text."""
    end = next((at for at, token in enumerate(canvas) if token in model.spec.eos_ids), len(canvas))
    return str(model.tokenizer.decode(canvas[:end]))


def graded(model: Any, task: Task, item: Item, length: int, ways: Sequence[Way]) -> list[Graded]:
    """Every way's grade of one item."""
    prompt = model.tokenizer.chat([{"role": "user", "content": item.chat}])
    grades = []
    for canvas, forwards in decode(model, prompt, length, ways):
        text = text_of(model, canvas)
        right = task.grade(item, text).scores[task.primary]
        grades.append(Graded(right, right and (task.formed is None or task.formed(item, text)), forwards))
    return grades


@dataclass(frozen=True)
class Difference:
    """One way minus another over the same items."""

    both: Paired
    forwards: float
    interval: tuple[float, float]  # of forwards, 95 %

    @classmethod
    def of(cls, first: Sequence[Graded], second: Sequence[Graded]) -> Difference:
        more = [a.forwards - b.forwards for a, b in zip(first, second, strict=True)]
        half = Z95 * stdev(more) / len(more) ** 0.5 if len(more) > 1 else float("inf")
        both = paired([a.both for a in first], [b.both for b in second])
        return cls(both, mean(more), (mean(more) - half, mean(more) + half))

    @property
    def gains(self) -> bool:
        """Faster with texts as good, or better texts as fast."""
        quicker = self.interval[1] < 0 and self.both.interval[0] > AS_GOOD
        return quicker or (self.both.interval[0] > 0 and self.interval[1] <= 0)

    @property
    def told(self) -> tuple[str, str]:
        """*Both* in points, and forwards, each with its interval."""
        both = difference({"difference": self.both.difference, "interval": self.both.interval})
        return both, f"{self.forwards:+.2f} ({self.interval[0]:+.2f} to {self.interval[1]:+.2f})"


def row(way: Way, found: Sequence[Graded], plain: Sequence[Graded]) -> dict[str, Any]:
    n, both = len(found), sum(grade.both for grade in found)
    low, high = wilson(both, n)
    told = (None, None) if found is plain else Difference.of(found, plain).told
    return {
        "way": way.name,
        "n": n,
        "right %": round(100 * sum(grade.right for grade in found) / n, 1),
        "both %": round(100 * both / n, 1),
        "95 % interval": f"{100 * low:.1f} to {100 * high:.1f}",
        "both to plain": told[0],
        "forwards": round(mean(grade.forwards for grade in found), 2),
        "forwards to plain": told[1],
    }


def beats(first: Sequence[Graded], second: Sequence[Graded]) -> bool:
    """At least as good in both and in forwards, and better in one."""
    more = Difference.of(first, second)
    return more.both.difference >= 0 >= more.forwards and (more.both.difference > 0 or more.forwards < 0)


def verdict(found: dict[Way, Sequence[Graded]]) -> str:
    """Which smoothed ways gain over a plain one, or how dInfer's own weights compare with plain decoding."""
    plain = [way for way in found if not way.most]
    front = [way for way in plain if not any(beats(found[other], found[way]) for other in plain)]
    gains = []
    for way in (way for way in found if way.most):
        if any(beats(found[other], found[way]) for other in plain):
            continue
        differences = {other: Difference.of(found[way], found[other]) for other in front}
        beaten = [(other, d.told) for other, d in differences.items() if d.gains]
        gains += [f"{way.name} against {other.name}: both {b}, forwards {f}" for other, (b, f) in beaten]
    n = len(next(iter(found.values())))
    if gains:
        return f"Verdict, n = {n}: a gain. " + "; ".join(gains) + "."
    own = [way for way in found if way.growth]
    told = [(way.name, *Difference.of(found[way], found[plain[0]]).told) for way in own]
    compared = "; ".join(f"{name}: both {both}, forwards {forwards}" for name, both, forwards in told)
    return f"Verdict, n = {n}: no gain. To plain decoding at tau {plain[0].tau:g}, {compared}."


def main() -> None:
    parser = argparse.ArgumentParser(description="Grades and forwards with and without smoothed iteration.")
    parser.add_argument("--task", default="word-problems")
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder for smooth.json and smooth.md")
    options = parser.parse_args()
    model, task = starr.load(dtype=options.dtype), load_task(options.task)
    settings = settings_for(model, task)
    command = f"python -m benchmarks.smooth --task {options.task} --limit {options.limit} --dtype {options.dtype}"
    where = context(command, f"{model.name} (weights {settings.weights}, {settings.dtype})", task.name)
    found: dict[Way, list[Graded]] = {way: [] for way in WAYS}
    for number, (_, item) in enumerate(choose(task, options.limit), 1):
        for way, grade in zip(WAYS, graded(model, task, item, settings.max_tokens, WAYS), strict=True):
            found[way].append(grade)
        if number % 50 == 0:
            print(f"{number} items", flush=True)
    rows = [row(way, grades, found[WAYS[0]]) for way, grades in found.items()]
    last = verdict(found)  # type: ignore[arg-type]
    title = f"Smoothed iteration ({task.name}, n = {options.limit})"
    Stored("smooth", title, "smooth.md", (*NOTES, last)).write(options.out, where, rows)
    print("\n".join([*(json.dumps(found_row) for found_row in rows), last]))


if __name__ == "__main__":
    main()
