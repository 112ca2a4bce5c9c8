"""Inserted masks, against plain lists."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from starr.decode.extras.growth import insert
from tests.decode.rows import canvas_of, request
from tests.tiny import MASK


@given(st.integers(1, 6), st.data())
def test_insertion_is_a_list_insertion(width, data):
    canvas = canvas_of(request("_" * width, start=2))
    canvas.tokens[0, 2 : 2 + width] = torch.arange(width) + 40
    at, count = data.draw(st.integers(2, width + 1)), data.draw(st.integers(0, 4))
    after = insert(
        canvas, torch.tensor([at]), torch.tensor([count]), torch.tensor([MASK]), most=4, longest=100, mask_id=MASK
    )
    tokens = canvas.tokens[0, : 2 + width].tolist()
    expected = tokens[: at + 1] + [MASK] * count + tokens[at + 1 :]
    assert after.tokens[0, : len(expected)].tolist() == expected
    assert int(after.length) == len(expected)
    assert after.masked[0, at + 1 : at + 1 + count].all()
    assert int(after.window.end) == len(expected), "the end of the canvas moves along"
    assert int(after.limit) == int(canvas.limit) + count + (count > 0)


def test_the_context_is_never_exceeded_and_other_rows_stay():
    canvas = canvas_of(request("___"), request("__"))
    after = insert(
        canvas, torch.tensor([1, 1]), torch.tensor([9, 0]), torch.tensor([MASK, MASK]), most=9, longest=6, mask_id=MASK
    )
    assert after.length.tolist() == [6, 3]
    assert torch.equal(after.tokens[1, :4], canvas.tokens[1, :4])


def test_a_window_inside_the_canvas_keeps_its_end():
    canvas = canvas_of(request("____", block_length=2))
    after = insert(canvas, torch.tensor([4]), torch.tensor([3]), torch.tensor([MASK]), most=3, longest=50, mask_id=MASK)
    assert int(after.window.end) == 3


def test_other_tokens_than_masks_are_held():
    canvas = canvas_of(request("___"))
    after = insert(canvas, torch.tensor([3]), torch.tensor([2]), torch.tensor([7]), most=2, longest=50, mask_id=MASK)
    assert after.tokens[0, 4:6].tolist() == [7, 7]
    assert not after.masked[0, 4:6].any()
    assert not after.frozen[0, 4:6].any()
    assert after.done.committed_with[0, 4:6].tolist() == [1.0, 1.0]
