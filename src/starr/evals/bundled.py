"""The two benchmarks in the package, as tasks: ``word-problems`` and ``list-functions``, 0-shot."""

from __future__ import annotations

from pathlib import Path

from starr.evals import extract, list_functions, word_problems
from starr.evals.problem import Problem
from starr.evals.tasks import Grade, Item, Task

SOURCES = {"word-problems": word_problems, "list-functions": list_functions}


def load(name: str, data: Path | None = None) -> Task:
    """``data``, if given, is a file of problems in the package's own JSON-lines form."""
    source = SOURCES[name]
    problems = source.load() if data is None else read(data)
    return Task(name, [item(p) for p in problems], grade_word if source is word_problems else grade_list, "strict", 128)


def read(path: Path) -> list[Problem]:
    from starr.errors import LoadError
    from starr.evals.problem import parse

    try:
        return [parse(line) for line in path.read_text(encoding="utf8").splitlines() if line.strip()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LoadError(f"{path} cannot be read as problems ({type(error).__name__}).", param="data") from None


def item(problem: Problem) -> Item:
    gold = extract.final(problem.answer) or problem.answer if problem.task == "word-problems" else problem.answer
    return Item(problem.id, problem.prompt, problem.prompt, gold, problem.answer, facts={"problem": problem})


def grade_word(item: Item, text: str) -> Grade:
    """strict: the number after the last ``####``; final: the forgiving rule of ``extract``."""
    found = extract.final(text)
    right = word_problems.grade(item.facts["problem"], text)
    return Grade(found, {"strict": right, "final": right or extract.same_value(found, item.gold)})


def grade_list(item: Item, text: str) -> Grade:
    """strict: the hidden tests pass in the sandbox."""
    return Grade(text.strip(), {"strict": list_functions.grade(item.facts["problem"], text)})
