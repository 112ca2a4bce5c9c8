"""A real server on a free loopback port, in a thread of this process."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import httpx
import openai

from starr.server.settings import Settings
from starr.server.start import build_server

PATIENCE = 120.0  # seconds, on a machine that does other things too
http = SimpleNamespace(
    get=partial(httpx.get, timeout=PATIENCE),
    post=partial(httpx.post, timeout=PATIENCE),
    stream=partial(httpx.stream, timeout=PATIENCE),
    Client=partial(httpx.Client, timeout=PATIENCE),
)


@dataclass(frozen=True)
class Running:
    url: str
    service: object
    server: object
    thread: threading.Thread

    @property
    def pool(self):
        return self.service.ready.pool

    def client(self, **more):
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key="unused", max_retries=0, **more)

    def async_client(self, **more):
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key="unused", max_retries=0, **more)

    def stop(self):
        self.server.should_exit = True
        self.thread.join(timeout=60)
        assert not self.thread.is_alive()


def in_thread(work):
    """Call ``work`` in a thread of its own: a browser that is open elsewhere in the run keeps a loop in this one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()


def wait_until(test, seconds=PATIENCE):
    """Wait for something that another thread brings about."""
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def logged(records, **wanted):
    """The only line of the access log with these values; waited for, because it is written after the answer."""

    def found():
        lines = [json.loads(record.getMessage()) for record in list(records) if record.name == "starr.access"]
        return [line for line in lines if wanted.items() <= line.items()]

    wait_until(found)
    (line,) = found()
    return line


@contextmanager
def running(load, *, loaded=True, **settings):
    """A server that has loaded its model, if ``loaded``; stopped and checked at the end."""
    server = build_server(load, Settings(port=0, **settings))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    host, port = server.servers[0].sockets[0].getsockname()
    here = Running(f"http://{host}:{port}", server.config.app.state.service, server, thread)
    try:
        if loaded:
            wait_until(lambda: http.get(f"{here.url}/health").status_code == 200)
        yield here
    finally:
        here.stop()
