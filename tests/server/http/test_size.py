"""What a large request costs others: it is refused by its beginning, read beside them, and written in pieces."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.errors import LengthError
from starr.server.http.answers import dump
from starr.server.http.read import LONG, check_size
from starr.server.http.service import COMPILERS
from tests.server.running import http, running, wait_until

MEGABYTE = "a b" * 330_000
CHAT = [{"role": "user", "content": MEGABYTE}]


class Watched:
    """A tokenizer that counts the characters it encodes, and may wait before long texts."""

    def __init__(self, tokenizer):
        self.tokenizer, self.encoded, self.held = tokenizer, [], []
        self.open = threading.Event()
        self.open.set()

    def __getattr__(self, name):
        return getattr(self.tokenizer, name)

    def encode(self, text):
        self.encoded.append(len(text))
        if len(text) > 1000 and not self.open.is_set():
            self.held.append(text)
            assert self.open.wait(600)
        return self.tokenizer.encode(text)

    def chat(self, messages):
        return [token for text, special in self.pieces(messages) for token in ([] if special else self.encode(text))]


@pytest.fixture(scope="module")
def watched(model):
    tokenizer = Watched(model.tokenizer)
    with running(lambda: replace(model, tokenizer=tokenizer)) as here:
        yield here, tokenizer


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/completions", {"prompt": MEGABYTE}, "prompt"),
        ("/v1/completions", {"prompt": ["a", MEGABYTE]}, "prompt"),
        ("/v1/completions", {"prompt": MEGABYTE, "choice": ["a", "b"], "logprobs": 1}, "prompt"),
        ("/v1/completions", {"prompt": [5] * 300_000}, "prompt"),
        ("/v1/chat/completions", {"messages": CHAT}, "messages"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a b " * 500}] * 400}, "messages"),
        ("/v1/responses", {"input": MEGABYTE}, "input"),
        ("/v1/infill", {"text": f"{MEGABYTE} [MASK:2]"}, "text"),
        ("/tokenize", {"prompt": MEGABYTE}, "prompt"),
        ("/tokenize", {"messages": CHAT}, "messages"),
        ("/detokenize", {"tokens": [5] * 300_000}, "tokens"),
    ],
)
def test_a_megabyte_is_refused_by_its_beginning(watched, model, path, body, param):
    here, tokenizer = watched
    tokenizer.encoded.clear()
    answer = http.post(here.url + path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", param)
    assert sum(tokenizer.encoded) <= LONG * model.spec.max_length


def test_a_long_text_of_few_tokens_is_not_refused_by_its_length(model):
    class Dense:
        def encode(self, text):
            return [5] * (len(text) // 100)

    dense = replace(model, tokenizer=Dense())
    check_size("x" * 100 * model.spec.max_length, dense)
    with pytest.raises(LengthError):
        check_size("x" * 100 * model.spec.max_length, model)


def test_short_requests_do_not_wait_for_long_ones(watched):
    here, tokenizer = watched
    tokenizer.open.clear()
    with ThreadPoolExecutor(COMPILERS + 2) as threads:
        asking = [
            threads.submit(http.post, f"{here.url}/v1/completions", json={"prompt": MEGABYTE})
            for _ in range(COMPILERS + 2)
        ]
        try:
            wait_until(lambda: len(tokenizer.held) == COMPILERS)
            assert http.post(f"{here.url}/v1/completions", json={"prompt": "a", "max_tokens": 2}).status_code == 200
            assert not any(each.done() for each in asking)
        finally:
            tokenizer.open.set()
        assert [each.result().status_code for each in asking] == [400] * (COMPILERS + 2)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=30,
)


@settings(max_examples=100, deadline=None, database=None)
@given(value=VALUES, depth=st.integers(0, 6))
def test_pieces_of_json_are_the_json(value, depth):
    assert "".join(dump(value, depth)) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_a_long_answer_is_written_in_pieces():
    """No piece of a traced answer is larger than a step."""
    step = {"action": [0] * 512}
    body = {"choices": [{"trace": {"steps": [step] * 100}}]}
    assert max(map(len, dump(body))) == len(json.dumps(step, separators=(",", ":")))
