"""Texts and runs of masks, one behind the other."""

from starr.decode.prompts.layout import lay_out
from tests.tiny import MASK, Letters


def test_parts_come_in_order_and_only_masks_are_masked():
    found = lay_out(["ab", 2, "c", 1], Letters().encode, MASK)
    a, b, c = Letters().encode("abc")
    assert found.tokens == [a, b, MASK, MASK, c, MASK]
    assert found.masked == [False, False, True, True, False, True]
    assert lay_out([], Letters().encode, MASK).tokens == []
