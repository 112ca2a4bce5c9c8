"""Minutes of mixed load on a server: `python -m benchmarks.soak --minutes 10` prints a table; exits 1 on any mistake.

Clients ask (streamed or not, with different strategies, lengths and blocks), leave in the middle, send garbage, bodies
that are too large, and bodies that never end. Every answer is compared with ``starr.generate`` of its own prompt.
Memory of the server is compared between the end of minute 2 and the end (a fifth of the time in shorter runs).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import httpx

import starr
from benchmarks.report import machine, table
from benchmarks.serving import ask, server
from starr.evals.tasks import word_problems

STRATEGIES = ("starr", "threshold", "confidence", "saber")
MOST_BODY = 1 << 16


def pool(size: int) -> list[tuple[str, dict, str]]:
    """Prompts, options and the answers they must get."""
    model, rnd, cases = starr.load(), random.Random(0), []
    for problem in word_problems.load()[:size]:
        options = {"strategy": rnd.choice(STRATEGIES), "max_tokens": rnd.choice([8, 16, 32, 64])}
        options |= {"block_length": rnd.choice([None, 8]), "seed": rnd.randint(0, 99)}
        options["temperature"] = rnd.choice([0.0, 0.0, 0.7])
        cases.append((problem.prompt, options, starr.generate(model, problem.prompt, **options).text))
    return cases


class Soak:
    """The clients, and what they saw."""

    def __init__(self, url: str, cases: list[tuple[str, dict, str]], end: float) -> None:
        self.url, self.cases, self.end = url, cases, end
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.memory: list[tuple[float, int]] = []

    async def again(self, work, seed: int) -> None:
        """Repeat the work until the time is up."""
        rnd = random.Random(seed)
        async with httpx.AsyncClient(timeout=300) as client:
            while time.monotonic() < self.end:
                await work(client, rnd)

    def expect(self, kind: str, good: bool, what: str) -> None:
        self.seen[kind] += 1
        if not good:
            self.wrong.append(f"{kind}: {what}")

    async def streamed(self, client, rnd) -> None:
        prompt, options, expected = rnd.choice(self.cases)
        answer = await ask(client, self.url, prompt, **options)
        self.expect("streamed", answer.text == expected, f"{answer.status} {answer.text!r} for {expected!r}")

    async def whole(self, client, rnd) -> None:
        prompt, options, expected = rnd.choice(self.cases)
        body = {"messages": [{"role": "user", "content": prompt}]} | options
        answer = await client.post(f"{self.url}/v1/chat/completions", json=body)
        found = answer.json()["choices"][0]["message"]["content"] if answer.status_code == 200 else None
        self.expect("whole", found == expected, f"{answer.status_code} {found!r} for {expected!r}")

    async def leaver(self, client, rnd) -> None:
        """Asks for a long answer and soon closes the connection."""
        body = {"messages": [{"role": "user", "content": "Tell me."}], "max_tokens": 400, "stream": rnd.random() < 0.5}
        with suppress(httpx.TimeoutException):
            async with client.stream("POST", f"{self.url}/v1/chat/completions", json=body, timeout=0.3) as answer:
                async for _ in answer.aiter_lines():
                    pass
        self.expect("left", True, "")

    async def garbage(self, client, rnd) -> None:
        bodies = (rnd.randbytes(200), b"{", b"[]", b'{"messages": 5}', b'{"messages": [], "n": 1e99}', b"null")
        answer = await client.post(f"{self.url}/v1/chat/completions", content=rnd.choice(bodies))
        self.expect("garbage", answer.status_code == 400, str(answer.status_code))
        await asyncio.sleep(0.2)

    async def oversized(self, client, rnd) -> None:
        status = 413
        with suppress(httpx.TransportError):  # the server may close before all is sent
            answer = await client.post(f"{self.url}/v1/chat/completions", content=b"x" * (2 * MOST_BODY))
            status = answer.status_code
        self.expect("oversized", status == 413, str(status))
        await asyncio.sleep(0.5)

    async def slow(self, client, rnd) -> None:
        """Begins a body and goes on so slowly that the server gives up."""
        host, port = self.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n{")
        line = await asyncio.wait_for(reader.readline(), 60)
        self.expect("slow", b"408" in line, repr(line))
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def watch(self, pid: int) -> None:
        """The server's resident memory, in KiB, every other second."""
        while time.monotonic() < self.end:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            size = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
            self.memory.append((time.monotonic(), size))
            await asyncio.sleep(2.0)

    async def run(self, pid: int) -> None:
        kinds = [self.streamed] * 6 + [self.whole] * 4
        kinds += [self.leaver] * 2 + [self.garbage, self.oversized, self.slow]
        work = [self.again(kind, seed) for seed, kind in enumerate(kinds)]
        await asyncio.gather(self.watch(pid), *work)


def growth(memory: list[tuple[float, int]], minutes: float) -> tuple[float, float]:
    """MiB early and late: medians of a tenth of the time each, from minute 2 (or a fifth) on and at the end."""
    begin, span = memory[0][0], 60 * minutes
    early = begin + min(120.0, span / 5)
    first = [size for at, size in memory if early <= at <= early + span / 10]
    last = [size for at, size in memory if at >= begin + span * 0.9]
    return statistics.median(first or [memory[0][1]]) / 1024, statistics.median(last or [memory[-1][1]]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    cases = pool(args.cases)
    with server("--max-body", str(MOST_BODY), "--body-timeout", "3") as (url, process):
        soak = Soak(url, cases, time.monotonic() + 60 * args.minutes)
        asyncio.run(soak.run(process.pid))
        idle = httpx.get(f"{url}/metrics").text
    early, late = growth(soak.memory, args.minutes)
    running = [line for line in idle.splitlines() if line.startswith("vllm:num_requests_running")]
    rows = [{"minutes": args.minutes} | dict(sorted(soak.seen.items())) | {"wrong": len(soak.wrong)}]
    rows[0] |= {"MiB early": early, "MiB late": late, "late / early": late / early}
    print(table("Mixed load", rows))
    print("\n".join([*soak.wrong[:10], *running]))
    if args.out:
        args.out.write_text(json.dumps({"machine": machine(), "soak": rows, "wrong": soak.wrong[:100]}, indent=1))
    if soak.wrong or late > 1.1 * early:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
