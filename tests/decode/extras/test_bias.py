"""``logit_bias``: the numbers are added at every position of their row, and of no other row."""

import pytest

import starr
from starr.errors import InputError
from tests.tiny import tiny_model


def texts(model, **options):
    return starr.generate(model, "abc", max_tokens=8, chat=False, eos="never", **options)


def test_a_large_number_rules_all_others_out_and_a_small_one_the_token():
    model = tiny_model(length=64)
    plain = texts(model)
    chosen = next(token for token in range(5, 20) if token not in plain.tokens and token != model.spec.mask_id)
    assert set(texts(model, logit_bias={chosen: 100}).tokens) == {chosen}
    assert plain.tokens[0] not in texts(model, logit_bias={str(plain.tokens[0]): -100}).tokens
    assert texts(model, logit_bias={chosen: 0}).tokens == plain.tokens
    assert texts(model, logit_bias={}).tokens == plain.tokens


@pytest.mark.parametrize("given", [{"a": 1}, {"1": 101}, {-1: 1}, {10**6: 1}, "[1]", {"1": float("nan")}])
def test_what_is_no_bias_is_refused(given):
    with pytest.raises(InputError) as caught:
        texts(tiny_model(length=64), logit_bias=given)
    assert caught.value.param == "logit_bias"
