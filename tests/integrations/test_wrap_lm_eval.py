"""lm_eval with a wrapped module: the texts and likelihoods of the same weights, loaded natively."""

import pytest
from lm_eval.api.instance import Instance

import starr
from starr.errors import InputError
from starr.integrations.lm_eval import StarrLM
from tests.integrations import modules


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    module = modules.qwen3()
    native = starr.load(modules.write_as_a2d(module, tmp_path_factory.mktemp("a2d")), dtype="float32", device="cpu")
    return starr.wrap(module, modules.tokenizer_for(modules.QWEN_SPECIAL)), native


def requests_of(kind, *arguments):
    return [Instance(kind, {}, each, number) for number, each in enumerate(arguments)]


@pytest.mark.parametrize("strategy", ["starr", "threshold:tau=0.3", "wino"])
def test_texts_are_those_of_the_native_model(pair, strategy):
    asked = requests_of("generate_until", ("Tom has", {"max_gen_toks": 10}), ("A", {"max_gen_toks": 6, "until": ["a"]}))
    ours, theirs = (StarrLM(model, strategy=strategy).generate_until(asked, disable_tqdm=True) for model in pair)
    assert ours == theirs


def test_likelihoods_are_those_of_the_native_model(pair):
    asked = requests_of("loglikelihood", ("Tom has", " two"), ("A", " pear"))
    ours, theirs = ([v for v, _ in StarrLM(model, mc_num=8).loglikelihood(asked, disable_tqdm=True)] for model in pair)
    assert ours == pytest.approx(theirs, abs=1e-4)
    assert all(value < 0 for value in ours)


def test_a_cache_is_refused(pair):
    with pytest.raises(InputError) as found:
        StarrLM(pair[0], cache="dual").generate_until(
            requests_of("generate_until", ("Tom", {"max_gen_toks": 6})), disable_tqdm=True
        )
    assert found.value.param == "cache"
