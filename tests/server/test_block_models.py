"""A block-causal checkpoint over HTTP: its family's defaults, streams that only grow, several rows at once."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import pytest

import starr
from starr.decode.choose import answers
from starr.model.load import load
from tests.model import released
from tests.server.running import running

PROMPTS = ["a", "four words of it", "a prompt that ends between two blocks!"]


def test_answers_and_streams_are_those_of_the_library(tmp_path):
    folder = released.sdar().write(tmp_path / "model")
    expected = [starr.generate(load(folder), prompt, max_tokens=13).text for prompt in PROMPTS]

    with running(lambda: load(folder)) as server:
        client = server.client()

        def ask(prompt: str) -> str:
            answer = client.completions.create(model="model", prompt=prompt, max_tokens=13, temperature=0)
            return answer.choices[0].text

        def watch(prompt: str) -> str:
            parts = client.completions.create(model="model", prompt=prompt, max_tokens=13, temperature=0, stream=True)
            return "".join(part.choices[0].text for part in parts if part.choices)

        with ThreadPoolExecutor(6) as threads:
            whole = list(threads.map(ask, PROMPTS))
            streamed = list(threads.map(watch, PROMPTS))
    assert whole == streamed == expected


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def test_structured_answers_and_choices(tmp_path, monkeypatch):
    """What an official client may ask: a schema, an expression, choices, and choices with probabilities."""
    folder = released.llada2().write(tmp_path / "model")
    given = starr.choose(load(folder), PROMPTS[1], ["yes", "no"], chat=False)
    read = []
    real = answers.states_of
    monkeypatch.setattr(answers, "states_of", lambda model, rows, *more: read.extend(rows) or real(model, rows, *more))

    with running(lambda: load(folder)) as server:
        client = server.client()

        def ask(prompt: str, **more):
            return client.completions.create(model="model", prompt=prompt, max_tokens=40, temperature=0, **more)

        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
        for prompt in PROMPTS:
            text = ask(prompt, extra_body={"response_format": form}).choices[0].text
            jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
            assert re.fullmatch("[a-f]{3,5}", ask(prompt, extra_body={"regex": "[a-f]{3,5}"}).choices[0].text)
        answer = ask(PROMPTS[1], extra_body={"choice": ["yes", "no"]}, logprobs=2)
    (tops,) = answer.choices[0].logprobs.top_logprobs
    assert answer.choices[0].text == given.text
    assert tops[given.text] == pytest.approx(answer.choices[0].logprobs.token_logprobs[0])
    assert answer.usage.forwards == 1
    assert answer.starr["positions"] == sum(map(len, read)) > 0
