"""The bound against brute force: the mean over all orders of one-at-a-time decoding."""

import math
from dataclasses import replace
from itertools import pairwise, permutations

import pytest
import torch

from starr.integrations.likelihood import drawn_patterns, every_pattern, log_likelihood, masked_sums, seed_of
from tests.tiny import MASK, tiny_model

CONTEXT, TARGET = [0, 5, 9, 33, 41], [7, 7, 50, 11, 90, 3]


def mean_over_orders(model, context, target):
    """Decode the target in each of its L! orders, one token a forward, and average the sums of log p."""
    known = {}

    def log_p(place, masked):
        if (place, masked) not in known:
            tokens = context + [MASK if i in masked else t for i, t in enumerate(target)]
            row = len(context) + place - (1 if model.spec.shift else 0)
            logits = model.net.head(model.net(torch.tensor([tokens])))[0, row]
            known[place, masked] = logits.double().log_softmax(0)[target[place]].item()
        return known[place, masked]

    sums = []
    for order in permutations(range(len(target))):
        sums.append(sum(log_p(place, frozenset(order[i:])) for i, place in enumerate(order)))
    return sum(sums) / len(sums)


@pytest.mark.parametrize("shift", [False, True])
@pytest.mark.parametrize("length", range(1, 7))
def test_short_targets_are_enumerated_exactly(shift, length):
    model = tiny_model(shift=shift)
    target = TARGET[:length]
    found = log_likelihood(model, CONTEXT, target, samples=63, seed=0).value
    assert found == pytest.approx(mean_over_orders(model, CONTEXT, target), abs=1e-4)


def test_weights_of_all_patterns_are_those_of_the_definition():
    masks, weights = every_pattern(5)
    assert len(masks) == 31
    assert len({tuple(mask) for mask in masks.tolist()}) == 31
    for k in range(1, 6):
        chosen = weights[masks.sum(dim=1) == k]
        assert chosen.sum().item() == pytest.approx(1 / k)  # (1 / L) for the count, times L / k
        assert len(chosen) == math.comb(5, k)


def test_drawn_patterns_have_evenly_spread_counts():
    masks, weights = drawn_patterns(10, 40, seed=3)
    counts = masks.sum(dim=1)
    assert torch.bincount(counts, minlength=11).tolist() == [0] + [4] * 10
    assert torch.allclose(weights, 10 / (counts.double() * 40))


def test_sampling_comes_near_the_exact_value():
    """The mean over many seeds; the bound on its error is five standard errors of that mean."""
    model = tiny_model()
    exact = log_likelihood(model, CONTEXT, TARGET, samples=63, seed=0).value
    every = {tuple(m): v for m, v in zip(every_pattern(6)[0].tolist(), all_sums(model), strict=True)}
    means = []
    for seed in range(400):
        masks, weights = drawn_patterns(6, 12, seed)
        means.append(sum(w * every[tuple(m)] for m, w in zip(masks.tolist(), weights.tolist(), strict=True)))
    values = torch.tensor(means, dtype=torch.float64)
    error = values.std() / len(values) ** 0.5
    assert abs(values.mean().item() - exact) < 5 * error.item()


def all_sums(model):
    return masked_sums(model, CONTEXT, TARGET, every_pattern(6)[0]).tolist()


def test_the_seed_is_the_requests_own():
    model = tiny_model()
    long = TARGET * 3
    first = log_likelihood(model, CONTEXT, long, samples=16, seed=0).value
    log_likelihood(model, CONTEXT, long[::-1], samples=16, seed=0)  # other requests in between change nothing
    assert log_likelihood(model, CONTEXT, long, samples=16, seed=0).value == first
    assert log_likelihood(model, CONTEXT, long, samples=16, seed=1).value != first
    assert seed_of([1, 2], [3], 0) != seed_of([1], [2, 3], 0)


def test_an_empty_target_is_certain():
    assert log_likelihood(tiny_model(), CONTEXT, [], samples=8, seed=0).value == 0.0


def test_a_split_into_forwards_changes_nothing(monkeypatch):
    model = tiny_model()
    whole = log_likelihood(model, CONTEXT, TARGET, samples=63, seed=0).value
    monkeypatch.setitem(__import__("starr.integrations.likelihood").integrations.likelihood.POSITIONS, "cpu", 30)
    assert log_likelihood(model, CONTEXT, TARGET, samples=63, seed=0).value == pytest.approx(whole, abs=1e-5)


def seen_in_blocks(length, block, origin):
    """(1, length, length): a position sees its own block and those before it, written out."""
    cells = [[(i - origin) // block >= (j - origin) // block for j in range(length)] for i in range(length)]
    return torch.tensor([cells])


@pytest.mark.parametrize("from_prompt", [False, True])
@pytest.mark.parametrize("shift", [False, True])
def test_a_block_causal_model_is_scored_block_by_block(shift, from_prompt):
    """Every block of the target in every order, behind clean earlier blocks; later ones are out of sight."""
    model = tiny_model(shift=shift, block=4)
    model = replace(model, spec=replace(model.spec, from_prompt=from_prompt))
    row, start = CONTEXT + TARGET, len(CONTEXT)
    cuts = [5, 9, 11] if from_prompt else [5, 8, 11]
    expected = 0.0
    for begin, end in pairwise(cuts):
        sums = []
        for order in permutations(range(begin, end)):
            for i, place in enumerate(order):
                tokens = [MASK if at in order[i:] else token for at, token in enumerate(row[:end])]
                attend = seen_in_blocks(end, 4, start if from_prompt else 0)
                logits = model.net.head(model.net(torch.tensor([tokens]), attend=attend))[0, place - int(shift)]
                sums.append(logits.double().log_softmax(0)[row[place]].item())
        expected += sum(sums) / math.factorial(end - begin)
    found = log_likelihood(model, CONTEXT, TARGET, samples=15, seed=0)
    assert found.value == pytest.approx(expected, abs=1e-4)
    assert found.forwards == sum(2 ** (end - begin) - 1 for begin, end in pairwise(cuts))
