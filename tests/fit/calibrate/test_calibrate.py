"""Fitting on a model of random weights: visits, labels, resuming, and a rule that decodes."""

import json

import pytest
import torch

import starr
from starr.decode.strategies.calibrated import Calibrated
from starr.decode.strategies.calibrated.features import SEEN, TOKEN
from starr.errors import InputError
from starr.fit.calibrate import costs, work
from starr.fit.calibrate.costs import BUDGETS, MOST_OWN, SLACK
from starr.fit.calibrate.fit import Recipe, fit, held_out, reliability
from starr.fit.calibrate.prompts import Prompt, task_prompts
from starr.fit.calibrate.sound import until_end
from starr.fit.calibrate.visit import Explorer, Seen, last_events, outcomes, visit
from starr.fit.calibrate.work import CalibrationPlan, calibrate
from starr.model.network.transformer import Transformer
from tests.tiny import tiny_model

PROMPTS = [f"prompt {n}" for n in range(24)]
PLAN = CalibrationPlan(max_tokens=10, batch_size=8, recipe=Recipe(networks=1, epochs=4, hidden=4))


def requests(model, prompts=PROMPTS):
    from starr.api import build_request
    from starr.options import Options

    return [build_request(model, prompt, Options(max_tokens=10, strategy="confidence")) for prompt in prompts]


def explored(model, request, **options):
    """The last event of a row that an explorer decoded, and what was recorded, with what became of it."""
    asked = {"policy": starr.strategy("threshold"), "steps": 0, "later": 99, "prompt": 0} | options
    explorer = Explorer(**asked, ends=model.spec.eos_ids)
    request = request.change(strategy=explorer)
    (event,) = last_events(model, [request], 1)
    return event, explorer.found, list(outcomes(model, request, until_end(event.tokens, model.spec.eos_ids)))


def test_a_label_says_whether_the_proposal_stands_at_the_end():
    """The first state of a careful run: its first proposals against its last canvas, where it is not sure at once."""
    model, (row,) = tiny_model(), requests(tiny_model(), ["ab"])
    careful = starr.generate(model, "ab", strategy="threshold:tau=0.95", max_tokens=10, trace=True)
    _, _, (seen,) = explored(model, row)
    step = careful.trace.steps[0]
    doubtful = [i for i, c in enumerate(step.confidence) if c < 0.95]
    assert len(doubtful) > 0
    assert seen.stood.tolist() == [step.proposal[i] == careful.trace.tokens[i] for i in doubtful]
    assert seen.proposals[:, 3].tolist() == [step.proposal[i] for i in doubtful]
    assert seen.features.shape == (len(doubtful), len(SEEN))
    assert seen.proposals.shape == (len(doubtful), len(TOKEN))


def test_places_are_counted_on_the_canvas_also_in_blocks():
    """In blocks of four the sixth decision of one token a step is in the second block, which begins at place 4."""
    model, (row,) = tiny_model(), requests(tiny_model(), ["ab"])
    policy = starr.strategy("confidence").bind(model)
    event, (seen,), _ = explored(model, row.change(block_length=4), policy=policy, steps=5)
    assert len(seen.places) == 3
    assert all(4 <= place < 8 for place in seen.places)
    assert any(event.tokens[place] == token for place, token in zip(seen.places, seen.proposals, strict=True))


def test_behind_the_end_an_end_of_text_stands_and_nothing_else():
    model = tiny_model()
    end, explorer = model.spec.eos_ids[0], Explorer(starr.strategy("threshold"), 0, 1, model.spec.eos_ids, 0)
    near = torch.zeros(3, len(TOKEN), dtype=torch.int64)
    explorer.found.append(Seen(torch.zeros(3, len(SEEN)), near, [0, 2, 3], [7, end, 7]))
    request = requests(model, ["ab"])[0].change(strategy=explorer)
    (found,) = outcomes(model, request, until_end([7, end, 9, 7], model.spec.eos_ids))
    assert found.stood.tolist() == [True, True, False]


