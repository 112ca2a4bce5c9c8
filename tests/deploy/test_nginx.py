"""nginx from Debian in front of two real servers, with the configuration that ``deploy/`` ships."""

import json
import threading
from dataclasses import replace

import pytest

import starr
from tests.deploy.load import ask_all, asks, expected
from tests.deploy.proxy import NGINX, ServerProcess, proxy, wait_for
from tests.model.tiny import LLADA_CONFIG, write_llada
from tests.server.nets import Gate
from tests.server.running import http, running, wait_until

pytestmark = pytest.mark.skipif(NGINX is None, reason="needs nginx: apt-get install nginx-light, or make test as root")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    config = LLADA_CONFIG | {"max_sequence_length": 512}
    return str(write_llada(tmp_path_factory.mktemp("nginx") / "tiny", config=config))


@pytest.fixture(scope="module")
def model(folder):
    return starr.load(folder)


@pytest.fixture(scope="module")
def pair(folder):
    """Two server processes behind a proxy; a test that stops one starts it again."""
    servers = [ServerProcess(folder, "--grace", "60").start() for _ in range(2)]
    for server in servers:
        server.ready()
    with proxy(*(server.address for server in servers)) as url:
        yield url, servers
    for server in servers:
        server.kill()


def test_two_hundred_requests_are_answered_rightly_by_both(pair, model):
    url, servers = pair
    asked = asks(200)
    right = expected(model, asked)
    assert ask_all(url, asked) == [right[ask] for ask in asked]
    counts = []

    def counted():  # a stream is counted after its last line was sent
        counts[:] = [server.metric("vllm:request_success_total") for server in servers]
        return sum(counts) >= 200

    wait_for(counted)
    assert sum(counts) == 200
    assert min(counts) > 20


def test_a_server_killed_under_load_costs_only_its_streams(pair, model):
    """Answers that had not begun are asked again elsewhere; streams that had begun break; the server comes back."""
    url, servers = pair
    asked = asks(60, max_tokens=24)
    right = expected(model, asked)
    killed = threading.Event()

    def during(done):
        if done == 10 and not killed.is_set():
            killed.set()
            servers[0].kill()

    found = ask_all(url, asked, during=during)
    failed = [ask for ask, text in zip(asked, found, strict=True) if isinstance(text, Exception)]
    assert killed.is_set()
    assert all(ask.stream for ask in failed)
    assert len(failed) <= 8  # no more than were open
    assert all(text == right[ask] for ask, text in zip(asked, found, strict=True) if not isinstance(text, Exception))
    servers[0].start().ready()
    before = servers[0].metric("vllm:request_success_total")
    wait_for(lambda: ask_all(url, asked[:8]) and servers[0].metric("vllm:request_success_total") > before)


def test_draining_loses_no_accepted_request(pair, model):
    url, servers = pair
    asked = asks(60, max_tokens=24)
    right = expected(model, asked)
    drained = threading.Event()

    def during(done):
        if done == 10 and not drained.is_set():
            drained.set()
            servers[1].drain()

    assert ask_all(url, asked, during=during) == [right[ask] for ask in asked]
    servers[1].child.wait(timeout=300)
    servers[1].start().ready()


def test_a_client_that_leaves_frees_its_row(model):
    """The forward under way when the client leaves is the row's last one."""
    gate = Gate(model)
    with running(lambda: gate.model) as one, running(lambda: gate.model) as two, proxy(one.url[7:], two.url[7:]) as url:
        gate.shut()
        body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 200, "stream": True}
        with http.stream("POST", f"{url}/v1/chat/completions", json=body):
            assert gate.waits.wait(120)
        counts = [here.service.ready.metrics.registry.get_sample_value for here in (one, two)]
        wait_until(lambda: sum(count("starr:left_total") for count in counts) == 1)
        gate.open()
        wait_until(lambda: one.pool.running + two.pool.running == 0)
        assert gate.forwards == 1


def test_text_passes_before_the_answer_is_whole(model):
    """The model waits in the middle of the answer: what came through the proxy by then was not buffered."""
    go_on = threading.Event()
    held = holding(model, after=4, go_on=go_on)
    with running(lambda: held, engines=1) as one, running(lambda: held, engines=1) as two:
        body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 16, "stream": True}
        body |= {"strategy": "confidence", "block_length": 1}
        with (
            proxy(one.url[7:], two.url[7:]) as url,
            http.stream("POST", f"{url}/v1/chat/completions", json=body) as stream,
        ):
            lines = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: {"))
            early = ""
            while not early:
                early += next(lines)["choices"][0]["delta"].get("content") or ""
            assert one.pool.running + two.pool.running == 1
            go_on.set()
            rest = [chunk["choices"][0] for chunk in lines]
    assert rest[-1]["finish_reason"]


def holding(model, after, go_on):
    """The model, waiting for ``go_on`` before every forward behind the first few."""
    count, net = [0], model.net

    class Net:
        def __getattr__(self, name):
            return getattr(net, name)

        def __call__(self, *given, **named):
            count[0] += 1
            if count[0] > after:
                assert go_on.wait(600)
            return net(*given, **named)

    return replace(model, net=Net())
