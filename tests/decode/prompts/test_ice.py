"""In-place chain of thought: the template, who may be committed when, and how the run ends."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.api import Options, build_request
from starr.decode.prompts.ice import ICES, Ice, allocate
from starr.decode.stops.base import Moment
from starr.decode.view import StepView
from starr.errors import InputError
from tests.tiny import EOS, MASK, Letters, tiny_model

FAMILIES = pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
SMALL = "ice:steps=2,length=6,answer=4,mark=S{}:,lead=#"


def run(model, ice, **options):
    return starr.generate(model, "a prompt", ice=ice, max_tokens=60, trace=True, **{"strategy": "starr"} | options)


def test_the_template_is_frozen_and_the_sections_are_where_they_should_be():
    layout, answer = Ice(steps=2, length=3, answer=2, mark="S{}:", lead="#").layout(Letters().encode, MASK, 60)
    encode, masks = Letters().encode, [MASK]
    expected = encode("S1:") + masks * 3 + encode("\nS2:") + masks * 3 + encode("\n#") + masks * 2
    assert layout.tokens == expected
    assert layout.masked == [token == MASK for token in expected]
    assert answer == len(expected) - 2


@settings(deadline=None, max_examples=60)
@given(total=st.integers(1, 200), sections=st.integers(1, 12), kind=st.sampled_from(["even", "front", "back"]))
def test_allocation_spends_all_and_follows_its_shape(total, sections, kind):
    total = max(total, sections)
    sizes = allocate(total, sections, kind)
    assert sum(sizes) == total
    assert min(sizes) >= 1
    if kind == "even":
        assert max(sizes) - min(sizes) <= 1
    else:
        assert sizes == sorted(sizes, reverse=kind == "front")


def test_allocation_by_example():
    assert [allocate(15, 3, kind) for kind in ("even", "front", "back")] == [[5, 5, 5], [7, 5, 3], [3, 5, 7]]


def test_without_a_length_the_canvas_is_filled():
    model = tiny_model()
    request = build_request(model, "x", Options(ice="ice", max_tokens=70))
    assert request.length == 70
    assert not request.ends


def test_presets_and_text_form():
    assert ICES.parse("ice-sp").threshold == 0.8
    assert ICES.parse("ice-pp").threshold == 0.9
    assert ICES.parse("ice-pp:steps=4,allocation=back").steps == 4


@FAMILIES
@pytest.mark.parametrize("strategy", ["starr", "confidence", "klass"])
def test_thinking_first_then_the_answer_in_one_step(strategy, shift):
    model = tiny_model(shift=shift)
    request = build_request(model, "a prompt", Options(ice=SMALL, max_tokens=60))
    answer = set(range(request.length - 4, request.length))
    result = run(model, SMALL + ",threshold=0.75", strategy=strategy)
    *thinking, last = result.trace.steps
    for record in thinking:
        acted = {i for i, action in enumerate(record.action) if action}
        assert acted
        assert not acted & answer
    assert {i for i, action in enumerate(last.action) if action} == answer
    frozen = [not m for m in request.masked[request.start :]]
    for record in result.trace.steps:
        assert all(action == 0 for action, template in zip(record.action, frozen, strict=True) if template)
    assert result.finish_reason == "stop"


def test_threshold_0_ends_at_once_and_above_1_only_when_thinking_is_done():
    model = tiny_model()
    assert run(model, SMALL + ",threshold=0").stats.forwards == 1
    late = run(model, SMALL + ",threshold=2", strategy="confidence", eos="never")
    assert late.stats.forwards == 12 + 1
    assert late.stats.tokens == 12 + 4


def test_the_run_ends_at_the_first_step_where_the_mean_reaches_the_threshold():
    model = tiny_model()
    result = run(model, SMALL + ",threshold=0.6", strategy="confidence")
    means = []
    for record in result.trace.steps:
        pairs = zip(record.confidence[-4:], record.proposal[-4:], strict=True)
        spoken = [confidence for confidence, token in pairs if token != EOS]
        means.append(sum(spoken) / len(spoken) if spoken else 0.0)
    *before, last = means
    assert all(mean < 0.6 for mean in before)
    assert last >= 0.6 or result.stats.forwards == 13


@pytest.mark.parametrize("cache", ["none", "dkv", "dual", "dkv-greedy", "adaptive"])
def test_remaining_masks_are_dropped_or_filled_but_never_returned(cache):
    model = tiny_model()
    dropped = run(model, SMALL + ",threshold=0", cache=cache, eos="never")
    filled = run(model, SMALL + ",threshold=0,fill=true", cache=cache, eos="never")
    assert dropped.stats.tokens == 4
    assert filled.stats.tokens == 4 + 12
    for result in (dropped, filled):
        assert MASK not in result.tokens
        assert MASK not in result.trace.tokens
        assert result.stats.forwards == 1
    assert len(dropped.tokens) == len(filled.tokens) - 12


def test_max_forwards_leaves_room_for_the_answer():
    result = run(tiny_model(), SMALL + ",threshold=2", max_forwards=3, eos="never")
    assert result.stats.forwards == 3
    assert sum(result.trace.steps[-1].action[-4:]) == 4


def test_the_text_does_not_end_before_its_answer():
    model = tiny_model()
    model.net.lm_head.weight[EOS] *= 4  # wants to end everywhere
    result = run(model, SMALL + ",threshold=2")
    proposed = [{i for i, token in enumerate(record.proposal) if token == EOS} for record in result.trace.steps]
    assert set().union(*proposed) <= {len(result.trace.tokens) - n for n in (1, 2, 3)}
    assert any(proposed)
    assert result.stats.tokens >= 12 + 1


def test_alone_equals_batched():
    model = tiny_model()
    options = {"ice": SMALL + ",threshold=0.7", "max_tokens": 60, "strategy": "starr"}
    prompts = ["a", "a longer prompt", "words"]
    together = starr.generate(model, prompts, **options)
    assert [g.text for g in together] == [starr.generate(model, p, **options).text for p in prompts]


def test_an_answer_of_end_of_text_alone_is_not_sure():
    rule = Ice(answer=2).rule(2)
    flat = torch.ones(1, 4)
    view = StepView(
        tokens=torch.full((1, 4), MASK), masked=torch.ones(1, 4).bool(), frozen=torch.zeros(1, 4).bool(),
        proposal=torch.full((1, 4), EOS), confidence=flat, best=flat, step=torch.tensor([0]), width=torch.tensor([4]),
        windows=torch.tensor([1]), block=torch.tensor([4]),
    )  # fmt: skip
    nowhere = torch.zeros(1, 4).bool()
    now, fresh = [torch.tensor([n]) for n in (0, 9, 0)], torch.tensor([True])
    moments = [Moment(*now, nowhere, *kind) for kind in ((~nowhere, fresh), (nowhere, fresh), (nowhere, ~fresh))]
    assert [bool(rule.judge(view, moment).end) for moment in moments] == [False, True, False]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ice": "ice", "max_tokens": 12}, "max_tokens is 12"),
        ({"ice": "ice:length=50"}, "max_tokens is 64"),
        ({"ice": "ice:answer=0"}, "ice: answer must be within [1"),
        ({"ice": "ice:allocation=middle"}, "must be one of even, front, back"),
        ({"ice": "ice-pq"}, "Did you mean 'ice-"),
        ({"ice": "ice", "block_length": 8}, "block_length shows only part of it"),
        ({"ice": "ice", "strategy": "adablock"}, "adablock moves the end"),
        ({"ice": "ice", "strategy": "daedal"}, "daedal cannot be used: it moves frozen text"),
        ({"ice": "ice", "stop_rule": "eos"}, "no end-of-text ends this canvas"),
        ({"ice": "ice", "cache": "dual", "strategy": "wino"}, "shadow block"),
    ],
)
def test_bad_input_is_one_line(options, words):
    with pytest.raises(InputError) as caught:
        starr.generate(tiny_model(), "prompt", **{"max_tokens": 64} | options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
