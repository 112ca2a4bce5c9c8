"""KLASS against its slow transcription; its ready path waits for a full history."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.decode.strategies import strategy
from starr.decode.strategies.klass import Klass
from tests.decode.strategies.driver import World, compare, run, worlds
from tests.reference.ref_klass import RefKlass
from tests.tiny import tiny_model

OPTIONS = st.fixed_dictionaries(
    {
        "tau": st.integers(2, 17).map(lambda n: n / 16),
        "kappa": st.sampled_from([0.0, 0.001, 0.015, 0.3, 3.0, 10.0]),
        "history": st.integers(1, 4),
        "pick": st.sampled_from(["all", "confident", "steady"]),
        "fallback": st.integers(1, 3),
    }
)


@settings(deadline=None, max_examples=80)
@given(worlds(), OPTIONS)
def test_equals_the_slow_transcription(world, options):
    compare(Klass(**options), lambda: RefKlass(**options), world)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31), st.lists(st.integers(1, 12), min_size=1, max_size=3), st.integers(1, 6), OPTIONS)
def test_equals_the_slow_transcription_in_blocks(seed, widths, block, options):
    compare(Klass(**options), lambda: RefKlass(**options), World(seed, widths, block=block))


def test_history_goes_on_across_blocks():
    """Blocks behind the first one have their history when they open, so a run in blocks needs fewer forwards."""
    model, form = tiny_model(), "klass:tau=0,kappa=10,history=3"
    given = {"strategy": form, "max_tokens": 24, "block_length": 6, "eos": "never", "trace": True}
    run = starr.generate(model, "a prompt", **given)
    commits = [[i for i, act in enumerate(step.action) if act == 1] for step in run.trace.steps]
    assert [len(places) for places in commits] == [1, 1, 1, 3, 1, 1, 4, 1, 1, 4, 1, 1, 4], (
        "the first block waits one more"
    )
    assert all(places[0] // 6 == places[-1] // 6 for places in commits)


@settings(deadline=None, max_examples=30)
@given(worlds(), st.integers(1, 4))
def test_nothing_is_ready_before_the_history_is_full(world, history):
    waited, later = [], []
    for view, decision in run(Klass(tau=0.0, kappa=10.0, history=history), world):
        number = decision.action.sum(1)
        waited += number[view.step < history].tolist()
        later += (number == view.masked.sum(1))[view.step >= history].tolist()
    assert set(waited) == {1}
    assert all(later), "with a kappa that everything passes, all masks are ready once the history is full"


def test_presets():
    assert strategy("klass:preset=humaneval") == Klass(tau=0.9, kappa=0.01)
    assert strategy("klass:preset=gsm8k") == Klass()
