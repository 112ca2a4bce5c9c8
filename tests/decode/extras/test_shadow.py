"""What wino's guest asks for, costs and tells."""

from __future__ import annotations

import pytest
import torch

import starr
from starr.api import Options, build_request, run_all
from starr.decode.engine import Engine
from starr.decode.extras.queries import OWN
from starr.errors import InputError
from tests.tiny import EOS, MASK, tiny_model


def test_the_signal_is_the_probability_of_the_held_token_without_itself():
    """Beside a plain row; by hand: the whole row with a mask behind it, which is blind to that token."""
    model = tiny_model()
    engine = Engine(model, max_rows=2)
    for strategy in ("wino", "confidence"):
        engine.add(build_request(model, "abc", Options(strategy=strategy, max_tokens=16, eos="never")))
    engine.step()
    before = engine.batch.canvas
    engine.step()
    length = int(before.length[0])
    row = before.tokens[:1, :length]
    window = torch.arange(int(before.rules.start[0]), length)
    size = len(window)
    sees = torch.ones(1, length + size, length + size, dtype=torch.bool)
    sees[0, :length, length:] = False
    sees[0, length + torch.arange(size), window] = False
    tokens = torch.cat([row, torch.full((1, size), MASK)], dim=1)
    at = torch.cat([torch.arange(length), window])[None]
    logits = model.net.head(model.net(tokens, at, attend=sees)[0, length:]).float()
    logits[:, [MASK, EOS]] = -torch.inf
    own = logits.softmax(1).gather(1, row[0, window][:, None])[:, 0]
    held = ~before.masked[0, window]
    assert held.any()
    assert torch.allclose(engine.batch.canvas.notes[OWN][0, window][held], own[held], atol=1e-4)
    assert not engine.batch.canvas.notes[OWN][1, :-1].any(), "the plain row has none"


def test_a_shadow_costs_its_window():
    found = starr.generate(tiny_model(), "abc", strategy="wino", max_tokens=8, eos="never")
    assert found.stats.positions == found.stats.forwards * (found.stats.row_positions + 8)


def test_it_needs_whole_forwards():
    with pytest.raises(InputError) as caught:
        starr.generate(tiny_model(), "abc", strategy="wino", cache="dual", max_tokens=8)
    assert caught.value.param == "cache"


@pytest.mark.parametrize("cache", ["prefix", "dual"])
def test_beside_a_row_with_a_cache_each_has_its_own_tokens(cache):
    model = tiny_model()
    asked = [("wino", "none", 20), ("starr", cache, 16), ("confidence", "none", 12)]
    rows = [
        build_request(model, "abc" * (2 + i), Options(strategy=s, cache=c, max_tokens=n, block_length=8))
        for i, (s, c, n) in enumerate(asked)
    ]
    together = run_all(model, rows, 3)
    assert [each.tokens for each in together] == [run_all(model, [row], 1)[0].tokens for row in rows]
