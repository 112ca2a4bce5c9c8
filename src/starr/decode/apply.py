"""Carry out on the canvas what was decided and let through."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from starr.decode.advance import move_end
from starr.decode.blocks import BlockRows
from starr.decode.canvas import Canvas, Done
from starr.decode.enforce import Step
from starr.decode.view import COMMIT, REVISE, REVOKE


def apply(step: Step, blocks: BlockRows | None, mask_id: int) -> Canvas:
    """The canvas with the step's actions carried out, its window's end moved and full blocks sealed."""
    canvas = write_actions(step.canvas, step.window, step.action, step.written, mask_id)
    canvas = move_end(canvas, step.decision.end)
    return canvas if blocks is None else blocks.seal_full(canvas)


def write_actions(canvas: Canvas, index: Tensor, action: Tensor, written: Tensor, mask_id: int) -> Canvas:
    """Carry out actions (B, W) at columns ``index`` (B, W); ``written`` are the tokens of COMMIT and REVISE."""
    commit, revoke, revise = (action == kind for kind in (COMMIT, REVOKE, REVISE))
    writes = commit | revise
    tokens = torch.where(writes, written, canvas.tokens.gather(1, index)).masked_fill(revoke, mask_id)
    masked = (canvas.masked.gather(1, index) & ~commit) | revoke
    last, before = canvas.last, canvas.done
    at = torch.where(writes, canvas.total[:, None], before.committed_at.gather(1, index))
    sure = torch.where(writes, last.confidence.gather(1, index), before.committed_with.gather(1, index))
    done = Done(
        committed_at=before.committed_at.scatter(1, index, at),
        committed_with=before.committed_with.scatter(1, index, sure),
        revoked=before.revoked.scatter(1, index, before.revoked.gather(1, index) + revoke),
        commits=before.commits + commit.sum(dim=1),
        revocations=before.revocations + revoke.sum(dim=1),
        revisions=before.revisions + revise.sum(dim=1),
    )
    return replace(
        canvas,
        tokens=canvas.tokens.scatter(1, index, tokens),
        masked=canvas.masked.scatter(1, index, masked),
        changed=torch.zeros_like(canvas.changed).scatter(1, index, writes | revoke),
        done=done,
        window=replace(canvas.window, step=canvas.window.step + 1),
        total=canvas.total + 1,
    )
