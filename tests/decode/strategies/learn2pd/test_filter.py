"""Learn2PD against its transcription, and the file of its filter."""

from __future__ import annotations

import json
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.api import build_request, run_all
from starr.decode.strategies.learn2pd import Learn2PD
from starr.decode.strategies.learn2pd.filter import WEIGHTS, filter_from
from starr.errors import InputError
from starr.options import Options
from tests.decode.strategies.driver import check_row, row_of, run, worlds
from tests.reference.ref_learn2pd import RefLearn2PD
from tests.tiny import form_of, random_filter, tiny_model


@settings(deadline=None, max_examples=60)
@given(worlds(), st.sampled_from([0.0, 0.3, 0.5, 0.9, 0.96, 1.5]), st.integers(1, 7), st.integers(0, 20), st.booleans())
def test_equals_reference(world, tau, block, seed, cut):
    found, ends = random_filter(block, seed), (2, 5)
    strategy = Learn2PD(tau=tau, cut=cut, fitted=found, ends=ends)
    weights = [getattr(found, name).tolist() for name in WEIGHTS]
    for view, decision in run(strategy, world):
        for index in range(len(world.widths)):
            reference = RefLearn2PD(tau, weights, ends)
            check_row(index, decision, view, reference.step(row_of(view, index)))
            assert not cut or int(decision.extras["cut"][index]) == reference.cut


@pytest.mark.parametrize("shift", [False, True])
def test_a_row_gives_the_same_tokens_alone_and_in_any_batch(shift):
    model, rng = tiny_model(shift=shift), random.Random(1)
    rows = []
    for n in range(10):
        strategy = rng.choice(["threshold", *[f"{form_of('learn2pd')},tau={tau}" for tau in (0.5, 0.96, 1.5)]])
        options = Options(strategy=strategy, max_tokens=rng.randint(3, 20), cache=rng.choice(["none", "dkv"]), seed=n)
        rows.append(build_request(model, "abc" * rng.randint(1, 5), options))
    together = run_all(model, rows, 4)
    alone = [run_all(model, [row], 1)[0] for row in rows]
    assert [g.tokens for g in together] == [g.tokens for g in alone]
    assert [g.stats.positions for g in together] == [g.stats.positions for g in alone]


def test_a_file_says_what_it_is_of(tmp_path):
    body = random_filter().to_dict()
    again = filter_from(json.loads(json.dumps(body)), "here")
    assert torch.equal(again.w1, random_filter().w1)
    for broken in ({}, [], body | {"kind": "rule"}, body | {"b1": [0.0]}, body | {"b2": [float("inf")] * 6}):
        with pytest.raises(InputError, match="not a block filter"):
            filter_from(broken, "here")
    path = tmp_path / "filter.json"
    with pytest.raises(InputError, match="Cannot read the filter"):
        starr.strategy(f"learn2pd:filter={path}").bind(tiny_model())
    path.write_text(json.dumps(body))
    with pytest.raises(InputError, match="another model"):
        starr.strategy(f"learn2pd:filter={path}").bind(tiny_model())
    with pytest.raises(InputError, match="No filter ships"):
        starr.strategy("learn2pd").bind(tiny_model())
