"""One block that somebody else's loop decodes with our strategies: their forward, our engine.

The host hands over the logits of a block and gets the block's tokens back. The engine runs as it always does, on a
network that gives it those logits, so that a host holds no decoding rule. One block of dummies stands before the block
in the place of the prompt. Letters: W positions of a block, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from starr.api import build_request, resolve
from starr.decode.engine import Engine
from starr.decode.request import Request
from starr.errors import InputError
from starr.model.load import Model
from starr.model.network.shape import Shape
from starr.model.network.transformer import KVBuffer, Transformer
from starr.model.spec import Habits, ModelSpec
from starr.model.text.tokenizer import Tokenizer
from starr.options import Options

BEYOND = ("guidance", "smoothing", "verify", "regex", "json_schema", "choices", "stop")  # of ``Options``


class GivenLogits(Transformer):
    """A network that computes nothing: the logits (W, V) of the last W positions are given to it."""

    logits: Tensor

    def __init__(self, shape: Shape, device: torch.device) -> None:
        nn.Module.__init__(self)
        self.shape = shape
        self.embed = nn.Embedding(1, 1, device=device)  # type: ignore[assignment]
        self.lm_head = None

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
        """(1, O, V): the logits of the wanted positions."""
        before = tokens.shape[1] - len(self.logits)
        if tokens.shape != (1, 2 * len(self.logits)) or added is not None or wanted is None:
            raise InputError("A host computes the block alone, and this needs more of a forward.", param="strategy")
        return self.logits[(wanted - before).clamp(0, len(self.logits) - 1)]


class Silent:
    """The tokenizer of a host that deals in tokens alone."""

    has_chat, spaced, template, digest = False, False, None, ""

    def encode(self, text: str) -> list[int]:
        """Refuse a text."""
        raise InputError("A host deals in tokens, not in texts.", param="stop")

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        """Nothing."""
        return ""

    def piece(self, token: int) -> str:
        """Nothing."""
        return ""


def host_model(mask_id: int, vocab_size: int, block_length: int, device: torch.device | str = "cpu") -> Model:
    """The model that stands for a host's."""
    shape = Shape(vocab_size=vocab_size, width=1, layers=1, heads=1, kv_heads=1, mlp_width=1)
    spec = ModelSpec(
        name="host",
        family="host",
        shape=shape,
        mask_id=mask_id,
        eos_ids=(mask_id,),  # never proposed: the host ends its texts itself
        bos_id=None,
        pad_id=mask_id,
        shift=False,
        max_length=2 * block_length,
        block_length=block_length,
        habits=Habits(),
        buffered=False,
        extra_queries=False,
    )
    return Model(spec, GivenLogits(shape, torch.device(device)), cast(Tokenizer, Silent()), "host")


def build_block(model: Model, options: Mapping[str, Any], known: Sequence[int]) -> Request:
    """The row of a block that begins with ``known`` tokens; raise InputError if a host cannot run its strategy."""
    length = model.spec.block_length or 0
    chosen = Options.of({**options, "max_tokens": length - len(known)})
    for name in BEYOND:
        if getattr(chosen, name, 0):
            rule = f"{name} needs more of a forward than the logits of a block."
            raise InputError(rule, hint=f"Leave {name} out.", param=name)
    strategy = resolve(chosen, model).strategy
    if strategy.needs().get("drafts"):
        rule = f"{strategy.name} needs forwards of drafts, and a host runs one forward of one block."
        raise InputError(rule, hint="Use drafts=1, or another strategy.", param="strategy")
    request = build_request(model, [0] * length + list(known), chosen, stream=True)
    return replace(request, ends=False)


class HostedBlock:
    """A block in the making: ``step`` takes the logits of its present tokens and gives its next ones."""

    def __init__(self, model: Model, options: Mapping[str, Any], tokens: Sequence[int], known: int) -> None:
        self.net = cast(GivenLogits, model.net)
        self.tokens, self.known = list(tokens), known
        self.engine = Engine(model, max_rows=1)
        if known < len(self.tokens):
            self.engine.add(build_block(model, options, self.tokens[:known]))

    @property
    def done(self) -> bool:
        """Whether the block is decided."""
        return not self.engine.busy

    def step(self, logits: Tensor) -> list[int]:
        """The tokens (W,) after one step over the logits (W, V) of the present ones."""
        if self.done:
            return self.tokens
        self.net.logits = logits
        (event,) = self.engine.step()
        self.tokens[self.known :] = event.tokens
        return self.tokens
