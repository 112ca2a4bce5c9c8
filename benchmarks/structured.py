"""What a constraint costs: `python -m benchmarks.structured`, JSON with --out FILE; `--joint N` compares commits.

Vocabularies of 896 (the bundled tokenizer), 32,000 and 126,464 (made-up words over all bytes). For each: the time to
compile a schema, the size of its automaton, and the time of a constrained step against a free one. The step is timed on
one layer of the 8B shape; the other 31 layers are added as 31 times that layer, alike for both. ``--joint`` decodes
word problems with the bundled model twice, with commits by confidence and with DINGO's best path in every step.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch

import starr
from benchmarks.report import machine, table
from starr.api import build_request, run_all
from starr.decode import batch
from starr.decode.engine import Engine
from starr.decode.extras import GUESTS
from starr.decode.extras.constraints.compile import compile_constraint, spell_vocabulary
from starr.decode.extras.constraints.expression import parse_constraint
from starr.decode.extras.constraints.guest import Constraints
from starr.decode.view import COMMIT
from starr.evals.tasks import load_task
from starr.model.load import Model
from starr.model.network.layers import Shape
from starr.model.network.transformer import Transformer
from starr.model.spec import ModelSpec
from starr.options import Options

LAYERS = 32  # of the 8B shape
LIMIT = 1.2
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "kind": {"enum": ["person", "place", None]},
    },
    "required": ["name", "age"],
}
SENTENCES = r"[A-Z][^#]+#### [0-9]{1,3}"
OBJECT = {"type": "object", "properties": {"work": {"type": "string"}, "answer": {"type": "integer"}}}


class Words:
    """A tokenizer of single bytes and made-up words."""

    has_chat = False
    spaced = False
    special_ids = frozenset(range(3))

    def __init__(self, size: int) -> None:
        rng, found = random.Random(0), {bytes([byte]) for byte in range(256)}
        letters = "etaoinshrdlucmfwypvbgkqjxz"
        while len(found) < size - 3:
            word = "".join(rng.choices(letters, weights=range(26, 0, -1), k=rng.randint(2, 9)))
            kind = rng.random()
            if kind < 0.15:
                word = "".join(rng.choices('{}[]":,.-_()\n 0123456789', k=rng.randint(2, 4)))
            elif kind < 0.25:
                word = "".join(chr(rng.randint(0x4E00, 0x9FFF)) for _ in range(rng.randint(1, 2)))
            found.add((" " + word if rng.random() < 0.5 else word).encode())
        self.words = [b""] * 3 + sorted(found)

    def encode(self, text: str) -> list[int]:
        return [3 + byte for byte in text.encode()]

    def decode(self, ids, skip_special: bool = True) -> str:
        return b"".join(self.words[token] for token in ids).decode(errors="replace")

    def piece(self, token: int) -> str:
        return self.decode([token])

    def bytes_of(self, token: int) -> bytes:
        return self.words[token]


def model_of(size: int, width: int) -> Model:
    """One layer of the 8B shape (scaled with ``width``), with this vocabulary."""
    shape = Shape(
        vocab_size=size,
        width=width,
        layers=1,
        heads=width // 128,
        kv_heads=width // 128,
        mlp_width=3 * width,
        tied=True,
    )
    net = Transformer(shape).eval().requires_grad_(False)
    for parameter in net.parameters():
        parameter.normal_(0.0, 0.02)
    spec = ModelSpec("wide", "llada", shape, 1, (2,), 0, 2, False, 4096)
    tokenizer = starr.load().tokenizer if size == 896 else Words(size)
    if size == 896:
        bundled = starr.load().spec
        spec = replace(spec, mask_id=bundled.mask_id, eos_ids=bundled.eos_ids, bos_id=bundled.bos_id)
    return Model(spec, net, tokenizer, "wide")


def steps(model: Model, prompt: int, canvas: int, **options) -> list[float]:
    """Milliseconds of every step of one row that commits one token per step."""
    row = build_request(
        model, [3] * prompt, Options(max_tokens=canvas, strategy="confidence", max_forwards=None, **options)
    )
    engine = Engine(model, max_rows=1)
    engine.add(row)
    found = []
    while engine.busy and len(found) < 12:
        started = time.perf_counter()
        engine.step()
        found.append(1000 * (time.perf_counter() - started))
    return found


def layer_time(model: Model, positions: int) -> float:
    """Milliseconds of one layer over this many positions."""
    tokens = torch.full((1, positions), 3)
    found = []
    with torch.inference_mode():
        for _ in range(5):
            started = time.perf_counter()
            model.net(tokens)
            found.append(1000 * (time.perf_counter() - started))
    return median(found)


def cost(size: int, width: int, prompt: int, canvas: int) -> dict:
    """One row of the table."""
    model = model_of(size, width)
    spelling = spell_vocabulary(model)
    started = time.perf_counter()
    automaton = compile_constraint(parse_constraint(json_schema=SCHEMA), spelling)
    compiled = 1000 * (time.perf_counter() - started)
    free, bound = steps(model, prompt, canvas), steps(model, prompt, canvas, json_schema=SCHEMA)
    rest = (LAYERS - 1) * layer_time(model, prompt + canvas)
    whole = median(free[1:]) + rest
    return {
        "vocabulary": size,
        "states": automaton.states,
        "classes": automaton.classes,
        "compile ms": compiled,
        "8B step ms": whole,
        "more, first step ms": bound[0] - free[0],
        "more, later steps ms": median(bound[1:]) - median(free[1:]),
        "ratio": (median(bound[1:]) + rest) / whole,
    }


class BestPath(Constraints):
    """Every step's commits chosen together, for comparison."""

    def propose(self, request, call):
        found = super().propose(request, call)
        return replace(found, signals=found.signals | {"distribution"})

    def amend(self, step):
        written = step.written.clone()
        for k, each in enumerate(self.walks):
            row = int(self.rows[k])
            commits = (step.action[row] == COMMIT).nonzero().flatten().tolist()
            if commits:
                positions = [each.window[0] + i for i in commits]
                written[row, commits] = self.choose_together(k, each, step.view.distribution[row, commits], positions)
        return replace(step, written=written)


