"""What an answer says beside its text: why it may be nonsense, and whether held tokens may be revoked."""

import json
from dataclasses import replace

import pytest

import starr
from tests.server.running import http, running

ASK = {"max_tokens": 8, "stream": True, "diffusing": True}
KNOWN = "Tom has 12 apples. Tom buys 8 more. Then Tom gives 5 to a friend. How many apples does Tom have now?"


@pytest.fixture(scope="module")
def knowing(model):
    with running(lambda: replace(model, known=starr.load().known)) as here:
        yield here


def chunks(server, prompt, **more):
    body = {"messages": [{"role": "user", "content": prompt}]} | ASK | more
    lines = http.post(f"{server.url}/v1/chat/completions", json=body).text.split("\n\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def test_a_strange_prompt_is_remarked_and_a_known_one_is_not(knowing):
    def note(prompt):
        return next(chunk["starr"].get("note", "") for chunk in chunks(knowing, prompt) if "starr" in chunk)

    assert "nonsense" in note("Write a poem about the parliament of Norway.")
    assert note(KNOWN) == ""


@pytest.mark.parametrize(
    ("given", "revokes"),
    [
        ({"strategy": "threshold"}, False),
        ({"strategy": "starr"}, True),
        ({"strategy": "threshold", "verify": 0.3}, True),
    ],
)
def test_frames_say_whether_held_tokens_may_be_revoked(knowing, given, revokes):
    frames = [chunk for chunk in chunks(knowing, KNOWN, **given) if "canvas" in chunk]
    assert {frame["revokes"] for frame in frames} == {revokes}
