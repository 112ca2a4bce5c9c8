"""What one decision costs: median time of every strategy's ``decide`` at one row of 256 positions.

    python benchmarks/decide.py --out decide.json

The window is half decoded. Strategies that need the distribution get logits over ``--vocabulary`` tokens.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median

import torch

from starr.strategy import strategies
from starr.strategy.base import StepView, Strategy

LIMIT_MS = 0.5


def random_view(width: int, vocabulary: int, step: int, signals: frozenset[str]) -> StepView:
    """One half-decoded row with random signals; only those asked for."""
    random = torch.Generator().manual_seed(step)
    confidence, entropy, margin, shadow, noise = torch.rand(5, 1, width, generator=random)
    masked = torch.rand(1, width, generator=torch.Generator().manual_seed(0)) < 0.5
    proposal = torch.randint(1, vocabulary, (1, width), generator=random)
    asked = {"entropy": entropy, "margin": margin, "shadow": shadow, "noise": noise}
    if "distribution" in signals:
        asked["distribution"] = torch.randn(1, width, vocabulary, generator=random)
    return StepView(
        tokens=proposal.masked_fill(masked, 0),
        masked=masked,
        frozen=torch.zeros_like(masked),
        proposal=proposal,
        confidence=confidence,
        best=confidence,
        step=torch.tensor([step]),
        width=torch.tensor([width]),
        windows=torch.tensor([1]),
        block=torch.tensor([width]),
        **{name: value for name, value in asked.items() if name in signals},
    )


def decide_ms(strategy: Strategy, width: int, vocabulary: int, repeats: int) -> float:
    """Median milliseconds of a decision, over steps that continue one carry."""
    views = [random_view(width, vocabulary, step, strategy.signals) for step in range(8)]
    carry = strategy.begin(views[0])
    times = []
    for count in range(repeats + 10):
        view = views[count % len(views)]
        start = time.perf_counter()
        _, carry = strategy.decide(view, carry)
        times.append(time.perf_counter() - start)
    return median(times[10:]) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description="Median cost of one decision of every strategy.")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--out", type=Path, help="write the table as JSON")
    options = parser.parse_args()
    with torch.inference_mode():
        lines = []
        for entry in strategies():
            # Token ids come from a model's tokenizer; any will do here.
            strategy = entry.kind(**{option.name: "1/2" for option in entry.options if option.default == "auto"})
            ms = decide_ms(strategy, options.width, options.vocabulary, options.repeats)
            lines.append({"strategy": entry.name, "signals": sorted(strategy.signals), "ms": round(ms, 4)})
    lines.sort(key=lambda line: line["ms"])
    print(f"{'strategy':<12}{'signals':<14}{'ms':>8}   B = 1, W = {options.width}, V = {options.vocabulary}")
    for line in lines:
        over = "" if line["ms"] <= LIMIT_MS else "  distribution" if "distribution" in line["signals"] else "  over"
        print(f"{line['strategy']:<12}{','.join(line['signals']) or '-':<14}{line['ms']:>8.3f}{over}")
    if options.out:
        report = {"width": options.width, "vocabulary": options.vocabulary, "repeats": options.repeats, "rows": lines}
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
