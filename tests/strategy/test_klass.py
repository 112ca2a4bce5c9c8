"""KLASS against its slow transcription; its ready path waits for a full history."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from starr.strategy import strategy
from starr.strategy.klass import Klass
from tests.reference.ref_klass import RefKlass
from tests.strategy.driver import compare, run, worlds

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
