"""Saber against its slow transcription, and its bounds."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.decode.decide import fit
from starr.decode.strategies.saber import Saber
from tests.decode.strategies.driver import World, closes_in_time, compare, play, worlds
from tests.decode.strategies.views import one_row
from tests.reference.ref_saber import RefSaber
from tests.tiny import MASK, tiny_model

OPTIONS = st.fixed_dictionaries({"least": st.integers(1, 6), "backtrack": st.integers(1, 8)})


@settings(deadline=None, max_examples=80)
@given(worlds(), OPTIONS)
def test_equals_the_slow_transcription(world, options):
    compare(Saber(**options), lambda: RefSaber(**options), world, steps=16)


@settings(deadline=None, max_examples=40)
@given(worlds(), OPTIONS)
def test_a_window_closes_within_its_width(world, options):
    assert closes_in_time(Saber(**options), world)


@settings(deadline=None, max_examples=40)
@given(worlds(), OPTIONS)
def test_every_step_commits_more_than_it_revokes(world, options):
    for action in play(Saber(**options), world):
        assert bool(((action == 1).sum(1) > (action == 2).sum(1)).all())


def test_threshold_is_one_at_first_and_the_mean_of_commits_of_all_windows_later():
    strategy, world = Saber(least=1, backtrack=8), World(0, [4])
    world.frozen = torch.tensor([[False, False, False, False, True]])
    world.masked = ~world.frozen
    view = replace(world.view(), confidence=torch.tensor([[0.75, 0.5, 0.25, 0.125, 0.0]]))
    decision, carry = strategy.decide(view, strategy.begin(view))
    assert decision.threshold[0, 0] == 1.0
    assert decision.action[0].tolist() == [1, 0, 0, 0, 0]
    decision, carry = strategy.decide(view, carry)
    assert decision.threshold[0, 0] == 0.75


def test_earlier_blocks_may_be_taken_back():
    """The window reaches from the canvas's start to the block's end, and nothing settles before the end."""
    model, given = tiny_model(), {"strategy": "saber", "max_tokens": 24, "block_length": 6, "eos": "never"}
    reached = 0
    for prompt in ("a prompt", "b", "another one"):
        run = starr.generate(model, prompt, trace=True, **given)
        assert {step.window[0] for step in run.trace.steps} == {0}
        assert [e for _, e in dict.fromkeys(step.window for step in run.trace.steps)] == [6, 12, 18, 24]
        for step in run.trace.steps:
            reached += sum(act == 2 and at < step.window[1] - 6 for at, act in enumerate(step.action))
        assert run.stats.forwards <= 24
        assert MASK not in run.tokens
        assert [event.text for event in starr.stream(model, prompt, **given)][:-1] == [""] * (run.stats.forwards - 1)
    assert reached > 0


def test_what_a_new_block_brings_is_the_last_to_be_taken_back():
    """Its positions were not looked at before, so nothing is known to have fallen; the same in the transcription."""
    strategy, reference = Saber(least=2, backtrack=8), RefSaber(2, 8)
    first, second = one_row([0.5, 0.5]), one_row([0.9, 0.9, 0.3, 0.3, 0.1], held=(0, 1))
    _, carry = strategy.decide(first, strategy.begin(first))
    decision, _ = strategy.decide(second, {name: fit(old, 5) for name, old in carry.items()})
    assert decision.action[0].tolist() == [2, 0, 1, 1, 0], "0.9 - 0.5 is more than 0.3 - 0, which is not looked at"
    said = [reference.step(SimpleNamespace(width=view.masked.shape[1], **lists_of(view))) for view in (first, second)]
    assert said == [[1, 1], [2, 0, 1, 1, 0]]


def lists_of(view):
    return {name: getattr(view, name)[0].tolist() for name in ("masked", "held", "confidence", "best")}
