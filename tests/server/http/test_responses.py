"""``/v1/responses`` with the official client: forms, log probabilities, what comes back, and what is refused."""

import json

import openai
import pytest
from pydantic import BaseModel, Field

from tests.server.running import http

SCHEMA = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "name": "point", "schema": SCHEMA, "strict": True}

CHAT = [{"role": "user", "content": "hello there"}]
LOGPROBS = [
    ({"include": ["message.output_text.logprobs"]}, 0),
    ({"top_logprobs": 3}, 3),
    ({"extra_body": {"logprobs": True}}, 0),
]


class Thing(BaseModel):
    name: str = Field(max_length=4)
    count: int = Field(ge=0, le=99)


@pytest.fixture(scope="module")
def client(server):
    return server.client()


def post(server, **body):
    return http.post(f"{server.url}/v1/responses", json={"input": "x", "max_output_tokens": 24} | body)


def ask(client, **more):
    return client.responses.create(model="tiny", input="hello there", **{"max_output_tokens": 24} | more)


def test_a_pydantic_model_is_parsed(client):
    done = client.responses.parse(model="tiny", input="x", text_format=Thing, max_output_tokens=96)
    assert isinstance(done.output_parsed, Thing)
    with client.responses.stream(model="tiny", input="x", text_format=Thing, max_output_tokens=96) as stream:
        assert stream.get_final_response().output_parsed == done.output_parsed


def test_a_schema_any_object_and_plain_text(client):
    found = ask(client, text={"format": FORM}, max_output_tokens=48)
    assert list(json.loads(found.output_text)) == ["x"]
    assert found.text.format.name == "point"
    assert isinstance(json.loads(ask(client, text={"format": {"type": "json_object"}}).output_text), dict)
    plain = ask(client)
    assert ask(client, text={"format": {"type": "text"}}).output_text == plain.output_text
    assert plain.text.format.type == "text"


REFUSED = [
    ({"text": {"format": {"type": "grammar"}}}, "text.format", "text.format must be of type"),
    ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format", "needs a schema"),
    ({"text": {"format": "json"}}, "text.format", "must be an object"),
    ({"text": {"format": FORM | {"schema": {"not": {}}}}}, "text.format", "not"),
    ({"text": {"format": FORM}, "response_format": {"type": "text"}}, "text.format", "Leave one out"),
    ({"text": {"format": FORM}, "regex": "a"}, "regex", "one form"),
    ({"text": {"verbosity": "low"}}, "text.verbosity", "not supported"),
    ({"n": 2}, "n", "n must be 1 here, got 2"),
    ({"stream": True, "diffusing": True}, "diffusing", "not supported here"),
    ({"top_logprobs": 21}, "top_logprobs", "within"),
    ({"background": True}, "background", "not supported"),
    ({"conversation": "conv_1"}, "conversation", "Send its messages"),
    ({"previous_response_id": "resp_1"}, "previous_response_id", "Send its messages"),
    ({"prompt": {"id": "pmpt_1"}}, "prompt", "not supported"),
    ({"truncation": "auto"}, "truncation", "not supported"),
    ({"reasoning": {"effort": "high"}}, "reasoning", "not supported"),
    ({"max_tool_calls": 3}, "max_tool_calls", "not supported"),
    ({"metadata": {"a": 1}}, "metadata", "string"),
    ({"max_output_tokens": 0}, "max_output_tokens", "got 0"),
    ({"max_output_tokens": 10**6}, "max_output_tokens", "1000024"),
    ({"max_output_tokens": None, "max_tokens": 0}, "max_tokens", "got 0"),
    ({"max_output_tokens": 2, "regex": "a{9}"}, "max_output_tokens", "at least 9 tokens"),
    ({"input": []}, "input", "must not be empty"),
    ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input", "input_image"),
]


@pytest.mark.parametrize(("body", "param", "words"), REFUSED, ids=[str(row[0])[:50] for row in REFUSED])
def test_what_is_not_served_is_refused_by_the_name_that_was_sent(server, body, param, words):
    answer = post(server, **body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert words in error["message"]


def test_values_that_ask_for_nothing_are_accepted(server):
    neutral = {
        "background": False, "conversation": None, "prompt": None, "truncation": "disabled", "n": 1,
        "reasoning": {"effort": "none", "summary": None}, "text": {"format": None, "verbosity": None},
        "include": ["reasoning.encrypted_content"], "top_logprobs": 0, "store": False, "max_tool_calls": 0,
    }  # fmt: skip
    answer = post(server, **neutral)
    assert answer.status_code == 200, answer.text
    assert answer.json()["output"] == [post(server).json()["output"][0] | {"id": answer.json()["output"][0]["id"]}]


def test_what_was_given_comes_back(client):
    given = {"instructions": "Be brief.", "metadata": {"a": "b"}, "temperature": 0.5, "top_p": 0.9}
    whole = ask(client, **given, extra_body={"seed": 1})
    last = list(ask(client, **given, extra_body={"seed": 1}, stream=True))[-1].response
    for found in (whole, last):
        assert {name: getattr(found, name) for name in given} == given
        assert found.max_output_tokens == 24
    assert ask(client).metadata == {}


@pytest.mark.parametrize(("more", "tops"), LOGPROBS, ids=["include", "top_logprobs", "logprobs"])
def test_log_probabilities_are_those_of_the_chat(client, more, tops):
    chat = client.chat.completions.create(
        model="tiny",
        messages=[{"role": "user", "content": "hello there"}],
        max_tokens=24,
        logprobs=True,
        top_logprobs=tops,
    )
    expected = [entry.model_dump() for entry in chat.choices[0].logprobs.content]
    part = ask(client, **more).output[0].content[0]
    assert [entry.model_dump() for entry in part.logprobs] == expected
    events = list(ask(client, stream=True, **more))
    deltas = [event.logprobs for event in events if event.type == "response.output_text.delta"]
    assert [(entry.token, entry.logprob) for new in deltas for entry in new] == [
        (entry["token"], entry["logprob"]) for entry in expected
    ]
    assert events[-1].response.output[0].content[0].logprobs == part.logprobs
    assert ask(client).output[0].content[0].logprobs == []


def test_choices_with_probabilities(client):
    found = ask(client, extra_body={"choice": ["yes", "no"], "logprobs": True})
    (entry,) = found.output[0].content[0].logprobs
    assert entry.token == found.output_text
    assert {top.token for top in entry.top_logprobs} == {"yes", "no"}
    assert found.model_extra["starr"]["forwards"] == 1
    with pytest.raises(openai.BadRequestError, match="no stream"):
        ask(client, stream=True, extra_body={"choice": ["yes", "no"], "logprobs": True})
