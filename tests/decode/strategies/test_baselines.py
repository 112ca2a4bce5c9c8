"""The paper's baselines against slow transcriptions, and what they come to at the ends of their options."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.decode.strategies import strategies, strategy
from starr.decode.strategies.confidence_topk import Confidence
from starr.decode.strategies.dus import Dus, dilated_levels
from starr.decode.strategies.entropy import Entropy
from starr.decode.strategies.factor import Factor
from starr.decode.strategies.margin import Margin
from starr.decode.strategies.origin import Origin
from starr.decode.strategies.random import Random
from starr.decode.strategies.schedule import dream_share, share_of_step
from starr.decode.strategies.threshold import Threshold
from starr.errors import InputError
from tests.decode.strategies.driver import World, compare, play, run, same, steps_to_close, worlds
from tests.decode.strategies.starr.test_closed_forms import view_of
from tests.reference import ref_baselines as ref
from tests.tiny import tiny_model

steps = st.none() | st.integers(1, 30)
quick = settings(deadline=None, max_examples=25)


@quick
@given(st.sampled_from([(Confidence, "confidence"), (Margin, "margin"), (Random, "noise")]), steps, worlds())
def test_scheduled(kind, count, world):
    make, signal = kind
    compare(make(steps=count), lambda: ref.RefScheduled(signal, count), world)


@quick
@given(st.sampled_from([(Confidence, "confidence"), (Margin, "margin"), (Entropy, "entropy")]), steps, worlds())
def test_dreams_schedule(kind, count, world):
    make, signal = kind
    compare(make(steps=count, schedule="dream"), lambda: ref.RefDream(signal, count, 0.001), world)


@quick
@given(steps, worlds())
def test_origin(count, world):
    compare(Origin(steps=count), lambda: ref.RefOrigin(count, 0.001), world)


@pytest.mark.parametrize("make", [Confidence, Margin])
def test_dreams_schedule_is_its_familys_own(make):
    llada, dream = tiny_model(), tiny_model(shift=True)
    assert make(steps=4).bind(dream) == make(steps=4, schedule="dream")
    assert make(steps=4).bind(llada) == make(steps=4), "LLaDA's is the default, and the text form stays short"
    assert make(schedule="llada").bind(dream) == make(schedule="llada")


def test_entropy_is_not_confidence_by_default():
    """Every commit goes by entropy: at its default the schedule gives 0 in the first step, and must not leave it."""
    world = World(3, [12, 9], coarse=False)
    for view, decision in run(Entropy(), world):
        lowest = view.entropy.masked_fill(~view.masked, math.inf).argmin(dim=1)
        assert decision.action.argmax(dim=1).tolist() == lowest.tolist()
        assert decision.action.sum(dim=1).tolist() == [1, 1]


def test_forced_commits_go_by_the_strategys_own_order():
    model = tiny_model()
    run = starr.generate(model, "some prompt", strategy="entropy", max_tokens=16, eos="never", trace=True)
    assert all(record.decided == record.action for record in run.trace.steps)


@quick
@given(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.5]), worlds())
def test_threshold(tau, world):
    compare(Threshold(tau=tau), lambda: ref.RefThreshold(tau, equal=True), world)


@quick
@given(st.sampled_from(["fast_dllm_v2", "llada2", "sdar"]), st.sampled_from([0.0, 0.25, 0.75, 1.0]), steps, worlds())
def test_threshold_of_other_origins(origin, tau, count, world):
    fast = Threshold(tau=tau, origin=origin, steps=count)
    compare(fast, lambda: ref.RefThreshold(tau, quota=None if origin == "fast_dllm_v2" else count or 0), world)


@quick
@given(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 4.0, 13.0]), st.booleans(), worlds())
def test_factor(factor, bug_compatible, world):
    fast = Factor(factor=factor, bug_compatible=bug_compatible)
    compare(fast, lambda: ref.RefFactor(factor, bug_compatible), world)


@quick
@given(st.integers(2, 5), st.sampled_from([0.0, 0.25, 0.5, 1.0]), worlds())
def test_dus(base, skip, world):
    compare(Dus(base=base, skip=skip), lambda: ref.RefDus(base, skip), world)


def test_lladas_schedule_sums_to_the_masks_for_every_length_and_number_of_steps():
    masks = torch.arange(0, 130)[:, None, None]
    count = torch.arange(1, 140)[None, :, None]
    step = torch.arange(0, 140)[None, None, :]
    shares = share_of_step(masks, count, step).masked_fill(step >= count, 0)
    assert torch.equal(shares.sum(dim=2), masks.expand(-1, 139, 1)[..., 0])
    assert bool((shares.diff(dim=2) <= 0).all()), "larger shares first: no step before the last mask is empty"


@pytest.mark.parametrize(("count", "taken"), [(None, [12, 12]), (4, [4, 4]), (5, [5, 5]), (100, [12, 12]), (1, [1, 1])])
def test_steps_taken_by_the_schedule(count, taken):
    world = World(1, [12, 12])
    world.windows[:] = 1
    world.frozen, world.masked = ~world.inside, world.inside.clone()
    assert steps_to_close(Confidence(steps=count), world) == taken


def test_steps_are_shared_among_the_windows():
    world = World(1, [12, 12])
    world.windows[:] = torch.tensor([2, 8])
    world.frozen, world.masked = ~world.inside, world.inside.clone()
    assert steps_to_close(Confidence(steps=6), world) == [3, 1]


def test_dreams_schedule_starts_with_nothing_and_ends_with_two():
    """With as many steps as positions; strategies commit at least one all the same."""
    for length in (4, 16, 256):
        left, counts = torch.tensor([length]), []
        for step in range(length):
            share = dream_share(left, torch.tensor([length]), torch.tensor([step]), 0.001)
            counts.append(int(share))
            left = left - share
        assert counts[0] == 0
        assert counts[-1] == 2
        assert sum(counts) == length


def test_dreams_schedule_without_eps_is_even():
    for length in (1, 7, 64, 255):
        left = torch.tensor([length])
        for step in range(length):
            share = dream_share(left, torch.tensor([length]), torch.tensor([step]), 0.0)
            assert int(share) == 1
            left = left - share


@quick
@given(worlds(), st.integers(0, 2**31))
def test_threshold_and_factor_at_their_ends(world, seed):
    widths = world.widths.tolist()

    def fresh():
        return World(seed, widths)

    one_each = play(Confidence(), fresh())
    assert same(play(Threshold(tau=1.5), fresh()), one_each)
    assert same(play(Factor(factor=0.0), fresh()), one_each)
    everything = play(Threshold(tau=0.0), fresh())
    assert all(bool((action.sum(1) > 0).all()) for action in everything)
    assert same(play(Factor(factor=20.0), fresh()), everything)


def test_factor_in_numbers():
    view = view_of([0.9, 0.5, 0.8, 0.95])  # sorted .95 .9 .8 .5: (n + 1)(1 - c) = .1 .3 .8 2.5
    chosen = {f: Factor(factor=f).decide(view, {})[0].action[0].tolist() for f in (0.2, 0.5, 1.0, 3.0)}
    assert chosen == {0.2: [0, 0, 0, 1], 0.5: [1, 0, 0, 1], 1.0: [1, 0, 1, 1], 3.0: [1, 1, 1, 1]}
    released = Factor(factor=1.0, bug_compatible=True).decide(view, {})[0].action[0].tolist()
    assert released == [1, 1, 1, 1], "only the last rank fails, and the public code then commits it too"
    pair = view_of([0.1, 0.05])
    assert Factor(factor=0.0, bug_compatible=True).decide(pair, {})[0].action[0].tolist() == [1, 1]
    assert Factor(factor=0.0).decide(pair, {})[0].action[0].tolist() == [1, 0]


@pytest.mark.parametrize("base", [2, 3, 4])
def test_dus_levels_partition_every_width(base):
    widths = torch.arange(1, 70)
    level = dilated_levels(widths, 70, base)
    for row, width in zip(level.tolist(), widths.tolist(), strict=True):
        assert row[width:] == [-1] * (70 - width)
        expected = ref.levels(width, base)
        assert [[i for i in range(width) if row[i] == k] for k in range(len(expected))] == expected
        assert sorted(i for positions in expected for i in positions) == list(range(width))


def test_dus_in_numbers():
    assert dilated_levels(torch.tensor([8]), 8, 2).tolist() == [[0, 2, 1, 2, 0, 2, 1, 2]]
    for power in range(1, 9):
        assert int(dilated_levels(torch.tensor([2**power]), 2**power, 2).max()) + 1 == math.log2(2**power)


def test_dus_delays_what_it_skips():
    dus, view = Dus(), view_of([0.2, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9])
    decision, carry = dus.decide(view, dus.begin(view))
    assert decision.action[0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
    unsure = view_of([0.2] * 8)
    decision, carry = dus.decide(unsure, carry)
    assert decision.action.sum() == 0
    decision, carry = dus.decide(unsure, carry)
    assert decision.action.sum() == 8


def test_dus_passes_over_a_level_of_template_tokens_only():
    frozen = torch.tensor([[True, False, False, False] * 2])  # the whole first level
    view = replace(view_of([0.9, 0.9, 0.2, 0.9, 0.9, 0.9, 0.9, 0.9]), frozen=frozen, masked=~frozen)
    decision, carry = Dus().decide(view, Dus().begin(view))
    assert decision.action[0].tolist() == [0, 0, 0, 0, 0, 0, 1, 0]
    assert Dus().decide(view, carry)[0].action[0].tolist() == [0, 1, 1, 1, 0, 1, 1, 1], "no waiting longer"


def test_random_is_the_noise_and_nothing_else():
    world = World(3, [10])
    view = world.view()
    decision, _ = Random().decide(view, Random().begin(view))
    assert int(decision.action[0].argmax()) == int(view.noise[0].masked_fill(~view.masked[0], -1).argmax())


def test_names_papers_and_signals():
    known = {entry.name: entry for entry in strategies()}
    mine = ("confidence", "random", "margin", "entropy", "threshold", "factor", "dus", "starr")
    assert set(mine) <= set(known)
    assert all("arXiv" in known[name].paper and known[name].help for name in mine)
    assert [name for name in mine if known[name].kind().revokes()] == ["starr"]
    assert strategy("confidence:steps=none") == Confidence()


@pytest.mark.parametrize(
    "text", ["confidence:steps=0", "dus:base=1", "dus:skip=1.5", "factor:factor=-1", "entropy:eps=2", "threshold:tau=x"]
)
def test_wrong_options_are_refused(text):
    with pytest.raises(InputError):
        strategy(text)
