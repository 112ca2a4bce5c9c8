"""Options of rows as tensors; nothing is made that no row needs."""

import torch

from starr.decode.request import Sampling
from starr.decode.settings import settings_of
from tests.decode.rows import request

CPU = torch.device("cpu")


def test_what_nobody_asked_for_is_none():
    settings = settings_of([request("__"), request("___")], [False, False], CPU)
    names = ("temperature", "top_p", "top_k", "guidance", "eos_never", "eos_last")
    assert all(getattr(settings, name) is None for name in names)
    assert not settings.endless
    assert settings.plain.tolist() == [0, 1]
    assert settings.buffered.tolist() == []


def test_each_row_keeps_its_own_options():
    rows = [
        request("__", sampling=Sampling(temperature=0.5, top_p=0.9)),
        request("__", cache="dual", strategy="starr"),
        request("__", strategy="wino", ends=False),
    ]
    settings = settings_of(rows, [False, False, True], CPU)
    assert settings.temperature.tolist() == [0.5, 0.0, 0.0]
    assert settings.top_p.tolist() == torch.tensor([0.9, 1.0, 1.0]).tolist()
    assert settings.revokes.tolist() == [False, True, True]
    assert (settings.plain.tolist(), settings.buffered.tolist()) == ([0], [1]), "a guest computes the claimed row"
    assert settings.endless
    assert "shadow" in settings.signals
    assert [(cache.name, rows.tolist()) for cache, rows in settings.caches] == [("none", [0, 2]), ("dual", [1])]
