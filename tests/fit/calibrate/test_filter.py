"""Fitting the filter of learn2pd on models of random weights, and on the bundled one's careful texts."""

import json

import pytest
import torch

import starr
from starr.decode.strategies.learn2pd import Learn2PD
from starr.errors import InputError
from starr.fit.calibrate.filter import FilterPlan, fit_filter, replay_texts
from starr.fit.calibrate.prompts import Prompt
from tests.tiny import tiny_model

PROMPTS = [Prompt(f"prompt {n}", 10) for n in range(20)]
PLAN = FilterPlan(block=4, epochs=3)


@pytest.fixture(scope="module")
def made():
    """A filter, and how often progress was told."""
    calls: list[int] = []
    return fit_filter(tiny_model(), PROMPTS, PLAN, lambda: calls.append(1)), len(calls)


def test_an_oracle_tells_what_was_final_when():
    """Every step of the replay has a mask; its last step of a block leaves none; all that is no mask counts as 1."""
    seen = replay_texts(tiny_model(), PROMPTS, PLAN, lambda: None)
    assert seen.masked.any(dim=1).all()
    assert bool((seen.confidence[~seen.masked] == 1).all())
    assert bool(seen.final[~seen.masked].all())
    steps = [int((seen.prompt == n).sum()) for n in range(len(PROMPTS))]
    assert min(steps) >= 1
    assert max(steps) <= 10


def test_a_filter_is_fitted_and_decodes(tmp_path, made):
    found, calls = made
    assert calls == 2 * len(PROMPTS)
    assert found.block == 4
    assert set(found.scores) == {"held_out", "tau", "precision", "recall", "steps"}
    path = tmp_path / "filter.json"
    path.write_text(json.dumps(found.to_dict()))
    text = starr.generate(tiny_model(), "prompt 3", strategy=f"learn2pd:filter={path}", max_tokens=10)
    assert text.stats.forwards <= 10
    same = fit_filter(tiny_model(), PROMPTS, PLAN)
    assert torch.equal(same.w1, found.w1), "same seed, same filter"


def test_it_learns_what_confidence_says():
    """Positions are final exactly where confidence is high: held-out precision and recall say so."""
    from starr.fit.calibrate.filter import OracleSteps, descend, filter_scores

    torch.manual_seed(0)
    confidence = torch.rand(600, 4)
    final, masked = confidence > 0.6, torch.ones(600, 4, dtype=torch.bool)
    held = torch.arange(600) % 5 == 0
    plan = FilterPlan(block=4, epochs=400, rate=0.03)
    found = descend(confidence[~held], final[~held], confidence[held], final[held], plan)
    scores = filter_scores(found, OracleSteps(confidence, final, masked, torch.arange(600)), held)
    assert scores["precision"] > 0.97
    assert scores["recall"] > 0.3


def test_few_prompts_are_refused():
    with pytest.raises(InputError, match="at least 20"):
        fit_filter(tiny_model(), PROMPTS[:3], PLAN)


def test_another_model_is_refused(made):
    with pytest.raises(InputError, match="another model"):
        Learn2PD(fitted=made[0]).bind(tiny_model(seed=9))
