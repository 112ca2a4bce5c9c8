"""Stop rules beside any strategy: Prophet's early commit and masks behind an end-of-text."""

from __future__ import annotations

import math

import pytest
import torch

import starr
from starr.errors import InputError
from starr.stop import Moment, Prophet, stop_rules
from starr.strategy.base import StepView
from tests.tiny import EOS, MASK, tiny_model


def view_of(best: list[float], second: list[float], masked: list[bool]) -> StepView:
    top, flags = torch.tensor([best]), torch.tensor([masked])
    width = len(best)
    return StepView(
        tokens=torch.where(flags, MASK, 9), masked=flags, frozen=torch.zeros_like(flags),
        proposal=torch.full((1, width), 7), confidence=top, best=top, step=torch.tensor([0]),
        width=torch.tensor([width]), windows=torch.tensor([1]), block=torch.tensor([width]),
        margin=top - torch.tensor([second]),
    )  # fmt: skip


def moment_of(total: int, limit: int, offset: int = 0, width: int = 3) -> Moment:
    nowhere = torch.zeros(1, width).bool()
    return Moment(*(torch.tensor([n]) for n in (total, limit, offset)), nowhere, nowhere)


@pytest.mark.parametrize(
    ("gap", "total", "ends"),
    [(7.4, 0, False), (7.6, 0, True), (5.1, 2, False), (5.1, 3, True), (4.9, 5, False), (2.6, 5, False),
     (2.6, 6, True), (2.4, 9, False)],
)  # fmt: skip
def test_prophets_bars_fall_with_the_time(gap, total, ends):
    """Of ten steps the first three (0.1 to 0.3) need 7.5, up to the sixth 5.0, then 2.5."""
    first = 0.9
    view = view_of([first] * 3, [first * math.exp(-gap)] * 3, [True, True, False])
    verdict = Prophet().judge(view, moment_of(total, 10))
    assert bool(verdict.end) is ends
    assert verdict.commit.tolist() == [[True, True, False]]


def test_prophet_looks_at_the_answer_only():
    view = view_of([0.9, 0.9, 0.5], [0.0001, 0.0001, 0.49], [True] * 3)
    for start, offset, ends in ((0, 0, True), (2, 0, False), (10, 10, True), (12, 10, False), (50, 0, False)):
        rule = Prophet(start=start, length=2 if start in (0, 10) else 1)
        assert bool(rule.judge(view, moment_of(0, 10, offset)).end) is ends


@pytest.mark.parametrize("strategy", ["confidence", "starr", "klass"])
@pytest.mark.parametrize("cache", ["none", "dual"])
@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
def test_prophet_ends_a_run_early_without_a_mask(strategy, cache, shift):
    model = tiny_model(shift=shift)
    given = {"strategy": strategy, "cache": cache, "max_tokens": 24, "eos": "never"}
    plain = starr.generate(model, "prompt", **given)
    early = starr.generate(model, "prompt", stop="prophet:early=99,middle=0", **given)
    blocks = starr.generate(model, "prompt", stop="prophet:early=0", block_length=8, **given)
    assert early.stats.forwards == min(plain.stats.forwards, 8)  # 8 / 24 is the first not below 0.33
    assert blocks.stats.forwards == 2  # the block at once, then all that is behind it
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
        early = starr.generate(eos_model(), prompt, stop="eos", **given)
        for record in early.trace.steps:
            held_end = [i for i, token in enumerate(record.tokens) if token == EOS]
            if held_end:
                assert not any(record.action[held_end[0] :])
        assert early.stats.forwards <= plain.stats.forwards
        saved += plain.stats.forwards - early.stats.forwards
    assert saved > 0


def test_rows_with_other_rules_share_a_batch():
    from starr.api import Options, request_of, run_all

    model = eos_model()
    rules = ["none", "eos", "prophet:early=3,middle=2,late=1", "eos+prophet"]
    requests = [request_of(model, "some prompt", Options(stop=rule, max_tokens=20)) for rule in rules]
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
