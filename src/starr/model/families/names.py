"""What the families share: tables of names turned into a specification's token ids and a checkpoint's tensor names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from starr.model.files.config import Config, drop_repeats, read_token
from starr.model.network.shape import Shape
from starr.model.spec import Habits, ModelSpec

PROJECTIONS = ("gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor of a checkpoint and the parameter, or the part of one, that it holds."""

    tensor: str
    parameter: str
    expert: int | None = None  # which of the parameter's stacked matrices
    rows: tuple[int, int] | None = None  # which rows of the tensor, where several parameters share it


class TensorNames(Protocol):
    """How a family names the tensors of a checkpoint."""

    @property
    def head(self) -> str:
        """The tensor of the head, which a checkpoint with a tied head may lack."""

    def parts(self, shape: Shape, found: Collection[str] = ()) -> list[Part]:
        """Every tensor with its place in the network; ``found`` are those of a checkpoint, where layouts differ."""

    def copies(self, shape: Shape) -> Mapping[str, str]:
        """Tensors that may be stored although they repeat a parameter, and that parameter."""

    def unused(self, tensor: str) -> bool:
        """Whether a stored tensor has no part in predicting tokens."""


@dataclass(frozen=True, slots=True)
class Names:
    """One family's names. Tensor names are given without ``.weight``; ``layer`` has a place for the layer's number.

    ``in_layer`` and ``experts`` map our names to theirs. A projection that is stored fused names its tensor under
    ``attention.qkv``. Experts are stored one by one, ``experts.7.gate_proj``, or stacked, ``experts.gate_proj``.
    """

    mask: str  # the mask token's text
    bos: str
    ends: tuple[str, ...]  # tokens besides eos and padding that end a text, where the tokenizer has them
    top: Mapping[str, str]
    layer: str
    in_layer: Mapping[str, str]
    mask_id: int | None = None  # where neither config.json nor the tokenizer names the mask
    qk_norms: Mapping[str, str] = field(default_factory=dict)
    router: str = ""
    router_bias: str = ""  # its full name, without ``.weight``
    shared: str = ""
    shift: bool = False

    @property
    def head(self) -> str:
        """See ``TensorNames``."""
        return f"{self.top['lm_head']}.weight"

    def parts(self, shape: Shape, found: Collection[str] = ()) -> list[Part]:
        """See ``TensorNames``; experts are stored in two layouts."""
        return list_parts(self, shape, stacked=any(key.endswith("experts.gate_proj") for key in found))

    def copies(self, shape: Shape) -> Mapping[str, str]:
        """See ``TensorNames``."""
        return {self.head: "embed.weight"} if shape.tied else {}

    def unused(self, tensor: str) -> bool:
        """See ``TensorNames``."""
        return False


QWEN = Names(
    mask="<|mask|>",
    bos="<|beginoftext|>",
    ends=("<|im_end|>",),
    top={"embed": "model.embed_tokens", "norm": "model.norm", "lm_head": "lm_head"},
    layer="model.layers.{}",
    in_layer={
        "input_norm": "input_layernorm",
        "attention.q_proj": "self_attn.q_proj",
        "attention.k_proj": "self_attn.k_proj",
        "attention.v_proj": "self_attn.v_proj",
        "attention.o_proj": "self_attn.o_proj",
        "mlp_norm": "post_attention_layernorm",
        "mlp": "mlp",
    },
    qk_norms={"attention.q_norm": "self_attn.q_norm", "attention.k_norm": "self_attn.k_norm"},
    router="mlp.gate",
)


def make_spec(
    names: Names,
    family: str,
    name: str,
    shape: Shape,
    config: Config,
    added: Mapping[str, int],
    block_length: int | None = None,
    habits: Habits | None = None,
) -> ModelSpec:
    """``config`` says which tokens mask, end and pad; what it leaves out is found by name among the added tokens."""
    eos = read_token(config, "eos_token_id", added.get("<|endoftext|>"), shape)
    pad = read_token(config, "pad_token_id", eos, shape)
    return ModelSpec(
        name=name,
        family=family,
        shape=shape,
        mask_id=read_token(config, "mask_token_id", added.get(names.mask, names.mask_id), shape),
        eos_ids=drop_repeats(eos, *map(added.get, names.ends), pad),
        bos_id=added.get(names.bos),
        pad_id=pad,
        shift=names.shift,
        max_length=shape.max_length,
        block_length=block_length,
        habits=habits or Habits(),
    )


def list_parts(names: Names, shape: Shape, stacked: bool = False) -> list[Part]:
    """Every tensor of a checkpoint with its place in ``Transformer``; ``stacked`` is the second layout of experts."""
    tops = [Part(f"{theirs}.weight", f"{ours}.weight") for ours, theirs in names.top.items()]
    found = [part for part in tops if not (shape.tied and part.parameter == "lm_head.weight")]
    for index in range(shape.layers):
        found += list_layer_parts(names, shape, index, stacked)
    return found


def list_layer_parts(names: Names, shape: Shape, index: int, stacked: bool) -> Iterator[Part]:
    """Those of one layer."""
    ours, theirs = f"layers.{index}", names.layer.format(index)
    for own, other in {**names.in_layer, **(names.qk_norms if shape.qk_norm else {})}.items():
        if own == "attention.qkv":
            yield from split_fused(f"{theirs}.{other}.weight", ours, shape)
        elif own == "mlp" and shape.routed(index):
            yield from list_expert_parts(names, shape, f"{ours}.mlp", theirs, stacked)
        elif own == "mlp":
            yield from (Part(f"{theirs}.{other}.{p}.weight", f"{ours}.mlp.{p}.weight") for p in PROJECTIONS)
        else:
            yield Part(f"{theirs}.{other}.weight", f"{ours}.{own}.weight")
            if shape.qkv_bias and own.endswith(("q_proj", "k_proj", "v_proj")):
                yield Part(f"{theirs}.{other}.bias", f"{ours}.{own}.bias")


def split_fused(tensor: str, layer: str, shape: Shape) -> Iterator[Part]:
    """Query rows, then key rows, then value rows, each head after head."""
    end = 0
    for letter, heads in (("q", shape.heads), ("k", shape.kv_heads), ("v", shape.kv_heads)):
        start, end = end, end + heads * shape.head_width
        yield Part(tensor, f"{layer}.attention.{letter}_proj.weight", rows=(start, end))


def list_expert_parts(names: Names, shape: Shape, ours: str, theirs: str, stacked: bool) -> Iterator[Part]:
    """The router, its bias, every expert and the shared one."""
    routing = shape.routing
    if routing is None:
        return
    yield Part(f"{theirs}.{names.router}.weight", f"{ours}.router")
    if routing.bias:
        yield Part(f"{theirs}.{names.router_bias}", f"{ours}.bias")
    for projection in PROJECTIONS:
        stem = f"{theirs}.{names.in_layer['mlp']}.experts"
        if stacked:
            yield Part(f"{stem}.{projection}", f"{ours}.{projection}")
            continue
        for e in range(routing.experts):
            yield Part(f"{stem}.{e}.{projection}.weight", f"{ours}.{projection}", expert=e)
    if routing.shared_width:
        for projection in PROJECTIONS:
            yield Part(f"{theirs}.{names.shared}.{projection}.weight", f"{ours}.shared.{projection}.weight")
