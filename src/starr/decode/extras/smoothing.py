"""Masks that carry what was last predicted there (dInfer's smoothed iteration, arXiv:2510.08666).

A mask's input is E[mask] + w * sum over v of q(v) E[v]: q is the model's last distribution at that position (guided and
constrained, but before temperature), E its embeddings, w the request's ``smoothing``. A position that was never
observed, or is held, gets nothing on top. dInfer raises w from 0.15 to 0.3 over the forwards and lowers its bar
besides; here w is a constant (`python -m benchmarks.smooth` shows what it is worth). With blocks dInfer feeds the masks
after the open one, too; here they are not observed, and stay plain. What is fed back is on no grid, so a model that
amplifies noise may tell batches apart; the trained ones do not. Letters: B rows, C columns, O observed positions, D
width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from starr.decode.canvas import Canvas, Places
from starr.decode.extras.base import Guest
from starr.decode.propose import ProposalRequest, Proposals
from starr.decode.request import Request
from starr.model.load import Model

PREDICTED = "predicted"  # (B, C, D) in the model's dtype: the mean embedding of the last distribution


class Smoothing(Guest):
    """Feeds the mean embedding of every mask's last distribution into the next forward."""

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        self.embeddings = model.net.embed.weight
        weights = [request.options.smoothing for request in requests]
        self.weight = torch.tensor(weights, device=model.device, dtype=self.embeddings.dtype)

    @classmethod
    def serves(cls, request: Request) -> bool:
        return request.options.smoothing > 0

    @classmethod
    def check(cls, request: Request) -> None:
        if request.cache.measures:
            request.refuse_cache("it compares masks as they are, and smoothing changes them in every step")

    def embed(self, canvas: Canvas) -> Tensor | None:
        """Nothing before the first forward."""
        if PREDICTED not in canvas.notes:
            return None
        share = self.weight[:, None] * canvas.masked
        return canvas.notes[PREDICTED] * share[..., None]

    def propose(self, request: ProposalRequest, canvas: Canvas, observed: Places) -> ProposalRequest:
        return replace(request, embeddings=self.embeddings)

    def remember(self, canvas: Canvas, observed: Places, found: Proposals) -> Canvas:
        assert found.mean is not None
        index = observed.index[..., None]
        mean = found.mean.view(*observed.index.shape, -1) * observed.real[..., None]  # the spare column stays empty
        last = canvas.notes.get(PREDICTED)
        if last is None:
            last = mean.new_zeros(*canvas.tokens.shape, mean.shape[2])
        return canvas.noted({PREDICTED: last.scatter(1, index.expand_as(mean), mean)})
