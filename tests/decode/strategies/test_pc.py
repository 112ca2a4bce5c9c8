from __future__ import annotations

import json
import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.confidence_topk import Confidence
from starr.decode.strategies.pc import PCSampler, information_of
from starr.errors import InputError
from tests.decode.strategies.driver import VOCABULARY, World, compare, play, same, worlds
from tests.reference.ref_pc import RefPC, frequencies

TOKENIZER = SimpleNamespace(encode=lambda text: [int(letter) for letter in text if letter.isdigit()])
MODEL = SimpleNamespace(
    spec=SimpleNamespace(family="llada", shape=SimpleNamespace(vocab_size=VOCABULARY)), tokenizer=TOKENIZER
)


@settings(deadline=None, max_examples=60)
@given(
    worlds(),
    st.lists(st.integers(0, 50), min_size=VOCABULARY, max_size=VOCABULARY).filter(any),
    st.sampled_from([0.0, 0.25, 0.5]),
    st.sampled_from([0.5, 3.0, 10.0]),
    st.sampled_from([None, 2, 7]),
)
def test_equals_reference(tmp_path_factory, world, counts, decay, clip, steps):
    path = tmp_path_factory.mktemp("counts") / "counts.json"
    path.write_text(json.dumps({str(token): count for token, count in enumerate(counts)}))
    strategy = PCSampler(decay=decay, clip=clip, steps=steps, frequencies=str(path)).bind(MODEL)
    compare(strategy, lambda: RefPC(frequencies(counts), decay, clip, steps), world)


def test_a_token_that_is_the_whole_corpus_tells_nothing():
    """Its frequency is 1, and 1 + 1e-9 would give it less than nothing."""
    assert information_of({3: 5}, 5).tolist() == pytest.approx([math.log(5)] * 3 + [0.0, math.log(5)])
    assert information_of({3: 1}, 5).tolist() == [0.0] * 5


def test_uniform_without_a_file():
    strategy = PCSampler().bind(MODEL)
    compare(strategy, lambda: RefPC([1 / VOCABULARY] * VOCABULARY, 0.25, 10.0, None), World(1, [12, 5]))


def test_without_decay_uniform_is_confidence():
    widths = [12, 3, 8]
    strategy = PCSampler(decay=0.0, steps=9).bind(MODEL)
    assert same(play(strategy, World(6, widths)), play(Confidence(steps=9), World(6, widths)))


def test_far_positions_do_not_underflow():
    strategy = PCSampler(decay=0.5)
    world = World(0, [400], coarse=False)
    scores = strategy.score(world.view())[0, :400]
    assert torch.isfinite(scores).all()
    assert (scores[300] - scores[399]) > 20


def test_a_text_is_counted_with_the_tokenizer(tmp_path):
    (tmp_path / "corpus.txt").write_text("1 1 1 2")
    table = PCSampler(frequencies=str(tmp_path / "corpus.txt")).bind(MODEL).information
    assert table[1].item() == pytest.approx(-torch.tensor(0.75).log().item(), abs=1e-6)
    assert table[3].item() == pytest.approx(-torch.tensor(0.25).log().item(), abs=1e-6), "never seen counts as once"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "[1, 2]", "JSON {token id: count}"),
        ("a.json", '{"99": 1}', "0 to 6, got 99"),
        ("a.json", '{"1": -1, "2": 5}', "must not be negative"),
        ("a.txt", "", "not all zero"),
        ("a.json", None, "FileNotFoundError"),
    ],
)
def test_wrong_files_are_refused(tmp_path, name, text, said):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as error:
        PCSampler(frequencies=str(tmp_path / name)).bind(MODEL)
    assert said in str(error.value)
