"""One request, one answer: alone, among 31 others, streamed or not, from Python and from the command line."""

import asyncio
import json
import random

from starr.cli.main import main
from tests.server.running import in_thread

ASK = "How many apples?"
OPTIONS = {"strategy": "starr", "block_length": 12}


async def ask(client, text, max_tokens=30, **more):
    messages = [{"role": "user", "content": text}]
    answer = await client.chat.completions.create(model="tiny", messages=messages, max_tokens=max_tokens, **more)
    if not more.get("stream"):
        return answer.choices[0].message.content
    return "".join([chunk.choices[0].delta.content or "" async for chunk in answer])


async def crowd(server):
    rnd = random.Random(1)
    async with server.async_client() as client:
        alone = await ask(client, ASK, seed=4, temperature=0.7, extra_body=OPTIONS)
        others = [
            ask(
                client,
                f"other {i} " + "y" * rnd.randint(0, 60),
                max_tokens=rnd.randint(4, 30),
                extra_body={"strategy": rnd.choice(["starr", "confidence", "threshold:tau=0.05", "saber"])},
                stream=bool(i % 2),
            )
            for i in range(31)
        ]
        mine = [ask(client, ASK, seed=4, temperature=0.7, extra_body=OPTIONS, stream=s) for s in (True, False)]
        streamed, whole, *_ = await asyncio.gather(*mine, *others)
    return alone, streamed, whole


def test_everywhere_the_same(server, folder, capsys):
    alone, streamed, whole = in_thread(lambda: asyncio.run(crowd(server)))
    assert alone == streamed == whole
    flags = ["--strategy", "starr", "--block-length", "12", "--max-tokens", "30", "--seed", "4", "--temperature", "0.7"]
    assert main(["run", ASK, "--model", str(folder), "--json", *flags]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == alone
