"""``starr serve --ray`` with real Ray Serve processes: two replicas under load, killed and drained; one dead inside."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest

import starr
from starr.cluster.replica import NAME, Replicas, make_deployment
from starr.server.settings import Settings
from tests.cluster.held import Held
from tests.cluster.serving import PATIENCE, metric, replicas
from tests.deploy.load import ask_all, asks, client_of, expected
from tests.deploy.proxy import answers, wait_for

serve = pytest.importorskip("ray.serve", reason="needs the extra [ray-serve]")
LONG = {"messages": [{"role": "user", "content": "Why?"}], "max_tokens": 360, "extra_body": {"block_length": 4}}


@pytest.fixture(scope="module")
def pair(own_ray, tiny, port):
    """The command with two replicas on the tests' Ray, and its address."""
    address = own_ray.get_runtime_context().gcs_address
    command = [sys.executable, "-m", "starr.cli.main", "serve", "--model", tiny, "--ray", address, "--quiet"]
    child = subprocess.Popen([*command, "--replicas", "2", "--port", str(port), "--grace", "120"])
    try:
        wait_for(lambda: child.poll() is not None or answers(f"http://127.0.0.1:{port}/health/ready"), PATIENCE)
        assert child.poll() is None
        wait_for(lambda: len(replicas(own_ray)) == 2, PATIENCE)
        yield f"http://127.0.0.1:{port}", child
    finally:
        child.kill()
        child.wait()


def test_two_hundred_requests_are_answered_rightly_by_both(own_ray, pair, model):
    url, _ = pair
    asked = asks(200)
    right = expected(model, asked)
    assert ask_all(url, asked) == [right[ask] for ask in asked]
    seen = {}
    wait_for(lambda: seen.update(figures(own_ray, "ray_vllm_request_success_total")) or sum(seen.values()) == 200)
    assert len(seen) == 2
    assert min(seen.values()) > 20


def figures(ray, name):
    """A figure by replica, as Ray's own page of metrics has it; one that was not told since the last look is absent."""
    (node,) = ray.nodes()
    page = httpx.get(f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics", timeout=60).text
    found = {}
    for line in page.splitlines():
        if line.startswith(f"{name}{{"):
            replica = line.partition('replica="')[2].partition('"')[0]
            found[replica] = found.get(replica, 0) + float(line.rpartition(" ")[2])
    return found


def test_a_replica_killed_under_load_costs_only_its_streams(own_ray, pair, model):
    """Streams of the dead replica end with an error event; all else is answered rightly, and it comes back."""
    url, _ = pair
    told = {"seed": 3, "temperature": 0.8}
    right = starr.generate(model, LONG["messages"], max_tokens=360, block_length=4, **told).text
    before = replicas(own_ray)
    asked = asks(20)

    def begun():
        chunks = client_of(url).chat.completions.create(model="tiny", stream=True, **LONG, **told)
        next(chunks)  # names the role; the text has only begun to be decoded
        return chunks

    def read(chunks):
        text = ""
        try:
            for chunk in chunks:
                text += chunk.choices[0].delta.content or ""
        except openai.APIError as error:
            assert right.startswith(text)
            return error
        return text

    with ThreadPoolExecutor(4) as pool:
        streams = pool.map(read, [begun() for _ in range(4)])  # one after the other, so that both replicas get some
        os.kill(next(iter(before.values())), signal.SIGKILL)
        short = ask_all(url, asked)
        found = list(streams)
    broken = [each for each in found if isinstance(each, Exception)]
    assert 1 <= len(broken) <= 3
    assert all(type(error) is openai.APIError and "replica died" in str(error) for error in broken)
    assert [text for text in found if not isinstance(text, Exception)] == [right] * (4 - len(broken))
    answered = expected(model, asked)
    wrong = [error for error, ask in zip(short, asked, strict=True) if error != answered[ask]]
    assert all(ask.stream for ask, text in zip(asked, short, strict=True) if isinstance(text, Exception)), wrong
    assert all("replica died" in str(error) for error in wrong)
    wait_for(lambda: len(set(replicas(own_ray).values()) - set(before.values())) == 1, PATIENCE)


def test_draining_loses_no_accepted_request(own_ray, pair, model):
    """SIGTERM under load: what was accepted is answered, what comes later is refused, the replicas go."""
    url, child = pair
    asked = asks(40, max_tokens=24)
    right = expected(model, asked)
    told = threading.Event()

    def during(done):
        if done == 10 and not told.is_set():
            told.set()
            child.send_signal(signal.SIGTERM)

    found = ask_all(url, asked, during=during)
    failed = [text for text in found if isinstance(text, Exception)]
    assert all(getattr(error, "status_code", None) == 503 for error in failed), failed
    assert all(text == right[ask] for ask, text in zip(asked, found, strict=True) if not isinstance(text, Exception))
    assert len(found) - len(failed) >= 10
    assert child.wait(timeout=PATIENCE) == 0
    wait_for(lambda: not replicas(own_ray), PATIENCE)


@pytest.fixture
def held(own_ray, tiny, port, tmp_path):
    """One replica whose model does as files say; its address and the files."""
    files = Held(tiny, str(tmp_path))
    serve.start(http_options={"port": port})
    settings = Settings(port=port, engines=1, max_rows=1, max_queue=1)
    serve.run(make_deployment(files.load, Replicas(1), settings), name=NAME, route_prefix="/")
    yield f"http://127.0.0.1:{port}", files
    files.go_on()
    serve.delete(NAME)


def test_a_full_replica_refuses_a_client_that_leaves_frees_its_row_and_a_dead_engine_is_replaced(own_ray, held):
    """The forward under way when the client leaves is the row's last one."""
    url, files = held
    body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 400, "stream": True, "block_length": 4}
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=PATIENCE) as stream:
        lines = stream.iter_lines()  # kept: the connection is closed with it
        next(lines)
        wait_for(lambda: files.forwards() > 2, PATIENCE)
        files.hold(PATIENCE)
        refuses_what_is_too_much(url, body)
        assert metric(url, "vllm:num_requests_running") == 1
        count = files.forwards()
    wait_for(lambda: metric(url, "starr:left_total") == 2, PATIENCE)
    files.go_on()
    wait_for(lambda: metric(url, "vllm:num_requests_running") == 0, PATIENCE)
    assert files.forwards() == count
    dead_is_replaced(own_ray, url, files)


def refuses_what_is_too_much(url, body):
    """One row runs and one waits: there is no room for a third."""
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=PATIENCE):
        wait_for(lambda: metric(url, "vllm:num_requests_waiting") == 1, PATIENCE)
        third = httpx.post(f"{url}/v1/chat/completions", json=body | {"stream": False}, timeout=PATIENCE)
    assert third.status_code == 429
    assert int(third.headers["retry-after"]) >= 1


def dead_is_replaced(ray, url, files):
    """An engine thread that ended fails the health check; the client is told, and the next replica answers."""
    (before,) = replicas(ray)
    body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
    files.end.touch()
    refused = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=PATIENCE)
    assert refused.status_code in (429, 503)  # 429 where what it left undone fills the queue
    assert refused.json()["error"]["message"]
    files.end.unlink()
    wait_for(lambda: before not in replicas(ray) and answers(f"{url}/health/ready"), PATIENCE)
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=PATIENCE)
    assert answer.json()["usage"]["completion_tokens"] == 4
