"""Rows as tensors: states, joining, leaving, notes."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from starr.decode.canvas import columns_where, join, new_canvas, select, trim, window_index
from tests.decode.rows import canvas_of, request


def test_prompt_template_and_padding_are_frozen():
    canvas = new_canvas([request("_a_", start=2), request("_")], torch.device("cpu"))
    assert canvas.frozen.tolist() == [[1, 1, 0, 1, 0, 1], [1, 0, 1, 1, 1, 1]]
    assert canvas.masked.tolist() == [[0, 0, 1, 0, 1, 0], [0, 1, 0, 0, 0, 0]]
    assert (canvas.valid == canvas.column_index.lt(torch.tensor([[5], [2]]))).all()
    assert canvas.columns == 6, "one spare column behind the longest row"


def test_rows_joined_and_selected_are_the_rows_alone():
    wide, narrow = canvas_of(request("____", start=3)), canvas_of(request("_"))
    both = join(wide, narrow)
    assert both.columns == wide.columns
    assert both.frozen[1, narrow.columns :].all()
    again = trim(select(both, torch.tensor([1])), narrow.columns)
    assert torch.equal(again.tokens, narrow.tokens)
    assert torch.equal(again.window.end, narrow.window.end)


def test_notes_follow_their_rows_and_are_zero_elsewhere():
    noted = canvas_of(request("__")).noted({"moved": torch.ones(1, 4), "count": torch.tensor([7])})
    both = join(noted, canvas_of(request("____")))
    assert both.notes["moved"].tolist() == [[1, 1, 1, 1, 0, 0], [0] * 6]
    assert both.notes["count"].tolist() == [7, 0]
    assert select(both, torch.tensor([1, 0])).notes["count"].tolist() == [0, 7]
    assert trim(both, 4).notes["moved"].shape == (2, 4)


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=4))
def test_places_are_the_true_columns_in_order(rows):
    rows = [[*row, False] for row in rows]  # the spare column is never chosen
    chosen = torch.tensor(rows)
    most = max(1, int(chosen.sum(1).max()))
    found = columns_where(chosen, most)
    for row, flags in enumerate(rows):
        expected = [i for i, flag in enumerate(flags) if flag]
        assert found.index[row].tolist() == expected + [6] * (most - len(expected))
        assert found.real[row].sum() == found.count[row] == len(expected)


def test_a_narrower_window_is_padded_with_the_spare_column():
    canvas = canvas_of(request("____", start=2), request("__", start=1))
    assert window_index(canvas, 4).tolist() == [[2, 3, 4, 5], [1, 2, 6, 6]]
