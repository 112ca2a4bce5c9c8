"""Keys, sizes, slow bodies, logs, metrics, loading and shutting down, over real connections."""

import json
import logging
import socket
import threading
import time
from dataclasses import fields

import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from starr.errors import LoadError
from starr.server.settings import Settings
from starr.server.start import is_loopback, serve, warn_if_open
from tests.server.http.test_streams import ASK
from tests.server.nets import Gate, slowed
from tests.server.running import http, in_thread, logged, running, wait_until

CHAT = {"messages": ASK, "max_tokens": 8}


def test_the_key_guards_all_but_health_and_version(model):
    with running(lambda: model, api_key="secret") as here:
        post = f"{here.url}/v1/chat/completions"
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            answer = http.post(post, json=CHAT, headers=headers)
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
        for path in ("/v1/models", "/metrics", "/v1/strategies", "/openapi.json", "/trace/x"):
            assert http.get(here.url + path).status_code == 401
        assert http.get(f"{here.url}/health").status_code == 200
        with pytest.raises(openai.AuthenticationError):
            here.client().models.list()
        good = openai.OpenAI(base_url=f"{here.url}/v1", api_key="secret")
        assert good.models.list().data[0].id == "tiny"


def test_a_large_body_is_refused_with_both_numbers(model):
    with running(lambda: model, max_body=2000) as here:
        post = f"{here.url}/v1/chat/completions"
        body = json.dumps(CHAT | {"padding": "x" * 3000}).encode()
        kind = {"Content-Type": "application/json"}
        declared = http.post(post, content=body, headers=kind)
        unsaid = http.post(post, content=iter([body[:1000], body[1000:2000], body[2000:]]), headers=kind)
        for answer in (declared, unsaid):
            assert answer.status_code == 413
            assert "at most 2000 are allowed" in answer.json()["error"]["message"]
        assert http.post(post, json=CHAT).status_code == 200


def test_a_slow_body_is_given_up(model):
    with running(lambda: model, body_timeout=0.3) as here:
        host, port = here.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=120) as wire:
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            wire.sendall(head + b"Content-Length: 100\r\n\r\n{")
            assert b"408" in wire.recv(4096).split(b"\r\n")[0]


def test_a_full_queue_says_when_to_try_again(model):
    gate = Gate(model)
    with running(lambda: gate.model, engines=1, max_rows=1, max_queue=1) as here:
        post, long = f"{here.url}/v1/chat/completions", CHAT | {"max_tokens": 100, "stream": True}
        gate.shut()
        with http.stream("POST", post, json=long), http.Client() as client:
            wait_until(lambda: here.pool.running == 1)
            with client.stream("POST", post, json=long):
                refused = http.post(post, json=CHAT)
                assert refused.status_code == 429
                assert int(refused.headers["retry-after"]) >= 1
                with pytest.raises(openai.RateLimitError):
                    here.client().chat.completions.create(model="tiny", **CHAT)
        gate.open()


def test_cors_is_off_by_default(server, model):
    origin = {"Origin": "http://elsewhere"}
    assert "access-control-allow-origin" not in http.get(f"{server.url}/version", headers=origin).headers
    with running(lambda: model, cors=("http://elsewhere",)) as here:
        found = http.get(f"{here.url}/version", headers=origin).headers["access-control-allow-origin"]
        assert found == "http://elsewhere"


def test_access_lines_have_figures_and_no_text(server, caplog):
    said = "a very private prompt"
    with caplog.at_level(logging.INFO, "starr.access"):
        body = CHAT | {"messages": [{"role": "user", "content": said}]}
        answer = http.post(f"{server.url}/v1/chat/completions", json=body | {"strange_field": 1}).json()
        entry = logged(caplog.records, id=answer["id"].removeprefix("chatcmpl-"))
    assert entry["path"] == "/v1/chat/completions"
    assert entry["status"] == 200
    assert entry["tokens"] <= 8
    assert entry["prompt_tokens"] > 0
    assert said not in caplog.text


def test_unknown_fields_are_logged(server, caplog):
    with caplog.at_level(logging.INFO, "starr.server"):
        http.post(f"{server.url}/v1/chat/completions", json=CHAT | {"strange_field": 1})
    assert "ignored fields: strange_field" in caplog.text


def test_a_warning_where_anybody_can_reach_it(caplog):
    warn_if_open(Settings(host="127.0.0.1"))
    warn_if_open(Settings(host="0.0.0.0", api_key="k"))
    assert not caplog.records
    warn_if_open(Settings(host="0.0.0.0"))
    assert "without a key" in caplog.text
    assert is_loopback("::1")
    assert is_loopback("localhost")


def figures(here):
    """The values of /metrics by name, without the buckets of histograms."""
    families = text_string_to_metric_families(http.get(f"{here.url}/metrics").text)
    return {sample.name: sample.value for family in families for sample in family.samples if "le" not in sample.labels}


