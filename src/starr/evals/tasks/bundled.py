"""The benchmarks in the package, as tasks, 0-shot: right, well formed and both."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from starr.evals.grading import extract
from starr.evals.tasks import Grade, Item, Task, grids, lines, list_functions, word_problems
from starr.evals.tasks.problem import Problem

SOURCES = {source.TASK: source for source in (word_problems, list_functions, lines, grids)}
CANVAS = {"word-problems": 128, "list-functions": 96, "lines": 32, "grids": 32}


def load(name: str, data: Path | None = None) -> Task:
    """``data``, if given, is a file of problems in the package's own JSON-lines form."""
    problems = SOURCES[name].load() if data is None else read(data)
    items = [item(problem) for problem in problems]
    return Task(name, items, grade_word if name == "word-problems" else grade, "strict", CANVAS[name], formed=formed)


def read(path: Path) -> list[Problem]:
    """Problems from a file of JSON lines."""
    from starr.errors import LoadError
    from starr.evals.tasks.problem import parse

    try:
        return [parse(line) for line in path.read_text(encoding="utf8").splitlines() if line.strip()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LoadError(f"{path} cannot be read as problems ({type(error).__name__}).", param="data") from None


def item(problem: Problem) -> Item:
    """A problem as a question; its answer is the reference."""
    gold = extract.final(problem.answer) or problem.answer if problem.task == "word-problems" else problem.answer
    facts = {"problem": problem}
    return Item(problem.id, problem.prompt, problem.prompt, gold, problem.answer, facts=facts, kind=problem.kind)


@cache
def by_prompt() -> dict[str, Item]:
    """Every packaged problem by its prompt."""
    return {problem.prompt: item(problem) for source in SOURCES.values() for problem in source.load()}


def judge(prompt: str, text: str) -> tuple[bool, bool] | None:
    """(right, formed) of an answer to a packaged problem's prompt; None for any other prompt."""
    found = by_prompt().get(prompt.strip())
    if found is None:
        return None
    problem: Problem = found.facts["problem"]
    return SOURCES[problem.task].grade(problem, text), formed(found, text)


def grade_word(item: Item, text: str) -> Grade:
    """strict: the number after the last ``####``; final: the forgiving rule of ``extract``."""
    found = extract.final(text)
    right = word_problems.grade(item.facts["problem"], text)
    return Grade(found, {"strict": right, "final": right or extract.same_value(found, item.gold)})


def grade(item: Item, text: str) -> Grade:
    """strict: the task's own rule; of functions, that the hidden tests pass in the sandbox."""
    problem: Problem = item.facts["problem"]
    return Grade(text.strip(), {"strict": SOURCES[problem.task].grade(problem, text)})


def formed(item: Item, text: str) -> bool:
    """Whether every part of a text is one that the problem's task allows."""
    problem: Problem = item.facts["problem"]
    return bool(SOURCES[problem.task].formed(problem, text))
