"""What caches share: intervals, the response, checked options."""

import pytest
import torch

import starr
from starr.decode.caches.base import every, response
from starr.errors import InputError
from tests.decode.rows import canvas_of, request


def test_zero_is_never_and_one_is_always():
    steps = torch.arange(5)
    assert every(steps, 0).tolist() == [False] * 5
    assert every(steps, 1).tolist() == [True] * 5
    assert every(steps, 2).tolist() == [True, False, True, False, True]


def test_the_response_is_what_stands_behind_the_prompt():
    assert response(canvas_of(request("__", start=2)))[0].tolist() == [False, False, True, True, True]


def test_options_are_checked_when_made():
    with pytest.raises(InputError, match="dkv: refresh must be within"):
        starr.cache("dkv:refresh=0")
    with pytest.raises(InputError, match="dual has no option 'refesh'"):
        starr.cache("dual:refesh=2")
