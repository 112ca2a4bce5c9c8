"""Many requests by the official client, each checked against ``starr.generate``."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import openai

import starr

PROMPTS = ("What is it?", "And now?", "Tell me more of it.", "Why?", "Who has it?")


@dataclass(frozen=True)
class Ask:
    """One request."""

    prompt: str
    seed: int
    stream: bool
    max_tokens: int = 6

    @property
    def body(self):
        said = [{"role": "user", "content": self.prompt}]
        return {"messages": said, "seed": self.seed, "max_tokens": self.max_tokens, "temperature": 0.8}


def asks(count, max_tokens=6):
    return [Ask(PROMPTS[i % len(PROMPTS)], i % 7, i % 2 == 0, max_tokens) for i in range(count)]


def expected(model, asked):
    """The text of ``starr.generate``, by request; equal requests are decoded once."""
    found = {}
    for ask in set(asked):
        options = {"max_tokens": ask.max_tokens, "seed": ask.seed, "temperature": 0.8}
        found[ask] = starr.generate(model, [{"role": "user", "content": ask.prompt}], **options).text
    return found


def client_of(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0, timeout=300)


def answer(client, ask):
    """The text, whole or streamed; an error where the connection or the server failed."""
    try:
        if not ask.stream:
            return client.chat.completions.create(model="tiny", **ask.body).choices[0].message.content
        parts = client.chat.completions.create(model="tiny", stream=True, **ask.body)
        chunks = list(parts)
    except Exception as error:
        return error
    if not any(chunk.choices and chunk.choices[0].finish_reason for chunk in chunks):
        return ConnectionError("the stream ended early")
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def ask_all(url, asked, threads=8, during=lambda done: None):
    """Answers in order; ``during`` is called with the number done after each."""
    client, done = client_of(url), []

    def one(ask):
        found = answer(client, ask)
        done.append(found)
        during(len(done))
        return found

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, asked))
