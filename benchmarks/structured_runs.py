"""Random constrained runs: `python -m benchmarks.structured_runs --runs 5000`, JSON with --out FILE.

Every strategy, cache, block length and way of ending, some texts with holes, on random
weights and tokens of one to four characters, in batches of rows that have nothing in common. Fitted rules have random
weights, too. A run is right if its text matches its own expression by Python's ``re``, no mask is left, and it took no
more forwards than its limit. Anything else is printed and fails the command. `--attention blocks` does the same on
block-causal models.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path

import starr
from starr.api import build_request, run_all
from starr.decode.request import check_request
from starr.errors import InputError
from starr.options import Options
from tests.tiny import EOS, MASK, SIGMOID, SOFTMAX, form_of, tiny_model

EXPRESSIONS = [
    r"[a-c]{1,6}",
    r"(ab|ba)*c",
    r"\{\"a\": ?(0|[1-9][0-9]*), ?\"b\": ?(true|false)\}",
    r"(yes|no|perhaps|yes sir)",
    r"([a-z]+ )*[a-z]+\.",
    r"-?(0|[1-9][0-9]*)(\.[0-9]+)?",
    r"[^a]*",
    r"(a|b)*a(a|b){3}",
    r"(\"[^\"]*\"(, ?\"[^\"]*\")*)?",
    r"abc(abc)+",
]
PIECES = ["", "", "", *"abcdefghijklmnopqrstuvwxyz", *"0123456789", *' .,:-"{}[]']
PIECES += ["ab", "ba", "abc", "cab", "yes", "no", " sir", "per", "true", "false", '": ', '{"', '",', "12", "00", ". "]
PIECES += ["bc", "aa", "bb", ", ", "haps", 'a"', 'b"', "e ", "th", "the "]


class Pieces:
    """Tokens of several characters; enough of a Tokenizer for the engine and for constraints."""

    has_chat = False
    spaced = False
    special_ids = frozenset(range(3))

    def encode(self, text: str) -> list[int]:
        return [PIECES.index(letter, 3) for letter in text if letter in PIECES]

    def decode(self, ids, skip_special: bool = True) -> str:
        return "".join(PIECES[token] for token in ids if 3 <= token < len(PIECES))

    def piece(self, token: int) -> str:
        return self.decode([token])

    def bytes_of(self, token: int) -> bytes:
        return self.piece(token).encode()


BLOCKS = {  # block-causal families: what their layers, logits and windows are like
    "sdar": {},
    "sdar_moe": {"routing": SOFTMAX},
    "llada2": {"routing": SIGMOID},
    "fast_dllm_v2": {"shift": True, "window": 4},
    "a2d": {},
}
BLOCK = 8


def model_of(seed: int, *, shift: bool = False, **shape):
    """Random weights and these pieces; a few ids of the vocabulary stand for nothing."""
    sharpness = random.Random(seed).choice([0.5, 3.0, 8.0])
    made = tiny_model(shift=shift, seed=seed, vocab=96, sharpness=sharpness, **shape)
    return replace(made, tokenizer=Pieces())


def block_model(seed: int, kind: str):
    """The same with block-causal attention; a2d counts blocks from the prompt's end."""
    made = model_of(seed, block=BLOCK, **BLOCKS[kind])
    return replace(made, spec=replace(made.spec, from_prompt=kind == "a2d"))


def constrained(model, prompt: str = "abc", **options):
    """One row of a model."""
    return build_request(model, prompt, Options(**options))


def usable() -> list[str]:
    """Strategies that need no file and move no positions."""
    found = []
    for entry in starr.strategies():
        try:
            found += [] if starr.strategy(entry.name).needs().get("growth") else [entry.name]
        except InputError:
            continue
    return found


def caches(blocks: bool = False) -> list[str]:
    """Caches of models with full or with block-causal attention."""
    if blocks:
        return ["exact", "exact:sub_blocks=true", "none"]
    return [entry.name for entry in starr.caches() if entry.name != "exact"]


HOLES = {  # texts with holes, and what the whole must match
    "ab[MASK:2]c[MASK:2]": r"ab[0-9]{2}c[xyz].",
    "[MASK:4] the [MASK:3]. [MASK:1]": r"[a-z ]+\. [0-9]",
    "abcabc[MASK:5]": r"(ab|c)*[0-9]+[xyz]?",
}


