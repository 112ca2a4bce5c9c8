"""Made-up traces that keep the rules of format 1: what a step finds is what the steps before it left."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

WORDS = ["Tom", " has", " 12", " apples", " and", " buys", " 8", " more", ".", "\n", " So", " 20", " in", " all"]
MASK, END = 0, "<|endoftext|>"


@dataclass(frozen=True, kw_only=True)
class Run:
    strategy: str = "starr"
    cache: str = "none"
    length: int = 48
    block: int | None = None
    pace: int = 3  # tokens a step, about
    seed: int = 0
    words: tuple[str, ...] = tuple(WORDS)
    prompt: str = "How many apples?"
    threshold: bool = True


def make(**options: Any) -> dict[str, Any]:
    """A run in blocks from left to right that revokes and revises now and then."""
    run = Run(**options)
    pieces = dict(enumerate(["[MASK]", *run.words]))
    canvas = [MASK] * run.length
    steps = take_steps(run, canvas)
    seconds = steps[-1]["seconds"]
    stats = {"forwards": len(steps), "tokens": run.length, "tokens_per_forward": round(run.length / len(steps), 4),
             "tokens_per_second": round(run.length / seconds, 4), "seconds": seconds,
             "revocations": sum(step["action"].count(2) for step in steps)}  # fmt: skip
    return {"version": 1, "model": "toy", "strategy": run.strategy, "cache": run.cache, "prompt": run.prompt,
            "prompt_tokens": 20, "length": run.length, "mask_id": MASK, "steps": steps, "tokens": list(canvas),
            "pieces": {str(key): text for key, text in pieces.items()},
            "answer": "20", "right": run.seed % 2 == 0, "formed": None,
            "text": "".join(pieces[token] for token in canvas), "stats": stats}  # fmt: skip


def ended(length: int = 96, text: int = 30, **options: Any) -> dict[str, Any]:
    """A run whose canvas ends in end-of-text, as most runs do."""
    trace = make(length=length, words=(*WORDS, END), **options)
    end = 1 + len(WORDS)
    for step in trace["steps"]:
        start = step["window"][0]
        for name in ("tokens", "proposal"):
            known = zip(step[name], step["masked"], strict=True)
            step[name] = [
                token if place + start < text or (name == "tokens" and masked) else end
                for place, (token, masked) in enumerate(known)
            ]
    trace["tokens"] = [token if place < text else end for place, token in enumerate(trace["tokens"])]
    return trace


def take_steps(run: Run, canvas: list[int]) -> list[dict[str, Any]]:
    """Decodes the canvas in place."""
    rng, steps, clock = random.Random(run.seed), [], 0.0
    for start in range(0, run.length, run.block or run.length):
        window = (start, min(start + (run.block or run.length), run.length))
        while MASK in canvas[slice(*window)]:
            step = one_step(rng, canvas, window, run)
            clock += 0.01 + rng.random() / 100
            part = bool(steps) and run.cache == "dual"
            step |= {"step": len(steps), "seconds": round(clock, 5), "positions": 32 if part else run.length + 20}
            step["queried"] = [int(not part or masked) for masked in step["masked"]]
            steps.append(step)
            apply(canvas, step)
    return steps


def one_step(rng: random.Random, canvas: list[int], window: tuple[int, int], run: Run) -> dict[str, Any]:
    (start, end), size = window, len(run.words)
    masked = [token == MASK for token in canvas[start:end]]
    proposal = [1 + (p if rng.random() < 0.8 else rng.randrange(size)) % size for p in range(start, end)]
    confidence = [round(rng.random() if m else 1 - rng.random() ** 3 / 2, 5) for m in masked]
    best = [value if m else max(value, round(rng.random(), 5)) for value, m in zip(confidence, masked, strict=True)]
    threshold = [round(0.6 + 0.35 * rng.random(), 5) for _ in masked]
    waiting = [index for index, m in enumerate(masked) if m]
    chosen = sorted(waiting, key=lambda index: -confidence[index])[: rng.randint(1, 2 * run.pace - 1)]
    decided = [1 if index in chosen and confidence[index] > threshold[index] else 0 for index in range(len(masked))]
    action = [1 if index in chosen else 0 for index in range(len(masked))]
    label = [1 if act and not dec and rng.random() < 0.3 else 0 for act, dec in zip(action, decided, strict=True)]
    decided = [1 if mark else dec for mark, dec in zip(label, decided, strict=True)]
    held = [index for index, m in enumerate(masked) if not m]
    if held and len(chosen) > 1 and rng.random() < 0.4:
        taken = rng.choice(held)
        action[taken], label[taken] = rng.choice([(2, 0), (2, 2), (3, 0)])
    for index in held:
        if action[index] or rng.random() < 0.02:
            decided[index] = action[index] or 2
    return {"window": [start, end], "tokens": canvas[start:end], "masked": masked, "proposal": proposal, "best": best,
            "confidence": confidence, "threshold": threshold if run.threshold else None, "decided": decided,
            "action": action, "label": label}  # fmt: skip


def apply(canvas: list[int], step: dict[str, Any]) -> None:
    start = step["window"][0]
    for index, action in enumerate(step["action"]):
        if action in (1, 3):
            canvas[start + index] = step["proposal"][index]
        elif action == 2:
            canvas[start + index] = MASK
