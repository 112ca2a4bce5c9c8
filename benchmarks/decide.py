"""What one decision costs: median time of every strategy's ``decide`` at one row of 256 positions.

    python -m benchmarks.decide --out decide.json
    python -m benchmarks.decide --against decide.json

The window is half decoded. Strategies that need the distribution get logits over ``--vocabulary`` tokens; those that
are fitted are the bundled model's. Times are processor time, which other processes disturb less than a clock.
``--against`` shows the times of an earlier file beside those of now, and their ratio.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median

import torch

import starr
from starr.decode.strategies import strategies
from starr.decode.strategies.base import Strategy
from starr.decode.view import StepView

LIMIT_MS = 0.5
FITTED = ("calibrated", "learn2pd")


def random_view(width: int, vocabulary: int, step: int, signals: frozenset[str]) -> StepView:
    """One half-decoded row with random signals; only those asked for."""
    random = torch.Generator().manual_seed(step)
    confidence, entropy, margin, shadow, noise = torch.rand(5, 1, width, generator=random)
    masked = torch.rand(1, width, generator=torch.Generator().manual_seed(0)) < 0.5
    proposal = torch.randint(1, vocabulary, (1, width), generator=random)
    asked = {"entropy": entropy, "margin": margin, "gap": 9 * margin, "noise": noise}
    told = {"shadow": shadow, "room": torch.full_like(proposal, 1024)}
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
        sure=confidence,
        extras={name: value for name, value in told.items() if name in signals},
        **{name: value for name, value in asked.items() if name in signals},
    )


def decide_ms(strategy: Strategy, width: int, vocabulary: int, repeats: int) -> float:
    """Median milliseconds of a decision, over steps that continue one carry."""
    views = [random_view(width, vocabulary, step, strategy.signals) for step in range(8)]
    carry = strategy.begin(views[0])
    times = []
    for count in range(repeats + 10):
        view = views[count % len(views)]
        start = time.process_time()
        _, carry = strategy.decide(view, carry)
        times.append(time.process_time() - start)
    return median(times[10:]) * 1e3


def known(path: Path | None) -> dict[str, float]:
    """Milliseconds by strategy from an earlier file."""
    rows = json.loads(path.read_text())["rows"] if path else []
    return {row["strategy"]: row["ms"] for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description="Median cost of one decision of every strategy.")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--out", type=Path, help="write the table as JSON")
    parser.add_argument("--against", type=Path, help="a table that was written before, to compare with")
    options = parser.parse_args()
    model = starr.load()
    with torch.inference_mode():
        lines = []
        for entry in strategies():
            # Token ids come from a model's tokenizer; any will do here.
            ids = [option.name for option in entry.options if option.default == "auto" and not option.choices]
            fitted = entry.name in FITTED
            strategy = entry.kind().bind(model) if fitted else entry.kind(**dict.fromkeys(ids, "1/2"))
            ms = decide_ms(strategy, options.width, options.vocabulary, options.repeats)
            lines.append({"strategy": entry.name, "signals": sorted(strategy.signals), "ms": round(ms, 4)})
    lines.sort(key=lambda line: line["ms"])
    before = known(options.against)
    print(f"{'strategy':<12}{'signals':<14}{'ms':>8}{'before':>9}{'ratio':>7}   W = {options.width}")
    for line in lines:
        over = "" if line["ms"] <= LIMIT_MS else "  distribution" if "distribution" in line["signals"] else "  over"
        then = before.get(line["strategy"])
        pair = f"{then:>9.3f}{line['ms'] / then:>7.2f}" if then else f"{'':>16}"
        print(f"{line['strategy']:<12}{','.join(line['signals']) or '-':<14}{line['ms']:>8.3f}{pair}{over}")
    ratios = [line["ms"] / before[line["strategy"]] for line in lines if before.get(line["strategy"])]
    if ratios:
        print(f"median ratio over {len(ratios)} strategies: {median(ratios):.2f}")
    if options.out:
        report = {"width": options.width, "vocabulary": options.vocabulary, "repeats": options.repeats, "rows": lines}
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
