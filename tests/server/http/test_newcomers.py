"""What clients that cannot send our fields need, and what OpenAI's newer clients ask for."""

import json
import math
import re
import signal
import subprocess
import sys

import openai
import pytest

import starr
from tests.server.conftest import folder, model, writer  # noqa: F401
from tests.server.running import http, running

ASK = [{"role": "user", "content": "hello there"}]


@pytest.fixture(scope="module")
def server(writer):  # noqa: F811
    defaults = {"strategy": "confidence", "cache": "none", "block_length": 4, "max_tokens": 12}
    with running(lambda: writer, defaults=defaults) as here:
        yield here


def post(server, path, **body):
    return http.post(f"{server.url}{path}", json=body)


def test_the_servers_defaults_hold_where_a_field_is_absent(server):
    plain = post(server, "/v1/chat/completions", messages=ASK).json()
    told = post(
        server, "/v1/chat/completions", messages=ASK, strategy="confidence", block_length=4, max_tokens=12
    ).json()
    assert plain["choices"] == told["choices"]
    assert plain["starr"]["strategy"] == "confidence"
    other = post(server, "/v1/chat/completions", messages=ASK, strategy="threshold", max_tokens=8).json()
    assert other["starr"]["strategy"] == "threshold"


def test_a_seed_is_drawn_and_named_where_there_is_a_temperature(server):
    answers = [post(server, "/v1/chat/completions", messages=ASK, temperature=1.0).json() for _ in range(3)]
    seeds = {answer["starr"]["seed"] for answer in answers}
    assert len(seeds) == 3
    again = post(server, "/v1/chat/completions", messages=ASK, temperature=1.0, seed=answers[0]["starr"]["seed"]).json()
    assert again["choices"] == answers[0]["choices"]
    assert post(server, "/v1/chat/completions", messages=ASK).json()["starr"]["seed"] == 0


def test_tokens_to_text(server):
    tokens = post(server, "/tokenize", prompt="hello there").json()["tokens"]
    assert post(server, "/detokenize", tokens=tokens).json() == {"prompt": "hello there"}
    assert post(server, "/detokenize", tokens=[10**9]).status_code == 400


def test_docs_lists_every_endpoint_and_field_without_a_network(server):
    page = http.get(f"{server.url}/docs").text
    for word in ("POST /v1/chat/completions", "POST /v1/responses", "block_length", "stop_rule", "max_output_tokens"):
        assert word in page
    fields = re.findall(r"<tr><td><code>(\w+)</code>.*?<td>.*?<td>([^<]*)", page)
    assert len(fields) > 100
    assert not [name for name, meaning in fields if not meaning]
    assert not re.findall(r"(?:src|href)=['\"]?https?:", page)


def test_too_long_is_400_with_openais_code(server):
    answer = post(server, "/v1/chat/completions", messages=ASK, max_tokens=100_000)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")


@pytest.mark.parametrize("field", ["guided_regex", "guided_json", "json_schema", "ebnf"])
def test_a_form_under_another_servers_name_is_refused(server, field):
    answer = post(server, "/v1/chat/completions", messages=ASK, **{field: "[0-9]+"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("gen_length", 64, "That is max_tokens here."),
        ("steps", 32, "That is strategy confidence:steps=N here."),
        ("threshold", 0.9, "That is strategy threshold:tau=X here."),
        ("factor", 1.0, "That is strategy factor:factor=X here."),
        ("remasking", "low_confidence", "That is strategy confidence or random here."),
        ("cfg_scale", 0.5, "That is guidance here."),
        ("mask_id", 5, "It is read from the checkpoint."),
        ("diffusion_visual", True, "That is diffusing here."),
        ("guided_regex", "a", "That is regex here."),
        ("guided_choice", ["a"], "That is choice here."),
        ("guided_json", {}, "That is response_format here."),
        ("max_output_tokens", 9, "That is max_tokens here."),
        ("prompt", "a", "prompt is not supported. Leave it out."),
        ("suffix", "a", "suffix is not supported. Leave it out."),
    ],
)
def test_another_tools_field_is_refused_with_our_name_for_it(server, field, value, told):
    answer = post(server, "/v1/chat/completions", messages=ASK, **{field: value})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, field)
    assert error["message"].endswith(told)
    assert post(server, "/v1/chat/completions", messages=ASK, **{field: None}).status_code == 200


@pytest.mark.parametrize(
    ("field", "meant"),
    [
        ("stratgy", "strategy"),
        ("Strategy", "strategy"),
        ("block_lenght", "block_length"),
        ("block-length", "block_length"),
        ("maxTokens", "max_tokens"),
        ("temprature", "temperature"),
        ("sede", "seed"),
        ("topk", "top_k"),
        ("max_forward", "max_forwards"),
    ],
)
def test_a_misspelt_field_of_ours_is_refused(server, field, meant):
    answer = post(server, "/v1/chat/completions", messages=ASK, **{field: 1})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, field)
    assert repr(meant) in error["message"]


@pytest.mark.parametrize(
    "field", ["min_tokens", "prompt_logprobs", "skip_special_tokens", "stop_token_ids", "priority", "x", "chat_id"]
)
def test_a_field_that_nobody_knows_is_named_in_a_header(server, field):
    for stream in (False, True):
        answer = post(server, "/v1/chat/completions", messages=ASK, stream=stream, **{field: 1, "user": "me"})
        assert (answer.status_code, answer.headers["x-starr-ignored-fields"]) == (200, field)
    assert "x-starr-ignored-fields" not in post(server, "/v1/chat/completions", messages=ASK).headers
    odd = post(server, "/v1/chat/completions", messages=ASK, **{"å\n\r: x": 1, "b": 2})
    assert odd.headers["x-starr-ignored-fields"] == "\\u00e5\\n\\r: x, b"


