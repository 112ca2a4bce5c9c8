"""The task ``lines``: a change to a numbered line of 3 to 8 names, after ParallelBench (arXiv:2510.04767).

Copy, reverse, sort and the changes at a given place have one answer, so every name can be written at once. A shuffle
and the changes at random have many: each name depends on the others, and writing all of them at once mixes answers up.
Training and test never share a line of names for the same kind (by hash).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from starr.evals.tasks.problem import Problem, check_split, held_out, load_packaged
from starr.evals.tasks.word_patterns import HE, SHE

TASK = "lines"
NAMES = HE + SHE
LENGTHS = (3, 4, 5, 6, 7, 8)
HELD_OUT_ONE_IN = 5
ASK = {
    "copy": ("Copy this line: {line}.", "Write this line again: {line}."),
    "reverse": ("Reverse this line: {line}.", "Write this line from the end: {line}."),
    "sort": ("Sort this line: {line}.", "Put this line in order of names: {line}."),
    "insert": ("Insert {new} at place {place}: {line}.", "Put {new} in as number {place}: {line}."),
    "remove": ("Remove number {place}: {line}.", "Drop the name at place {place}: {line}."),
    "replace": ("Replace number {place} by {new}: {line}.", "Write {new} over the name at place {place}: {line}."),
    "insert-any": ("Insert {new} anywhere: {line}.", "Put {new} in at some place: {line}."),
    "remove-any": ("Remove any name: {line}.", "Drop some name: {line}."),
    "replace-any": ("Replace any name by {new}: {line}.", "Write {new} over some name: {line}."),
    "shuffle": ("Shuffle this line: {line}.", "Write this line in another order: {line}."),
}
KINDS = tuple(ASK)
DEPENDENT = ("insert-any", "remove-any", "replace-any", "shuffle")  # cannot be written in one step


def generate(seed: int, count: int, split: str = "train", kinds: tuple[str, ...] = KINDS) -> Iterator[Problem]:
    """``count`` problems of a split, kinds in turn; the same seed gives the same problems on every machine."""
    check_split(split)
    rng = Random(f"{TASK}:{split}:{seed}")
    for index in range(count):
        kind, length = kinds[index % len(kinds)], LENGTHS[index // len(kinds) % len(LENGTHS)]
        yield draw_problem(rng, split, kind, length, f"{TASK}-{split}-{seed}-{index}")


def load() -> list[Problem]:
    """The 1,000 fixed test problems of the package: 100 of each kind."""
    return load_packaged(TASK)


def draw_problem(rng: Random, split: str, kind: str, length: int, name: str) -> Problem:
    """A problem about a line of names, of the split."""
    while True:
        line = rng.sample(NAMES, length)
        if held_out([kind, *line], HELD_OUT_ONE_IN) == (split == "test"):
            break
    new = rng.choice([name for name in NAMES if name not in line])
    place = rng.randint(1, length + (kind == "insert"))
    prompt = rng.choice(ASK[kind]).format(line=numbered(line), new=new, place=place)
    answer = numbered(draw_answer(rng, kind, line, new, place))
    return Problem(name, TASK, prompt, answer, length, kind=kind, facts={"line": line, "new": new, "place": place})


def draw_answer(rng: Random, kind: str, line: list[str], new: str, place: int) -> list[str]:
    """One right answer; where there are many, each with the same chance."""
    if kind == "shuffle":
        other = line
        while other == line:
            other = rng.sample(line, len(line))
        return other
    plain = kind.removesuffix("-any")
    if plain != kind:
        place = rng.randint(1, len(line) + (plain == "insert"))
    return CHANGES[plain](line, new, place - 1)


def numbered(names: list[str]) -> str:
    """``1 Tom 2 Ana``: a number and a name in turn, so that a name's place can be read off."""
    return " ".join(f"{place} {name}" for place, name in enumerate(names, start=1))


def grade(problem: Problem, text: str) -> bool:
    """Whether the words of ``text``, without its numbers, are an answer."""
    return is_answer(problem, [word for word in text.split() if not word.isdigit()])


def is_answer(problem: Problem, found: list[str]) -> bool:
    """Equality for the kinds with one answer; for the others each rule is checked by itself."""
    line, new, place = (problem.facts[fact] for fact in ("line", "new", "place"))
    if problem.kind == "shuffle":
        return sorted(found) == sorted(line) and found != line
    plain = problem.kind.removesuffix("-any")
    places = range(len(line) + (plain == "insert")) if plain != problem.kind else (place - 1,)
    return any(found == CHANGES[plain](line, new, at) for at in places)


def formed(problem: Problem, text: str) -> bool:
    """Whether ``text`` is a line as prompts write it: names of the prompt, none of them twice, numbered from one."""
    new = [problem.facts["new"]] if problem.kind.startswith(("insert", "replace")) else []
    known = {*problem.facts["line"], *new}
    names = text.split()[1::2]
    return text.strip() == numbered(names) and set(names) <= known and len(set(names)) == len(names) > 0


CHANGES: dict[str, Callable[[list[str], str, int], list[str]]] = {
    "copy": lambda line, new, at: line,
    "reverse": lambda line, new, at: line[::-1],
    "sort": lambda line, new, at: sorted(line),
    "insert": lambda line, new, at: [*line[:at], new, *line[at:]],
    "remove": lambda line, new, at: [*line[:at], *line[at + 1 :]],
    "replace": lambda line, new, at: [*line[:at], new, *line[at + 1 :]],
}  # each without changing its line; ``at`` counts from zero
