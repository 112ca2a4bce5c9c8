"""STaRR through the engine: the two-cycle of its printed rule, block mode, and position independence."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from starr.api import generate
from starr.model.load import Model
from tests.tiny import MASK, tiny_model

FLIP = "starr:blend=0.5/0.5/0.5,left_pad=0.0,right_pad=0.0"
TOKEN = 7  # the only one ever proposed


class Script(nn.Module):
    """A model whose confidence at the first canvas position is .375 while masked and .9 while held, elsewhere .1."""

    def __init__(self, like: Model, start: int) -> None:
        super().__init__()
        self.start = start
        self.embed, self.shape = like.net.embed, like.net.shape

    def forward(self, tokens: Tensor, wanted: Tensor, attend: Tensor | None = None, added: None = None) -> Tensor:
        """(B, O, 1): the confidence at the columns ``wanted`` (B, O); those beyond the row are nobody's."""
        first = torch.arange(tokens.shape[1]).expand_as(tokens) == self.start
        sure = torch.where(tokens == MASK, 0.375, 0.9)
        return torch.where(first, sure, 0.1).gather(1, wanted.clamp(max=tokens.shape[1] - 1))[..., None]

    def head(self, hidden: Tensor) -> Tensor:
        """Logits (N, V) that give TOKEN the wanted probability and the others, but for the mask, equal parts."""
        others = self.shape.vocab_size - 2
        logits = torch.zeros(len(hidden), self.shape.vocab_size)
        logits[:, TOKEN] = (others * hidden[:, 0] / (1 - hidden[:, 0])).log()
        return logits


def scripted(start: int) -> Model:
    """The script as a model whose canvas begins at ``start``."""
    model = tiny_model()
    return replace(model, net=Script(model, start))


def test_as_printed_a_position_flips_until_the_forwards_run_out():
    result = generate(
        scripted(1), [5], strategy=FLIP, max_tokens=4, max_forwards=50, enforce="literal", trace=True, chat=False
    )
    assert result.stats.forwards == 50
    first = [step.action[0] for step in result.trace.steps]
    assert first == [0, 0, 0] + [1, 2] * 23 + [1]
    assert all(not any(step.action[1:]) for step in result.trace.steps[:-1])
    assert result.tokens == [TOKEN] * 4, "the last allowed forward commits every mask"


def test_by_default_the_same_run_ends_within_its_length():
    result = generate(scripted(1), [5], strategy=FLIP, max_tokens=4, trace=True, chat=False)
    assert result.stats.forwards <= 4
    assert result.tokens == [TOKEN] * 4
    for step in result.trace.steps:
        assert step.action.count(1) > step.action.count(2)


@pytest.mark.parametrize("enforce", ["safe", "literal"])
def test_one_block_is_the_whole_canvas(enforce):
    model = tiny_model(seed=4)
    options = {"strategy": "starr", "max_tokens": 24, "enforce": enforce, "max_forwards": 60, "trace": True}
    whole = generate(model, "abc", **options)
    block = generate(model, "abc", block_length=24, **options)
    assert whole.tokens == block.tokens
    assert [s.threshold for s in whole.trace.steps] == [s.threshold for s in block.trace.steps]


def test_the_length_of_the_prompt_is_not_seen():
    short, long = (
        generate(scripted(start), [5] * start, strategy="starr", max_tokens=6, trace=True, chat=False)
        for start in (1, 10)
    )
    assert [s.threshold for s in short.trace.steps] == [s.threshold for s in long.trace.steps]
    assert [s.action for s in short.trace.steps] == [s.action for s in long.trace.steps]


def test_a_blocks_dynamics_begin_anew():
    model = tiny_model(seed=2)
    result = generate(model, "abc", strategy="starr", max_tokens=24, block_length=8, trace=True, enforce="safe")
    steps = result.trace.steps
    fresh = [i for i, s in enumerate(steps) if i == 0 or s.window != steps[i - 1].window]
    assert len(fresh) == 3
    for i in fresh:
        masked, conf, tau = steps[i].masked, steps[i].confidence, steps[i].threshold
        assert all(masked)
        deviance = conf[3] - (conf[2] + conf[4]) / 4 - (conf[1] + conf[5]) / 8 - (conf[0] + conf[6]) / 8
        assert tau[3] == pytest.approx(0.6 * 0.9 + 0.4 * (1 - deviance), abs=1e-4)
