"""A short run of every fuzzer of inputs: what is spoiled is read or refused in one line."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fuzz_inputs import attempt, kinds, spoil

FEW = {"template": 4, "tokenizer": 20}  # these may start processes


@pytest.fixture(scope="module")
def known():
    with kinds() as found:
        yield found


@pytest.mark.parametrize("kind", ["header", "config", "tokenizer", "template", "schema", "regex", "trace", "http"])
def test_spoiled_inputs_are_read_or_refused_in_one_line(known, kind):
    @settings(max_examples=FEW.get(kind, 40), deadline=None)
    @given(st.integers(0, 2**32))
    def run(seed):
        attempt(known[kind], seed)

    run()


def test_every_kind_takes_its_examples(known):
    for examples, take in known.values():
        for example in examples:
            take(example)


def test_what_is_spoiled_is_another_input():
    example = json.dumps({"a": [1, {"b": "c"}], "d": None}).encode()
    drawn = {spoil(random.Random(seed), example) for seed in range(200)}
    assert len(drawn) > 100
    assert any(each.startswith(b"{") and each != example for each in drawn)
