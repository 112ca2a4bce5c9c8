"""A transformers module in the place of our own network: the same calls, the module's own layers.

The module computes logits, so ``forward`` gives logits where ``Transformer`` gives hidden states, and ``head`` has
nothing left to do. What a query sees goes to the module as a 4D mask, where it stands as ``position_ids``; a causal
module (Llama, Qwen) takes a 4D mask as it is, so that full attention needs no change to it. Some modules (LLaDA's own
class) ignore both: ``find_powers`` runs a few tokens and says what a module heeds.
Letters: B rows, Q positions, O wanted ones of them, S positions that are seen, D width, V vocabulary.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from starr.errors import InputError
from starr.model.network.shape import Shape
from starr.model.network.transformer import KVBuffer, Transformer

MASK_NAMES = ("attention_bias", "attention_mask")  # the first that the module takes; LLaDA's is the bias
LEAK = 0.01  # of what a seen token changes: less than this, and a hidden token counts as hidden


@dataclass(frozen=True, slots=True)
class Powers:
    """What a module heeds of the arguments of ``ModuleNetwork.forward``."""

    masks: bool = True  # who sees whom
    places: bool = True  # where a query stands
    additive: bool = True  # a mask is added to scores; else it is true where a query sees (Dream's own class)


class ModuleNetwork(Transformer):
    """A network whose layers are those of a transformers module."""

    def __init__(self, module: nn.Module, shape: Shape) -> None:
        nn.Module.__init__(self)
        inner = unwrap(module)
        self.shape, self.module, self.powers = shape, module, Powers()
        self.accepts = frozenset(inspect.signature(inner.forward).parameters)
        self.embed = inner.get_input_embeddings()  # type: ignore[operator]
        self.output = inner.get_output_embeddings()  # type: ignore[operator]

    @property
    def head_weight(self) -> Tensor:
        """(V, D): the matrix that turns hidden states into logits."""
        weight: Tensor = (self.output or self.embed).weight
        return weight

    def head(self, hidden: Tensor) -> Tensor:
        """The logits themselves, as a copy that the caller may change."""
        return hidden.to(torch.float32, copy=True)

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor | None = None,
        attend: Tensor | None = None,
        buffer: KVBuffer | None = None,
        slots: Tensor | None = None,
        wanted: Tensor | None = None,
        added: Tensor | None = None,
        aside: int = 0,
    ) -> Tensor:
        """(B, O, V): the logits of the wanted positions; the arguments are those of ``Transformer.forward``."""
        if buffer is not None:
            raise InputError("A wrapped module keeps no K/V for a cache.", hint="Use cache none.", param="cache")
        words = self.place_words(tokens, positions, attend)
        words |= {"input_ids": tokens} if added is None else {"inputs_embeds": self.embed(tokens) + added}
        if "use_cache" in self.accepts:
            words["use_cache"] = False
        chosen = None if wanted is None else wanted.clamp(max=tokens.shape[1] - 1)
        few = chosen is not None and len(tokens) == 1 and "logits_to_keep" in self.accepts
        if chosen is not None and few:
            words["logits_to_keep"] = chosen[0]
        found = self.module(**words)
        logits: Tensor = (found.logits if hasattr(found, "logits") else found[0]).to(tokens.device)
        if chosen is None or few:
            return logits
        return logits[torch.arange(len(tokens), device=tokens.device)[:, None], chosen]

    def packed(
        self,
        tokens: Tensor,
        real: Tensor,
        total: int,
        wanted: Tensor,
        seen: Tensor | None = None,
        added: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """(B, O, V): ``forward`` for rows of different length; a module without masks runs once for each length."""
        if self.powers.masks or seen is not None:
            attend = real if seen is None else real[:, None] & seen
            return self(tokens, positions, attend, wanted=wanted, added=added)  # type: ignore[no-any-return]
        length = real.sum(dim=1)
        joined = torch.zeros(*wanted.shape, self.shape.vocab_size, dtype=self.embed.weight.dtype, device=tokens.device)
        for size in sorted(set(length.tolist())):
            rows = (length == size).nonzero()[:, 0]
            more = None if added is None else added[rows, :size]
            joined[rows] = self(tokens[rows, :size], wanted=wanted[rows], added=more).to(joined.dtype)
        return joined

    def place_words(self, tokens: Tensor, positions: Tensor | None, attend: Tensor | None) -> dict[str, Any]:
        """The arguments of the module that say where queries stand and what they see."""
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        positions = positions.expand(tokens.shape).clamp(max=self.shape.max_length - 1)  # a spare column may lie beyond
        encoder = self.shape.encoder
        words: dict[str, Any] = {}
        if self.powers.places and "position_ids" in self.accepts:
            words["position_ids"] = positions + (encoder.offset if encoder else 0)
        if not self.powers.masks:
            if attend is not None:
                raise InputError("This module ignores masks, so nothing can be hidden from a query.", param="model")
            return words
        name = next(name for name in MASK_NAMES if name in self.accepts)
        return words | {name: self.masks_of(positions, attend)}

    def masks_of(self, positions: Tensor, attend: Tensor | None) -> Tensor | dict[str, Tensor]:
        """(B, 1, Q, Q): 0 where a position may be seen, very negative elsewhere; one for each kind of layer."""
        rows, queries = positions.shape
        if attend is None:
            attend = positions.new_ones(rows, 1, queries, dtype=torch.bool)
        seen = (attend[:, None] if attend.dim() == 2 else attend).expand(rows, queries, queries)
        window = self.shape.encoder.window if self.shape.encoder else 0
        if not window:
            return self.mask_of(seen)
        close = seen & ((positions[:, :, None] - positions[:, None]).abs() <= window)
        close = close | (seen & ~close.any(dim=-1, keepdim=True))  # a query of padding, which nothing is near
        return {"full_attention": self.mask_of(seen), "sliding_attention": self.mask_of(close)}

    def mask_of(self, seen: Tensor) -> Tensor:
        """(B, 1, Q, S) of (B, Q, S) bool, in the form that the module takes."""
        if not self.powers.additive:
            return seen[:, None]
        dtype = self.embed.weight.dtype
        hidden = torch.full_like(seen, torch.finfo(dtype).min, dtype=dtype)
        return hidden.masked_fill(seen, 0.0)[:, None]


def unwrap(module: nn.Module) -> nn.Module:
    """The transformers module inside what torch.compile, PEFT or a parallel wrapper made of it."""
    while True:
        if isinstance(inside := getattr(module, "_orig_mod", None), nn.Module):
            module = inside
        elif callable(base := getattr(module, "get_base_model", None)):
            module = base()
        elif not hasattr(module, "get_input_embeddings") and isinstance(
            inside := getattr(module, "module", None), nn.Module
        ):
            module = inside
        else:
            return module


@torch.inference_mode()
def find_powers(net: ModuleNetwork) -> Powers:
    """Run four tokens under each form of mask: the first must see the last, and must not where it is hidden."""
    device, step = net.embed.weight.device, net.shape.vocab_size // 5
    tokens = torch.arange(4, device=device)[None] * step
    other = tokens.clone()
    other[:, 3] = net.shape.vocab_size - 1
    hidden = torch.tensor([[True, True, True, False]], device=device)

    def effect(**words: Tensor) -> float:
        """The most that the last token changes of the others' logits; no number if it fails."""
        try:
            change = net(tokens, **words).float() - net(other, **words).float()
        except (RuntimeError, ValueError, TypeError, AttributeError, StopIteration):
            return math.nan
        return float(change[:, 0].abs().max())

    for powers in (Powers(), Powers(additive=False), Powers(masks=False)):
        net.powers = powers
        seen = effect()
        if not seen > 0 or (powers.masks and not effect(attend=hidden) < LEAK * seen):
            continue
        back = torch.arange(3, -1, -1, device=device)[None]
        placed = powers.masks and "position_ids" in net.accepts
        return replace(powers, places=placed and not torch.equal(net(tokens, back), net(tokens)))
    rule = "The module's first position does not see its last, whatever mask it is given."
    raise InputError(rule, hint='Load it with attn_implementation="sdpa".', param="model")
