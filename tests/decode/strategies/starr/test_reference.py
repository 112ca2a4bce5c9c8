"""STaRR's thresholds, decisions and labels against the slow transcription, over random trajectories."""

from __future__ import annotations

from dataclasses import fields, replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.starr import Starr
from starr.decode.view import Decision, StepView
from tests.decode.strategies.driver import GRID, World, carried, legal, row_of
from tests.reference.ref_starr import RefStarr


class Walk(World):
    """Confidences that drift, on the fine grid; ``meddle`` changes some decisions, as ``enforce`` does."""

    def __init__(self, seed: int, widths: list[int], meddle: bool) -> None:
        super().__init__(seed, widths, coarse=False)
        self.meddle = meddle
        self.level = self.uniform(*self.size)
        self.own = self.uniform(*self.size)

    def drift(self, level: torch.Tensor) -> torch.Tensor:
        moved = level + 0.3 * (self.uniform(*self.size) - 0.5)
        jumped = torch.where(self.uniform(*self.size) < 0.1, self.uniform(*self.size), moved)
        return ((jumped / GRID).round() * GRID).clamp(0, 1)

    def view(self) -> StepView:
        self.level, self.own = self.drift(self.level), self.drift(self.own)
        view = super().view()
        return replace(view, best=self.level, confidence=torch.where(view.masked, self.level, self.own))

    def apply(self, decision: Decision, view: StepView) -> torch.Tensor:
        if self.meddle:
            extra = view.masked & (self.uniform(*self.size) < 0.1)
            stopped = (decision.action == 2) & (self.uniform(*self.size) < 0.5)
            action = torch.where(extra, 1, torch.where(stopped, 0, decision.action))
            decision = replace(decision, action=action.to(torch.int8))
        return super().apply(decision, view)


shares = st.lists(st.sampled_from(["0", "0.3", "0.5", "0.6", "1"]), min_size=3, max_size=3).map("/".join)
options = st.builds(
    Starr,
    temporal_window=st.integers(1, 10), spatial_window=st.integers(1, 10), scale=st.sampled_from([0.5, 1.0, 2.0, 3.0]),
    warmup_threshold=st.sampled_from([0.4, 0.9, 0.95]), blend=st.just("0.6/0.5/0.6") | shares,
    fast_steps=st.integers(0, 20), fast_margin=st.sampled_from([0.0, 0.1, 0.4]),
    slow_margin=st.sampled_from([0.0, 0.1, 0.4]), patience=st.integers(1, 4),
    left_pad=st.sampled_from([0.0, 0.5, 1.0]), right_pad=st.sampled_from([0.0, 0.5, 1.0]),
    temporal=st.booleans(), spatial=st.booleans(), responsive=st.booleans(),
    variance=st.sampled_from(["signed", "positive", "absolute"]), deviance=st.sampled_from(["signed", "absolute"]),
    held_confidence=st.sampled_from(["best", "own"]),
)  # fmt: skip


def agree(starr: Starr, world: World, steps: int) -> int:
    """Assert that both say the same at every step; how many rows' steps were compared.

    A row with a comparison too close to call in float32 is left alone until its next window.
    """
    references = [RefStarr(starr) for _ in world.widths]
    unsure, compared, carry = [False] * len(references), 0, None
    for _ in range(steps):
        view = world.view()
        decision, carry = starr.decide(view, carried(starr, view, carry))
        assert legal(decision, view)
        for index, reference in enumerate(references):
            row = row_of(view, index)
            if row.step == 0:
                reference.open(row)
                unsure[index] = False
            said = reference.step(row)
            unsure[index] |= said.tie
            for i in range(row.width):
                assert row.frozen[i] or abs(decision.threshold[index, i].item() - said.threshold[i]) < 1e-5
            if not unsure[index]:
                check(decision, index, said.action, said.label)
                compared += 1
        world.apply(decision, view)
    return compared


def check(decision: Decision, index: int, action: list[int], label: list[int]) -> None:
    assert decision.action[index, : len(action)].tolist() == action
    if decision.label is not None:
        assert decision.label[index, : len(label)].tolist() == label


@settings(deadline=None, max_examples=100)
@given(options, st.lists(st.integers(1, 14), min_size=1, max_size=4), st.integers(0, 2**31), st.booleans())
def test_any_options_over_ragged_blocks(starr, widths, seed, meddle):
    agree(starr, Walk(seed, widths, meddle), steps=20)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 10), st.integers(1, 10), st.integers(0, 2**31))
def test_whole_canvas_with_the_papers_settings(temporal_window, spatial_window, seed):
    starr = Starr(temporal_window=temporal_window, spatial_window=spatial_window)
    agree(starr, Walk(seed, [48], meddle=True), steps=24)


def test_few_steps_are_too_close_to_compare():
    assert sum(agree(Starr(), Walk(seed, [16], meddle=True), steps=20) for seed in range(5)) > 80


def test_the_trajectories_reach_every_action_and_both_labels():
    """The comparisons above would prove little if the world never did these things."""
    actions, labels = set(), set()
    for seed in range(20):
        starr, world, carry = Starr(fast_margin=0.4), Walk(seed, [12, 5], meddle=True), None
        for _ in range(20):
            view = world.view()
            decision, carry = starr.decide(view, carried(starr, view, carry))
            actions |= set(decision.action.flatten().tolist())
            labels |= set(decision.label.flatten().tolist())
            world.apply(decision, view)
    assert actions == {0, 1, 2}
    assert labels == {0, 1, 2}


def test_a_row_alone_is_the_row_in_a_ragged_batch_bit_for_bit():
    wide = Walk(7, [9, 14, 3, 14], meddle=False)
    starr, carry, alone = Starr(), None, [None] * 4
    for _ in range(16):
        view = wide.view()
        decision, carry = starr.decide(view, carried(starr, view, carry))
        for index, width in enumerate(view.width.tolist()):
            part = narrowed(view, index, width)
            said, alone[index] = starr.decide(part, carried(starr, part, alone[index]))
            assert torch.equal(said.threshold[0], decision.threshold[index, :width])
            assert torch.equal(said.action[0], decision.action[index, :width])
        wide.apply(decision, view)


def narrowed(view: StepView, index: int, width: int) -> StepView:
    """One row of a view without padding; its windows and block differ, because STaRR must not look at them."""
    given = {f.name: getattr(view, f.name) for f in fields(StepView) if f.name != "extras"}
    cut = {name: value[index : index + 1] for name, value in given.items() if value is not None}
    cut = {name: value[:, :width] if value.dim() > 1 else value for name, value in cut.items()}
    return StepView(**cut | {"windows": cut["windows"] + 3, "block": cut["block"] * 2})
