"""Structured answers over HTTP with the official client: forms, refusals, and hostile expressions beside others."""

import json
import re
import threading
from enum import Enum

import jsonschema
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import BaseModel, Field

from starr.decode.extras.constraints import compile as compiling
from starr.errors import LengthError
from starr.server.errors import rename_field
from starr.server.http.service import COMPILERS
from tests.decode.extras.constraints.random_schemas import schemas
from tests.server.running import http, wait_until

MESSAGES = [{"role": "user", "content": "Say something."}]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Thing(BaseModel):
    name: str = Field(max_length=8)
    colour: Colour
    count: int = Field(ge=0, le=99)
    tags: list[bool] = Field(max_length=2)
    note: str | None


@pytest.fixture(scope="module")
def client(server):
    return server.client()


def ask(client, **more):
    more = {"max_tokens": 96, **more}
    return client.chat.completions.create(model="tiny", messages=MESSAGES, **more).choices[0]


def test_a_pydantic_model_is_parsed(client):
    done = client.chat.completions.parse(model="tiny", messages=MESSAGES, response_format=Thing, max_tokens=160)
    found = done.choices[0].message.parsed
    assert isinstance(found, Thing)
    assert 0 <= found.count <= 99


def test_a_json_schema_and_any_object(client):
    schema = {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "point", "schema": schema, "strict": True}}
    jsonschema.validate(json.loads(ask(client, response_format=form).message.content), schema)
    choice = ask(client, response_format={"type": "json_object"})
    assert isinstance(json.loads(choice.message.content), dict)
    assert choice.finish_reason == "stop"


@pytest.mark.parametrize(
    "more",
    [
        {"regex": "[0-9]{3}-[a-z]+"},
        {"structured_outputs": {"regex": "[0-9]{3}-[a-z]+"}},
        {"regex": "[0-9]{3}-[a-z]+", "strategy": "threshold", "cache": "dual", "block_length": 8},
    ],
)
def test_an_expression(client, more):
    assert re.fullmatch("[0-9]{3}-[a-z]+", ask(client, extra_body=more, max_tokens=24).message.content)


def test_a_stream_keeps_to_it_too(client):
    chunks = client.chat.completions.create(
        model="tiny", messages=MESSAGES, max_tokens=24, stream=True, extra_body={"regex": "(ab)+c"}
    )
    assert re.fullmatch("(ab)+c", "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices))


def test_one_of_several_choices(client):
    choices = ["yes", "no", "perhaps"]
    assert ask(client, extra_body={"choice": choices}).message.content in choices
    assert ask(client, extra_body={"structured_outputs": {"choice": choices}}).message.content in choices


def test_choices_with_their_probabilities(client, server):
    import starr

    choices = ["yes", "no", "perhaps"]
    answer = client.chat.completions.create(
        model="tiny", messages=MESSAGES, logprobs=True, extra_body={"choice": choices}
    )
    found = answer.choices[0]
    entry = found.logprobs.content[0]
    assert entry.token == found.message.content
    assert {top.token for top in entry.top_logprobs} == set(choices)
    here = starr.choose(server.service.ready.model, MESSAGES, choices)
    assert entry.token == here.text
    assert entry.logprob == pytest.approx(__import__("math").log(here.probability), abs=1e-4)
    figures = answer.model_extra["starr"]
    assert (figures["forwards"], figures["revocations"], figures["strategy"]) == (1, 0, None)
    assert figures["tokens_per_forward"] == answer.usage.completion_tokens
    assert figures["positions"] == answer.usage.prompt_tokens + len("perhaps") + 1, "a token is a byte here"
    text = client.completions.create(model="tiny", prompt="a", logprobs=1, extra_body={"choice": choices}).choices[0]
    assert sum(map(pow, [2.718281828] * 3, text.logprobs.top_logprobs[0].values())) == pytest.approx(1.0, abs=1e-4)


REFUSED = [
    ({"response_format": {"type": "grammar"}}, "response_format", "must be of type"),
    ({"response_format": {"type": "json_schema"}}, "response_format", "needs json_schema"),
    ({"regex": "a(?=b)"}, "regex", "look-around"),
    ({"regex": "("}, "regex", "cannot be read"),
    ({"regex": "a", "choice": ["b"]}, "choice", "one form"),
    ({"choice": []}, "choice", "choice"),
    ({"choice": ["a" * 90]}, "max_tokens", "at least 90 tokens, max_tokens is 48"),
    ({"choice": ["a"], "strategy": "daedal"}, "strategy", "daedal"),
    ({"choice": ["a" * 90], "max_completion_tokens": 9}, "max_completion_tokens", "at least 90 tokens"),
    ({"max_completion_tokens": 0}, "max_completion_tokens", "got 0"),
    ({"structured_outputs": {"choice": []}}, "structured_outputs", "structured_outputs"),
    ({"structured_outputs": {"regex": "("}}, "structured_outputs", "cannot be read"),
    ({"regex": r"\ba"}, "regex", "cannot be used here"),
    ({"structured_outputs": {"grammar": "x"}}, "structured_outputs", "grammar"),
    ({"regex": "a{200}", "max_tokens": 8}, "max_tokens", "too short"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"not": {}}}}},
        "response_format",
        "response_format",
    ),
]


