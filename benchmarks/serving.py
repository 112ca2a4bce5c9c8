"""A server of its own process and clients for it, for the benchmarks of serving."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx


@dataclass(frozen=True)
class Answer:
    """What one client saw."""

    text: str
    tokens: int
    seconds: float
    first: float  # until the first settled text
    status: int = 200


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def server(*flags: str):
    """``starr serve`` with the bundled model; gives its address and process, and checks that it ends cleanly."""
    port = free_port()
    command = [sys.executable, "-c", "import sys; from starr.cli.main import main; sys.exit(main())", "serve"]
    process = subprocess.Popen([*command, "--port", str(port), "--quiet", *flags])
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(url, process)
        yield url, process
    finally:
        process.terminate()
        code = process.wait(timeout=60)
    assert code in (0, -15), f"the server ended with {code}"


def wait_for(url: str, process: subprocess.Popen, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"{url}/health").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit("the server did not start")


def cpu_seconds(process: subprocess.Popen) -> float:
    """Processor time the server has used: what a request costs, however busy the machine is."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def ask(client: httpx.AsyncClient, url: str, prompt: str, **options) -> Answer:
    """One streamed chat."""
    body = {"messages": [{"role": "user", "content": prompt}], "stream": True} | options
    body["stream_options"] = {"include_usage": True}
    began, first, text, tokens = time.perf_counter(), None, "", 0
    async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
        if answer.status_code != 200:
            await answer.aread()
            return Answer("", 0, time.perf_counter() - began, 0.0, answer.status_code)
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line[6:])
            if chunk.get("usage"):
                tokens = chunk["usage"]["completion_tokens"]
            new = chunk["choices"][0]["delta"].get("content") if chunk["choices"] else None
            if new:
                first = first or time.perf_counter()
                text += new
    done = time.perf_counter()
    return Answer(text, tokens, done - began, (first or done) - began)