def test_a_proposal_that_would_not_fit_is_harmful_and_another_wording_is_not():
    """At every place of a careful text: the likeliest other token behind it, and the unlikeliest of all."""
    model, (row,) = tiny_model(), requests(tiny_model(), ["ab"])
    text = [7, 9, 11, 13, 15, 17, 19, 21, 23, 25]
    prompt, mask = row.tokens[: row.start], model.spec.mask_id
    with torch.no_grad():
        rows = torch.tensor([[*prompt, *text[:place], *[mask] * (10 - place)] for place in range(10)])
        logits = model.net.head(model.net(rows)).float()
    ranked = [logits[place, row.start + place].argsort(descending=True).tolist() for place in range(10)]
    good = [next(token for token in order if token not in (mask, text[place])) for place, order in enumerate(ranked)]
    bad = [order[-1] for order in ranked]
    explorer = Explorer(starr.strategy("threshold"), 0, 1, model.spec.eos_ids, 0)
    blank = torch.zeros(10, len(SEEN)), torch.zeros(10, len(TOKEN), dtype=torch.int64)
    explorer.found.extend(Seen(*blank, list(range(10)), tokens) for tokens in (good, bad, text))
    near, far, same = outcomes(model, row.change(strategy=explorer), text)
    assert not near.harmful.any()
    assert far.harmful.float().mean() > 0.5
    assert same.stood.all()
    assert not same.harmful.any()


def test_rows_visited_together_tell_what_they_tell_alone():
    model, policies = tiny_model(), [starr.strategy("threshold:tau=0.5"), starr.strategy("starr")]
    many, one = (
        sorted(visit(model, requests(model), policies, rows=rows, seed=1, watch=lambda: None), key=lambda v: v.prompt)
        for rows in (8, 1)
    )
    assert [v.prompt for v in many] == [v.prompt for v in one]
    assert len(many) > len({v.prompt for v in many}), "a row tells of two states"
    for a, b in zip(many, one, strict=True):
        assert torch.equal(a.stood, b.stood)
        assert torch.equal(a.harmful, b.harmful)
        assert torch.equal(a.proposals, b.proposals)
        assert torch.allclose(a.features, b.features, atol=1e-3)


def test_the_policy_is_followed_for_so_many_steps():
    """With a policy that commits everything at once, a visit after one step finds nothing left to see."""
    model = tiny_model()
    policy = starr.strategy("threshold:tau=0").bind(model)
    (row,) = requests(model, ["ab"])
    event, found, _ = explored(model, row, policy=policy, steps=1)
    assert event.stats.forwards == 1
    assert found == []


def test_an_interrupted_calibration_goes_on_and_gives_the_same_rule(tmp_path, monkeypatch):
    monkeypatch.setattr(work, "CHUNK", 8)
    model, calls = tiny_model(), []
    whole = calibrate(model, PROMPTS, PLAN)

    def stop() -> None:
        calls.append(1)
        if len(calls) > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrate(model, PROMPTS, PLAN, folder=tmp_path, watch=stop)
    kept = list(tmp_path.glob("round0-*.safetensors"))
    assert 1 <= len(kept) < 3
    again = calibrate(model, PROMPTS, PLAN, folder=tmp_path)
    assert json.dumps(again.to_dict()) == json.dumps(whole.to_dict())
    with pytest.raises(InputError) as caught:
        calibrate(model, [*PROMPTS, "one more"], PLAN, folder=tmp_path)
    assert caught.value.param == "work"


def test_the_estimate_is_within_a_half_of_the_work(monkeypatch):
    """The clock counts the positions that the model computes, so that no other program's work is in it."""
    model, prompts = tiny_model(), [Prompt(f"prompt {n} " * (1 + n % 5), 10 + n % 7) for n in range(100)]
    clock, run_layer = [0], Transformer.run_layer

    def count(net, index, x, *rest):
        clock[0] += x.shape[:-1].numel()
        return run_layer(net, index, x, *rest)

    monkeypatch.setattr(Transformer, "run_layer", count)
    monkeypatch.setattr(costs, "perf_counter", lambda: clock[0])
    said, begin = costs.estimate(model, prompts, 8), clock[0]
    calibrate(model, prompts, PLAN)
    assert 1 / 1.5 < said / (clock[0] - begin) < 1.5


