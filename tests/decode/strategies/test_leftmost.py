"""DMax's commit rule: a run of sure masks from the left."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.leftmost import Leftmost
from tests.decode.strategies.driver import compare, worlds
from tests.decode.strategies.views import chosen, one_row
from tests.reference.ref_profile import RefLeftmost


@settings(deadline=None, max_examples=40)
@given(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.5]), worlds())
def test_leftmost_is_its_transcription(tau, world):
    compare(Leftmost(tau=tau), lambda: RefLeftmost(tau), world)


def test_a_held_token_does_not_end_the_run():
    view = one_row([0.9, 0.1, 0.8, 0.4, 0.99], held=(1,))
    assert chosen(Leftmost(tau=0.5), view) == [0, 2]
    assert chosen(Leftmost(tau=0.8), view) == [0, 2], "equality is enough"
    assert chosen(Leftmost(tau=0.95), view) == [0], "the leftmost is always committed"
    assert chosen(Leftmost(tau=0.0), view) == [0, 2, 3, 4]
