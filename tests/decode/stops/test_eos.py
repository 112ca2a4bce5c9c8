"""Masks behind a held end-of-text are left alone."""

import pytest
import torch

import starr
from starr.decode.stops import stop_rules
from starr.decode.stops.base import Moment
from starr.errors import InputError
from tests.decode.test_view import view
from tests.tiny import tiny_model


def test_everything_from_the_first_held_end_on_is_hidden():
    (rule,) = stop_rules("eos")
    number = torch.tensor([0])
    ended = torch.tensor([[False, True, False, True]])
    moment = Moment(number, number, number, ended, ended, ended.any(dim=1))
    assert rule.hides(view(), moment).tolist() == [[False, True, True, True]]


def test_a_canvas_that_no_end_ends_is_refused():
    with pytest.raises(InputError, match="Stop rule eos cannot be used"):
        starr.infill(tiny_model(), "ab[MASK:2]", stop_rule="eos")
