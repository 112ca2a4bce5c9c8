"""Writes a model's card, README.md beside its weights: ``python -m training.card FOLDER [--log RUN/log.jsonl]``.

The tables of ``FOLDER/results.json`` take the place of those in the card. With the log of its training a sibling of the
bundled model gets a new card: how it differs, and how long it was trained.
"""

from __future__ import annotations

import argparse
import json
from itertools import takewhile
from pathlib import Path

from starr.errors import InputError
from starr.model.load import read_folder
from training.evaluate import tables
from training.plot import read_log

FORMATS = {
    "dream": "Dream's: Qwen2's keys and tensor names, q/k/v biases, logits that predict the next position",
    "sdar": "SDAR's: Qwen3's keys and tensor names, normed query and key heads, attention in blocks of 4",
}
NOISE = {
    "dream": "Data and noise are those of the first model.",
    "sdar": "Every block draws masks of its own\nand sees the clean blocks before it (`training/blocks.py`). "
    "Templates and texts with holes are left out,\nsince it cannot see what follows a block.",
}
CARD = """# The model `{name}`

A sibling of the [bundled model](../bundled/README.md): the same tasks, sizes and tokens in another format, {form}.
{parameters:.1f} M parameters, {size:.1f} MB in bfloat16.

It began with the bundled model's weights and fresh optimizers: {tokens:.1f} M tokens in {steps:,} steps,
{minutes:.0f} minutes on one core of an AMD EPYC virtual machine (`python -m training.train --format {family}`). {noise}
Loss and held-out shares are in `training.svg`; how to train it again is in `training/README.md`.

## Grades

{cache}, greedy, bfloat16, on the first n of the fixed test problems, whose kinds come in turn;
`python -m training.evaluate --model {name} --dtype bfloat16 --limit N` prints these tables (`--show
src/starr/model/{folder}/results.json` prints them again without decoding). `confidence` is one token per step,
`confidence:steps=…` four per step.
"""


def new_card(folder: Path, log: Path) -> str:
    """The card of a sibling, up to its tables."""
    name = folder.name.replace("_", "-")
    spec, _, _ = read_folder(folder, name)
    if spec.family not in FORMATS:
        raise InputError(f"Only a sibling of the bundled model gets a new card, {name} is of the family {spec.family}.")
    last = read_log(log)[0][-1]
    size = (folder / "model.safetensors").stat().st_size
    return CARD.format(
        name=name,
        folder=folder.name,
        family=spec.family,
        form=FORMATS[spec.family],
        noise=NOISE[spec.family],
        parameters=size / 2e6,
        size=size / 1e6,
        tokens=last["tokens"] / 1e6,
        steps=last["step"],
        minutes=last["seconds"] / 60,
        cache="No cache" if spec.block_length is None else "Cache `exact`",
    )


def with_tables(card: str, made: str) -> str:
    """The card with the tables ``made`` instead of its own, or behind its text where it has none."""
    lines, new = card.rstrip().splitlines(), made.splitlines()
    start = lines.index(new[0]) if new[0] in lines else len(lines)
    before, rest = "\n".join(lines[:start]).rstrip(), lines[start:]
    old = len(list(takewhile(lambda line: line.startswith("|") or not line, rest)))
    return "\n\n".join(part for part in (before, made, "\n".join(rest[old:])) if part) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--log", type=Path, default=None, help="of its training; writes a sibling's card anew")
    options = parser.parse_args()
    path = options.folder / "README.md"
    card = new_card(options.folder, options.log) if options.log else path.read_text(encoding="utf8")
    made = tables(json.loads((options.folder / "results.json").read_text(encoding="utf8")))
    path.write_text(with_tables(card, made), encoding="utf8")


if __name__ == "__main__":
    main()