def test_responses_whole_and_streamed_are_the_chat(server):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0)
    chat = client.chat.completions.create(model=client.models.list().data[0].id, messages=ASK, max_tokens=12)
    name, wanted = chat.model, chat.choices[0].message.content
    whole = client.responses.create(model=name, input="hello there", max_output_tokens=12)
    assert whole.output_text == wanted
    assert whole.usage.output_tokens == chat.usage.completion_tokens
    events = list(client.responses.create(model=name, input=ASK, max_output_tokens=12, stream=True))
    assert events[0].type == "response.created"
    assert events[-1].type == f"response.{whole.status}"
    assert events[-1].response.usage == whole.usage
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == wanted
    assert events[-1].response.output_text == wanted
    assert [event.sequence_number for event in events] == list(range(len(events)))
    refused = post(server, "/v1/responses", input="x", previous_response_id="resp_1")
    assert refused.status_code == 400


def test_openais_helper_follows_a_streamed_response(server):
    """It raises where an event comes before the item that it belongs to."""
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0)
    name = client.models.list().data[0].id
    with client.responses.stream(model=name, input=ASK, max_output_tokens=12) as stream:
        kinds = [event.type for event in stream]
    order = ["created", "in_progress", "output_item.added", "content_part.added", "output_text.delta"]
    assert kinds[:5] == [f"response.{kind}" for kind in order]
    assert kinds[-4:-1] == [f"response.{kind}.done" for kind in ("output_text", "content_part", "output_item")]


def test_a_response_that_fills_its_canvas_is_incomplete(server):
    whole = post(server, "/v1/responses", input=ASK, max_output_tokens=12).json()
    finish = post(server, "/v1/chat/completions", messages=ASK, max_tokens=12).json()["choices"][0]["finish_reason"]
    assert finish == "length"
    assert (whole["status"], whole["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


def test_starr_serve_names_its_address_and_serves_under_another_name(folder):  # noqa: F811
    flags = ["--port", "0", "--model", str(folder), "--served-model-name", "mine", "--max-tokens", "8"]
    with subprocess.Popen([sys.executable, "-m", "starr", "serve", *flags], stderr=subprocess.PIPE, text=True) as child:
        lines, address = [], None
        while address is None or not any("serving mine" in line for line in lines):
            lines.append(child.stderr.readline())
            assert lines[-1], lines
            found = re.search(r"http://127\.0\.0\.1:\d+", lines[-1])
            address = found[0] if found else address
        listed = http.get(f"{address}/v1/models").json()
        answer = http.post(f"{address}/v1/chat/completions", json={"model": "mine", "messages": ASK}).json()
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=120)
    assert listed["data"][0]["id"] == "mine"
    assert (answer["model"], answer["starr"]["strategy"]) == ("mine", "starr")


def test_a_suffix_is_seen_and_left_out_of_the_answer(server, writer):  # noqa: F811
    body = {"prompt": "one two", "max_tokens": 6, "block_length": None}
    found = post(server, "/v1/completions", **body, suffix=" three").json()
    whole = starr.infill(writer, "one two[MASK:6] three", strategy="confidence", block_length=4).text
    assert f"one two{found['choices'][0]['text']} three" == whole
    assert found["usage"]["completion_tokens"] == 6
    other = post(server, "/v1/completions", **body, suffix=" something else").json()
    assert found["choices"] != other["choices"]
    lines = post(server, "/v1/completions", **body, suffix=" three", stream=True).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == found["choices"][0]["text"]
    refused = post(server, "/v1/completions", **body, suffix="x", regex="[a-z]+")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "suffix")


@pytest.mark.parametrize("stream", [False, True])
def test_top_logprobs_are_of_the_step_that_committed(server, writer, stream):  # noqa: F811
    ask = {"messages": ASK, "logprobs": True, "top_logprobs": 20, "max_tokens": 8, "block_length": None}
    answer = post(server, "/v1/chat/completions", **ask, stream=stream)
    if stream:
        chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
        told = [entry for c in chunks for entry in (c["choices"][0]["logprobs"] or {"content": []})["content"]]
    else:
        told = answer.json()["choices"][0]["logprobs"]["content"]
    expected = starr.generate(writer, ASK, strategy="confidence", block_length=4, max_tokens=8)
    assert [entry["logprob"] for entry in told] == pytest.approx(expected.logprobs)
    for entry in told:
        logs = [other["logprob"] for other in entry["top_logprobs"]]
        assert len(logs) == 20
        assert entry["token"] == entry["top_logprobs"][0]["token"]
        assert logs == pytest.approx(sorted(logs, reverse=True), abs=1e-4)
        assert sum(map(math.exp, logs)) <= 1.001


def test_a_completion_has_its_likely_tokens_and_its_own(server):
    found = post(server, "/v1/completions", prompt="one two", max_tokens=4, logprobs=3).json()["choices"][0]["logprobs"]
    assert [len(tops) for tops in found["top_logprobs"]] == [3] * len(found["tokens"])
    assert all(tops[token] == log for token, log, tops in zip(
        found["tokens"], found["token_logprobs"], found["top_logprobs"], strict=True
    ))  # fmt: skip
    plain = post(server, "/v1/completions", prompt="one two", max_tokens=4, logprobs=0).json()["choices"][0]["logprobs"]
    assert [len(tops) for tops in plain["top_logprobs"]] == [1] * len(plain["tokens"])
    refused = post(server, "/v1/completions", prompt="one two", max_tokens=4, logprobs=3, cache="adaptive")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "cache")
