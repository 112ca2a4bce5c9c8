"""The oracle commits exactly what agrees, and the known token at the most confident mask where nothing does."""

import pytest

import starr
from starr.decode.strategies.oracle import Oracle
from tests.decode.strategies.views import chosen, one_row
from tests.tiny import tiny_model


def test_what_agrees_is_committed_and_nothing_else():
    assert chosen(Oracle((10, 5, 12)), one_row([0.1, 0.9, 0.2])) == [0, 2]


def test_where_nothing_agrees_the_known_token_goes_to_the_most_confident_mask():
    view = one_row([0.1, 0.3, 0.9], held=(2,))
    assert chosen(Oracle((7, 8, 9)), view) == [1]
    assert Oracle((7, 8, 9)).decide(view, {})[0].tokens.tolist() == [[7, 8, 9]]


@pytest.mark.parametrize("shift", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_through_the_engine_it_writes_the_text_it_knows(shift, seed):
    model = tiny_model(shift=shift, seed=seed)
    known = starr.generate(model, "abc", strategy="random", seed=seed, max_tokens=12, chat=False)
    target = (*known.tokens, *[model.spec.eos_ids[0]] * (12 - len(known.tokens)))
    found = starr.generate(model, "abc", strategy=Oracle(target), max_tokens=12, chat=False)
    assert found.tokens == known.tokens
    assert found.stats.forwards <= 12
    assert found.stats.revocations == 0
