"""What stands before the replicas, without Ray: an application plays the part of its proxy."""

import json

import anyio
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse

from starr.cluster import front
from starr.cluster.front import KEPT, Front, middlewares

SCOPE = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": [], "query_string": b""}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(front, "PAUSE", 0.0)


def ask(app, body=b"{}", *, leaves=False, path=SCOPE["path"]):
    """The status, the headers and the whole text of the answer; None if there was none."""
    sent, given = [], [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if given:
            return given.pop(0)
        if not leaves:
            await anyio.sleep_forever()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    anyio.run(Front(app), SCOPE | {"path": path}, receive, send)
    if not sent:
        return None
    assert not sent[-1].get("more_body", False)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(part["body"] for part in sent[1:]).decode()


class Replicas:
    """The first ones die, at a certain point of their answer; the next one answers with what it was asked."""

    def __init__(self, deaths, *, stream=False, parts=0):
        self.left, self.stream, self.parts, self.asked = deaths, stream, parts, []

    async def __call__(self, scope, receive, send):
        message = await receive()
        self.asked.append(message.get("body"))
        if self.left:
            self.left -= 1
            await self.die(send)
        elif self.stream:
            await StreamingResponse(self.lines(), media_type="text/event-stream")(scope, receive, send)
        else:
            await JSONResponse({"asked": self.asked[-1].decode()})(scope, receive, send)

    async def die(self, send):
        if self.stream:
            head = [(b"content-type", b"text/event-stream; charset=utf-8")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
        for _ in range(self.parts):
            await send({"type": "http.response.body", "body": b"data: {}\n\n", "more_body": True})

    async def lines(self):
        yield "data: {}\n\n"
        yield "data: [DONE]\n\n"


def test_an_answer_that_had_not_begun_is_asked_again_with_the_same_body():
    app = Replicas(deaths=2)
    status, _, text = ask(app, b'{"seed": 3}')
    assert (status, json.loads(text)) == (200, {"asked": '{"seed": 3}'})
    assert app.asked == [b'{"seed": 3}'] * 3


def test_a_stream_of_which_only_the_head_was_sent_is_asked_again():
    status, headers, text = ask(Replicas(deaths=1, stream=True))
    assert (status, text) == (200, "data: {}\n\ndata: [DONE]\n\n")
    assert headers["content-type"].startswith("text/event-stream")


def test_a_stream_that_had_begun_ends_with_an_error_event():
    app = Replicas(deaths=1, stream=True, parts=2)
    status, _, text = ask(app)
    *first, last, rest = text.split("\n\n")
    assert (status, first, rest) == (200, ["data: {}"] * 2, "")
    assert "replica died" in json.loads(last.removeprefix("data: "))["error"]["message"]
    assert len(app.asked) == 1


def test_after_three_deaths_it_is_refused():
    app = Replicas(deaths=5)
    status, headers, text = ask(app)
    assert (status, headers["retry-after"]) == (503, "1")
    assert json.loads(text)["error"]["type"] == "service_unavailable_error"
    assert len(app.asked) == 3


def test_another_one_is_asked_where_a_replica_refuses_and_the_last_refusal_is_told():
    refusals = [JSONResponse({"error": {"message": f"It drains {number}."}}, 503) for number in range(4)]
    asked = []

    async def draining(scope, receive, send):
        await receive()
        asked.append(scope["path"])
        await (refusals[len(asked) - 1] if len(asked) < 3 else last)(scope, receive, send)

    last = JSONResponse({"text": "yes"})
    assert ask(draining)[::2] == (200, '{"text":"yes"}')
    last, asked[:] = refusals[3], []
    assert ask(draining)[::2] == (503, '{"error":{"message":"It drains 3."}}')
    assert len(asked) == 3


def test_nobody_is_asked_for_a_client_that_left_nor_with_a_body_too_large_to_keep():
    gone, large = Replicas(deaths=5), Replicas(deaths=5)

    async def reads_on(scope, receive, send):
        await gone(scope, receive, send)
        await receive()

    assert ask(reads_on, leaves=True) is None
    assert ask(large, b"x" * (KEPT + 1))[0] == 503
    assert [len(app.asked) for app in (gone, large)] == [1, 1]


@pytest.mark.parametrize(("status", "told"), [(408, 408), (429, 429), (503, 503), (404, 503), (500, 503)])
def test_what_ray_says_itself_leaves_in_openais_form(status, told):
    found, headers, text = ask(PlainTextResponse("Ray's own words", status))
    assert found == told
    assert headers["content-type"] == "application/json"
    assert "Ray's own words" not in text
    assert json.loads(text)["error"]["message"]


def test_what_the_server_says_and_what_ray_is_asked_pass_unchanged():
    refused = JSONResponse({"error": {"message": "No such model."}}, 404)
    assert ask(refused)[::2] == (404, '{"error":{"message":"No such model."}}')
    assert ask(PlainTextResponse("unhealthy", 503), path="/-/healthz")[::2] == (503, "unhealthy")
    assert [middleware.cls for middleware in middlewares()] == [Front]
