"""Stop rules beside any strategy: Prophet's early commit and masks behind an end-of-text."""

from __future__ import annotations

import pytest
import torch

import starr
from starr.decode.stops import stop_rules
from starr.decode.stops.base import Moment, Whole
from starr.decode.stops.prophet import Prophet
from starr.decode.view import StepView
from starr.errors import InputError
from tests.tiny import EOS, MASK, tiny_model


def view_of(best: list[float], masked: list[bool]) -> StepView:
    top, flags = torch.tensor([best]), torch.tensor([masked])
    width = len(best)
    return StepView(
        tokens=torch.where(flags, MASK, 9), masked=flags, frozen=torch.zeros_like(flags),
        proposal=torch.full((1, width), 7), confidence=top, best=top, step=torch.tensor([0]),
        width=torch.tensor([width]), windows=torch.tensor([1]), block=torch.tensor([width]),
    )  # fmt: skip


def moment_of(total: int, planned: int, gap: list[float], masked: list[bool]) -> Moment:
    """A canvas of one window, whose gaps are given."""
    flags, row = torch.tensor([masked]), torch.arange(len(masked))[None]
    nowhere, (now, limit, offset) = torch.zeros_like(flags), (torch.tensor([n]) for n in (total, planned, 0))
    whole = Whole(limit, row, ~nowhere, flags, torch.tensor([gap]))
    return Moment(now, limit, offset, nowhere, nowhere, ~nowhere.any(dim=1), whole)


@pytest.mark.parametrize(
    ("gap", "total", "ends"),
    [(7.4, 0, False), (7.6, 0, True), (5.1, 2, False), (5.1, 3, True), (4.9, 5, False), (2.6, 5, False),
     (2.6, 6, True), (2.4, 9, False)],
)  # fmt: skip
def test_prophets_bars_fall_with_the_time(gap, total, ends):
    """Of ten steps the first three (0.1 to 0.3) need 7.5, up to the sixth 5.0, then 2.5."""
    masked = [True, True, False]
    verdict = Prophet().judge(view_of([0.9] * 3, masked), moment_of(total, 10, [gap, gap, 0.0], masked))
    assert bool(verdict.end) is ends
    assert verdict.commit.tolist() == [[True, True, False]]


def test_prophet_looks_at_the_answer_only():
    """At all of it, masked or held."""
    gap, masked = [9.0, 9.0, 0.1, 9.0], [True, True, True, False]
    for start, length, ends in ((0, 2, True), (2, 1, False), (1, 2, False), (3, 1, True), (50, 5, False)):
        rule = Prophet(start=start, length=length)
        assert bool(rule.judge(view_of([0.9] * 4, masked), moment_of(0, 10, gap, masked)).end) is ends


@pytest.mark.parametrize("cache", ["none", "dual"])
def test_prophet_sees_the_answer_from_another_block(cache):
    """A canvas of blocks whose answer lies in the last one ends as soon as the same canvas without blocks would."""
    model, forwards = tiny_model(sharpness=30.0), []
    for blocks in (None, 6):
        rule = "prophet:start=20,length=4,early=3,middle=3,late=3"
        given = {"max_tokens": 24, "block_length": blocks, "eos": "never", "stop_rule": rule, "cache": cache}
        forwards.append(starr.generate(model, "prompt", strategy="confidence", **given).stats.forwards)
    assert forwards[1] <= forwards[0] + 1 < 24, "what lies outside the window costs one more"


@pytest.mark.parametrize("strategy", ["confidence", "starr", "klass"])
@pytest.mark.parametrize("cache", ["none", "dual"])
@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
def test_prophet_ends_a_run_early_without_a_mask(strategy, cache, shift):
    model = tiny_model(shift=shift)
    given = {"strategy": strategy, "cache": cache, "max_tokens": 24, "eos": "never"}
    plain = starr.generate(model, "prompt", **given)
    early = starr.generate(model, "prompt", stop_rule="prophet:early=99,middle=0", **given)
    blocks = starr.generate(model, "prompt", stop_rule="prophet:early=0", block_length=8, **given)
    assert early.stats.forwards == min(plain.stats.forwards, 8)  # 8 / 24 is the first not below 0.33
    assert blocks.stats.forwards == 2 - (strategy == "klass")  # the window at once, then all that is behind it
    for result in (early, blocks):
        assert MASK not in result.tokens
        assert len(result.tokens) == 24


def eos_model():
    """Every position proposes end-of-text where its state is like that of the prompt's end."""
    model = tiny_model()
    model.net.lm_head.weight[EOS] *= 3
    return model


def test_nothing_is_decoded_behind_an_end_of_text():
    """And the rule never takes more forwards; on some prompt it takes fewer."""
    saved = 0
    for prompt in ("a", "bb", "ccc", "dddd", "words", "more words"):
        given = {"strategy": "confidence", "max_tokens": 24, "trace": True}
        plain = starr.generate(eos_model(), prompt, **given)
        early = starr.generate(eos_model(), prompt, stop_rule="eos", **given)
        for record in early.trace.steps:
            held_end = [i for i, token in enumerate(record.tokens) if token == EOS]
            if held_end:
                assert not any(record.action[held_end[0] :])
        assert early.stats.forwards <= plain.stats.forwards
        saved += plain.stats.forwards - early.stats.forwards
    assert saved > 0


def test_rows_with_other_rules_share_a_batch():
    from starr.api import Options, build_request, run_all

    model = eos_model()
    rules = ["none", "eos", "prophet:early=3,middle=2,late=1", "eos+prophet"]
    requests = [build_request(model, "some prompt", Options(stop_rule=rule, max_tokens=20)) for rule in rules]
    together = [g.tokens for g in run_all(model, requests, 4)]
    assert together == [run_all(model, [r], 1)[0].tokens for r in requests]


def test_text_forms():
    assert stop_rules("none") == stop_rules("") == stop_rules(()) == ()
    assert [r.name for r in stop_rules("eos+prophet:start=3")] == ["eos", "prophet"]
    assert stop_rules(Prophet()) == stop_rules(["prophet"]) == (Prophet(),)
    with pytest.raises(InputError, match="Did you mean 'prophet'"):
        stop_rules("prophets")
    with pytest.raises(InputError, match="prophet: length must be within"):
        stop_rules("prophet:length=0")
