"""Every reason to refuse a row, in one line each."""

import pytest

from starr.decode.check import check_request
from starr.decode.request import Sampling
from starr.errors import InputError, LengthError
from tests.decode.rows import request
from tests.tiny import tiny_model

REFUSED = [
    (request("__", start=0), "A mask cannot come first"),
    (request(""), "max_tokens must be at least 1, got 0"),
    (request("__", block_length=0), "block_length must be"),
    (request("__", max_forwards=0), "max_forwards must be"),
    (request("__", seed=-1), "seed must be"),
    (request("__", enforce="maybe"), "enforce must be one of"),
    (request("_a_", strategy="daedal"), "daedal cannot be used: it moves frozen text"),
    (request("___", strategy="daedal", cache="dual"), "Cache dual cannot be used: daedal moves positions"),
    (request("___", strategy="wino", cache="dkv"), "Cache dkv cannot be used: wino needs its shadow block"),
    (request("___", strategy="klass", cache="adaptive"), "klass compares distributions"),
    (request("___", cache="prefix", sampling=Sampling(guidance=1.0)), "guidance runs a second canvas"),
]


@pytest.mark.parametrize(("row", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_a_row_that_cannot_be_decoded_is_refused(row, reason):
    with pytest.raises(InputError, match=reason):
        check_request(row, tiny_model())


def test_a_row_longer_than_the_context_is_refused_and_a_good_one_is_not():
    with pytest.raises(LengthError):
        check_request(request("_" * 300), tiny_model())
    check_request(request("_" * 255), tiny_model())
