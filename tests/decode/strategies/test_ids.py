"""Token ids in an option's text."""

import pytest
import torch

from starr.decode.strategies.ids import ids_text, is_one_of, parse_ids
from starr.errors import InputError


def test_texts_of_ids_come_back():
    assert parse_ids("13/198", "x: ids") == (13, 198)
    assert parse_ids("auto", "x: ids") == parse_ids("none", "x: ids") == ()
    assert (ids_text((13, 198)), ids_text(())) == ("13/198", "none")
    with pytest.raises(InputError, match="x: ids must be auto, none or token ids like 13/198, got '1,2'"):
        parse_ids("1,2", "x: ids")


def test_where_a_token_is_one_of_them():
    assert is_one_of(torch.tensor([[1, 2, 3]]), (3, 1)).tolist() == [[True, False, True]]
