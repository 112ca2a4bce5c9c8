from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies import strategy
from starr.decode.strategies.edit import Edit
from starr.decode.strategies.threshold import Threshold
from tests.decode.strategies.driver import World, compare, play, same, worlds
from tests.decode.strategies.stateless import Stateless
from tests.reference.ref_edit import edit

BARS = st.sampled_from([0.0, 0.25, 0.5, 0.7, 0.9, 0.95, 1.0, 1.5])


@settings(deadline=None, max_examples=60)
@given(worlds(), BARS, BARS)
def test_equals_reference(world, tau, bar):
    options = {"tau": tau, "edit": bar}
    compare(Edit(**options), lambda: Stateless(edit, **options), world)


def test_without_edits_it_is_a_threshold():
    widths = [12, 3, 8]
    fine = [World(2, widths, coarse=False) for _ in range(2)]  # off the grid of ties > and >= are the same
    assert same(play(Edit(tau=0.9, edit=1.0), fine[0]), play(Threshold(tau=0.9), fine[1]))


def test_presets():
    assert strategy("edit:preset=speed") == Edit(tau=0.5, edit=0.0)
    assert strategy("edit:preset=quality,edit=0.6") == Edit(tau=0.7, edit=0.6)
