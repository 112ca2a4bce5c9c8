"""What keeping freed memory saves: time of a batched CPU decode with it over the time without, in child processes.

    python -m benchmarks.memory

Each pair of children decodes the same eight word problems, 16 forwards each, canvas 128, one thread.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from statistics import median

from benchmarks.report import table

CHILD = """
import sys, time, torch
import starr
from starr.evals.tasks import word_problems
from starr.model import load
if sys.argv[1] == "given back":
    load.keep_freed_memory = lambda: False
torch.set_num_threads(1)
model = starr.load()
prompts = [problem.prompt for problem in word_problems.load()[:8]]
for _ in range(3):
    start = time.perf_counter()
    starr.generate(model, prompts, strategy="confidence:steps=16", max_tokens=128)
print(time.perf_counter() - start)
"""


def seconds(how: str) -> float:
    return float(subprocess.run([sys.executable, "-c", CHILD, how], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    pairs = parser.parse_args().pairs
    ratios = sorted(seconds("kept") / seconds("given back") for _ in range(pairs))
    found = {"pairs": pairs, "kept / given back": median(ratios), "least": ratios[0], "most": ratios[-1]}
    print(table("Time of a batched decode that keeps freed memory", [found]))


if __name__ == "__main__":
    main()
