"""Allowed sets on the device."""

import torch

from starr.decode.extras.constraints.reach import GOES_ON, MASK, Walk
from starr.decode.extras.constraints.tables import ClassTable, SetTable
from tests.decode.extras.constraints.toy import EOS, VOCABULARY, reach_of, sets_of, walk_of

CPU = torch.device("cpu")


def tokens(row: torch.Tensor) -> set[int]:
    return set(row.nonzero().flatten().tolist())


def test_rows_of_the_table_are_the_allowed_sets():
    walk = walk_of(reach_of("(a|ab)(c|bc)?"), [None, None, None])
    table, sets = ClassTable(walk.reach.automaton, CPU), SetTable(len(VOCABULARY), CPU)
    numbers = sets.numbers(table, walk, range(3))
    rows = sets.stacked()
    assert tokens(rows[0]) == set(range(len(VOCABULARY))), "set 0 has every token"
    assert [tokens(rows[number]) for number in numbers] == sets_of(walk)


def test_equal_sets_are_one_row_and_no_end_of_text_is_another():
    reach = reach_of("a*")
    table, sets = ClassTable(reach.automaton, CPU), SetTable(len(VOCABULARY), CPU)
    free, bound = Walk(reach, [MASK] * 40), Walk(reach, [GOES_ON] * 40)
    middle = range(10, 30)
    assert len(set(sets.numbers(table, free, middle))) == 1
    ends, goes_on = sets.number(table, free, 10), sets.number(table, bound, 10)
    assert EOS in tokens(sets.stacked()[ends])
    assert EOS not in tokens(sets.stacked()[goes_on])


def test_the_best_of_each_class():
    table = ClassTable(reach_of("a*").automaton, CPU)
    values = torch.tensor([[5.0, 1.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0]])
    best = table.best_of_classes(values)
    assert best[0, table.class_of[1]] == 1.0
    assert best[0, table.class_of[EOS]] == 5.0


def test_rows_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr("starr.decode.extras.constraints.tables.KEPT_BYTES", 2 * len(VOCABULARY))
    walk = walk_of(reach_of("abcab"), [None] * 5)
    table = ClassTable(walk.reach.automaton, CPU)
    SetTable(len(VOCABULARY), CPU).numbers(table, walk, range(5))
    assert len(table.sets) <= 3
