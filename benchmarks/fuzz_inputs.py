"""Spoiled inputs of one kind, for as long as asked: `python -m benchmarks.fuzz_inputs schema --minutes 10`.

Every draw takes an example of the kind, changes values of its JSON or bytes of its text, and gives it to what reads
it: headers of weights, config, tokenizer, template, schema, regex, trace or http (bodies). It is read, or refused in
one line. Anything else, or a minute without an end, ends the run with the seed. The short version in the suite is
tests/benchmarks/test_fuzz.py.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

import starr
from starr.decode.extras.constraints.compile import compile_for, write_expression
from starr.decode.extras.constraints.expression import parse_constraint
from starr.decode.trace import read as read_trace
from starr.errors import InputError, StarrError
from starr.model.files.weights import open_weights, read_headers
from starr.model.load import Model, read_folder
from starr.model.text import templates
from starr.model.text.chat import DREAM_TEMPLATE, LLADA_TEMPLATE
from starr.server.http.app import create_app
from starr.server.settings import Settings
from starr.viewer.html import build_page
from tests.model.tiny import write_llada
from tests.viewer.traces import make

SECONDS = 60  # for one input
REFUSALS = (400, 404, 413, 422, 503, 504)
JUNK: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2**31, 4_000_000_000, 10**30, 10**400, 1e308, 1e400, float("nan"), "", "x",
    "x" * 100_000, "\ud800", "\x00", [], [[]] * 1000, [None] * 20, {}, {"": {}}, {"type": "x"}, "{{ 9 ** 9 ** 9 }}",
    {"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 900}, {"$ref": "#"}, "(.+)+$", "a{9999}",
    {"type": "Split", "pattern": {"Regex": "(.+)+$"}, "behavior": "Isolated", "invert": False},
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
)  # fmt: skip
PIECES = (
    b"{", b"}", b"[", b"]", b'"', b"\\", b"{{", b"}}", b"{%", b"%}", b"(", b")", b"*", b"+", b"?", b"{1,9}", b"|",
    b"\xff", b"\x00", b"\r\n", b"1e999", b"-0", b"null", b"$ref", b"\\d", b"[^", b"(?=", b"99999999999",
)  # fmt: skip
CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]
SCHEMA: dict[str, Any] = {
    "type": "object", "required": ["a"], "additionalProperties": False, "$defs": {"n": {"type": "number"}},
    "properties": {
        "a": {"type": "integer", "minimum": 0, "maximum": 99},
        "b": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]},
        "c": {"type": "array", "items": {"enum": ["x", 1, None]}, "minItems": 1, "maxItems": 3},
        "d": {"type": "string", "pattern": "^[a-z]+$"}, "e": {"type": "string", "maxLength": 8},
    },
}  # fmt: skip
SCHEMAS = [SCHEMA, *(SCHEMA["properties"][name] for name in "acde")]
BODIES = {
    "/v1/chat/completions": {
        "messages": CHAT[:1], "max_tokens": 4, "temperature": 0.5, "seed": 1, "n": 2, "stop": ["a"], "stream": False,
        "strategy": "starr", "cache": "none", "logprobs": True, "top_logprobs": 2, "stream_options": None,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "boolean"}}},
    },
    "/v1/completions": {"prompt": ["a", "b"], "max_tokens": 4, "echo": False, "regex": "[ab]{2}"},
    "/v1/responses": {
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}], "max_output_tokens": 4,
    },
    "/v1/infill": {"text": "a [MASK:2] b", "timeout": 5.0},
    "/tokenize": {"messages": CHAT[:1], "model": None},
    "/detokenize": {"tokens": [1, 2, 3]},
}  # fmt: skip
Take = Callable[[bytes], object]
Kind = tuple[list[bytes], Take]


def spoil(rng: random.Random, example: bytes) -> bytes:
    """The example with some of its JSON's values, or of its bytes, changed."""
    data = bytearray(example)
    if rng.random() < 0.6:
        with suppress(ValueError):
            body = json.loads(example)
            for _ in range(rng.choice((1, 1, 2, 4))):
                change(rng, body)
            return json.dumps(body).encode()
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(data) + 1)
        data[at : at + rng.choice((0, 0, 1, 4))] = rng.choice(
            (*PIECES, bytes([rng.randrange(256)]), data[at : at + 20] * 3)
        )
    return bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.1 else data)


def change(rng: random.Random, body: Any) -> list[Any]:
    """Put junk, or a value from elsewhere, somewhere into an object or list; returns where."""
    inner, place = body, []
    while isinstance(inner, dict | list) and inner:
        key = rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
        place.append(key)
        if not isinstance(inner[key], dict | list) or not inner[key] or rng.random() < 0.4:
            inner[key] = rng.choice(JUNK)
            break
        inner = inner[key]
    return place


