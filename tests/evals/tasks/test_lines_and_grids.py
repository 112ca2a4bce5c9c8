"""The rules of both tasks by hand, their splits, and their packaged problems."""

from collections import Counter
from dataclasses import replace

import pytest

from starr.errors import InputError
from starr.evals.tasks import grids, lines

LINE = {"line": ["Tom", "Ana", "Leo"], "new": "Mia", "place": 2}
RIGHT = {
    "copy": ["1 Tom 2 Ana 3 Leo"],
    "reverse": ["1 Leo 2 Ana 3 Tom"],
    "sort": ["1 Ana 2 Leo 3 Tom"],
    "insert": ["1 Tom 2 Mia 3 Ana 4 Leo"],
    "remove": ["1 Tom 2 Leo"],
    "replace": ["1 Tom 2 Mia 3 Leo"],
    "insert-any": [
        "1 Mia 2 Tom 3 Ana 4 Leo",
        "1 Tom 2 Mia 3 Ana 4 Leo",
        "1 Tom 2 Ana 3 Mia 4 Leo",
        "1 Tom 2 Ana 3 Leo 4 Mia",
    ],
    "remove-any": ["1 Ana 2 Leo", "1 Tom 2 Leo", "1 Tom 2 Ana"],
    "replace-any": ["1 Mia 2 Ana 3 Leo", "1 Tom 2 Mia 3 Leo", "1 Tom 2 Ana 3 Mia"],
    "shuffle": [
        "1 Tom 2 Leo 3 Ana",
        "1 Ana 2 Tom 3 Leo",
        "1 Ana 2 Leo 3 Tom",
        "1 Leo 2 Tom 3 Ana",
        "1 Leo 2 Ana 3 Tom",
    ],
}
EVERY = sorted({text for texts in RIGHT.values() for text in texts})
SUDOKU = {"signs": "1234", "grid": "1...\n..1.\n.1..\n...1"}


def line_problem(kind):
    return replace(next(lines.generate(0, 1)), kind=kind, facts=LINE)


@pytest.mark.parametrize("kind", lines.KINDS)
def test_a_line_is_right_exactly_where_the_rule_says(kind):
    problem = line_problem(kind)
    assert [text for text in EVERY if lines.grade(problem, text)] == sorted(RIGHT[kind])
    assert lines.grade(problem, " ".join(RIGHT[kind][0].split()[1::2])), "numbers do not matter for being right"
    assert not lines.grade(problem, "")


def test_a_line_is_formed_without_strange_or_repeated_names():
    problem = line_problem("shuffle")
    assert lines.formed(problem, "1 Ana 2 Tom")
    told = {kind for kind in lines.KINDS if lines.formed(line_problem(kind), "1 Mia 2 Tom")}
    assert told == {"insert", "replace", "insert-any", "replace-any"}, "the others' prompts have no new name"
    for text in ("1 Tom 2 Tom", "1 Tom 3 Ana", "1 Tom 2 Eva", "1 Tom 2", "", "Tom Ana", "1 Tom, 2 Ana", "1 Tom  2 Ana"):
        assert not lines.formed(problem, text), text


def test_a_latin_square_has_every_sign_once_in_rows_and_columns():
    problem = next(grids.generate(0, 1, kinds=("latin",)))
    problem = replace(problem, facts={"signs": "8921", "grid": ""})
    good = "8912\n9821\n1289\n2198"
    assert grids.grade(problem, good)
    assert grids.formed(problem, good)
    assert grids.grade(problem, good.replace("8", "8 "))
    assert not grids.formed(problem, good.replace("8", "8 "))
    for text in ("8912\n8912\n1289\n2198", "8912\n9821\n1289", good.replace("8", "7"), good + "\n8912", ""):
        assert not grids.grade(problem, text), text
    assert grids.formed(problem, "8912\n8912\n1289\n2198"), "well formed but wrong"


def test_a_sudoku_keeps_its_givens_and_fills_its_boxes():
    problem = next(grids.generate(0, 1, kinds=("sudoku",)))
    problem = replace(problem, facts=SUDOKU)
    assert grids.grade(problem, "1234\n3412\n2143\n4321")
    assert not grids.grade(problem, "2134\n3412\n1243\n4321"), "a given was changed"
    assert not grids.grade(problem, "1234\n2413\n4132\n3241".replace("2413", "2314")), "a column has a digit twice"
    assert not grids.grade(problem, "1234\n2143\n3412\n4321"), "boxes and givens"


def test_there_are_576_squares_and_288_sudokus():
    assert len(set(grids.squares())) == 576
    assert len(set(grids.sudokus())) == 288


@pytest.mark.parametrize("module", [lines, grids])
def test_references_are_right_and_formed_and_seeds_repeat(module):
    problems = list(module.generate(3, 300, "test"))
    assert problems == list(module.generate(3, 300, "test"))
    assert all(module.grade(problem, problem.answer) and module.formed(problem, problem.answer) for problem in problems)
    assert not {p.prompt for p in problems} & {p.prompt for p in module.generate(3, 3000)}
    with pytest.raises(InputError, match="split"):
        next(module.generate(0, 1, "dev"))


def test_sudokus_have_one_answer():
    for problem in grids.generate(1, 40, "test", kinds=("sudoku",)):
        assert grids.solutions(problem.facts["grid"]) == [problem.answer]


@pytest.mark.parametrize("module", [lines, grids])
def test_the_packaged_problems_are_1000_distinct_ones_of_all_kinds(module):
    rows = module.load()
    assert len(rows) == len({row.prompt for row in rows}) == 1000
    counts = Counter(row.kind for row in rows)
    assert set(counts) == set(module.KINDS)
    assert max(counts.values()) - min(counts.values()) <= 3
    assert all(row.task == module.TASK and "-test-" in row.id for row in rows)
    assert not {problem.prompt for problem in module.generate(0, 3000)} & {row.prompt for row in rows}
