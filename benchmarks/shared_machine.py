"""Decoding while other programs run: `python -m benchmarks.shared_machine` prints seconds beside 0 to 3 busy loops.

Every path (command line, library, library with torch imported first, evaluation, server, training) runs as users run it
and with one thread, in turns, so that a busy hour hits both. The least of ``--rounds`` counts. ``ratio`` is the time as
users run it over the time with one thread; the rule is that no ratio beside a busy loop exceeds 2.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from benchmarks.report import machine, table

DECODE = """
import time
prompt = "Tom has 5 apples. He buys 3 more and gives 2 away. How many apples does Tom have?"
def measure(model):
    starr.generate(model, prompt)
    start = time.perf_counter()
    for _ in range(REPEATS): starr.generate(model, prompt)
    print((time.perf_counter() - start) / REPEATS)
measure(starr.load(threads=THREADS))
"""
SERVE = """
import json, time, httpx
from benchmarks.serving import server
with server(*(() if THREADS is None else ("--threads", str(THREADS)))) as (url, _):
    body = {"prompt": "Tom has 5 apples. He buys 3 more. How many?", "max_tokens": 128}
    def ask(): httpx.post(f"{url}/v1/completions", json=body, timeout=600).raise_for_status()
    ask()
    start = time.perf_counter()
    for _ in range(REPEATS): ask()
    print((time.perf_counter() - start) / REPEATS)
"""
EVAL = """
import json, subprocess, sys, tempfile
with tempfile.TemporaryDirectory() as out:
    flags = [] if THREADS is None else ["--threads", str(THREADS)]
    words = ["eval", "word-problems", "--limit", "8", "--json", "--quiet", "-o", out + "/run", *flags]
    told = subprocess.run([sys.executable, "-m", "starr.cli.main", *words], capture_output=True, text=True, check=True)
    run = json.loads(told.stdout)["runs"][0]
    print(run["time"]["seconds"] / run["n"])
"""
RUN = """
import json, subprocess, sys
flags = [] if THREADS is None else ["--threads", str(THREADS)]
words = ["run", "Tom has 5 apples. He buys 3 more. How many?", "--json", "--quiet", *flags]
told = subprocess.run([sys.executable, "-m", "starr.cli.main", *words], capture_output=True, text=True, check=True)
print(json.loads(told.stdout)["stats"]["seconds"])
"""
TRAIN = """
import training, time, torch
import torch.nn.functional as F
if THREADS: torch.set_num_threads(THREADS)
import starr
from training.attention import trainable
net = starr.load(dtype="float32").net.requires_grad_(True)
tokens = torch.zeros(16, 128, dtype=torch.long)
def step(): net.head(net(tokens)).float().logsumexp(-1).mean().backward()
step()
start = time.perf_counter()
for _ in range(REPEATS): step()
print((time.perf_counter() - start) / REPEATS)
"""
PATHS = {
    "command line": RUN,
    "library": "import starr" + DECODE,
    "library, torch first": "import torch, starr" + DECODE,
    "evaluation": EVAL,
    "server": SERVE,
    "training": TRAIN,
}


@contextmanager
def busy(loops: int):
    """Other programs that never stop."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for loop in spinning:
            loop.kill()
            loop.wait()


def seconds(program: str, threads: int | None, repeats: int) -> float:
    head = f"THREADS, REPEATS = {threads!r}, {repeats}\n"
    told = subprocess.run([sys.executable, "-c", head + program], capture_output=True, text=True, check=True)
    return float(told.stdout.split()[-1])


def measure(name: str, loops: int, rounds: int, repeats: int) -> dict:
    with busy(loops):
        pairs = [(seconds(PATHS[name], None, repeats), seconds(PATHS[name], 1, repeats)) for _ in range(rounds)]
    chosen, one = (min(values) for values in zip(*pairs, strict=True))
    return {"path": name, "busy loops": loops, "seconds": chosen, "one thread": one, "ratio": chosen / one}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", action="append", choices=PATHS)
    parser.add_argument("--loops", type=int, default=3, help="the most busy loops")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for name in given.path or PATHS:
        for loops in range(given.loops + 1):
            rows.append(measure(name, loops, given.rounds, given.repeats))
            print(rows[-1], file=sys.stderr, flush=True)
    print(table("Seconds of one answer (training: of one step)", rows))
    if given.out:
        given.out.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
