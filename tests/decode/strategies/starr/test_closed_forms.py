"""What STaRR's algebra comes to: closed forms, bounds and monotonicity, on single positions.

A position alone in its window with both pads at s has the neighbour mean s; a constant history h has the mean h.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from starr.decode.confidence import neighbour_mean, neighbour_weights, spatial_deviance
from starr.decode.strategies.starr import Starr
from starr.decode.view import StepView

unit = st.integers(0, 2**16).map(lambda k: k / 2**16)
scales = st.integers(0, 40).map(lambda k: k / 8)
shares = st.sampled_from([0.5, 0.6]) | st.integers(1, 15).map(lambda k: k / 16)
quick = settings(deadline=None, max_examples=100)


def view_of(confidence: list[float], held: bool = False, step: int = 9) -> StepView:
    """One row of positions that are all masked or all held."""
    c = torch.tensor([confidence])
    state = torch.full(c.shape, not held)
    size = torch.tensor([c.shape[1]])
    token = torch.ones(c.shape, dtype=torch.int64)
    return StepView(
        tokens=token * held, masked=state, frozen=torch.zeros_like(state), proposal=token, confidence=c, best=c,
        step=torch.tensor([step]), width=size, windows=torch.tensor([1]), block=size,
    )  # fmt: skip


def judge(c, s, h=None, *, held=False, p=0.5, **options):
    """(threshold, decoded after the step) of one position; in the warm-up when h is None."""
    starr = Starr(blend=f"{p}/{p}/{p}", left_pad=s, right_pad=s, responsive=False, **options)
    view = view_of([c], held)
    carry = dict(starr.begin(view))
    if h is not None:
        carry["history"] = torch.full_like(carry["history"], h)
    decision, _ = starr.decide(view, carry)
    action = int(decision.action)
    return float(decision.threshold), action == 0 if held else action == 1


def clear(left: float, right: float) -> bool:
    """Away from the tie, where float32 decides."""
    return abs(left - right) > 1e-5


@quick
@given(unit, unit, shares, st.sampled_from([0.9, 0.95]))
def test_masked_in_the_warm_up(c, s, p, fixed):
    bar = (p * fixed + (1 - p) * (1 + s)) / (2 - p)
    assume(clear(c, bar))
    assert judge(c, s, p=p, warmup_threshold=fixed)[1] == (c > bar)


@quick
@given(unit, unit, unit, shares, scales)
def test_masked_after_the_warm_up(c, s, h, p, m):
    left, right = (2 - p * (1 + m)) * c, (1 - p) * (1 + s) - p * m * h
    assume(clear(left, right))
    assert judge(c, s, h, p=p, scale=m)[1] == (left > right)


@quick
@given(unit, unit, unit)
def test_masked_with_the_papers_numbers(c, s, h):
    assume(clear(h, (1 + s) / 3))
    assert judge(c, s, h, p=0.5)[1] == (h > (1 + s) / 3)
    assume(clear(c, 4.5 * h - 1 - s))
    assert judge(c, s, h, p=0.6)[1] == (c < 4.5 * h - 1 - s)


@quick
@given(unit, unit, unit, unit)
def test_with_half_and_three_the_current_confidence_does_not_matter(first, second, s, h):
    assume(clear(h, (1 + s) / 3))
    assert judge(first, s, h, p=0.5)[1] == judge(second, s, h, p=0.5)[1]


@quick
@given(unit, unit, unit, shares, st.integers(9, 40).map(lambda k: k / 8))
def test_held_after_the_warm_up(c, s, h, p, m):
    left, right = p * (m - 1) * c, p * m * h + (1 - p) * s
    assume(clear(left, right))
    assert judge(c, s, h, held=True, p=p, scale=m)[1] == (left < right)


@quick
@given(unit, unit, unit)
def test_held_with_the_papers_numbers(c, s, h):
    assume(clear(c, 1.5 * h + 0.5 * s))
    assert judge(c, s, h, held=True, p=0.5)[1] == (c < 1.5 * h + 0.5 * s)
    assume(clear(c, 1.5 * h + s / 3))
    assert judge(c, s, h, held=True, p=0.6)[1] == (c < 1.5 * h + s / 3)


@quick
@given(unit, unit, shares)
def test_held_in_the_warm_up(c, s, p):
    bar = 0.9 - (1 - p) * s / p
    assume(clear(p * c, p * bar))
    assert judge(c, s, held=True, p=p)[1] == (c > bar)


@quick
@given(unit, unit, st.integers(9, 40).map(lambda k: k / 8), st.booleans())
def test_temporal_part_alone(c, h, m, held):
    bar = m / (m - 1) * h
    assume(clear((m - 1) * c, (m - 1) * bar))
    assert judge(c, 0.3, h, held=held, scale=m, spatial=False)[1] == (c < bar)


@quick
@given(unit, unit, st.integers(0, 8).map(lambda k: k / 8))
def test_temporal_part_alone_with_a_small_scale_always_decodes(c, h, m):
    assume((1 - m) * c + m * h > 1e-5)
    assert judge(c, 0.3, h, scale=m, spatial=False)[1]


@quick
@given(unit, unit, scales, scales)
def test_a_larger_scale_never_adds_rising_tokens(c, h, first, second):
    assume(c > h)
    low, high = sorted((first, second))
    if judge(c, 0, h, scale=high, spatial=False)[1]:
        assert judge(c, 0, h, scale=low, spatial=False)[1]


@quick
@given(unit, unit, shares, st.booleans())
def test_spatial_part_alone(c, s, p, held):
    tau, _ = judge(c, s, held=held, p=p, temporal=False)
    assert tau == pytest.approx(c - s if held else 1 - c + s, abs=1e-5)


@quick
@given(unit, shares)
def test_flat_field(q, p):
    assume(clear(q, 1 - p))
    assert judge(q, q, q, p=p)[1] == (q > 1 - p)
    assume(clear(q, p * 0.9 + 1 - p))
    assert judge(q, q, p=p)[1] == (q > p * 0.9 + 1 - p)


@quick
@given(unit, shares)
def test_isolated_and_surrounded_masked_tokens(c, p):
    alone, among_ones = (1 - p) / (2 - p), 2 * (1 - p) / (2 - p)
    assume(clear(c, alone) and clear(c, among_ones))
    assert judge(c, 0, c, p=p)[1] == (c > alone)
    assert judge(c, 1, c, p=p)[1] == (c > among_ones)


@quick
@given(unit, unit, unit, shares, scales)
@example(1.0, 0.0, 0.0, 0.5, 3.0)
@example(0.0, 1.0, 1.0, 0.6, 3.0)
def test_bounds_of_the_threshold(c, s, h, p, m):
    low, high = min(0, 1 - p - p * m), max(1 - p + p * m, 2 * (1 - p))
    assert low - 1e-5 <= judge(c, s, h, p=p, scale=m)[0] <= high + 1e-5
    assert abs(judge(c, s, h, held=True, p=p, scale=m)[0]) <= p * m + 1 - p + 1e-5


@quick
@given(unit, unit, unit, unit, shares, scales)
def test_monotone_in_confidence_history_and_neighbours(a, b, s, h, p, m):
    slope = 2 - p * (1 + m)
    low, high = sorted((a, b))
    bar = (1 - p) * (1 + s) - p * m * h
    assume(clear(slope * low, bar) and clear(slope * high, bar))
    if slope > 0:
        assert judge(low, s, h, p=p, scale=m)[1] <= judge(high, s, h, p=p, scale=m)[1]
    else:
        assert judge(low, s, h, p=p, scale=m)[1] >= judge(high, s, h, p=p, scale=m)[1]


@quick
@given(unit, unit, unit, unit, shares, scales)
def test_more_history_frees_and_better_neighbours_bind_masked_tokens(c, a, b, other, p, m):
    low, high = sorted((a, b))
    assume(high - low > 1e-4)
    assert judge(c, other, low, p=p, scale=m)[1] <= judge(c, other, high, p=p, scale=m)[1]
    assert judge(c, low, other, p=p, scale=m)[1] >= judge(c, high, other, p=p, scale=m)[1]


@quick
@given(unit, unit, unit, st.sampled_from([0.5, 0.6]))
def test_held_tokens_that_are_never_revoked(c, s, h, p):
    if c > 1e-4:
        assert judge(c, s, c, held=True, p=p)[1], "a stable token"
    if h > 2 / 3 + 1e-4:
        assert judge(c, s, h, held=True, p=p)[1], "a token with a high past"


@quick
@given(unit, unit, unit, scales, scales, st.booleans())
def test_warm_up_knows_no_scale_and_later_no_warm_up_threshold(c, s, h, first, second, held):
    assert judge(c, s, held=held, scale=first) == judge(c, s, held=held, scale=second)
    late = [judge(c, s, h, held=held, warmup_threshold=fixed) for fixed in (0.1, 0.9)]
    assert late[0] == late[1]


def test_what_the_algebra_does_against_the_text():
    """Falling confidence lowers the threshold; collapse keeps a held token, a jump revokes it."""
    assert judge(0.2, 0.5, 0.4, p=0.6) == (pytest.approx(0.16, abs=1e-4), True)
    assert judge(0.99, 0.5, 0.4, p=0.6) == (pytest.approx(1.266, abs=1e-3), False)
    assert judge(0.01, 0.9, 0.9, held=True) == (pytest.approx(-1.78, abs=1e-2), True)
    assert judge(1.0, 0.3, 0.5, held=True) == (pytest.approx(1.1, abs=1e-4), False)


@pytest.mark.parametrize("window", range(1, 11))
def test_weights(window):
    weights = neighbour_weights(window)
    assert len(weights) == window
    assert 2 * sum(weights) == 1
    assert list(weights) == sorted(weights, reverse=True)
    assert neighbour_weights(3) == (1 / 4, 1 / 8, 1 / 8)
    assert neighbour_weights(2) == (1 / 4, 1 / 4)


@pytest.mark.parametrize("window", range(1, 11))
def test_constant_field_has_no_deviance(window):
    field = torch.full((2, 25), 0.375)
    inner = slice(window, 25 - window)
    assert torch.equal(neighbour_mean(field, window, (1.0, 0.0))[:, inner], field[:, inner])
    assert not spatial_deviance(field, field, window, (1.0, 0.0))[:, inner].any()
    assert not spatial_deviance(field, field, window, (0.375, 0.375)).any()


def test_left_neighbours_and_pads_are_not_right_ones():
    field = torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    assert neighbour_mean(field, 1, (0.0, 0.5)).tolist() == [[0.5, 0.0, 0.5, 0.25]]
    assert neighbour_mean(field, 2, (1.0, 0.0)).tolist() == [[0.75, 0.25, 0.25, 0.25]]


def test_a_flat_row_ends_where_the_pads_say():
    """Right pad 0 to 1 moves the last threshold of a flat half from .375 to .625; the prompt makes the first harder."""
    for pad, last in ((0.0, 0.375), (1.0, 0.625)):
        starr = Starr(blend="0.5/0.5/0.5", right_pad=pad)
        view = view_of([0.5] * 9)
        carry = dict(starr.begin(view)) | {"history": torch.full((1, 9, 3), 0.5)}
        threshold = starr.decide(view, carry)[0].threshold[0]
        assert threshold[8] == pytest.approx(last, abs=1e-6)
        assert threshold[4] == pytest.approx(0.5, abs=1e-6)
        assert threshold[0] > threshold[4]
