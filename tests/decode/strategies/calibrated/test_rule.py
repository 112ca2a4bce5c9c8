"""Rule files: written, read back, refused with what to do."""

import json
from dataclasses import replace

import pytest
import torch

import starr
from starr.decode.strategies.calibrated import Calibrated, within_budget
from starr.decode.strategies.calibrated.features import SEEN, TOKEN
from starr.decode.strategies.calibrated.rule import rule_from
from starr.decode.strategies.fitted import fingerprint
from starr.errors import InputError
from tests.decode.strategies.views import chosen, one_row
from tests.reference.ref_calibrated import ref_budget, ref_risk
from tests.tiny import form_of, random_rule, tiny_model


def test_a_rule_comes_back_from_its_file():
    rule = random_rule()
    again = rule_from(json.loads(json.dumps(rule.to_dict())), "here")
    x, near = torch.randn(2, 5, len(SEEN)), torch.randint(-1, 300, (2, 5, len(TOKEN)))
    for found, expected in zip(again.chances(x, near), rule.chances(x, near), strict=True):
        assert found.shape == (2, 5)
        assert torch.equal(found, expected)
    assert (again.budget, again.careful, again.harm) == (rule.budget, rule.careful, rule.harm)


def test_a_harmful_commit_counts_as_several():
    rule = replace(random_rule(), harm=5.0)
    stands, harms = torch.tensor([[1.0, 0.9, 0.9, 0.5]]), torch.tensor([[1.0, 0.0, 1.0, 0.25]])
    found = rule.risk(stands, harms)[0].tolist()
    assert found == pytest.approx([0.0, 0.1, 0.5, 1.0])
    pairs = zip(stands[0].tolist(), harms[0].tolist(), strict=True)
    assert found == pytest.approx([ref_risk(*pair, rule.harm) for pair in pairs])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"features_version": 99}, "fitted with other features"),
        ({"features": ["confidence"]}, "fitted with other features"),
        ({"w1": [[1.0]]}, "is not a rule"),
        ({"b2": None}, "is not a rule"),
        ({"w2": [[[1.0]] * 4] * 2}, "is not a rule"),
        ({"format": 2}, "fitted with other features"),
        ({"habits": {"300": 1.0}}, "is not a rule"),
        ({"habits": {"one": 1.0}}, "is not a rule"),
        ({"vocabulary": 10**12}, "is not a rule"),
    ],
)
def test_what_is_no_rule_of_ours_is_refused(change, reason):
    with pytest.raises(InputError, match=reason):
        rule_from(random_rule().to_dict() | change, "here")


def test_a_rule_of_another_model_is_refused_unless_allowed():
    strategy = starr.strategy(form_of("calibrated"))
    assert strategy.bind(tiny_model()).fitted is not None
    with pytest.raises(InputError, match="fitted on another model"):
        Calibrated(rule=strategy.rule).bind(tiny_model())
    with pytest.raises(InputError, match="No rule ships for the model tiny"):
        Calibrated().bind(tiny_model())
    with pytest.raises(InputError, match="Cannot read the rule"):
        Calibrated(rule="absent.json").bind(tiny_model())


def test_the_fingerprint_knows_the_weights_and_not_the_dtype():
    model, other = tiny_model(seed=1), tiny_model(seed=2)
    own = fingerprint(model)
    assert own != fingerprint(other)
    model.net.to(torch.bfloat16)
    assert fingerprint(model) == own


def test_floor_and_budget_exclude_each_other_and_the_best_is_always_taken():
    with pytest.raises(InputError, match="floor and budget cannot be used together"):
        Calibrated(floor=0.9, budget=0.1)
    view = one_row([0.2, 0.9, 0.5], margin=[0.1, 0.8, 0.3], entropy=[1.0, 0.1, 0.7])
    fitted = random_rule()
    assert len(chosen(Calibrated(fitted=fitted, floor=2.0), view)) == 1
    assert len(chosen(Calibrated(fitted=fitted, budget=0.0), view)) == 1
    assert len(chosen(Calibrated(fitted=fitted, floor=0.0), view)) == 3


@pytest.mark.parametrize("budget", [0.0, 0.1, 0.5, 1.0, 9.0])
def test_the_budget_is_its_slow_transcription(budget):
    random = torch.Generator().manual_seed(0)
    for _ in range(50):
        risk = (torch.rand(1, 7, generator=random) * 8).round() / 8
        masked = torch.rand(1, 7, generator=random) < 0.7
        expected = ref_budget(risk[0].tolist(), masked[0].tolist(), budget)
        assert within_budget(risk, masked, budget)[0].tolist() == expected


def test_what_a_careful_run_commits_at_once_costs_no_budget():
    """Three sure masks are committed whatever the rule says, and the doubtful ones within the budget."""
    view = one_row([0.2, 0.99, 0.95, 0.97, 0.5], margin=[0.1] * 5, entropy=[1.0] * 5)
    assert set(chosen(Calibrated(fitted=random_rule(), budget=0.0), view)) == {1, 2, 3}
    assert set(chosen(Calibrated(fitted=random_rule(), floor=2.0), view)) == {1}
