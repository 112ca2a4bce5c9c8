"""A block-causal checkpoint over HTTP: its family's defaults, streams that only grow, several rows at once."""

from concurrent.futures import ThreadPoolExecutor

import starr
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
