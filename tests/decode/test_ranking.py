"""Choosing by score, against sorted lists; scores are coarse, so that there are ties."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from starr.decode.ranking import best_of, rank_of, top_of, with_best

ROW = st.lists(st.tuples(st.integers(-2, 2), st.booleans()), min_size=1, max_size=8)


@given(ROW, st.integers(0, 9))
def test_rank_top_and_best_are_the_sorted_list(row, count):
    score = torch.tensor([[float(s) for s, _ in row]])
    among = torch.tensor([[a for _, a in row]])
    order = sorted((i for i, (_, a) in enumerate(row) if a), key=lambda i: (-row[i][0], i))
    rank = [order.index(i) if i in order else len(row) for i in range(len(row))]
    assert rank_of(score, among)[0].tolist() == rank
    assert top_of(score, among, torch.tensor([count]))[0].tolist() == [r < min(count, len(order)) for r in rank]
    assert best_of(score, among)[0].tolist() == [i in order[:1] for i in range(len(row))]


def test_with_best_adds_the_best_and_keeps_the_chosen():
    score, among = torch.tensor([[0.1, 0.9, 0.5]]), torch.tensor([[True, False, True]])
    chosen = torch.tensor([[True, False, False]])
    assert with_best(chosen, score, among).tolist() == [[True, False, True]]
    assert with_best(chosen, score, among & False).tolist() == chosen.tolist(), "nothing to add"