@contextmanager
def kinds() -> Iterator[dict[str, Kind]]:
    """For each kind, examples and what reads one."""
    with tempfile.TemporaryDirectory() as place:
        folder = write_llada(Path(place) / "model")
        model = starr.load(folder, dtype="float32", threads=1)
        with TestClient(create_app(lambda: model, Settings()), base_url="http://localhost") as client:
            yield {
                "header": ([(folder / "model.safetensors").read_bytes()], lambda data: read_weights(Path(place), data)),
                "config": in_folder(folder, "config.json"),
                "tokenizer": in_folder(folder, "tokenizer.json"),
                "template": ([LLADA_TEMPLATE.encode(), DREAM_TEMPLATE.encode()], read_template),
                "schema": (
                    [json.dumps(each).encode() for each in SCHEMAS],
                    lambda data: read_form(model, "json_schema", data),
                ),
                "regex": (
                    [b"(a|b){2,4}[^c-e]\\d+x?", b"(?:\\w+ )*\\p{L}\\."],
                    lambda data: read_form(model, "regex", data),
                ),
                "trace": ([json.dumps(make(length=6)).encode()], lambda data: draw_trace(Path(place), data)),
                "http": (
                    [json.dumps([path, body]).encode() for path, body in BODIES.items()],
                    lambda d: post(client, d),
                ),
            }


def read_weights(place: Path, data: bytes) -> None:
    """Read a file's header, and then every tensor as the library sees it."""
    file = place / "spoiled.safetensors"
    file.write_bytes(data)
    found = read_headers([file])
    with open_weights(file) as shard:
        for key in found:
            assert tuple(shard.get_slice(key).get_shape()) == found[key].shape


def in_folder(folder: Path, name: str) -> Kind:
    """One file of a model's folder."""
    example = (folder / name).read_bytes()

    def take(data: bytes) -> None:
        (folder / name).write_bytes(data)
        try:
            spec, tokenizer, _ = read_folder(folder, "spoiled")
            assert 0 <= spec.mask_id < spec.shape.vocab_size
            tokenizer.decode(tokenizer.encode("hello 12 é"))
        finally:
            (folder / name).write_bytes(example)

    return [example], take


def read_template(data: bytes) -> None:
    """Render a chat."""
    templates.read_template(data.decode(errors="replace"))(CHAT, {"bos_token": "<s>"})


def read_form(model: Model, kind: str, data: bytes) -> None:
    """Translate a constraint; the compiler, a process of its own, sees one of eight."""
    asked = parse_constraint(**{kind: data.decode(errors="replace")})
    if asked is not None:
        write_expression(asked)
        if sum(data) % 8 == 0:
            compile_for(model, asked)


def draw_trace(place: Path, data: bytes) -> None:
    """Read a trace and write its page."""
    (place / "trace.json").write_bytes(data)
    build_page([read_trace(place / "trace.json")])


def post(client: TestClient, data: bytes) -> None:
    """Send a body to the endpoint that comes with it; a fault of the server is raised by the client."""
    path, body = "/v1/chat/completions", data
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        found = json.loads(data)
        path, body = (found[0] if found[0] in BODIES else path), json.dumps(found[1]).encode()
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    if answer.status_code in REFUSALS:
        raise InputError(answer.json()["error"]["message"])
    assert answer.status_code == 200, (answer.status_code, answer.text)


def attempt(kind: Kind, seed: int) -> bool:
    """Give one spoiled example to what reads it; whether it was taken. Raises what is not a refusal in one line."""
    rng = random.Random(seed)
    examples, take = kind
    data = spoil(rng, rng.choice(examples))
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError(f"no end in {SECONDS} s")))
    signal.alarm(SECONDS)
    try:
        take(data)
    except StarrError as error:
        if "\n" in str(error):
            raise AssertionError("a refusal of two lines") from error
        return False
    finally:
        signal.alarm(0)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description="Give spoiled inputs of one kind to what reads them.")
    parser.add_argument("kind")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with kinds() as known:
        if given.kind not in known:
            parser.error(f"the kind is one of {', '.join(known)}")
        end, seed, taken = time.monotonic() + 60 * given.minutes, given.seed, 0
        while time.monotonic() < end:
            try:
                taken += attempt(known[given.kind], seed)
            except Exception as error:
                sys.exit(f"{given.kind}, seed {seed}: {type(error).__name__}: {error}"[:2000])
            seed += 1
    print(f"{given.kind}: {seed - given.seed} inputs, {taken} taken, the others refused in one line")


if __name__ == "__main__":
    main()