def test_a_rule_fitted_here_decodes_here():
    model = tiny_model()
    rule = calibrate(model, PROMPTS, PLAN)
    assert rule.fitted_on["prompts"] == 24
    assert 0.0 <= rule.scores["reliability"]["error"] <= 1.0
    assert len(rule.scores["budgets"]) == 1 + len(BUDGETS)
    result = starr.generate(model, "ab", strategy=Calibrated(fitted=rule), max_tokens=10)
    assert 1 <= result.stats.forwards <= 10
    with pytest.raises(InputError, match=r"20.*3"):
        calibrate(model, PROMPTS[:3], PLAN)


def test_a_rule_takes_the_largest_budget_that_is_as_sound_as_the_baseline():
    rule = calibrate(tiny_model(), PROMPTS, PLAN)
    baseline, *rows = rule.scores["budgets"]
    sound = [float(row["run"]) for row in rows if row["sound"] >= baseline["sound"] - SLACK]
    assert rule.budget == max((budget for budget in sound if budget <= MOST_OWN), default=BUDGETS[0])


def test_a_block_causal_model_is_calibrated_as_well():
    rule = calibrate(starr.load("bundled-blocks"), task_prompts(["grids"], 20), PLAN)
    assert rule.scores["positions"] > 0


def test_a_separable_label_is_learnt_and_left_out_groups_play_no_part():
    torch.manual_seed(0)
    features, near = torch.randn(4000, len(SEEN)), torch.full((4000, len(TOKEN)), -1)
    near[:, 3] = 0
    stood, prompt = features[:, 1] > 0, torch.arange(4000) % 50
    harmful = ~stood & (features[:, 2] > 0)
    rule = fit(features, near, stood, harmful, prompt, 9, Recipe(networks=1, epochs=20, batch=256))
    stands, harms = (found[0] for found in rule.chances(features[None], near[None]))
    assert ((stands > 0.5) == stood).float().mean() > 0.95
    assert ((harms > 0.5) == harmful)[~stood].float().mean() > 0.95
    blind = fit(features, near, stood, harmful, prompt, 9, Recipe(networks=1, epochs=5, without=("now",)))
    changed = features.clone()
    changed[:, 1] = 99.0
    said = (blind.chances(shown[None], near[None]) for shown in (changed, features))
    for found, expected in zip(*said, strict=True):
        assert torch.equal(found, expected)


def test_what_a_token_does_is_learnt_and_carries_over_to_held_out_prompts():
    """Even tokens always stand, odd ones never, at the same confidence."""
    random = torch.Generator().manual_seed(0)
    features, near = torch.randn(4000, len(SEEN), generator=random), torch.full((4000, len(TOKEN)), -1)
    features[:, SEEN.index("confidence")] = 0.5
    near[:, 3] = torch.randint(0, 40, (4000,), generator=random)
    stood, prompt = near[:, 3] % 2 == 0, torch.arange(4000) % 50
    rule = fit(features, near, stood, ~stood, prompt, 40, Recipe(networks=1, epochs=20, batch=256))
    found = rule.chances(features[None], near[None])[0][0]
    assert ((found > 0.5) == stood)[held_out(prompt)].float().mean() > 0.9


def test_prompts_of_every_kind_are_held_out_where_kinds_come_in_turn():
    prompts = torch.arange(400)
    held = held_out(prompts)
    assert held.float().mean() == 0.2
    for kinds in (2, 3, 4, 5, 10, 20):
        assert len((prompts[held] % kinds).unique()) == kinds


def test_reliability_is_perfect_where_shares_are():
    chance = torch.tensor([0.25] * 4 + [0.75] * 4)
    stood = torch.tensor([True, False, False, False, True, True, True, False])
    assert reliability(chance, stood)["error"] == 0.0
    assert reliability(chance, ~stood)["error"] == 0.5


def test_prompts_of_several_tasks_come_in_turn_each_with_its_canvas():
    found = task_prompts(["word-problems", "grids"], 5)
    assert [prompt.max_tokens for prompt in found] == [128, 32, 128, 32, 128]
    assert [prompt.text for prompt in found[::2]] == [prompt.text for prompt in task_prompts(["word-problems"], 3)]