@pytest.mark.parametrize(("more", "param", "words"), REFUSED, ids=[str(row[0])[:50] for row in REFUSED])
def test_what_cannot_be_kept_is_refused_by_the_name_that_was_sent(client, more, param, words):
    with pytest.raises(openai.BadRequestError, match=words) as caught:
        ask(client, extra_body={"max_tokens": 48} | more)
    assert caught.value.param == param


def test_an_error_is_told_under_the_name_of_the_field_that_was_sent():
    error = rename_field(LengthError("Too long.", hint="Shorten it.", param="max_tokens"), {"max_tokens": "most"})
    assert (type(error), error.param, error.hint) == (LengthError, "most", "Shorten it.")
    assert rename_field(error, {"max_tokens": "other"}) is error
    assert rename_field(error, {"most": "most"}) is error


@settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(schema=schemas)
def test_a_random_schema_is_answered_or_refused(server, schema):
    """Sensible, odd and wrong ones: what is answered is JSON, what is not is a 400 that names its parameter."""
    form = {"type": "json_schema", "json_schema": {"name": "any", "schema": schema}}
    body = {"messages": MESSAGES, "max_tokens": 48, "max_forwards": 4, "response_format": form}
    answer = http.post(f"{server.url}/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        json.loads(answer.json()["choices"][0]["message"]["content"])
    else:
        assert answer.json()["error"]["param"] in ("max_tokens", "response_format")


def test_hostile_expressions_block_nobody(server, client, monkeypatch):
    """Six at once; a plain request beside them is answered before any of them is."""
    hostile = ["(a|b)*a(a|b){20}", "a{1000000}", "((a{1,99}){1,99}){1,99}"] * 2
    codes, begun, over, real = [], threading.Event(), threading.Event(), compiling.compile_constraint

    def held(asked, spelling):
        begun.set()
        assert over.wait(600)
        return real(asked, spelling)

    monkeypatch.setattr(compiling, "compile_constraint", held)

    def attack(pattern):
        body = {"messages": MESSAGES, "max_tokens": 8, "regex": pattern}
        codes.append(http.post(f"{server.url}/v1/chat/completions", json=body).status_code)

    threads = [threading.Thread(target=attack, args=(pattern,)) for pattern in hostile]
    for thread in threads:
        thread.start()
    assert begun.wait(600)
    plain = ask(client, max_tokens=4)
    before = list(codes)
    over.set()
    for thread in threads:
        thread.join()
    assert plain.finish_reason in ("stop", "length")
    assert not before, "the plain answer came first"
    assert codes == [400] * 6


def test_what_was_compiled_before_waits_for_no_compiler(server, client, monkeypatch):
    """Every thread that compiles is held, and others wait for one: forms that are kept are answered meanwhile."""
    before = ask(client, extra_body={"regex": "[0-9]{2}"}).message.content
    begun, over, real = [], threading.Event(), compiling.compile_constraint

    def held(asked, spelling):
        begun.append(asked)
        assert over.wait(600)
        return real(asked, spelling)

    monkeypatch.setattr(compiling, "compile_constraint", held)
    found = []

    def attack(pattern):
        body = {"messages": MESSAGES, "max_tokens": 8, "regex": pattern}
        found.append(http.post(f"{server.url}/v1/chat/completions", json=body).status_code)

    threads = [threading.Thread(target=attack, args=(f"held{n}",)) for n in range(COMPILERS + 2)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(begun) == COMPILERS)
        assert ask(client, extra_body={"regex": "[0-9]{2}"}).message.content == before
        assert ask(client, logprobs=True, extra_body={"choice": ["a", "b"]}).message.content in ("a", "b")
        assert len(begun) == COMPILERS
        assert found == []
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert found == [200] * (COMPILERS + 2)
