"""dLLM-Cache by hand: the canvas positions that moved most, between refreshes."""

from dataclasses import replace

import torch

import starr
from tests.decode.rows import canvas_of, request

MOVED = torch.tensor([[9.0, 9.0, 0.1, 0.4, 0.4, 0.2, 0.0]])


def query(text: str, total: int) -> list[int]:
    canvas = canvas_of(request("____", start=2)).noted({"moved": MOVED})
    canvas = replace(canvas, total=torch.tensor([total]))
    return [i for i, asked in enumerate(starr.cache(text).query(canvas)[0].tolist()) if asked and i < 6]


def test_the_share_that_moved_most_and_ties_to_the_left():
    assert query("adaptive", 1) == [3]
    assert query("adaptive:share=0.5", 1) == [3, 4]
    assert query("adaptive:share=0.75", 1) == [3, 4, 5]


def test_canvas_and_prompt_have_their_own_intervals():
    assert query("adaptive", 7) == [2, 3, 4, 5]
    assert query("adaptive:prompt_refresh=5", 5) == [0, 1, 3]
    assert query("adaptive", 0) == [0, 1, 2, 3, 4, 5]
