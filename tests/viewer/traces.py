"""Made-up traces that keep the rules of format 1: what a step finds is what the steps before it left."""

from __future__ import annotations

import random
from typing import Any

WORDS = ["Tom", " has", " 12", " apples", " and", " buys", " 8", " more", ".", "\n", " So", " 20", " in", " all", " ####"]
MASK = 0


def make(
    *, strategy: str = "starr", length: int = 48, block: int | None = None, seed: int = 0, pace: int = 3, cache: str = "none",
    words: list[str] | None = None, prompt: str = "How many apples?", threshold: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """A run of ``length`` positions in blocks, committing about ``pace`` tokens a step, revoking now and then."""
    rng = random.Random(seed)
    pieces = {0: "[MASK]"} | {index + 1: word for index, word in enumerate(words or WORDS)}
    answer = [1 + index % (len(pieces) - 1) for index in range(length)]
    canvas, steps, clock, changed = [MASK] * length, [], 0.0, False
    for start in range(0, length, block or length):
        end = min(start + (block or length), length)
        while MASK in canvas[start:end]:
            step = one_step(rng, canvas, answer, (start, end), pace, len(pieces))
            clock += 0.01 + rng.random() / 100
            part = bool(changed and cache == "dual")
            step |= {"step": len(steps), "seconds": round(clock, 5), "positions": end - start if part else length + 20}
            step["threshold"] = step["threshold"] if threshold else None
            step["queried"] = [int(not part or bool(masked)) for masked in step["masked"]]
            steps.append(step)
            changed = True
            apply(canvas, step)
    stats = {"forwards": len(steps), "tokens": length, "tokens_per_forward": round(length / len(steps), 4),
             "tokens_per_second": round(length / clock, 4), "seconds": clock,
             "revocations": sum(step["action"].count(2) for step in steps)}  # fmt: skip
    return {"version": 1, "model": "toy", "strategy": strategy, "cache": cache, "prompt": prompt, "prompt_tokens": 20,
            "length": length, "mask_id": MASK, "pieces": {str(key): text for key, text in pieces.items()}, "steps": steps,
            "tokens": list(canvas), "text": "".join(pieces[token] for token in canvas), "answer": "20",
            "correct": seed % 2 == 0, "stats": stats}  # fmt: skip


def one_step(rng: random.Random, canvas: list[int], answer: list[int], window: tuple[int, int], pace: int, size: int) -> dict[str, Any]:
    start, end = window
    masked = [token == MASK for token in canvas[start:end]]
    proposal = [answer[p] if rng.random() < 0.8 else rng.randrange(1, size) for p in range(start, end)]
    confidence = [round(rng.random() if m else 1 - rng.random() ** 3 / 2, 5) for m in masked]
    best = [value if m else max(value, round(rng.random(), 5)) for value, m in zip(confidence, masked, strict=True)]
    threshold = [round(0.6 + 0.35 * rng.random(), 5) for _ in masked]
    waiting = [index for index, m in enumerate(masked) if m]
    chosen = sorted(waiting, key=lambda index: -confidence[index])[: rng.randint(1, 2 * pace - 1)]
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
            "confidence": confidence, "threshold": threshold, "decided": decided, "action": action, "label": label}  # fmt: skip


def apply(canvas: list[int], step: dict[str, Any]) -> None:
    start = step["window"][0]
    for index, action in enumerate(step["action"]):
        if action in (1, 3):
            canvas[start + index] = step["proposal"][index]
        elif action == 2:
            canvas[start + index] = MASK
