"""The official client against the real server: chat and completions, whole and streamed, sync and async, and errors."""

import asyncio

import openai
import pytest

import starr
from tests.server.running import in_thread

ASK = [{"role": "user", "content": "Count to three."}]


@pytest.fixture
def client(server):
    return server.client()


def chat(client, **more):
    return client.chat.completions.create(model="tiny", messages=ASK, **{"max_tokens": 24} | more)


def complete(client, prompt="one two", **more):
    return client.completions.create(model="tiny", prompt=prompt, **{"max_tokens": 24} | more)


def test_chat_is_what_generate_says(client, model):
    answer, expected = chat(client, seed=3), starr.generate(model, ASK, max_tokens=24, seed=3)
    assert answer.id.startswith("chatcmpl-")
    assert answer.object == "chat.completion"
    assert answer.model == "tiny"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == expected.text
    assert answer.choices[0].finish_reason == expected.finish_reason
    assert answer.usage.prompt_tokens == expected.prompt_tokens
    assert answer.usage.completion_tokens == expected.stats.tokens
    assert answer.usage.total_tokens == expected.prompt_tokens + expected.stats.tokens
    figures = answer.model_extra["starr"]
    assert figures["forwards"] == expected.stats.forwards
    assert figures["positions"] == expected.stats.positions
    assert figures["revocations"] == expected.stats.revocations
    assert figures["tokens_per_forward"] == pytest.approx(expected.stats.tokens_per_forward, abs=1e-4)


def test_completion_takes_text_tokens_and_lists_of_both(client, model):
    expected = starr.generate(model, "one two", chat=False, max_tokens=24).text
    ids = model.tokenizer.encode("one two")
    begun = [] if model.spec.bos_id is None else [model.spec.bos_id]
    assert complete(client).choices[0].text == expected
    assert complete(client, begun + ids).choices[0].text == expected
    several = complete(client, ["three", "one two"], n=2)
    assert [choice.index for choice in several.choices] == [0, 1, 2, 3]
    assert [choice.text for choice in several.choices[2:]] == [expected] * 2
    assert several.choices[0].text != expected
    assert complete(client, [begun + ids, [5, 6]]).choices[0].text == expected


def test_streams_add_up_to_the_answer(client):
    for more in (
        {},
        {"extra_body": {"strategy": "threshold:tau=0.05", "block_length": 8}},
        {"temperature": 0.8, "seed": 3},
    ):
        whole = chat(client, **more).choices[0].message.content
        chunks = list(chat(client, stream=True, **more))
        assert chunks[0].choices[0].delta.role == "assistant"
        assert chunks[-1].choices[0].finish_reason in ("stop", "length")
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole
        assert "".join(c.choices[0].text for c in complete(client, stream=True, **more)) == (
            complete(client, **more).choices[0].text
        )


def test_usage_comes_last_in_a_stream_if_asked_for(client):
    *body, last = chat(client, stream=True, stream_options={"include_usage": True})
    assert last.choices == []
    assert last.usage == chat(client).usage
    assert all(chunk.usage is None for chunk in body)
    assert body[-1].model_extra["starr"]["forwards"] == last.usage.model_extra["forwards"]


