"""Failures on the wire: a stream ends with an error event, whatever the exception; neighbours of a bad row go on."""

import json
from concurrent.futures import ThreadPoolExecutor

from starr.decode.strategies.threshold import Threshold
from starr.server.http.streams import Stream
from tests.server.running import http, running

BODY = {"prompt": "abc", "max_tokens": 24, "strategy": "confidence"}


def test_a_stream_that_fails_ends_with_an_error_event(server, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(Stream, "news", broken)
    lines = http.post(f"{server.url}/v1/completions", json=BODY | {"stream": True}).text.strip().splitlines()
    said = json.loads(lines[-1].removeprefix("data: "))
    assert said["error"]["message"] == "The server failed (ZeroDivisionError)."


def test_a_bad_row_fails_alone(model, monkeypatch):
    """Six good requests beside a bad one, in one batch."""
    real = Threshold.decide

    def decide(self, view, carry):
        if self.tau == 0.123:
            raise RuntimeError("bad")
        return real(self, view, carry)

    monkeypatch.setattr(Threshold, "decide", decide)
    with running(lambda: model, engines=1) as here:
        bodies = [BODY] * 3 + [BODY | {"strategy": "threshold:tau=0.123"}] + [BODY | {"strategy": "threshold"}] * 3

        def ask(body):
            return http.post(f"{here.url}/v1/completions", json=body).status_code

        with ThreadPoolExecutor(7) as threads:
            assert list(threads.map(ask, bodies)) == [200] * 3 + [500] + [200] * 3
        assert http.get(f"{here.url}/health").status_code == 200
