"""Chosen columns as packed indices, against plain lists."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from starr.decode.places import places, window_index
from tests.decode.rows import canvas_of, request


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=4))
def test_places_are_the_true_columns_in_order(rows):
    rows = [[*row, False] for row in rows]  # the spare column is never chosen
    chosen = torch.tensor(rows)
    most = max(1, int(chosen.sum(1).max()))
    found = places(chosen, most)
    for row, flags in enumerate(rows):
        expected = [i for i, flag in enumerate(flags) if flag]
        assert found.index[row].tolist() == expected + [6] * (most - len(expected))
        assert found.real[row].sum() == found.count[row] == len(expected)


def test_a_narrower_window_is_padded_with_the_spare_column():
    canvas = canvas_of(request("____", start=2), request("__", start=1))
    assert window_index(canvas, 4).tolist() == [[2, 3, 4, 5], [1, 2, 6, 6]]
