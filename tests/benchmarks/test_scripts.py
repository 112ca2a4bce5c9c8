"""Every script of benchmarks and training can be imported, and those of the loop's own parts run on a small scale."""

import importlib
from pathlib import Path

import pytest
import torch

from benchmarks import caches, loop
from tests.tiny import tiny_model

ROOT = Path(__file__).parents[2]
SCRIPTS = [
    f"{folder}.{path.stem}"
    for folder in ("benchmarks", "training")
    for path in sorted((ROOT / folder).glob("*.py"))
    if path.stem != "__init__"
]


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_is_imported_and_has_something_to_run(name):
    assert importlib.import_module(name).__doc__


def test_the_loop_beside_its_forwards():
    found = loop.loop_ratio(tiny_model(length=512), rows=2, tokens=8, repeats=1)
    assert found["rows"] == 2
    assert 1 <= found["forwards"] <= 8
    assert found["ratio"] > 0


def test_the_confidence_beside_its_product():
    found = loop.head_ratio(positions=4, width=16, vocab=64, repeats=2)
    assert found["ours"] > 0


def test_a_forward_by_the_share_that_it_queries():
    with torch.inference_mode():
        rows = caches.measure(tiny_model(length=64), prompt=16, canvas=8, repeats=1)
    assert [(row["share"], row["positions"]) for row in rows] == [
        ("none", 24), ("1.0", 24), ("0.5", 12), ("0.25", 6), ("0.125", 3),
    ]  # fmt: skip
