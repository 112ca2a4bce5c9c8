"""Random verified runs: `python -m benchmarks.verified_runs --runs 10000`, JSON with --out FILE.

Every strategy, cache, block length, stop rule and way of ending, on random weights with full and with block-causal
attention, in batches of rows that have nothing in common. A run is right if no mask is left, it took no more forwards
than its limit, and a row of every batch is alone what it is there. Anything else is printed and fails the command.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from itertools import count
from pathlib import Path

import starr
from benchmarks.structured_runs import caches, drawn_model
from starr.api import build_request
from starr.decode.engine import Engine
from starr.errors import InputError
from starr.options import Options
from tests.tiny import MASK, form_of

GROWTH = 1000  # steps of a row whose canvas grows, more than any needs
HOLES = ["ab[MASK:2]c[MASK:2]", "[MASK:4] the [MASK:3]. [MASK:1]", "abcabc[MASK:5]"]


def draw(model, rng: random.Random):
    """One row that can be decoded, and its options; what is refused by name is drawn again.

    A strategy is kept for some tries, so that all come about equally often, however many of its settings are refused.
    """
    blocks = model.spec.block_length is not None
    for tries in count():
        if tries % 40 == 0:
            name = rng.choice([entry.name for entry in starr.strategies()])
        holes = rng.random() < 0.15
        prompt = rng.choice(HOLES) if holes else ("abc" * 7)[: rng.randint(1, 20)]
        options = Options(
            strategy=form_of(name),
            cache=rng.choice([*caches(blocks), "none"]),
            max_tokens=rng.randint(1, 20),
            block_length=rng.choice([None, None, 1, 3, 8]),
            temperature=rng.choice([0.0, 0.0, 1.0]),
            seed=rng.randrange(1000),
            max_forwards=rng.choice([None, None, None, 2, 5]),
            enforce=rng.choice(["safe", "safe", "strict", "bounded", "literal"]),
            eos=rng.choice(["normal", "normal", "last", "never"]),
            stop_rule=rng.choice(["none", "none", "eos", "prophet"]),
            smoothing=rng.choice([0.0, 0.0, 0.0, 0.5]),
            guidance=rng.choice([0.0, 0.0, 0.0, 1.0]),
            verify=rng.choice([0.01, 0.3, 0.3, 1.0]),
            infill=holes,
        )
        try:
            return build_request(model, prompt, options), options
        except InputError:
            continue
    raise AssertionError


def fault(row, result) -> str | None:
    """What is wrong with a run, if anything."""
    if MASK in result.tokens:
        return "a mask is left"
    most = row.step_limit * (2 if row.options.guidance else 1)
    grown = max(0, result.stats.row_positions - len(row.tokens))
    if result.stats.forwards > most + (len(row.rules) > 0) + (3 * grown if row.strategy.needs().get("growth") else 0):
        return f"{result.stats.forwards} forwards, the limit is {most}"
    return None


def decode(model, rows, size: int):
    """Results of rows, by place; None for those that are not done when all have had their steps."""
    engine = Engine(model, max_rows=size)
    place = {engine.add(row): number for number, row in enumerate(rows)}
    results = [None] * len(rows)
    steps = sum(row.step_limit + GROWTH * bool(row.strategy.needs().get("growth")) + 2 for row in rows)
    while engine.busy and steps > 0:
        steps -= 1
        for event in engine.step():
            if event.generation is not None:
                results[place[event.id]] = event.generation
    return results


def runs(number: int, seed: int, progress=None):
    """(runs counted by strategy, cache and model, with the revocations made; faults) of this many runs."""
    rng, faults, done = random.Random(seed), [], 0
    seen = {kind: Counter() for kind in ("strategies", "caches", "models", "revocations")}
    while done < number:
        model, kind = drawn_model(rng, rng.choice(["full", "full", "blocks"]))
        drawn = [draw(model, rng) for _ in range(min(16, number - done))]
        results = decode(model, [row for row, _ in drawn], rng.choice([1, 5, 8]))
        alone = decode(model, [drawn[0][0]], 1)[0]
        if alone and results[0] and alone.tokens != results[0].tokens and drawn[0][1].smoothing == 0:
            faults.append({"why": "another text alone", "options": str(drawn[0][1])})
        for (row, options), result in zip(drawn, results, strict=True):
            seen["models"][kind] += 1
            seen["strategies"][row.strategy.name] += 1
            seen["caches"][str(options.cache)] += 1
            if result is None:
                faults.append({"why": "no end", "options": str(options)})
                continue
            seen["revocations"][str(min(result.stats.revocations, 9))] += 1
            wrong = fault(row, result)
            if wrong:
                faults.append({"why": wrong, "options": str(options)})
        done += len(drawn)
        if progress:
            progress(done)
    return seen, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()

    def show(done: int) -> None:
        print(f"\r{done} of {given.runs} runs", end="", file=sys.stderr, flush=True)

    seen, faults = runs(given.runs, given.seed, show)
    print(file=sys.stderr)
    for each in faults[:20]:
        print(json.dumps(each))
    print(
        f"{given.runs} runs, {len(seen['strategies'])} strategies, {len(seen['caches'])} caches, {len(faults)} faults"
    )
    if given.out:
        counts = {kind: dict(sorted(found.items())) for kind, found in seen.items()}
        body = {"command": "python -m benchmarks.verified_runs", "runs": given.runs, "seed": given.seed}
        given.out.write_text(json.dumps(body | {"faults": len(faults)} | counts, indent=1) + "\n", encoding="utf8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