def joint(count: int) -> list[dict]:
    """Forwards and right answers of both ways on word problems."""
    model, task = starr.load(), load_task("word-problems")
    items = list(task.items[:count])
    rows = []
    for name, given in (("sentences", {"regex": SENTENCES}), ("object", {"json_schema": OBJECT})):
        for tau in (0.5, 0.9):
            for way, guest in (("by confidence", Constraints), ("best path", BestPath)):
                batch.GUESTS = tuple(guest if kind is Constraints else kind for kind in GUESTS)
                options = Options(max_tokens=96, strategy=f"threshold:tau={tau}", **given)
                found = run_all(model, [build_request(model, item.chat, options) for item in items], 8)
                graded = [task.grade(item, each.text) for item, each in zip(items, found, strict=True)]
                right = sum(bool(grade.scores[task.primary]) for grade in graded)
                forwards = sum(each.stats.forwards for each in found) / len(found)
                rows.append({"constraint": name, "tau": tau, "way": way, "forwards": forwards, "right": right / count})
    batch.GUESTS = GUESTS
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=4096, help="4096 is the 8B shape; less for a trial")
    parser.add_argument("--prompt", type=int, default=256)
    parser.add_argument("--canvas", type=int, default=128)
    parser.add_argument("--joint", type=int, default=0, help="word problems to decode both ways")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    body: dict = {"machine": machine()}
    if given.joint:
        body["joint"] = joint(given.joint)
        print(table("Commits of one step", body["joint"]))
    else:
        sizes = (896, 32_000, 126_464)
        body["steps"] = [cost(size, given.width, given.prompt, given.canvas) for size in sizes]
        print(table("A constrained step", body["steps"]))
        worst = max(row["ratio"] for row in body["steps"])
        print(f"at most {worst:.3f} x a free step of the 8B shape (the bar is {LIMIT})")
    if given.out:
        given.out.write_text(json.dumps(body, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
