"""Noise is a function of seed, step and position alone."""

import torch

from starr.decode import noise


def test_the_hash_is_a_bijection_on_a_range():
    values = noise.mix(torch.arange(200_000))
    assert len(values.unique()) == 200_000
    assert values.min() >= 0
    assert values.max() < 2**32


def test_a_place_draws_the_same_alone_and_in_company():
    seeds, steps, positions = torch.tensor([[3], [9]]), torch.tensor([[0], [5]]), torch.arange(6)
    together = noise.keys(seeds, steps, positions, 1)
    alone = noise.keys(torch.tensor(9), torch.tensor(5), torch.tensor(4), 1)
    assert int(together[1, 4]) == int(alone)
    assert len(together.unique()) == 12
    assert not torch.equal(together, noise.keys(seeds, steps, positions, 0)), "streams differ"


def test_uniform_is_open_and_even_and_gumbel_has_its_mean():
    draws = noise.uniform(noise.keys(torch.tensor(0), torch.tensor(0), torch.arange(50_000), 0))
    assert 0.0 < float(draws.min()) < float(draws.max()) < 1.0
    assert abs(float(draws.mean()) - 0.5) < 0.01
    gumbel = noise.gumbel(torch.arange(50), 1000)
    assert abs(float(gumbel.mean()) - 0.5772) < 0.02
    assert gumbel.isfinite().all()


def test_gumbel_noise_is_that_of_the_plain_formula():
    """It is made in 32 bits and a few rows at a time; the plain formula hashes in 64 bits, all at once."""
    key = noise.mix(torch.arange(7) * 7919 + 3)
    index = torch.arange(1, 501)
    plain = -torch.log(-torch.log(noise.uniform(noise.mix(key[:, None] + 0x9E3779B9 * index))))
    assert torch.equal(noise.gumbel(key, 500), plain)
