"""dKV-Cache by hand: masks, what was just written, and full forwards in between."""

import pytest
import torch

import starr
from starr.decode.caches.dkv import around
from tests.decode.rows import canvas_of, hold, put, request


def query(text: str, step: int) -> list[int]:
    """Column 3 was just written, column 4 long ago; 5 and 6 are masks."""
    canvas = hold(hold(canvas_of(request("____", start=3)), 0, 3), 0, 4)
    changed = torch.zeros_like(canvas.changed)
    changed[0, 3] = True
    canvas = put(canvas, changed=changed, step=torch.tensor([step]), total=torch.tensor([step]))
    return [i for i, asked in enumerate(starr.cache(text).query(canvas)[0].tolist()) if asked and i < 7]


@pytest.mark.parametrize(
    ("text", "step", "expected"),
    [
        ("dkv", 1, [0, 1, 2, 3, 4, 5, 6]),
        ("dkv", 2, [3, 5, 6]),
        ("dkv:refresh=3", 3, [0, 1, 2, 3, 4, 5, 6]),
        ("dkv-prefill", 5, [3, 4, 5, 6]),
        ("dkv-pd", 2, [3, 5, 6]),
        ("dkv-pd", 8, [3, 4, 5, 6]),
        ("dkv-pd:prompt_refresh=2", 2, [0, 1, 2, 3, 4, 5, 6]),
        ("dkv-greedy:window=0,refresh=9", 3, [3, 5]),
        ("dkv-greedy:window=2,refresh=9", 3, [3, 5, 6]),
    ],
)
def test_what_each_variant_recomputes(text, step, expected):
    assert query(text, step) == expected


def test_around_counts_over_the_given_positions():
    among = torch.tensor([[True, False, True, True, False, True]])
    chosen = torch.tensor([[False, False, True, False, False, False]])
    assert around(chosen, among, 1)[0].tolist() == [True, False, True, True, False, False]
