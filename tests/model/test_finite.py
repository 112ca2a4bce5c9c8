"""Damaged weights are named at load; a first forward that gives no numbers is an error, not a text."""

import pytest
import torch

import starr
from starr.errors import LoadError, WorkError
from starr.model.finite import check_finite
from tests.tiny import tiny_model


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_named(value):
    model = tiny_model()
    check_finite(model.net)
    model.net.layers[1].mlp.up_proj.weight[3] = value
    with pytest.raises(LoadError, match=r"layers\.1\.mlp\.up_proj\.weight"):
        check_finite(model.net)


def test_the_first_forward_is_checked(monkeypatch):
    model = tiny_model()
    head = model.net.head
    monkeypatch.setattr(model.net, "head", lambda hidden: head(hidden) * torch.nan)
    for name in ("starr", "threshold", "confidence"):
        with pytest.raises(WorkError, match="not numbers"):
            starr.generate(model, "abc", max_tokens=8, strategy=name)
