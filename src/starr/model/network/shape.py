"""Sizes and switches of a transformer, in the project's own words; the families translate a checkpoint's keys."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Routing:
    """Routed experts in the place of a layer's MLP.

    ``softmax``: probabilities over all experts, the highest ``chosen`` of them (LLaDA-MoE, Qwen3-MoE).
    ``sigmoid``: a score per expert; a bias takes part in the choice only; the choice is limited to the best groups of
    neighbouring experts; a shared expert serves every token (LLaDA2).
    """

    experts: int
    chosen: int
    width: int  # of one expert
    router: str = "softmax"  # or "sigmoid"
    normalised: bool = False  # weights of the chosen experts are divided by their sum
    scale: float = 1.0  # and multiplied by this
    bias: bool = False  # softmax: added to the probabilities; sigmoid: added for the choice alone
    groups: int = 1
    open_groups: int = 1  # groups that a token may choose from
    shared_width: int = 0  # 0 is no shared expert
    first: int = 0  # layers before this one have a plain MLP


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """What the encoders of masked models have of their own.

    ``modern`` (ModernBERT): norms before attention and MLP, rotary positions, a gated MLP, no biases, layers that see
    only their neighbourhood. Otherwise (BERT, RoBERTa, ALBERT): norms after them, learned positions, biases.
    """

    modern: bool
    activation: str = "gelu"  # or "gelu_new": the approximation by tanh
    embed_width: int = 0  # of the embeddings, where a projection widens them; 0 is the width
    groups: int = 0  # layers that have weights of their own, each used several times in turn; 0 is all
    types: int = 0  # token types; every token is of the first
    offset: int = 0  # row of the table of positions that position 0 has
    window: int = 0  # positions to each side that a local layer sees
    every: int = 1  # a layer whose number this divides is not local
    local_theta: float = 10000.0


@dataclass(frozen=True, slots=True)
class Yarn:
    """Rotary positions stretched beyond the ``original`` length of the training (arXiv:2309.00071)."""

    factor: float
    original: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention: float = 1.0  # cosines and sines are multiplied by this


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a transformer."""

    vocab_size: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    mlp_width: int
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5
    qkv_bias: bool = False
    tied: bool = False
    max_length: int = 4096
    head_dim: int | None = None  # None is width / heads
    rotary_dim: int | None = None  # leading entries of a head that RoPE turns; None is all, 0 is no RoPE
    rope_float32: bool = True  # RoPE in float32 (LLaDA-8B), else in the model's dtype (all others)
    qk_norm: bool = False  # RMSNorm of every query and key head, before RoPE
    routing: Routing | None = None
    yarn: Yarn | None = None
    encoder: EncoderShape | None = None

    @property
    def head_width(self) -> int:
        """Values of one head."""
        return self.head_dim or self.width // self.heads

    @property
    def rotary_width(self) -> int:
        """Values of a head that are rotated."""
        return self.head_width if self.rotary_dim is None else self.rotary_dim

    @property
    def embed_width(self) -> int:
        """Values of a token's embedding."""
        return (self.encoder.embed_width if self.encoder else 0) or self.width

    def routed(self, layer: int) -> bool:
        """Whether a layer has experts."""
        return self.routing is not None and layer >= self.routing.first
