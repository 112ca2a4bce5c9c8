"""Random options at and around their bounds, for as long as asked: `python -m benchmarks.fuzz_options --minutes 10`.

Every draw combines a strategy, a cache, a stop rule and options of decoding, in, at and beyond their bounds. A
refusal is an InputError; anything else that is raised, a mask in an answer or a minute without an answer ends the run
with the draw that caused it. The short version in the suite is tests/property/test_bounds.py.
"""

from __future__ import annotations

import argparse
import random
import time

import starr
from starr.decode.caches import CACHES
from starr.decode.stops.base import STOPS
from starr.decode.strategies import STRATEGIES
from starr.errors import InputError
from starr.named import Option
from starr.options import by_name
from tests.tiny import MASK, tiny_model

BEYOND = (2**31, 2**63, 10**30, -1, 1e308, float("inf"), float("nan"))
LENGTHS = {"max_tokens": 40, "block_length": 40, "max_forwards": 60}  # large ones only take long


def draw(rng: random.Random, option: Option) -> object:
    """A value of the option's type: mostly allowed, sometimes at a bound, sometimes beyond."""
    low, high = option.low or 0, min(option.high or 1, LENGTHS.get(option.name, option.high or 1))
    chance = rng.random()
    if chance < 0.1:
        return rng.choice(BEYOND)
    if chance < 0.4:
        return rng.choice((low, high))
    return rng.randint(int(low), int(min(high, 64))) if option.type == "int" else rng.uniform(low, high)


def member(rng: random.Random, registry: object) -> str:
    """A text form with up to three options."""
    entry = rng.choice(list(registry.entries.values()))
    numbers = [option for option in entry.options if option.type in ("int", "float")]
    chosen = rng.sample(numbers, min(len(numbers), rng.randint(0, 3)))
    return f"{entry.name}:" + ",".join(f"{option.name}={draw(rng, option)}" for option in chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    model, end, tried, refused, seed = tiny_model(length=128), time.monotonic() + 60 * given.minutes, 0, 0, given.seed
    while time.monotonic() < end:
        rng = random.Random(seed)
        options = {name: draw(rng, by_name()[name]) for name in rng.sample(("temperature", "top_p", "max_tokens"), 1)}
        options |= {"strategy": member(rng, STRATEGIES), "cache": member(rng, CACHES)}
        options |= {"stop_rule": member(rng, STOPS)} if rng.random() < 0.3 else {}
        began = time.monotonic()
        try:
            found = starr.generate(model, "some prompt", **({"max_tokens": 24} | options))
            assert MASK not in found.tokens, (seed, options)
        except InputError:
            refused += 1
        except Exception as error:
            raise SystemExit(f"seed {seed}: {options} gave {error!r}") from error
        assert time.monotonic() - began < 60, (seed, options)
        tried, seed = tried + 1, seed + 1
    print(f"{tried} draws, {refused} refused, from seed {given.seed}; nothing else was raised")


if __name__ == "__main__":
    main()
