"""Damaged model folders, for as long as asked: `python -m benchmarks.fuzz_files --minutes 10`.

Every draw takes a small model's folder, changes values of its JSON files (to junk, to huge numbers, to long texts and
lists) or bytes of its weights, and loads it and decodes a few tokens in a child process with 8 GiB and 60 s. The model
decodes, or one line says why not; anything else ends the run with the draw. The short versions in the suite are
tests/model/text/test_screen.py, tests/model/text/test_templates.py and tests/model/files/test_memory.py.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import starr
from benchmarks.fuzz_inputs import change
from starr.errors import StarrError
from starr.model.text.chat import LLADA_TEMPLATE
from tests.model.tiny import write_llada

FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")
MEMORY, SECONDS = 8 << 30, 60  # of the child


def attempt(folder: Path, told: Connection) -> None:
    """The child's work: load, decode, report how it ended."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        starr.generate(starr.load(folder, dtype="float32", threads=1), "hello", max_tokens=4)
        told.send("decoded")
    except StarrError as error:
        told.send(f"refused: {error}")


def outcome(folder: Path) -> str:
    """How a folder ended: decoded, refused with a line, or what else happened."""
    context = multiprocessing.get_context("fork")  # torch is imported already
    hear, tell = context.Pipe(duplex=False)
    child = context.Process(target=attempt, args=(folder, tell))
    child.start()
    tell.close()
    found = "no answer in time"
    if hear.poll(SECONDS):
        with suppress(EOFError):
            found = hear.recv()
        child.join(5)
        found = found if found.startswith(("decoded", "refused")) else f"the child ended with {child.exitcode}"
    child.kill()
    child.join()
    return found


def spoil(rng: random.Random, folder: Path) -> str:
    """Damage one file; returns what was done."""
    name = rng.choice((*FILES, "model.safetensors"))
    path = folder / name
    if name == "model.safetensors":
        data = bytearray(path.read_bytes())
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(min(len(data), rng.choice((8, 2000, len(data)))))] = rng.randrange(256)
        path.write_bytes(data[: rng.randrange(len(data))] if rng.random() < 0.2 else data)
        return name
    body = json.loads(path.read_text())
    place = change(rng, body)
    path.write_text(json.dumps(body))
    return f"{name} {place}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Load damaged model folders.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    end, seed, refused = time.monotonic() + 60 * given.minutes, given.seed, 0
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as place:
            folder = write_llada(Path(place) / "model")
            (folder / "tokenizer_config.json").write_text(
                json.dumps({"chat_template": LLADA_TEMPLATE, "bos_token": "x"})
            )
            done = spoil(random.Random(seed), folder)
            found = outcome(folder)
        if not found.startswith(("decoded", "refused")) or "\n" in found:
            sys.exit(f"seed {seed}: {done}\n{found}")
        refused += found.startswith("refused")
        seed += 1
    print(f"{seed - given.seed} folders, {refused} refused, the others decoded")


if __name__ == "__main__":
    main()
