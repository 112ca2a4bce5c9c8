"""A row's derived facts, and every reason to refuse it (options are checked in test_options)."""

import pytest

from starr.decode.prompts.prepare import check_ids, check_length
from starr.decode.request import check_request
from starr.errors import InputError, LengthError
from tests.decode.rows import request
from tests.tiny import tiny_model


def test_windows_and_limit():
    assert request("_" * 10, block_length=4).windows == 3
    assert request("_" * 10).windows == 1
    assert request("__a__", max_forwards=3).step_limit == 3
    assert request("__a__").step_limit == 4
    assert request("__a__", strategy="edit", block_length=3).step_limit == 4 + 16 * 2


@pytest.mark.parametrize(
    ("form", "enforce", "limit"),
    [
        ("starr", "safe", 4), ("starr", "bounded", 4 * 3), ("starr", "strict", 4),
        ("starr", "literal", 4), ("threshold", "safe", 4), ("wino", "safe", 4), ("remdm", "safe", 5),
        ("remdm", "strict", 4), ("remdm_llada:loops=3", "safe", 10), ("remdm_llada:loops=3", "literal", 10),
    ],
)  # fmt: skip
def test_limits_follow_the_rules_of_enforce(form, enforce, limit):
    row = request("__a__", strategy=form, enforce=enforce)
    assert row.step_limit == limit
    assert request("____", strategy="starr", enforce="bounded", max_revocations=5).step_limit == 4 * 6
    assert row.literal == (enforce == "literal" or (enforce == "safe" and form not in ("starr", "threshold")))


def test_text_goes_on_before_the_last_template_token():
    row = request("_a__b__", ends=False)
    assert [i for i, endless in enumerate(row.endless) if endless] == [1, 3, 4, 6]
    assert not any(request("___").endless)


def test_lengths_and_ids():
    check_length(10, 6, 16)
    with pytest.raises(LengthError, match="10 \\+ 7 = 17 positions, the model has 16"):
        check_length(10, 7, 16)
    with pytest.raises(InputError, match=r"within \[0, 95\], got 96"):
        check_ids([3, 96], 96)


REFUSED = [
    (request("__", start=0), "A mask cannot come first"),
    (request(""), "max_tokens must be at least 1, got 0"),
    (request("_a_", strategy="daedal"), "daedal cannot be used: it moves frozen text"),
    (request("___", strategy="daedal", cache="dual"), "Cache dual cannot be used: daedal moves positions"),
    (request("___", strategy="wino", cache="dkv"), "Cache dkv cannot be used: wino needs its shadow block"),
    (request("___", strategy="klass", cache="adaptive"), "klass compares distributions"),
    (request("___", cache="prefix", guidance=1.0), "guidance runs a second canvas"),
]


@pytest.mark.parametrize(("row", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_a_row_that_cannot_be_decoded_is_refused(row, reason):
    with pytest.raises(InputError, match=reason):
        check_request(row, tiny_model())


def test_a_row_longer_than_the_context_is_refused_and_a_good_one_is_not():
    with pytest.raises(LengthError):
        check_request(request("_" * 300), tiny_model())
    check_request(request("_" * 255), tiny_model())
