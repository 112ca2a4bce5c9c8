"""Verified decoding, word for word: one row, one forward for each question, no cache, float64.

The loop drives any slow transcription of a rule, as ``loops.by_rule`` does, and asks for every leave-one-out
distribution by a forward of its own. It keeps the strict rule of ``enforce`` for what the transcription revokes itself.
"""

from __future__ import annotations

from tests.reference.common import COMMIT, KEEP, REVOKE, best_first
from tests.reference.loops import Loop, carry_out, row_of
from tests.reference.special_loops import leave_one_out

SURE = 0.9


def verified(loop: Loop, rule, ratio: float, block: int) -> None:
    """Fill the canvas block by block; ``forwards`` of the loop are those that a decoder needs."""
    for start in range(0, loop.length, block):
        if not ended(loop):
            verified_block(loop, rule, ratio, start, min(start + block, loop.length), block)


def verified_block(loop: Loop, rule, ratio: float, start: int, end: int, block: int) -> None:
    """Until the block is full, or the text has ended, and no token is left that was never checked."""
    unread: set[int] = set()
    revoked: set[int] = set()
    step = 0
    rule.open()
    while True:
        asked = [i for i in range(start, end) if in_text(loop, i) and i not in revoked]
        full = not any(loop.masked[start:end])
        if (full or ended(loop)) and not unread & set(asked):
            return
        doubted = [i for i in asked if own_share(loop, i) < ratio]
        row = row_of(loop, start, end, step, -(-loop.length // block), block, False)
        barred = [i - start for i in revoked if row.confidence[i - start] < SURE]
        word = rule.step(row)
        action = [KEEP] * (end - start) if full else strict(word, row, barred)
        for i in doubted:
            action[i - start] = REVOKE
        carry_out(loop, action, row.proposal, start)
        step += 1
        unread -= set(asked)
        revoked |= set(doubted)
        written = [start + at for at, act in enumerate(action) if act == COMMIT]
        unread -= {start + at for at, act in enumerate(action) if act == REVOKE}
        if not (len(written) == 1 and REVOKE not in action):
            unread |= {i for i in written if row.confidence[i - start] < SURE}


def in_text(loop: Loop, i: int) -> bool:
    """Whether a token is held here and no end-of-text is held before it."""
    return not loop.masked[i] and not any(token in loop.ends for token in loop.canvas[:i])


def ended(loop: Loop) -> bool:
    """Whether an end-of-text has no mask before it."""
    for token in loop.canvas:
        if token == loop.mask:
            return False
        if token in loop.ends:
            return True
    return False


def own_share(loop: Loop, i: int) -> float:
    """The leave-one-out probability of the held token, as a share of the likeliest one's."""
    found = leave_one_out(loop, i)
    return found[loop.canvas[i]] / max(found)


def strict(word, row, barred: list[int]) -> list[int]:
    """The actions of a word without commits of ``barred`` masks, one commit at least, and fewer revocations.

    The largest doubt is revoked first.
    """
    action = list(word if isinstance(word, list) else word.action)
    for i in range(row.width):
        if action[i] == COMMIT and (i in barred or not row.masked[i]):
            action[i] = KEEP
    if COMMIT not in action:
        action[best_first([i for i in range(row.width) if row.masked[i]], row.confidence)[0]] = COMMIT
    doubts = getattr(word, "doubts", None) or [0.0] * row.width
    revoked = best_first([i for i, a in enumerate(action) if a == REVOKE], doubts)
    for i in revoked[max(0, action.count(COMMIT) - 1) :]:
        action[i] = KEEP
    return action
