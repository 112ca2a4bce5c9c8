"""Features against their slow transcription, over ragged rows at different steps of different windows."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.calibrated.features import (
    GROUPS,
    NAMES,
    SEEN,
    features_of,
    no_past,
    proposals_near,
    remember,
    with_habits,
)
from starr.decode.strategies.threshold import Threshold
from tests.decode.strategies.driver import World, row_of
from tests.reference.ref_calibrated import RefFeatures

ENDS = (2, 5)
HABITS = torch.linspace(-1.0, 1.0, 7)  # tokens from 7 on have none


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 9), min_size=1, max_size=3), st.booleans())
def test_features_are_their_slow_transcription(seed, widths, coarse):
    world = World(seed, widths, coarse)
    references = [RefFeatures(list(ENDS), HABITS.tolist()) for _ in widths]
    carry = None
    for _ in range(5):
        view = world.view()
        fresh = no_past(view)
        opened = view.step == 0
        if carry is not None:
            wide = {name: opened.view(-1, *[1] * (old.dim() - 1)) for name, old in carry.items()}
            fresh = {name: torch.where(wide[name], fresh[name], old) for name, old in carry.items()}
        found = with_habits(features_of(view, fresh, ENDS), proposals_near(view), HABITS)
        assert found.isfinite().all()
        for index, width in enumerate(widths):
            if bool(opened[index]):
                references[index] = RefFeatures(list(ENDS), HABITS.tolist())
            for place, expected in enumerate(references[index].step(row_of(view, index))):
                for name, value in expected.items():
                    assert abs(float(found[index, place, NAMES.index(name)]) - value) < 1e-3, (name, place)
            assert found.shape[1] >= width
        carry = remember(view, fresh)
        world.apply(Threshold(tau=0.9).decide(view, {})[0], view)


def test_every_feature_has_one_group():
    assert sorted(name for group in GROUPS.values() for name in group) == sorted(NAMES)
    assert len(set(NAMES)) == len(NAMES)
    assert NAMES[: len(SEEN)] == SEEN
