"""Caches that follow the block, by hand."""

import pytest
import torch

import starr
from tests.decode.rows import canvas_of, put, request


def query(text: str, step: int, total: int = 9) -> list[int]:
    canvas = canvas_of(request("_" * 8, start=2, block_length=2))
    canvas = put(canvas, window_start=torch.tensor([4]), window_end=torch.tensor([6]))
    canvas = put(canvas, step=torch.tensor([step]), total=torch.tensor([total]))
    return [i for i, asked in enumerate(starr.cache(text).query(canvas)[0].tolist()) if asked and i < 10]


@pytest.mark.parametrize(
    ("text", "near"),
    [("prefix", [4, 5, 6, 7, 8, 9]), ("dual", [4, 5]), ("vicinity:before=1,after=2", [3, 4, 5, 6, 7])],
)
def test_a_block_opens_with_a_full_forward_and_goes_on_with_what_is_near(text, near):
    assert query(text, 0) == list(range(10))
    assert query(text, 1) == near


def test_refresh_and_warm_up_add_full_forwards():
    assert query("dual:refresh=3", 3) == list(range(10))
    assert query("dual:refresh=3", 4) == [4, 5]
    assert query("vicinity:warmup=4", 1, total=3) == list(range(10))
