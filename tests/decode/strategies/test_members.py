"""The registry of strategies has every file of the folder, once."""

import pkgutil

import starr
from starr.decode import strategies
from starr.decode.strategies.base import STRATEGIES

SHARED = {"base", "blocks", "fitted", "ids", "oracle", "schedule", "sweep"}


def test_every_file_registers_a_strategy():
    files = {module.name for module in pkgutil.iter_modules(strategies.__path__)} - SHARED
    homes = {entry.kind.__module__.split(".")[3] for entry in starr.strategies()}
    assert files <= homes
    assert [entry.name for entry in starr.strategies()] == sorted(STRATEGIES.entries)
