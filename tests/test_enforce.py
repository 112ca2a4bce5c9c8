"""The safety rules against random decisions, and each by hand."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.enforce import enforce
from starr.strategy.base import Action, Decision, StepView

K, C, R, E = (int(a) for a in Action)


def view_of(masked: list[bool], frozen: list[bool], confidence: list[float]) -> StepView:
    row = torch.tensor([confidence])
    zero = torch.zeros(1, dtype=torch.int64)
    return StepView(
        tokens=zero[None].expand(1, len(masked)),
        masked=torch.tensor([masked]),
        frozen=torch.tensor([frozen]),
        proposal=zero[None].expand(1, len(masked)),
        confidence=row,
        best=row,
        step=zero,
        width=zero + len(masked),
        windows=zero + 1,
        block=zero + len(masked),
    )


def done(action, view, *, literal=False, last=False, **more) -> list[int]:
    decision = Decision(torch.tensor([action], dtype=torch.int8), **more)
    return enforce(decision, view, literal=torch.tensor([literal]), last=torch.tensor([last]))[0].tolist()


cells = st.lists(
    st.tuples(st.sampled_from(["masked", "held", "frozen"]), st.integers(0, 3), st.integers(0, 8)),
    min_size=1,
    max_size=24,
)


@given(cells, st.booleans(), st.booleans())
@settings(deadline=None, max_examples=300)
def test_rules_hold_for_any_decision(row, literal, with_threshold):
    state = [s for s, _, _ in row]
    asked = [a for _, a, _ in row]
    confidence = [c / 8 for _, _, c in row]
    view = view_of([s == "masked" for s in state], [s == "frozen" for s in state], confidence)
    more = {"threshold": torch.full((1, len(row)), 0.5)} if with_threshold else {}
    action = done(asked, view, literal=literal, **more)
    for s, wish, act in zip(state, asked, action, strict=True):
        assert act == K or {"masked": act == C, "held": act in (R, E), "frozen": False}[s]
        assert act in (K, wish) or (act == C and not literal)
    commits, revokes = action.count(C), action.count(R)
    if not literal:
        assert commits >= 1 or "masked" not in state
        assert revokes < commits or revokes == 0
    if "masked" in state and C not in [w for s, w in zip(state, asked, strict=True) if s == "masked"] and not literal:
        best = max(c for s, c in zip(state, confidence, strict=True) if s == "masked")
        first = next(i for i, s in enumerate(state) if s == "masked" and confidence[i] == best)
        assert action[first] == C
        assert commits == 1


def test_the_most_doubted_revocations_stay():
    view = view_of([True, True, True, False, False, False], [False] * 6, [0.9, 0.9, 0.9, 0.1, 0.3, 0.2])
    asked = [C, C, C, R, R, R]
    assert done(asked, view) == [C, C, C, R, K, R]
    threshold = torch.tensor([[0.5, 0.5, 0.5, 0.2, 0.9, 0.9]])
    assert done(asked, view, threshold=threshold) == [C, C, C, K, R, R]
    doubt = torch.tensor([[0.0, 0.0, 0.0, 3.0, 2.0, 1.0]])
    assert done(asked, view, threshold=threshold, doubt=doubt) == [C, C, C, R, R, K]


def test_ties_go_to_the_lower_position():
    view = view_of([True, True, False, False], [False] * 4, [0.5, 0.5, 0.2, 0.2])
    assert done([K, K, K, K], view) == [C, K, K, K]
    assert done([C, C, R, R], view) == [C, C, R, K]


def test_the_last_step_commits_every_mask():
    view = view_of([True, True, False], [False] * 3, [0.1, 0.2, 0.3])
    assert done([K, K, K], view, literal=True, last=True) == [C, C, K]


def test_a_growing_step_need_not_commit():
    view = view_of([True, True], [False] * 2, [0.1, 0.2])
    more = {"grow_at": torch.tensor([0])}
    assert done([K, K], view, grow=torch.tensor([4]), **more) == [K, K]
    assert done([K, K], view, grow=torch.tensor([0]), **more) == [K, C]
