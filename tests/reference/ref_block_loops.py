"""The released loops of block-causal models, one row at a time, with whole forwards and no cache; greedy.

``logits_of(tokens)`` gives the logits (T, V) of one row under the block-causal mask, the mask token at -inf. The
faults of the released code that the notes list are not copied: surplus picks are capped at the masks, a prompt of
exactly one block is seen.
"""

from __future__ import annotations

import torch


def judged(logits):
    """The best token of each row of logits and its probability, rounded to the grid that the loop uses."""
    probability = torch.softmax(logits.double(), dim=-1).max(dim=-1).values
    return logits.argmax(dim=-1).tolist(), [round(p * 65536) / 65536 for p in probability.tolist()]


def best(places, confidence, count):
    return sorted(places, key=lambda i: (-confidence[i], i))[:count]


def quotas(block, steps):
    return [block // steps + (1 if s < block % steps else 0) for s in range(steps)]


def filled(prompt, count, block, mask):
    """The canvas rounded up to whole blocks."""
    length = -(-(len(prompt) + count) // block) * block
    return prompt + [mask] * (length - len(prompt))


def cut(x, start, count, eos):
    made = x[start : start + count]
    return made[: made.index(eos)] if eos in made else made


def dynamic(logits_of, prompt, count, *, block, steps, tau, mask, eos):
    """SDAR's low_confidence_dynamic and LLaDA2.0's loop, stopping after a block with an end-of-text."""
    x, forwards = filled(prompt, count, block, mask), 0
    for begin in range(len(prompt) // block * block, len(x), block):
        for quota in quotas(block, steps):
            masks = [i for i in range(begin, begin + block) if x[i] == mask]
            if not masks:
                break
            token, confidence = judged(logits_of(x[: begin + block]))
            forwards += 1
            above = [i for i in masks if confidence[i] > tau]
            for i in above if len(above) >= quota else best(masks, confidence, quota):
                x[i] = token[i]
        if eos in x[len(prompt) : begin + block]:
            break
    return cut(x, len(prompt), count, eos), forwards


def editing(logits_of, prompt, count, *, block, tau, edit, post_steps, mask, eos):
    """LLaDA2.1's loop with eos_early_stop."""
    x, forwards, start = filled(prompt, count, block, mask), 0, len(prompt)
    for begin in range(start // block * block, len(x), block):
        post = 0
        while True:
            masks = [i for i in range(begin, begin + block) if x[i] == mask]
            if not masks:
                post += 1
                if post > post_steps:
                    break
            token, confidence = judged(logits_of(x[: begin + block]))
            forwards += 1
            above = [i for i in masks if confidence[i] > tau]
            change = above or best(masks, confidence, 1)
            held = [i for i in range(max(begin, start), begin + block) if x[i] != mask]
            edits = [i for i in held if token[i] != x[i] and confidence[i] > edit]
            for i in change + edits:
                x[i] = token[i]
            if not masks and not edits:
                break
        if eos in x[start : begin + block]:
            break
    return cut(x, start, count, eos), forwards


def fast_dllm_v2(logits_of, prompt, count, *, block, sub, tau, mask, eos):
    """Fast-dLLM v2 without its block cache: the logits of row i predict token i + 1."""
    x, start, forwards = list(prompt), len(prompt), 0
    end = -(-(start + count) // block) * block
    while len(x) < end:
        if len(x) % block == 0:  # the last row of the sealed block gives the next one's first token
            x.append(judged(logits_of(x))[0][-1])
            forwards += 1
        begin = len(x) // block * block
        x += [mask] * (begin + block - len(x))
        for low in range(begin, begin + block, sub):
            while True:
                made = x[start:]
                if eos in made and mask not in made[: made.index(eos)]:
                    return cut(x, start, count, eos), forwards
                masks = [i for i in range(low, low + sub) if x[i] == mask]
                if not masks or low >= start + count:
                    break
                token, confidence = judged(logits_of(x))
                forwards += 1
                token, confidence = [None, *token], [None, *confidence]
                for i in {*best(masks, confidence, 1), *(i for i in masks if confidence[i] > tau)}:
                    x[i] = token[i]
    return cut(x, start, count, eos), forwards