def test_n_answers_have_seeds_that_follow(client):
    answer = chat(client, n=3, seed=5, temperature=1.0)
    texts = [choice.message.content for choice in answer.choices]
    alone = [chat(client, seed=5 + i, temperature=1.0).choices[0].message.content for i in range(3)]
    assert texts == alone
    assert len(set(texts)) == 3
    streamed = [""] * 3
    for chunk in chat(client, n=3, seed=5, temperature=1.0, stream=True):
        streamed[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert streamed == texts


@pytest.mark.parametrize("stream", [False, True])
def test_stop_strings_end_the_text_and_never_leak(client, stream):
    extra = {"block_length": 4, "strategy": "confidence"}
    text = complete(client, max_tokens=40, extra_body=extra).choices[0].text
    stop = text[9:12]
    answer = complete(client, max_tokens=40, stop=[stop, "never there"], stream=stream, extra_body=extra)
    chunks = list(answer) if stream else [answer]
    assert "".join(chunk.choices[0].text for chunk in chunks) == text[: text.index(stop)]
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_a_stop_string_saves_forwards(client):
    extra = {"block_length": 4, "strategy": "confidence"}
    whole = complete(client, max_tokens=40, extra_body=extra)
    stopped = complete(client, max_tokens=40, extra_body=extra, stop=whole.choices[0].text[2:4])
    assert stopped.usage.model_extra["forwards"] < whole.usage.model_extra["forwards"]
    assert stopped.usage.completion_tokens < whole.usage.completion_tokens


def test_logprobs_are_of_the_step_of_commitment(client, model):
    expected = starr.generate(model, ASK, max_tokens=24)
    content = chat(client, logprobs=True, top_logprobs=1).choices[0].logprobs.content
    assert [entry.logprob for entry in content] == pytest.approx(expected.logprobs)
    assert b"".join(bytes(entry.bytes) for entry in content) == b"".join(map(model.tokenizer.bytes_of, expected.tokens))
    found = complete(client, logprobs=1).choices[0]
    assert len(found.logprobs.tokens) == len(found.logprobs.token_logprobs) == len(found.logprobs.text_offset)
    assert found.logprobs.token_logprobs == pytest.approx(
        starr.generate(model, "one two", chat=False, max_tokens=24).logprobs
    )


def test_streamed_logprobs_are_the_same(client):
    extra = {"block_length": 6}
    whole = chat(client, logprobs=True, extra_body=extra).choices[0].logprobs.content
    pieces = [c.choices[0].logprobs for c in chat(client, logprobs=True, stream=True, extra_body=extra)]
    assert [entry for piece in pieces if piece for entry in piece.content] == whole


def test_our_fields_reach_the_engine(client, model):
    extra = {"strategy": "threshold:tau=0.05", "cache": "none", "block_length": 8, "max_forwards": 5, "trace": True}
    answer = chat(client, extra_body=extra)
    expected = starr.generate(model, ASK, max_tokens=24, **extra)
    assert answer.choices[0].message.content == expected.text
    assert answer.model_extra["starr"]["strategy"] == "threshold:tau=0.05"
    trace = answer.choices[0].model_extra["trace"]
    assert trace["version"] == 1
    assert [step["action"] for step in trace["steps"]] == [step.action for step in expected.trace.steps]


def test_in_place_prompting_and_infilling(server, client, model):
    import httpx

    ice = "ice:steps=2,answer=4"
    assert chat(client, max_tokens=60, extra_body={"ice": ice}).choices[0].message.content == (
        starr.generate(model, ASK, max_tokens=60, ice=ice).text
    )
    text = "Tom has [MASK:3] apples."
    answer = httpx.post(f"{server.url}/v1/infill", json={"text": text}).json()
    assert answer["choices"][0]["text"] == starr.infill(model, text).text
    assert answer["usage"]["completion_tokens"] == 3


BAD = [
    ({"model": "gpt"}, openai.NotFoundError, "model", "Known: tiny"),
    ({"temperature": -1}, openai.BadRequestError, "temperature", "within [0"),
    ({"max_tokens": 0}, openai.BadRequestError, "max_tokens", "within [1"),
    ({"n": 0}, openai.BadRequestError, "n", "within [1"),
    ({"n": 1000}, openai.BadRequestError, "n", "within [1, 32]"),
    ({"seed": -1}, openai.BadRequestError, "seed", "within [0"),
    ({"stop": [""]}, openai.BadRequestError, "stop", "none of them empty"),
    ({"messages": []}, openai.BadRequestError, "messages", "must not be empty"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, openai.BadRequestError, "messages", "text"),
    ({"top_logprobs": 21, "logprobs": True}, openai.BadRequestError, "top_logprobs", "within [0, 20]"),
    ({"tools": [{"type": "web_search"}]}, openai.BadRequestError, "tools", "function"),
    ({"logit_bias": {"5": 101}}, openai.BadRequestError, "logit_bias", "within [-100, 100]"),
    ({"logit_bias": {"5000": 1}}, openai.BadRequestError, "logit_bias", "within [0, 271]"),
    ({"extra_body": {"min_p": 2}}, openai.BadRequestError, "min_p", "within [0, 1]"),
    ({"extra_body": {"best_of": 2}}, openai.BadRequestError, "best_of", "n answers"),
    ({"extra_body": {"echo": True}}, openai.BadRequestError, "echo", "prompt"),
    ({"presence_penalty": 1.0}, openai.BadRequestError, "presence_penalty", "not supported"),
    ({"extra_body": {"strategy": "star"}}, openai.BadRequestError, "strategy", "Did you mean 'starr'?"),
    ({"extra_body": {"strategy": "@/etc/passwd"}}, openai.BadRequestError, "strategy", "from a file"),
    ({"extra_body": {"strategy": "pc:frequencies=/etc/passwd"}}, openai.BadRequestError, "strategy", "from a file"),
    ({"extra_body": {"strategy": "calibrated:rule=/etc/passwd"}}, openai.BadRequestError, "strategy", "from a file"),
    ({"extra_body": {"strategy": 5}}, openai.BadRequestError, "strategy", "string"),
    ({"extra_body": {"cache": "non"}}, openai.BadRequestError, "cache", "Did you mean 'none'?"),
    ({"extra_body": {"timeout": -1}}, openai.BadRequestError, "timeout", "within (0"),
    ({"max_tokens": 10**9}, openai.APIStatusError, "max_tokens", "positions, the model has 512"),
]


@pytest.mark.parametrize(("change", "kind", "param", "words"), BAD, ids=[str(bad[0])[:50] for bad in BAD])
@pytest.mark.parametrize("stream", [False, True])
def test_errors_name_the_field_and_the_rule(client, change, kind, param, words, stream):
    with pytest.raises(kind) as caught:
        client.chat.completions.create(**{"model": "tiny", "messages": ASK, "stream": stream} | change)
    assert caught.value.param == param
    assert words in caught.value.message
    assert caught.value.code == ("context_length_exceeded" if change.get("max_tokens", 0) > 1 else caught.value.code)


def test_token_ids_out_of_range_are_refused(client):
    for wrong in ([1, 10**6], [-1]):
        with pytest.raises(openai.BadRequestError, match="Token ids must be within"):
            complete(client, wrong)


def test_neutral_values_and_unknown_fields_are_accepted(client):
    neutral = {"presence_penalty": 0, "logit_bias": {}, "user": "me", "response_format": {"type": "text"}}
    assert chat(client, **neutral, extra_body={"no_such_field": 1}).choices[0].message.content == (
        chat(client).choices[0].message.content
    )


def test_models(client):
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").model_extra["max_model_len"] == 512
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other/name")


def test_the_async_client(server):
    async def all_of_it():
        async with server.async_client() as client:
            whole = await chat(client)
            chunks = [chunk async for chunk in await chat(client, stream=True)]
            text = await complete(client)
            pieces = [chunk async for chunk in await complete(client, stream=True)]
            with pytest.raises(openai.BadRequestError):
                await chat(client, temperature=-1)
        return whole, chunks, text, pieces

    whole, chunks, text, pieces = in_thread(lambda: asyncio.run(all_of_it()))
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == whole.choices[0].message.content
    assert "".join(c.choices[0].text for c in pieces) == text.choices[0].text
