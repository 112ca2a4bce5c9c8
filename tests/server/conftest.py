"""A tiny model of random weights with a real tokenizer of bytes, and a server around it."""

import copy
from dataclasses import replace

import pytest

import starr
from tests.model.tiny import LLADA_CONFIG, write_llada
from tests.server.running import running


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    config = LLADA_CONFIG | {"max_sequence_length": 512}
    return write_llada(tmp_path_factory.mktemp("server") / "tiny", config=config)


@pytest.fixture(scope="session")
def model(folder):
    return starr.load(folder)


@pytest.fixture(scope="session")
def server(model):
    with running(lambda: model) as here:
        yield here


@pytest.fixture(scope="session")
def writer(model):
    """The same model, writing small letters only: every settled token is text."""
    letters = model.tokenizer.encode("abcdefghijklmnopqrstuvwxyz")
    net = copy.deepcopy(model.net)
    head = net.lm_head.weight
    kept = head[letters].clone()
    head.zero_()
    head[letters] = kept
    return replace(model, net=net)