def test_metrics_have_vllms_names_and_count(model):
    with running(lambda: model) as here:
        client = here.client()
        answer = client.chat.completions.create(model="tiny", **CHAT)
        list(client.chat.completions.create(model="tiny", stream=True, **CHAT))
        value = {}

        def counted():  # a stream is counted after its last line was sent
            value.update(figures(here))
            return value["vllm:e2e_request_latency_seconds_count"] == 2 and value["vllm:num_requests_running"] == 0

        wait_until(counted)
    assert value["vllm:prompt_tokens_total"] == 2 * answer.usage.prompt_tokens
    assert value["vllm:generation_tokens_total"] == 2 * answer.usage.completion_tokens
    assert value["starr:forwards_total"] == 2 * answer.usage.model_extra["forwards"]
    assert value["vllm:e2e_request_latency_seconds_count"] == 2
    assert value["vllm:time_to_first_token_seconds_count"] == 2
    assert value["starr:tokens_per_forward_count"] == 2
    assert "starr:revocations_total" in value
    assert value["vllm:num_requests_running"] == value["vllm:num_requests_waiting"] == 0


def test_health_while_loading_and_a_model_that_cannot_be_loaded(model):
    gate = threading.Event()

    def load():
        gate.wait(120)
        return model

    with running(load, loaded=False) as here:
        assert http.get(f"{here.url}/health").status_code == 503
        assert http.get(f"{here.url}/version").status_code == 200
        answer = http.post(f"{here.url}/v1/chat/completions", json=CHAT)
        assert answer.status_code == 503
        assert "still loading" in answer.json()["error"]["message"]
        gate.set()
        wait_until(lambda: http.get(f"{here.url}/health").status_code == 200)

    def fail():
        raise LoadError("No such model.")

    with pytest.raises(LoadError, match="No such model"):
        in_thread(lambda: serve(fail, Settings(port=0), quiet=True))


def test_shutdown_answers_with_what_is_settled(writer):
    found = {}
    with running(lambda: slowed(writer, 0.05), grace=0.5) as here:
        body = CHAT | {"max_tokens": 300, "strategy": "confidence", "block_length": 2, "eos": "never"}

        def ask():
            found["answer"] = http.post(f"{here.url}/v1/chat/completions", json=body)

        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: any(ticket.event and ticket.event.text for ticket in here.pool.workers[0].tickets))
        began = time.monotonic()
        here.stop()
        asking.join()
        assert time.monotonic() - began < 15  # 300 forwards take longer
    choice = found["answer"].json()["choices"][0]
    assert choice["finish_reason"] == "length"
    assert 0 < len(choice["message"]["content"]) < 300


@pytest.mark.parametrize("again", [False, True])
def test_the_end_says_at_once_what_it_waits_for(writer, caplog, again):
    """With an answer under way: a line with the number, and a second Ctrl-C ends it long before the grace time."""
    gate, found = Gate(writer), {}
    body = CHAT | {"max_tokens": 300, "strategy": "confidence", "block_length": 2, "eos": "never"}
    with running(lambda: gate.model, grace=300.0) as here:
        post = f"{here.url}/v1/chat/completions"
        asking = threading.Thread(target=lambda: found.update(answer=http.post(post, json=body)))
        asking.start()
        wait_until(lambda: any(t.event and t.event.text for worker in here.pool.workers for t in worker.tickets))
        gate.hold()
        here.server.should_exit = True
        wait_until(lambda: [record for record in caplog.records if record.args == (300.0, "1 answer")])
        here.server.force_exit = again
        wait_until(lambda: not again or here.service.pending == 0 or here.pool.workers[0].closing)
        if again:
            wait_until(lambda: all(ticket.over for worker in here.pool.workers for ticket in worker.tickets))
        gate.open()
        asking.join()
        here.thread.join(timeout=120)
        assert not here.thread.is_alive()
    choice = found["answer"].json()["choices"][0]
    assert (choice["finish_reason"], len(choice["message"]["content"]) < 300) == ("length", again)


def test_other_endpoints(server, model):
    get = {path: http.get(server.url + path) for path in ("/version", "/v1/strategies", "/", "/nothing")}
    assert get["/version"].json()["version"]
    strategies = get["/v1/strategies"].json()
    assert "starr" in [entry["id"] for entry in strategies["data"]]
    assert "none" in [entry["id"] for entry in strategies["caches"]]
    assert "<html" in get["/"].text
    assert get["/nothing"].status_code == 404
    assert get["/nothing"].json()["error"]["code"] == "not_found"
    tokens = http.post(f"{server.url}/tokenize", json={"prompt": "abc"}).json()
    assert tokens["tokens"] == model.tokenizer.encode("abc")
    assert tokens["count"] == 3
    chat = http.post(f"{server.url}/tokenize", json={"messages": ASK}).json()
    assert chat["tokens"] == model.tokenizer.chat(ASK)
    assert http.post(f"{server.url}/tokenize", json={}).status_code == 400
    wrong = http.post(
        f"{server.url}/v1/chat/completions", content=b"{not json", headers={"Content-Type": "application/json"}
    )
    assert wrong.status_code == 400
    assert "JSON" in wrong.json()["error"]["message"]


def test_flags_and_settings_have_the_same_defaults():
    from starr.cli.serve import ServeOptions

    flags, settings = ServeOptions(), Settings()
    shared = [f.name for f in fields(Settings) if hasattr(flags, f.name) and f.name not in ("cors", "allow_host")]
    assert len(shared) >= 9
    assert {name: getattr(flags, name) for name in shared} == {name: getattr(settings, name) for name in shared}
