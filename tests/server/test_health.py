"""/health for those who restart servers, /health/ready for those who send requests to them."""

import threading
from concurrent.futures import ThreadPoolExecutor

from tests.server.nets import Gate
from tests.server.running import http, running, wait_until

BODY = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 100, "stream": True}


def codes(here):
    return [http.get(f"{here.url}{path}").status_code for path in ("/health", "/health/ready")]


def test_a_server_without_a_model_is_neither(model):
    go_on = threading.Event()

    def load():
        assert go_on.wait(120)
        return model

    with running(load, loaded=False) as here:
        assert codes(here) == [503, 503]
        go_on.set()
        wait_until(lambda: codes(here) == [200, 200])


def test_a_full_queue_is_well_but_not_ready(model):
    gate = Gate(model)
    with running(lambda: gate.model, engines=1, max_rows=1, max_queue=1) as here:
        post = f"{here.url}/v1/chat/completions"
        assert codes(here) == [200, 200]
        gate.shut()
        with http.stream("POST", post, json=BODY), http.Client() as client:
            wait_until(lambda: here.pool.running == 1)
            with client.stream("POST", post, json=BODY):
                wait_until(lambda: here.pool.waiting == 1)
                assert codes(here) == [200, 503]
                assert "at most 1 may" in http.get(f"{here.url}/health/ready").json()["error"]["message"]
        gate.open()
        wait_until(lambda: codes(here) == [200, 200])


def test_a_draining_server_is_not_ready(model):
    with running(lambda: model) as here:
        here.pool.closing = True
        assert codes(here) == [200, 503]


def test_an_engine_that_has_ended_is_neither(model):
    with running(lambda: model, engines=1) as here:
        (worker,) = here.pool.workers
        worker.close()
        worker.thread.join(timeout=120)
        assert codes(here) == [503, 503]


def test_rows_of_an_engine_that_has_ended_can_be_given_up(model):
    with running(lambda: model, engines=1) as here, ThreadPoolExecutor(1) as threads:
        (worker,) = here.pool.workers
        worker.close()
        worker.thread.join(timeout=120)
        body = BODY | {"stream": False}
        asking = threads.submit(http.post, f"{here.url}/v1/chat/completions", json=body)
        wait_until(lambda: worker.tickets)
        here.pool.give_up()
        answer = asking.result()
        assert answer.status_code == 503
        assert answer.json()["error"]["message"] == "An engine thread is dead. Send the request again."


def test_the_key_does_not_guard_them(model):
    with running(lambda: model, api_key="secret") as here:
        assert codes(here) == [200, 200]
