"""Who may ask, and what an impolite client costs: Host, Origin, Content-Type, keys, connections, log lines, health."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from starr.errors import InputError, WorkError
from starr.server.http.guard import check_headers
from starr.server.settings import Settings
from starr.server.start import bound_connections, listen
from tests.deploy.proxy import free_port
from tests.server.nets import Gate
from tests.server.running import http, logged, running, wait_until

ROOT = Path(__file__).resolve().parents[2]
JSON = {"Content-Type": "application/json"}


def asked(settings, method="GET", **headers):
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    found = check_headers({"method": method, "path": "/", "headers": pairs}, settings)
    return None if found is None else found[0]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]", "[::1]:8000"])
def test_names_of_this_machine_are_taken(host):
    assert asked(Settings(), host=host) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example:8000", "127.0.0.1.evil", "", "127.0.0.2", "::1"]
)
def test_other_names_are_refused_without_a_key(host):
    assert asked(Settings(), host=host) == 403
    assert asked(Settings(allow_host=("evil.example", "")), host="Evil.example:80") is None
    assert asked(Settings(api_key="k"), host=host) is None
    assert asked(Settings(host="0.0.0.0"), host=host) is None


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:3000", "file://", "evil://localhost:8000"]
)
def test_foreign_pages_are_refused(origin):
    assert asked(Settings(), host="localhost:8000", origin=origin) == 403
    assert asked(Settings(), host="localhost:8000", origin="http://localhost:8000") is None
    assert asked(Settings(cors=(origin,)), host="localhost:8000", origin=origin) is None


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json"])
def test_a_body_must_say_that_it_is_json(kind):
    assert asked(Settings(), "POST", host="localhost", content_type=kind) == 415
    assert asked(Settings(), "POST", host="localhost", content_type="Application/JSON; charset=utf-8") is None


def test_refusals_on_the_wire(model):
    with running(lambda: model) as here:
        rebound = http.get(f"{here.url}/v1/models", headers={"Host": "evil.example"})
        assert rebound.status_code == 403
        assert "--allow-host" in rebound.json()["error"]["message"]
        form = http.post(f"{here.url}/tokenize", content=b'{"prompt": "a"}', headers={"Content-Type": "text/plain"})
        assert form.status_code == 415
        assert "Content-Type" in form.json()["error"]["message"]


def test_keys(model):
    with pytest.raises(InputError, match="must not be empty"):
        Settings(api_key=" ")
    with running(lambda: model, api_key="k", cors=("http://page",)) as here:
        for scheme in ("Bearer", "bearer", "BEARER"):
            assert http.get(f"{here.url}/v1/models", headers={"Authorization": f"{scheme} k"}).status_code == 200
        refused = http.get(f"{here.url}/v1/models", headers={"Origin": "http://page"})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == "http://page"


@pytest.mark.parametrize("trusted", [False, True])
def test_forwarded_for_is_believed_only_if_told_so(model, caplog, trusted):
    caplog.set_level("INFO", "starr.access")
    with running(lambda: model, trust_proxy=trusted) as here:
        http.get(f"{here.url}/version", headers={"X-Forwarded-For": "6.6.6.6"})
        line = logged(caplog.records, path="/version")
    assert (line["client"] == "6.6.6.6") is trusted


def ended(wire):
    """Whether the server has closed a connection, with or without unread bytes."""
    try:
        return wire.recv(10) == b""
    except ConnectionError:
        return True


def test_idle_connections_are_closed_and_capped(model):
    with running(lambda: model, header_timeout=0.5, max_connections=6) as here:
        host, port = here.url.removeprefix("http://").split(":")
        idle = [socket.create_connection((host, int(port)), timeout=120) for _ in range(20)]
        assert len(here.server.server_state.connections) <= 6
        with suppress(ConnectionError):  # closed already, where connecting took long
            idle[0].sendall(b"GET /health HTT")  # never goes on
        wait_until(lambda: not here.server.server_state.connections)
        assert ended(idle[0])
        assert http.get(f"{here.url}/health").status_code == 200
        for wire in idle:
            wire.close()


def test_a_second_request_on_a_kept_connection_has_the_deadline_too(model):
    with running(lambda: model, header_timeout=2.0) as here:
        host, port = here.url.removeprefix("http://").split(":")
        client = HTTPConnection(host, int(port), timeout=120)
        client.request("GET", "/version")
        with client.getresponse() as answer:
            assert answer.status == 200
            answer.read()  # head and body, in however many pieces they come
        client.sock.sendall(b"GET /ver")
        assert ended(client.sock)
        client.close()


def test_head_is_get_without_a_body(model):
    with running(lambda: model) as here, http.Client() as client:
        for path in ("/health", "/v1/models", "/"):
            answer = client.head(here.url + path)
            assert (answer.status_code, answer.content) == (200, b"")
        assert client.head(f"{here.url}/v1/completions").status_code == 405


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_ends_its_side_gets_its_answer(model, stream):
    gate = Gate(model)
    with running(lambda: gate.model, ping=0.05) as here:
        host, port = here.url.removeprefix("http://").split(":")
        body = json.dumps({"prompt": "a", "max_tokens": 4, "stream": stream}).encode()
        with socket.create_connection((host, int(port)), timeout=120) as wire:
            gate.shut()
            head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n"
            wire.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
            wire.shutdown(socket.SHUT_WR)
            assert gate.waits.wait(120)
            gate.open()
            said = b"".join(iter(lambda: wire.recv(4096), b""))
    assert b"HTTP/1.1 200" in said
    assert (b"[DONE]" if stream else b'"finish_reason"') in said


def test_the_cap_stays_below_the_file_limit():
    assert bound_connections(Settings(max_connections=3)) == 3
    assert bound_connections(Settings(max_connections=10**9)) < 10**9


SERVE = """
import resource, sys
if sys.argv[1] != "0": resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
from starr.server.settings import Settings
from starr.server.start import serve
from tests.tiny import tiny_model
serve(tiny_model, Settings(port=int(sys.argv[2])))
"""


def started(files, port, stderr):
    env = os.environ | {"PYTHONPATH": f"{ROOT}/src:{ROOT}"}
    return subprocess.Popen([sys.executable, "-c", SERVE, str(files), str(port)], stderr=stderr, cwd=ROOT, env=env)


def healthy(port):
    try:
        return http.get(f"http://127.0.0.1:{port}/health", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def test_idle_sockets_and_an_unread_stderr_do_not_stop_the_server(tmp_path):
    """80 idle sockets at 64 files; and a pipe for standard error that nobody reads."""
    port = free_port()
    child = started(64, port, subprocess.PIPE)
    try:
        wait_until(lambda: healthy(port), 300)
        idle = [socket.create_connection(("127.0.0.1", port), timeout=120) for _ in range(80)]
        wait_until(lambda: healthy(port))
        for wire in idle:
            wire.close()
        with http.Client(base_url=f"http://127.0.0.1:{port}") as client:
            for _ in range(1500):  # more log than a pipe holds
                client.get("/version", headers={"X-Padding": "x"})
        wait_until(lambda: healthy(port))
    finally:
        child.kill()
        _, said = child.communicate()
    assert len(said) < 1 << 20
    for line in said.decode().splitlines():
        assert isinstance(json.loads(line), dict)


def test_no_field_name_begins_a_line(tmp_path):
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        child = started(0, port, log)
        try:
            wait_until(lambda: healthy(port), 300)
            forged = 'x\n{"time": 0, "client": "forged"}\n'
            http.post(f"http://127.0.0.1:{port}/v1/completions", json={"prompt": "a", "max_tokens": 2, forged: 1})
            wait_until(lambda: "ignored fields" in (tmp_path / "log").read_text())
        finally:
            child.kill()
            child.wait()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert not [line for line in lines if line.get("client") == "forged"]


@pytest.mark.skipif(sys.platform == "win32", reason="no terminals of this kind there")
def test_on_a_terminal_the_address_is_a_plain_line():
    ours, theirs = os.openpty()
    child = started(0, 0, theirs)
    os.close(theirs)
    said = b""
    try:
        while b"serving" not in said:
            said += os.read(ours, 4096)
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    address, *others = said.decode().splitlines()
    assert re.match(r"listening on http://127\.0\.0\.1:\d+ ", address)
    assert [isinstance(json.loads(line), dict) for line in others] == [True]


def test_a_port_in_use_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WorkError, match="in use"):
            listen(Settings(port=port))
        words = [sys.executable, "-m", "starr.cli.main", "serve", "--port", str(port), "--quiet"]
        told = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
    assert told.returncode == 1
    assert len(told.stderr.splitlines()) == 1, told.stderr


def test_health_knows_dead_and_stuck_engines(model):
    with running(lambda: model, engines=1, stuck=1.0) as here:
        worker = here.pool.workers[0]
        worker.began = time.monotonic() - 5
        answer = http.get(f"{here.url}/health")
        assert answer.status_code == 503
        assert "in one step for" in answer.json()["error"]["message"]
        worker.began = None
        real, worker.thread = worker.thread, threading.Thread()
        assert "dead" in http.get(f"{here.url}/health").json()["error"]["message"]
        worker.thread = real
        assert http.get(f"{here.url}/health").status_code == 200


# ---- planning


def test_planning_is_bounded(model):
    with running(lambda: model, max_queue=8) as here:

        def ask(**body):
            began = time.monotonic()
            answer = http.post(f"{here.url}/v1/completions", json={"max_tokens": 2} | body)
            assert time.monotonic() - began < 60
            return answer.status_code, answer.json().get("error", {}).get("message", "")

        assert ask(prompt=["a"] * 200_000) == (400, "The request has 200000 rows; at most 8 are allowed.")
        assert ask(prompt=["a"] * 3, n=3)[0] == 400
        assert "at most 200 characters" in ask(prompt="a", strategy="starr:" + "x" * 200)[1]
        assert ask(prompt="a", ice="ice:mark=" + "x" * 100_000)[0] == 400
        assert ask(prompt="a", cache="dual" + " " * 300)[0] == 400


def test_planning_counts_against_the_deadline_and_leaves_health_alone(model):
    """Reading waits until the test is over: requests end at their deadline, and /health is answered meanwhile."""
    begun, over = threading.Event(), threading.Event()

    class Slow:
        def __getattr__(self, name):
            return getattr(model.tokenizer, name)

        def encode(self, text):
            begun.set()
            over.wait(600)
            return model.tokenizer.encode(text)

    with running(lambda: replace(model, tokenizer=Slow())) as here, ThreadPoolExecutor(8) as threads:

        def ask(_):
            body = {"prompt": "a", "max_tokens": 2, "timeout": 0.5}
            return http.post(f"{here.url}/v1/completions", json=body).status_code

        asking = threads.map(ask, range(8))
        try:
            assert begun.wait(120)
            assert http.get(f"{here.url}/health").status_code == 200
            assert list(asking) == [408] * 8
        finally:
            over.set()
