from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.adablock import AdaBlock
from starr.decode.strategies.threshold import Threshold
from starr.errors import InputError
from tests.decode.strategies.driver import World, compare, worlds
from tests.reference.ref_adablock import RefAdaBlock
from tests.tiny import tiny_model

BARS = st.sampled_from([0.0, 0.3, 0.5, 0.75, 0.9, 1.0, 1.5])


@settings(deadline=None, max_examples=80)
@given(worlds(), BARS, BARS, st.sampled_from([0.0, 0.25, 0.7, 1.0]), st.integers(1, 14), st.booleans())
def test_equals_reference(world, tau, delimiter_tau, share, block, some):
    ids = [2, 5] if some else []
    options = {"tau": tau, "delimiter_tau": delimiter_tau, "share": share, "block": block}
    strategy = AdaBlock(**options, delimiters="2/5" if some else "none")
    compare(strategy, lambda: RefAdaBlock(**options, delimiters=ids), world)


@pytest.mark.parametrize("seed", range(5))
def test_an_infinite_bar_gives_fixed_blocks(seed):
    world = World(seed, [12, 3, 8])
    view = world.view()
    never = AdaBlock(delimiter_tau=1e6, block=4, delimiters="1/2/3/4/5/6")
    decision, _ = never.decide(view, never.begin(view))
    fixed = torch.where(view.windows > 1, view.block, 4).minimum(view.width)
    assert torch.equal(decision.end, fixed.maximum(view.masked.int().argmax(1) + 1))
    inside = torch.arange(view.masked.shape[1]) < decision.end[:, None]
    said, _ = Threshold().decide(replace(view, masked=view.masked & inside), {})
    assert torch.equal(decision.action, said.action)


def test_the_line_end_comes_from_the_tokenizer():
    pieces = {3: "\n", 4: " "}
    spec = tiny_model().spec
    known = SimpleNamespace(spec=spec, tokenizer=SimpleNamespace(encode=lambda text: [4, 3], piece=pieces.__getitem__))
    unknown = SimpleNamespace(spec=spec, tokenizer=SimpleNamespace(encode=lambda text: [4], piece=pieces.__getitem__))
    assert AdaBlock().bind(known).delimiters == "3"
    assert AdaBlock().bind(unknown).delimiters == "none"
    assert AdaBlock(delimiters="7/8").bind(known).delimiters == "7/8"


def test_wrong_delimiters_are_refused():
    with pytest.raises(InputError, match="adablock: delimiters must be auto, none or token ids"):
        AdaBlock(delimiters="newline")
