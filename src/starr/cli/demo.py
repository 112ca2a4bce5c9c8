"""``starr demo``: one bundled problem, one token per step and by STaRR, side by side."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from starr.cli.flags import Common, Json
from starr.cli.report import dump, note, table
from starr.cli.verb import verb

if TYPE_CHECKING:
    from starr.evals.problem import Problem
    from starr.model.load import Model
    from starr.trace import Generation

STRATEGIES = ("confidence", "starr")
STEPS = 4  # at least so many steps of reasoning
HEAD = ("strategy", "answer", "right", "forwards", "seconds", "tokens/forward", "revocations")


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    json: Json = False


def add(app: typer.Typer) -> None:
    verb(app, "demo", Options, demo)


def demo(options: Options) -> None:
    """Solve a problem by one token per step and by STaRR.

    Both run live on the bundled model; the answers, forwards, seconds and their ratios follow.
    """
    import starr

    problem = choose()
    model = starr.load()
    note(f"{problem.prompt}\n", options.quiet)
    if not options.quiet:
        for name in STRATEGIES:
            watch(model, problem.prompt, name)
    # timed once more without the display, which takes time of its own
    one, fast = (starr.generate(model, problem.prompt, strategy=name) for name in STRATEGIES)
    if options.json:
        print(dump({"prompt": problem.prompt, "runs": [run.to_dict() for run in (one, fast)]} | ratios(one, fast)))
        return
    for run in (one, fast):
        print(f"{run.strategy}: {run.text}\n")
    print(table(HEAD, [row(problem, run) for run in (one, fast)]))
    ratio = ratios(one, fast)
    print(f"\nstarr needs {ratio['forwards_ratio']}x fewer forwards and {ratio['seconds_ratio']}x less time.")


def choose() -> Problem:
    """The first bundled word problem of enough steps."""
    from starr.evals import word_problems

    return next(problem for problem in word_problems.load() if problem.steps >= STEPS)


def watch(model: Model, prompt: str, name: str) -> None:
    """Show one strategy at work."""
    import starr
    from starr.viewer.terminal import Live

    with Live([name], stream=sys.stderr) as screen:
        for event in starr.stream(model, prompt, strategy=name):
            screen.show(event)


def ratios(one: Generation, fast: Generation) -> dict[str, float]:
    """How many times more forwards and seconds one token per step takes."""
    return {
        "forwards_ratio": round(one.stats.forwards / fast.stats.forwards, 1),
        "seconds_ratio": round(one.stats.seconds / fast.stats.seconds, 1),
    }


def row(problem: Problem, run: Generation) -> tuple[object, ...]:
    from starr.evals import word_problems

    stats = run.stats
    answer = run.text.rpartition("####")[2].strip() or "none"
    right = "yes" if word_problems.grade(problem, run.text) else "no"
    speed = round(stats.tokens_per_forward, 2)
    return run.strategy, answer, right, stats.forwards, round(stats.seconds, 2), speed, stats.revocations