def draw(model, rng: random.Random):
    """One row that can be decoded, and its expression; what the engine refuses by name is drawn again.

    A strategy is kept for some tries, so that all come about equally often, however many of its settings are refused.
    """
    blocks = model.spec.block_length is not None
    for tries in count():
        if tries % 40 == 0:
            name = rng.choice(usable())
        holes = rng.random() < 0.15
        prompt, pattern = (
            rng.choice([*HOLES.items()]) if holes else (("abc" * 7)[: rng.randint(1, 20)], rng.choice(EXPRESSIONS))
        )
        options = Options(
            strategy=form_of(name),
            cache=rng.choice([*caches(blocks), "none"]),
            max_tokens=rng.randint(1, 24),
            block_length=rng.choice([None, None, 1, 3, 8]),
            temperature=rng.choice([0.0, 0.0, 1.0]),
            top_p=rng.choice([1.0, 0.7]),
            seed=rng.randrange(1000),
            max_forwards=rng.choice([None, None, 1, 2, 5]),
            enforce=rng.choice(["safe", "safe", "literal"]),
            eos=rng.choice(["normal", "normal", "last", "never"]),
            stop=rng.choice(["none", "none", "eos", "prophet"]),
            regex=pattern,
            infill=holes,
        )
        if options.enforce == "literal" and options.max_forwards is None:
            options = replace(options, max_forwards=12)
        try:
            row = build_request(model, prompt, options)
            check_request(row, model)
        except InputError:
            continue
        return row, pattern, options
    raise AssertionError


def fault(row, pattern: str, result) -> str | None:
    """What is wrong with a run, if anything."""
    if not re.fullmatch(pattern, result.text, re.DOTALL if "[^" in pattern else 0):
        return f"{result.text!r} does not match"
    if MASK in result.tokens or EOS in result.tokens:
        return "a mask is left"
    if result.stats.forwards > row.step_limit + (len(row.rules) > 0):
        return f"{result.stats.forwards} forwards, the limit is {row.step_limit}"
    return None


def drawn_model(rng: random.Random, attention: str):
    """A model, and the kind that it is counted by."""
    seed = rng.randrange(10**6)
    if attention == "blocks":
        kind = rng.choice([*BLOCKS])
        return block_model(seed, kind), kind
    shift = rng.random() < 0.5
    return model_of(seed, shift=shift), "shifted" if shift else "plain"


def runs(number: int, seed: int, progress=None, attention: str = "full"):
    """(runs counted by strategy, cache, block length, kind of canvas and model; faults) of this many runs."""
    rng, faults, done = random.Random(seed), [], 0
    seen = {kind: Counter() for kind in ("strategies", "caches", "blocks", "canvas", "models")}
    while done < number:
        model, kind = drawn_model(rng, attention)
        drawn = [draw(model, rng) for _ in range(min(32, number - done))]
        results = run_all(model, [row for row, _, _ in drawn], rng.choice([1, 5, 8]))
        for (row, pattern, options), result in zip(drawn, results, strict=True):
            seen["models"][kind] += 1
            seen["strategies"][row.strategy.name] += 1
            seen["caches"][options.cache] += 1
            seen["blocks"][str(options.block_length)] += 1
            seen["canvas"]["holes" if options.infill else "free"] += 1
            wrong = fault(row, pattern, result)
            if wrong:
                faults.append({"why": wrong, "pattern": pattern, "options": str(options)})
        done += len(drawn)
        if progress:
            progress(done)
    return seen, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attention", choices=["full", "blocks"], default="full", help="of the models")
    parser.add_argument("--runs", type=int, help="default: 5000, with blocks 500")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    number = given.runs or (500 if given.attention == "blocks" else 5000)
    started = time.perf_counter()

    def show(done: int) -> None:
        print(f"\r{done} of {number} runs", end="", file=sys.stderr, flush=True)

    seen, faults = runs(number, given.seed, show, given.attention)
    print(file=sys.stderr)
    for each in faults[:20]:
        print(json.dumps(each))
    counts = {kind: dict(sorted(found.items())) for kind, found in seen.items()}
    command = "python -m benchmarks.structured_runs" + " --attention blocks" * (given.attention == "blocks")
    body = {"command": command, "runs": number, "seed": given.seed}
    body |= {"faults": len(faults), **counts}
    print(f"{number} runs, {len(seen['strategies'])} strategies, {len(seen['caches'])} caches, ", end="")
    print(f"{len(faults)} faults, {time.perf_counter() - started:.0f} s")
    if given.out:
        given.out.write_text(json.dumps(body, indent=1) + "\n", encoding="utf8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
