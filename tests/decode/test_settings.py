"""Options of rows as tensors; nothing is made that no row needs."""

import torch

from starr.api import Options, build_request, run_all
from starr.decode.settings import settings_of
from tests.decode.rows import request
from tests.tiny import tiny_model

CPU = torch.device("cpu")


def test_what_nobody_asked_for_is_none():
    settings = settings_of([request("__"), request("___")], CPU)
    names = ("temperature", "top_p", "top_k", "min_p", "guidance", "eos_never", "eos_last")
    assert all(getattr(settings, name) is None for name in names)
    assert not settings.endless
    assert settings.plain.tolist() == [0, 1]
    assert settings.buffered.tolist() == []


def test_each_row_keeps_its_own_options():
    rows = [
        request("__", temperature=0.5, top_p=0.9),
        request("__", cache="dual", strategy="starr"),
        request("__", strategy="wino", ends=False),
    ]
    settings = settings_of(rows, CPU)
    assert settings.temperature.tolist() == [0.5, 0.0, 0.0]
    assert settings.top_p.tolist() == torch.tensor([0.9, 1.0, 1.0]).tolist()
    assert settings.revokes.tolist() == [False, True, True]
    assert (settings.plain.tolist(), settings.buffered.tolist()) == ([0, 2], [1])
    assert settings.endless
    assert "shadow" in settings.signals
    assert [(cache.name, rows.tolist()) for cache, rows in settings.caches] == [("none", [0, 2]), ("dual", [1])]


def test_a_row_keeps_the_order_of_its_rules_whoever_stands_beside_it():
    """Prophet commits all masks, ICE drops those of its thinking: the first of the two has its way."""
    model = tiny_model()
    given = {"ice": "ice:steps=1,answer=2,mark=S{}:,lead=#,threshold=0", "max_tokens": 16}
    rows = [
        build_request(model, "ab", Options(stop_rule=rule, **given))
        for rule in ("none", "prophet:early=0,middle=0,late=0")
    ]
    alone = [run_all(model, [row], 1)[0].tokens for row in rows]
    assert len(alone[0]) < len(alone[1])
    assert [found.tokens for found in run_all(model, rows, 2)] == alone
    ordered = settings_of(rows, CPU).rules
    assert [rule.name for rule, at in ordered if at[1]] == ["prophet", "ice"]
