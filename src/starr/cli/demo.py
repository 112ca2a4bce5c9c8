"""``starr demo``: one bundled problem, one token per step and with STaRR, side by side."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from starr.cli.flags import Json, ModelFlags
from starr.cli.report import dump, note, table
from starr.cli.verb import verb
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.decode.trace import Generation
    from starr.evals.tasks.problem import Problem
    from starr.model.load import Model

STRATEGIES = ("confidence", "starr")
PROBLEM = 0  # the first: three steps of reasoning; both strategies solve it
HEAD = ("strategy", "answer", "right", "formed", "both", "forwards", "seconds", "revocations")


@dataclass(frozen=True, kw_only=True)
class DemoOptions(ModelFlags):
    """The flags of ``starr demo``."""

    problem: Annotated[int, typer.Option("--problem", help="Which of the 1,000 packaged word problems, from 0.")] = (
        PROBLEM
    )
    json: Json = False


def add(app: typer.Typer) -> None:
    """Add ``starr demo``."""
    verb(app, "demo", DemoOptions, demo)


def demo(options: DemoOptions) -> None:
    """Solve a problem one token per step and with STaRR.

    Both run live on the bundled model or another; the answers, forwards, seconds and their ratios follow.
    """
    import starr

    problem = choose(options.problem)
    model = options.load()
    note(f"{problem.prompt}\n", options.quiet)
    if not options.quiet:
        for name in STRATEGIES:
            watch(model, problem.prompt, name)
    # timed once more without the display, which takes time of its own
    one, fast = (starr.generate(model, problem.prompt, strategy=name) for name in STRATEGIES)
    if options.json:
        print(
            dump({"prompt": problem.prompt, "runs": [graded(problem, run) for run in (one, fast)]} | ratios(one, fast))
        )
        return
    for run in (one, fast):
        print(f"{run.strategy}: {run.text}\n")
    print(table(HEAD, [row(problem, run) for run in (one, fast)]))
    ratio = ratios(one, fast)
    print(f"\nHere starr needs {ratio['forwards_ratio']}x fewer forwards and {ratio['seconds_ratio']}x less time.")
    print("One problem proves little: `starr eval word-problems --strategy confidence --strategy starr` runs many.")


def choose(number: int) -> Problem:
    """One of the packaged word problems, counted from 0."""
    from starr.evals.tasks import word_problems

    problems = word_problems.load()
    if not 0 <= number < len(problems):
        raise InputError(f"--problem must be from 0 to {len(problems) - 1}, not {number}.", param="problem")
    return problems[number]


def watch(model: Model, prompt: str, name: str) -> None:
    """Show one strategy at work."""
    import starr
    from starr.viewer.terminal import Live

    with Live([name], stream=sys.stderr) as screen:
        for event in starr.stream(model, prompt, strategy=name):
            screen.show(event)


def graded(problem: Problem, run: Generation) -> dict[str, object]:
    """What ``--json`` prints of a run, with its grades."""
    return run.to_dict() | grades(problem, run)


def grades(problem: Problem, run: Generation) -> dict[str, bool]:
    """Right, formed and both."""
    from starr.evals.tasks import word_problems

    right, formed = word_problems.grade(problem, run.text), word_problems.formed(problem, run.text)
    return {"right": right, "formed": formed, "both": right and formed}


def ratios(one: Generation, fast: Generation) -> dict[str, float]:
    """How many times more forwards and seconds one token per step takes."""
    return {
        "forwards_ratio": round(one.stats.forwards / fast.stats.forwards, 1),
        "seconds_ratio": round(one.stats.seconds / fast.stats.seconds, 1),
    }


def row(problem: Problem, run: Generation) -> tuple[object, ...]:
    """One line of the table."""
    stats = run.stats
    answer = run.text.rpartition("####")[2].strip() or "none"
    words = ["yes" if good else "no" for good in grades(problem, run).values()]
    return run.strategy, answer, *words, stats.forwards, round(stats.seconds, 2), stats.revocations
