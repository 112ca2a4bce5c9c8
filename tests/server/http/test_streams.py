"""Streams as they go over the wire: settled text, frames, records, signs of life, clients that leave."""

import json
import socket
import time

import pytest

import starr
from tests.server.nets import Gate, slowed
from tests.server.running import http, running, wait_until

ASK = [{"role": "user", "content": "Count."}]


def lines(url, **body):
    """The JSON lines of a stream, and what ended it."""
    body = {"messages": ASK, "stream": True, "max_tokens": 24} | body
    with http.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        found = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: ")]
    assert found.pop() == "[DONE]"
    return [json.loads(line) for line in found]


@pytest.mark.parametrize("strategy", ["starr", "threshold:tau=0.05", "saber", "confidence"])
def test_deltas_are_whole_characters_and_add_up(server, model, strategy):
    """The tiny model writes random bytes, so characters are cut between tokens all the time."""
    for block in (None, 5):
        expected = starr.generate(model, ASK, max_tokens=24, strategy=strategy, block_length=block, seed=1)
        chunks = lines(server.url, strategy=strategy, block_length=block, seed=1)
        assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == expected.text
        assert chunks[-1]["choices"][0]["finish_reason"] == expected.finish_reason


def test_a_strategy_that_never_revokes_streams_before_it_is_done(server):
    chunks = lines(server.url, strategy="confidence", block_length=4, max_tokens=40)
    assert len(chunks) > 6


def test_frames_replace_each_other_and_the_last_is_the_text(server, model):
    expected = starr.generate(model, ASK, max_tokens=24)
    chunks = lines(server.url, diffusing=True)
    frames = [chunk for chunk in chunks if chunk.get("diffusing")]
    assert frames[-1]["choices"][0]["delta"]["content"] == expected.text
    assert all(len(frame["canvas"]) == 24 for frame in frames)
    assert {state for _, state in frames[-1]["canvas"]} == {"settled"}
    if len(frames) > 1:
        assert "masked" in {state for _, state in frames[0]["canvas"]}


def test_frames_are_throttled(model):
    with running(lambda: model, frame=0.3) as here:
        began = time.monotonic()
        frames = [chunk for chunk in lines(here.url, diffusing=True, max_tokens=64) if chunk.get("diffusing")]
        assert len(frames) <= (time.monotonic() - began) / 0.3 + 2


def test_a_stop_string_cuts_frames_too(server, model):
    text = starr.generate(model, ASK, max_tokens=24, block_length=4, strategy="confidence").text
    stop = text[4:6]
    chunks = lines(server.url, diffusing=True, stop=stop, block_length=4, strategy="confidence")
    frames = [chunk["choices"][0]["delta"]["content"] for chunk in chunks if chunk.get("diffusing")]
    assert frames[-1] == text[: text.index(stop)]
    assert not any(stop in frame for frame in frames)


def test_records_and_the_rest_of_the_trace_make_a_trace_file(server, model, tmp_path):
    from starr.decode.trace import read

    expected = starr.generate(model, ASK, max_tokens=24, trace=True).trace.to_dict()
    chunks = lines(server.url, trace=True)
    steps = [chunk["record"] for chunk in chunks if "record" in chunk]
    assert [step["action"] for step in steps] == [step["action"] for step in expected["steps"]]
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(chunks[-1]["trace"] | {"steps": steps}))
    assert read(file)["text"] == expected["text"]


def test_the_viewer_shows_a_traced_answer(server):
    id = lines(server.url, trace=True)[-1]["id"]
    page = http.get(f"{server.url}/trace/{id}")
    assert page.status_code == 200
    assert "<html" in page.text
    assert http.get(f"{server.url}/trace/nothing").status_code == 404


def test_pings_while_nothing_settles(model):
    with running(lambda: slowed(model, 0.1), ping=0.05) as here:
        body = {"messages": ASK, "stream": True, "max_tokens": 8}
        with http.stream("POST", f"{here.url}/v1/chat/completions", json=body) as answer:
            found = list(answer.iter_lines())
    assert ": ping" in found
    assert found[-2] == "data: [DONE]"


def sent(here, reader, body):
    """A request on a connection whose answer nobody reads."""
    body = json.dumps(body).encode()
    host, port = here.url.removeprefix("http://").split(":")
    reader.connect((host, int(port)))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n"
    reader.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_is_forgotten_within_a_step(model, stream):
    """The forward under way when the client leaves is the row's last one."""
    gate = Gate(model)
    with running(lambda: gate.model) as here:
        count = here.service.ready.metrics.registry.get_sample_value
        with socket.socket() as reader:
            gate.shut()
            sent(here, reader, {"messages": ASK, "stream": stream, "max_tokens": 300})
            assert gate.waits.wait(120)
        wait_until(lambda: count("starr:left_total") == 1)
        assert here.pool.running == 1
        gate.open()
        wait_until(lambda: here.pool.running == 0)
        assert gate.forwards == 1


def test_the_deadline_of_a_request(model):
    with running(lambda: slowed(model, 0.05)) as here:
        body = {"messages": ASK, "max_tokens": 300, "timeout": 0.5}
        answer = http.post(f"{here.url}/v1/chat/completions", json=body)
        assert answer.status_code == 408
        assert answer.json()["error"]["code"] == "timeout"
        with http.stream("POST", f"{here.url}/v1/chat/completions", json=body | {"stream": True}) as answer:
            last = [line for line in answer.iter_lines() if line][-1]
        assert "0.5 seconds" in json.loads(last.removeprefix("data: "))["error"]["message"]
        wait_until(lambda: here.pool.running == 0)


def test_a_reader_that_stalls_is_dropped(model, caplog):
    caplog.set_level("INFO", "starr.server")
    with running(lambda: model, ping=0.2) as here, socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        here.server.servers[0].sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # soon full
        body = {"messages": ASK, "stream": True, "trace": True, "max_tokens": 200, "n": 8, "timeout": 4.0}
        sent(here, reader, body | {"strategy": "confidence"})
        tasks = here.server.server_state.tasks
        wait_until(lambda: tasks)
        wait_until(lambda: not tasks)
        wait_until(lambda: here.pool.running == 0)
    assert "closed a stream that nobody reads" in caplog.text
