"""Masks that carry what was last predicted there (dInfer's smoothed iteration, arXiv:2510.08666).

A mask's input is E[mask] + w * sum over v of q(v) E[v]: q is the model's last distribution at that position (guided and
constrained, but before temperature), E its embeddings, w the request's ``smoothing``. A position that was never
observed, or is held, gets nothing. dInfer raises w from 0.15 to 0.3 over the forwards and lowers its bar
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

from starr.decode.canvas import Canvas
from starr.decode.extras.base import Guest
from starr.decode.forward import ForwardCall, Seen
from starr.decode.propose import ProposalRequest
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

    def prepare(self, call: ForwardCall) -> ForwardCall:
        """Add what was predicted to the input of masks; nothing before the first forward."""
        canvas = call.canvas
        if PREDICTED not in canvas.notes:
            return call
        share = self.weight[:, None] * canvas.masked
        return replace(call, added=canvas.notes[PREDICTED] * share[..., None])

    def propose(self, request: ProposalRequest, call: ForwardCall) -> ProposalRequest:
        return replace(request, readers={**request.readers, PREDICTED: self.mean})

    def mean(self, likeliest: Tensor, others: Tensor, total: Tensor) -> Tensor:
        """(N, D): the mean of the embeddings over the distribution, see ``propose.Reader``."""
        rest = (others.to(self.embeddings.dtype) @ self.embeddings).float()
        return ((self.embeddings[likeliest].float() + rest) / total[:, None]).to(self.embeddings.dtype)

    def observe(self, canvas: Canvas, seen: Seen) -> Canvas:
        observed = seen.call.observed
        mean = seen.found.read[PREDICTED].view(*observed.index.shape, -1)
        mean = mean * observed.real[..., None]  # the spare column stays empty
        last = canvas.notes.get(PREDICTED)
        if last is None:
            last = mean.new_zeros(*canvas.tokens.shape, mean.shape[2])
        return canvas.noted({PREDICTED: last.scatter(1, observed.index[..., None].expand_as(mean), mean)})
