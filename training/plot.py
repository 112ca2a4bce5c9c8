"""Draws loss and held-out accuracy over tokens: ``python -m training.plot RUN/log.jsonl OUT.svg``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt


def read_log(path: Path) -> tuple[list[dict], list[dict]]:
    """The log's (loss lines, held-out lines)."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if "loss" in line], [line for line in lines if "scores" in line]


def draw(path: Path, out: Path) -> None:
    losses, checks = read_log(path)
    figure, left = plt.subplots(figsize=(7, 4))
    left.semilogy([line["tokens"] / 1e6 for line in losses], [line["loss"] for line in losses], color="tab:blue", lw=1)
    left.set_xlabel("million tokens")
    left.set_ylabel("loss per masked token", color="tab:blue")
    right = left.twinx()
    right.set_ylim(0, 1)
    right.set_ylabel("held-out share right and well formed (mean over kinds, threshold 0.9)")
    tokens = [line["tokens"] / 1e6 for line in checks]
    for task in checks[-1]["scores"] if checks else ():
        shares = [sum(line["scores"][task].values()) / len(line["scores"][task]) for line in checks]
        right.plot(tokens, shares, "o-", lw=0.8, label=task)
    if checks:
        right.legend(loc="center right", fontsize="small")
    figure.tight_layout()
    figure.savefig(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    draw(options.log, options.out)


if __name__ == "__main__":
    main()
