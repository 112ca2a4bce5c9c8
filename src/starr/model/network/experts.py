"""Routed experts: each token goes through a few of many small MLPs, and their outputs are added up.

Letters: T tokens, E experts, K chosen by a token, D width, I an expert's width. Assignments of tokens to experts are
sorted by expert, so that each expert in use is one product over its tokens.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from starr.model.network.shape import Routing


class Experts(nn.Module):
    """The router and all experts of a layer, their weights stacked; ``shared`` also serves every token."""

    def __init__(self, width: int, routing: Routing, shared: nn.Module | None) -> None:
        super().__init__()
        count, inner = routing.experts, routing.width
        self.routing = routing
        self.router = make_weights(count, width)
        self.bias = nn.Parameter(torch.zeros(count)) if routing.bias else None
        self.gate_proj = make_weights(count, inner, width)
        self.up_proj = make_weights(count, inner, width)
        self.down_proj = make_weights(count, width, inner)
        self.shared = shared

    @property
    def wide(self) -> tuple[str, ...]:
        """Parameters that stay float32 whatever the model's dtype: rounding them changes which experts win."""
        return ("router", "bias") if self.routing.router == "sigmoid" else ("bias",)

    def forward(self, x: Tensor) -> Tensor:
        """(B, Q, D) of (B, Q, D): the weighted sum in float32, cast once, plus the shared expert.

        The sum runs over a token's experts in the order of its choice, so that other tokens cannot change it.
        """
        flat = x.flatten(0, -2)
        chosen, weight = route(flat, self.router, self.bias, self.routing)
        each = self.run_experts(flat, chosen)
        y = (each.float() * weight[..., None]).sum(dim=1).to(x.dtype).view_as(x)
        return y if self.shared is None else y + self.shared(x)

    def run_experts(self, flat: Tensor, chosen: Tensor) -> Tensor:
        """(T, K, D): the output of each chosen expert for its token."""
        assigned = chosen.flatten()
        order = assigned.argsort(stable=True)
        sizes = torch.bincount(assigned, minlength=self.routing.experts).tolist()
        groups = torch.split(flat.index_select(0, order // chosen.shape[1]), sizes)
        made = torch.cat([self.run_expert(e, rows) for e, rows in enumerate(groups) if sizes[e]])
        return torch.empty_like(made).index_copy_(0, order, made).view(*chosen.shape, -1)

    def run_expert(self, e: int, rows: Tensor) -> Tensor:
        """Apply the SwiGLU of one expert."""
        return F.linear(F.silu(F.linear(rows, self.gate_proj[e])) * F.linear(rows, self.up_proj[e]), self.down_proj[e])


def route(x: Tensor, router: Tensor, bias: Tensor | None, routing: Routing) -> tuple[Tensor, Tensor]:
    """Choose the experts (T, K) int64 of tokens (T, D), the best first, and their float32 weights (T, K).

    softmax: scores in the model's dtype, probabilities in float32, the bias added to them; the weights are rounded to
    the model's dtype. sigmoid: all of it in float32. Ties go to the lower expert.
    """
    if routing.router == "sigmoid":
        score = F.linear(x.float(), router.float()).sigmoid()
        choice = close_groups(score if bias is None else score + bias, routing)
    else:
        score = F.linear(x, router.to(x.dtype)).float().softmax(dim=-1)
        score = choice = score if bias is None else score + bias
    chosen = choice.sort(dim=-1, descending=True, stable=True).indices[:, : routing.chosen]
    weight = score.gather(1, chosen)
    if routing.normalised:
        weight = weight / (weight.sum(dim=-1, keepdim=True) + 1e-20)
    weight = weight * routing.scale
    return chosen, weight if routing.router == "sigmoid" else weight.to(x.dtype).float()


def close_groups(choice: Tensor, routing: Routing) -> Tensor:
    """Set scores (T, E) outside each token's best groups to -inf; a group's value is the sum of its best two."""
    if routing.open_groups >= routing.groups:
        return choice
    grouped = choice.view(len(choice), routing.groups, -1)
    value = grouped.topk(min(2, grouped.shape[2]), dim=2).values.sum(dim=2)
    best = value.sort(dim=1, descending=True, stable=True).indices[:, : routing.open_groups]
    closed = torch.ones_like(value, dtype=torch.bool).scatter_(1, best, False)
    return grouped.masked_fill(closed[..., None], -torch.inf).flatten(1)


def make_weights(*size: int) -> nn.Parameter:
    """Make a matrix, or a stack of them, random like a linear layer's, except on the meta device."""
    made = torch.empty(size)
    return nn.Parameter(made if made.is_meta else made.uniform_(-1, 1).mul_(size[-1] ** -0.5))
