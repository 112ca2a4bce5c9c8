"""The task ``grids``: Latin squares of 4 from nothing, and sudoku 4 x 4 with givens.

A Latin square over four given digits has 576 answers and every cell depends on the others, so it cannot be written in
one step. A sudoku here has one answer. Training and test never share a set of digits or a sudoku (by hash).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations
from random import Random

from starr.evals.tasks.problem import Problem, check_split, held_out, load_packaged

TASK = "grids"
SIZE = 4
SIGNS = "123456789"
DIGITS, EMPTY = "1234", "."
GIVENS = (6, 10)  # fewest and most
HELD_OUT_ONE_IN = 5
ASK = {
    "latin": ('Write a Latin square with the digits {signs}.',
              'Fill a square of 4 with {signs}, no digit twice in a line.'),
    "sudoku": ("Solve this sudoku:\n{grid}", "Fill in this sudoku of 4:\n{grid}"),
}  # fmt: skip
KINDS = tuple(ASK)
DEPENDENT = ("latin",)  # cannot be written in one step


def generate(seed: int, count: int, split: str = "train", kinds: tuple[str, ...] = KINDS) -> Iterator[Problem]:
    """``count`` problems of a split, kinds in turn; the same seed gives the same problems on every machine."""
    check_split(split)
    rng = Random(f"{TASK}:{split}:{seed}")
    for index in range(count):
        draw = draw_latin if kinds[index % len(kinds)] == "latin" else draw_sudoku
        yield draw(rng, split, f"{TASK}-{split}-{seed}-{index}")


def load() -> list[Problem]:
    """The 1,000 fixed test problems of the package: 500 of each kind."""
    return load_packaged(TASK)


def draw_latin(rng: Random, split: str, name: str) -> Problem:
    """A Latin square to write, with signs of the split."""
    while True:
        signs = "".join(rng.sample(SIGNS, SIZE))
        if held_out(sorted(signs), HELD_OUT_ONE_IN) == (split == "test"):
            break
    answer = "\n".join(rng.choice(squares())).translate(str.maketrans(DIGITS, signs))
    prompt = rng.choice(ASK["latin"]).format(signs=signs)
    return Problem(name, TASK, prompt, answer, SIZE * SIZE, kind="latin", facts={"signs": signs, "grid": ""})


def draw_sudoku(rng: Random, split: str, name: str) -> Problem:
    """A grid of four by four with one solution, of the split."""
    while True:
        answer = "\n".join(rng.choice(sudokus()))
        grid = take_away(rng, answer, SIZE * SIZE - rng.randint(*GIVENS))
        if held_out([grid], HELD_OUT_ONE_IN) == (split == "test") and len(solutions(grid)) == 1:
            break
    prompt = rng.choice(ASK["sudoku"]).format(grid=grid)
    return Problem(name, TASK, prompt, answer, grid.count(EMPTY), kind="sudoku", facts={"signs": DIGITS, "grid": grid})


def take_away(rng: Random, answer: str, count: int) -> str:
    """A full grid with ``count`` cells emptied."""
    cells = [place for place, sign in enumerate(answer) if sign in DIGITS]
    gone = set(rng.sample(cells, count))
    return "".join(EMPTY if place in gone else sign for place, sign in enumerate(answer))


@cache
def squares() -> tuple[tuple[str, ...], ...]:
    """All 576 Latin squares over ``DIGITS``, as tuples of rows."""
    rows = ["".join(row) for row in permutations(DIGITS)]
    found: list[tuple[str, ...]] = [()]
    for _ in range(SIZE):
        found = [(*above, row) for above in found for row in rows if all(fits(row, other) for other in above)]
    return tuple(found)


def fits(row: str, other: str) -> bool:
    """Whether no column holds the same sign in both rows."""
    return all(a != b for a, b in zip(row, other, strict=True))


@cache
def sudokus() -> tuple[tuple[str, ...], ...]:
    """The 288 Latin squares whose four boxes hold each digit once."""
    return tuple(rows for rows in squares() if all(complete(box, DIGITS) for box in boxes(rows)))


def boxes(rows: Sequence[str]) -> list[str]:
    """The four boxes of a grid, each as its four cells."""
    return [rows[y][x : x + 2] + rows[y + 1][x : x + 2] for y in (0, 2) for x in (0, 2)]


def complete(cells: str, signs: str) -> bool:
    """Whether cells hold every sign once."""
    return sorted(cells) == sorted(signs)


def solutions(grid: str) -> list[str]:
    """Every full sudoku that keeps the givens of ``grid``."""
    return [full for rows in sudokus() if keeps(grid, full := "\n".join(rows))]


def keeps(grid: str, full: str) -> bool:
    """Whether a full grid keeps every given cell."""
    return len(grid) == len(full) and all(a in (EMPTY, b) for a, b in zip(grid, full, strict=True))


def grade(problem: Problem, text: str) -> bool:
    """Whether each row and column of ``text`` (blanks left out) holds each sign once; boxes and givens in a sudoku."""
    signs, grid = problem.facts["signs"], problem.facts["grid"]
    rows = ["".join(row.split()) for row in text.strip().splitlines()]
    if len(rows) != SIZE or any(len(row) != SIZE for row in rows):
        return False
    parts = [*rows, *("".join(column) for column in zip(*rows, strict=True)), *(boxes(rows) if grid else ())]
    return all(complete(part, signs) for part in parts) and (not grid or keeps(grid, "\n".join(rows)))


def formed(problem: Problem, text: str) -> bool:
    """Whether ``text`` is four lines of four of the problem's signs, without anything else."""
    rows = text.strip().split("\n")
    return len(rows) == SIZE and all(len(row) == SIZE and set(row) <= set(problem.facts["signs"]) for row in rows)
