"""The task ``list-functions``: short Python functions that compose 1 to 4 operations over a list.

The prompt names the operations in random wording, the reference answer is a function in one of several styles, and
grading runs hidden tests in the code sandbox. The test split uses chains of operations (by hash) and leads of the
prompt that training never sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any

from starr.evals.tasks import list_ops as ops
from starr.evals.tasks.list_ops import Chosen, Op
from starr.evals.tasks.list_styles import STYLES, draw_style, write_function
from starr.evals.tasks.problem import Problem, check_split, held_out, load_packaged

TASK = "list-functions"
HELD_OUT_ONE_IN = 5
COUNTS, COUNT_WEIGHTS = (1, 2, 3, 4), (20, 38, 27, 15)
VERBS = ("Write", "Give me", "Define")
WHATS = ("a function that", "a Python function f that", "a short function that")
LINKS = (", then ", ", and then ", " and ")
WORDS = ("sun", "tree", "a", "river", "go", "stone", "cat", "window", "be", "green")
TESTS_PER_PROBLEM = 5


def generate(seed: int, count: int, split: str = "train") -> Iterator[Problem]:
    """``count`` problems of a split; the same seed gives the same problems on every machine."""
    check_split(split)
    rng = Random(f"{TASK}:{split}:{seed}")
    for index in range(count):
        chain, strings = draw_chain(rng, split)
        tests = tuple(draw_test(rng, chain, strings) for _ in range(TESTS_PER_PROBLEM))
        answer = write_function(draw_style(rng), chain)
        prompt = ask(rng, chain, strings, split)
        facts = {"chain": [[item.op.name, item.k] for item in chain]}
        name = f"{TASK}-{split}-{seed}-{index}"
        yield Problem(name, TASK, prompt, answer, len(chain), tests, kind=f"{len(chain)} steps", facts=facts)


def load() -> list[Problem]:
    """The 1,000 fixed test problems of the package."""
    return load_packaged(TASK)


def grade(problem: Problem, text: str) -> bool:
    """Whether the function in ``text`` passes all hidden tests in the sandbox."""
    from starr.evals.grading.sandbox import run_code

    return run_code(extract_code(text), write_tests(problem)).passed


def formed(problem: Problem, text: str) -> bool:
    """Whether the answer is the problem's chain written in one of the styles, and not a mixture that passes."""
    chain = [Chosen(ops.BY_NAME[name], k) for name, k in problem.facts["chain"]]
    return extract_code(text).strip() in {write_function(style, chain) for style in STYLES}


def write_tests(problem: Problem) -> str:
    """One assertion per hidden test."""
    return "\n".join(f"assert program.f(*{arguments!r}) == {expected!r}" for arguments, expected in problem.tests)


def extract_code(text: str) -> str:
    """The code of an answer: the fenced block when there is one, else the whole text."""
    fenced = re.search(r"```(?:python)?\n(.*?)```", text, flags=re.DOTALL)
    return fenced.group(1) if fenced else text


def draw_chain(rng: Random, split: str) -> tuple[list[Chosen], bool]:
    """1 to 4 operations, and whether the list holds strings; only the last one may end the list."""
    count = rng.choices(COUNTS, COUNT_WEIGHTS)[0]
    while True:
        strings = rng.random() < 0.2
        items = (ops.WORD_OPS if strings else ops.NUMBER_OPS) * 2 + ops.LIST_OPS
        ends = (ops.JOIN, ops.COUNT) if strings else (*ops.NUMBER_ENDS, ops.COUNT)
        ending = rng.random() < 0.5
        chosen = rng.sample(items, count - ending) + ([rng.choice(ends)] if ending else [])
        names = [op.name for op in chosen]
        if len(set(names)) == count and belongs(names, split):
            return [Chosen(op, rng.randint(op.low, op.high)) for op in chosen], strings


def belongs(names: list[str], split: str) -> bool:
    """Chains of two and more are split by hash; single operations are in both, asked with different leads."""
    return len(names) == 1 or held_out(names, HELD_OUT_ONE_IN) == (split == "test")


def ask(rng: Random, chain: list[Chosen], strings: bool, split: str) -> str:
    """The prompt; of the leads, one in three (verb and what with equal index) is kept for the test split."""
    while True:
        verb, what = rng.randrange(len(VERBS)), rng.randrange(len(WHATS))
        if (verb == what) == (split == "test"):
            break
    about = rng.choice((" for a list of words", "")) if strings else rng.choice((" for a list of numbers", "", ""))
    text = ""
    for index, item in enumerate(chain):
        link = "" if index == 0 else ", " if index < len(chain) - 1 and rng.random() < 0.4 else rng.choice(LINKS)
        text += link + item.fill(rng.choice(item.op.ask))
    return f"{VERBS[verb]} {WHATS[what]} {text}{about}."


def draw_test(rng: Random, chain: list[Chosen], strings: bool) -> tuple[list[Any], Any]:
    """One hidden test: the arguments and the value the operations give."""
    size = rng.randint(0, 9)
    xs: list[Any] = rng.choices(WORDS, k=size) if strings else [rng.randint(-12, 30) for _ in range(size)]
    return [xs], apply_chain(chain, xs)


def apply_chain(chain: list[Chosen], xs: Any) -> Any:
    """The reference meaning: each operation's own expression, evaluated in turn."""
    for item in chain:
        op: Op = item.op
        if op.test:
            xs = [x for x in xs if eval(item.fill(op.test), {"x": x})]
        elif op.value:
            xs = [eval(item.fill(op.value), {"x": x}) for x in xs]
        else:
            xs = eval(item.fill(op.whole), {"xs": xs})
    return xs
