"""What batching gives a server: `python -m benchmarks.serve` prints two tables and writes JSON with --out FILE.

1. 1, 4, 16 and 64 clients on the bundled model, each asking again when it is answered; beside them 16 clients of a
   server that decodes one row at a time. Both servers run in turns, so that a busy machine slows both.
2. Short requests alone and beside long ones that never stop.
All answers to one prompt must be the same, whoever was served beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path

import httpx

from benchmarks.report import machine, table
from benchmarks.serving import Answer, ask, cpu_seconds, server
from starr.evals.tasks import word_problems

CLIENTS = (1, 4, 16, 64)


def percentile(values: list[float], share: float) -> float:
    """The smallest value that at least this share of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * round(share * 100) // 100) - 1)]


async def load(url: str, clients: int, prompts: list[str], **options) -> tuple[list[Answer], float]:
    """All prompts, ``clients`` at a time; answers in order, and the seconds it took."""
    answers: dict[int, Answer] = {}
    waiting = list(enumerate(prompts))[::-1]

    async def one(client: httpx.AsyncClient) -> None:
        while waiting:
            place, prompt = waiting.pop()
            answers[place] = await ask(client, url, prompt, **options)

    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(timeout=600, limits=limits) as client:
        began = time.perf_counter()
        await asyncio.gather(*(one(client) for _ in range(clients)))
        took = time.perf_counter() - began
    return [answers[place] for place in range(len(prompts))], took


def row(name: str, clients: int, answers: list[Answer], took: float, cpu: float) -> dict:
    seconds, tokens = [a.seconds for a in answers], sum(a.tokens for a in answers)
    figures = {f"p{round(share * 100)} s": percentile(seconds, share) for share in (0.5, 0.95, 0.99)}
    first = percentile([a.first for a in answers], 0.5)
    start = {"serving": name, "clients": clients, "requests": len(answers), "requests/s": len(answers) / took}
    return start | figures | {"first text s": first, "tokens/s": tokens / took, "cpu s/request": cpu / len(answers)}


def throughput(prompts: list[str], options: dict, rounds: int) -> tuple[list[dict], dict[str, str]]:
    """The table's rows; texts by prompt, checked to be the same everywhere."""
    texts: dict[str, str] = {}
    kept: dict[tuple[str, int], tuple[list[Answer], float, float]] = {}

    def run(name: str, here: tuple, clients: int) -> None:
        asked, used = prompts[: max(8, min(len(prompts), 2 * clients))], cpu_seconds(here[1])
        answers, took = asyncio.run(load(here[0], clients, asked, **options))
        used = cpu_seconds(here[1]) - used
        for prompt, answer in zip(asked, answers, strict=True):
            assert answer.status == 200, f"status {answer.status}"
            assert texts.setdefault(prompt, answer.text) == answer.text, "two answers to one prompt"
        before, spent, cpu = kept.get((name, clients), ([], 0.0, 0.0))
        kept[name, clients] = (before + answers, spent + took, cpu + used)

    with server() as batched, server("--engines", "1", "--max-rows", "1") as single:
        for url, _ in (batched, single):
            asyncio.run(load(url, 1, prompts[:2], **options))  # the first forwards are slower
        for _ in range(rounds):
            run("one at a time", single, 16)
            for clients in CLIENTS:
                run("batched", batched, clients)
    return [row(*key, *value) for key, value in sorted(kept.items(), reverse=True)], texts


async def beside(url: str, shorts: list[str], long: str, short: dict, longs: int) -> list[Answer]:
    """Short requests one after the other, while ``longs`` clients keep asking for a long answer."""
    async with httpx.AsyncClient(timeout=600) as client:

        async def for_ever() -> None:
            while True:
                await ask(client, url, long, max_tokens=400, strategy="confidence", eos="never")

        noise = [asyncio.ensure_future(for_ever()) for _ in range(longs)]
        await asyncio.sleep(2.0 if longs else 0.0)
        answers = [await ask(client, url, prompt, **short) for prompt in shorts]
        for task in noise:
            task.cancel()
        await asyncio.gather(*noise, return_exceptions=True)
    return answers


def fairness(prompts: list[str], options: dict) -> list[dict]:
    rows = []
    with server() as (url, _):
        asyncio.run(beside(url, prompts[:2], prompts[0], options, 0))
        alone = asyncio.run(beside(url, prompts, prompts[0], options, 0))
        crowded = asyncio.run(beside(url, prompts, prompts[0], options, 4))
    assert [a.text for a in alone] == [a.text for a in crowded], "an answer changed beside others"
    for name, answers in (("alone", alone), ("beside 4 long", crowded)):
        seconds = [a.seconds for a in answers]
        rows.append({"short": name, "requests": len(answers), "p50 s": percentile(seconds, 0.5)})
        rows[-1] |= {"p99 s": percentile(seconds, 0.99), "p99 / p99 alone": percentile(seconds, 0.99)}
    base = rows[0]["p99 s"]
    return [entry | {"p99 / p99 alone": entry["p99 / p99 alone"] / base} for entry in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--requests", type=int, default=128)
    parser.add_argument("--short", type=int, default=40, help="short requests of the second table")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    prompts = [problem.prompt for problem in word_problems.load()[: args.requests]]
    options = {"max_tokens": args.tokens, "block_length": 16}
    rows, _ = throughput(prompts, options, args.rounds)
    shorts = fairness(prompts[: args.short], options)
    single = next(r["requests/s"] for r in rows if r["serving"] == "one at a time")
    rows = [r | {"x one at a time": r["requests/s"] / single} for r in rows]
    print(table(f"Serving {args.tokens} tokens in blocks of 16", rows))
    print(table("Short requests beside long ones", shorts))
    if args.out:
        args.out.write_text(json.dumps({"machine": machine(), "throughput": rows, "fairness": shorts}, indent=1))


if __name__ == "__main__":
    main()
