"""Habits against a slow count, and what a position must not know of itself."""

import torch

from starr.fit.calibrate.fit import OWN, SHRINK, habits_apart, token_habits


def world():
    random = torch.Generator().manual_seed(0)
    proposals = torch.randint(-1, 6, (60, 7), generator=random)
    proposals[:, OWN] = proposals[:, OWN].clamp_min(0)
    surplus = torch.rand(60, generator=random) - 0.5
    prompt = torch.randint(0, 8, (60,), generator=random)
    return proposals, surplus, prompt, prompt % 5 == 0


def mean(values):
    return sum(values) / (len(values) + SHRINK)


def test_a_habit_is_the_shrunken_mean_of_what_its_token_did():
    proposals, surplus, _, _ = world()
    found = token_habits(proposals, surplus, 6)
    for token in range(6):
        own = [float(s) for s, p in zip(surplus, proposals[:, OWN], strict=True) if p == token]
        assert abs(float(found[token]) - mean(own)) < 1e-5


def test_a_position_is_told_the_habits_of_other_prompts_only():
    proposals, surplus, prompt, held = world()
    found = habits_apart(proposals, surplus, prompt, held, 6)
    for n in range(60):
        for place in range(7):
            token = int(proposals[n, place])
            others = [m for m in range(60) if not held[m] and (held[n] or prompt[m] != prompt[n])]
            own = [float(surplus[m]) for m in others if proposals[m, OWN] == token]
            expected = 0.0 if token < 0 else mean(own)
            assert abs(float(found[n, place]) - expected) < 1e-5
