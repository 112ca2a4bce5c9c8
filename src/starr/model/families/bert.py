"""BERT, RoBERTa, ALBERT and ModernBERT masked models: full attention, every position predicts itself.

One row of ``ROWS`` for each kind: how its tokens are called, its tensor names, and how its config.json is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from starr.errors import LoadError
from starr.model.families.base import Family
from starr.model.families.encoder_names import EncoderNames
from starr.model.files.config import Config, check_shape, drop_repeats, read_real, read_token, read_whole, require
from starr.model.network.shape import EncoderShape, Shape
from starr.model.spec import ModelSpec
from starr.model.text import chat

SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "width",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "intermediate_size": "mlp_width",
}
FIXED: dict[str, object] = {"position_embedding_type": "absolute", "is_decoder": False, "tie_word_embeddings": True}
MODERN_FIXED: dict[str, object] = {
    "attention_bias": False,
    "classifier_bias": False,
    "decoder_bias": True,
    "mlp_bias": False,
    "norm_bias": False,
    "rope_scaling": None,
    "tie_word_embeddings": True,
}
ACTIVATIONS = ("gelu", "gelu_new")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of encoder: its special tokens by role, its names and its config."""

    family: str
    architectures: tuple[str, ...]
    model_type: str
    members: str
    marks: Mapping[str, str]  # bos, end, pad and mask
    names: EncoderNames
    read: Callable[[Config], Shape]


def read_bert(config: Config, *, offset: int = 0, albert: bool = False) -> Shape:
    """BERT's keys; RoBERTa's table of positions begins with ``offset`` unused rows."""
    require(
        config, FIXED | ({"inner_group_num": 1} if albert else {}) | ({"pad_token_id": offset - 1} if offset else {})
    )
    narrow = read_whole(config, "embedding_size") if albert else 0
    kind = EncoderShape(
        modern=False,
        activation=read_activation(config, "hidden_act"),
        embed_width=narrow,
        groups=read_whole(config, "num_hidden_groups", 1) if albert else 0,
        types=read_whole(config, "type_vocab_size", 2),
        offset=offset,
    )
    longest = read_whole(config, "max_position_embeddings") - offset
    return build_shape(config, kind, read_real(config, "layer_norm_eps", 1.0), longest)


def read_modern(config: Config) -> Shape:
    """ModernBERT's keys; newer releases write thetas and the kinds of layers apart."""
    require(config, MODERN_FIXED)
    if read_activation(config, "hidden_activation") != read_activation(config, "classifier_activation"):
        raise LoadError("config.json: hidden_activation and classifier_activation must be the same.")
    thetas = read_thetas(config)
    kind = EncoderShape(
        modern=True,
        activation=read_activation(config, "hidden_activation"),
        window=read_whole(config, "local_attention") // 2,
        every=read_interval(config),
        local_theta=thetas["sliding_attention"],
    )
    shape = build_shape(config, kind, read_real(config, "norm_eps", 1.0), read_whole(config, "max_position_embeddings"))
    return replace(shape, rope_theta=thetas["full_attention"])


def build_shape(config: Config, kind: EncoderShape, eps: float, longest: int) -> Shape:
    """The shape of an encoder; a head of its own is never stored."""
    sizes: dict[str, Any] = {ours: read_whole(config, theirs) for theirs, ours in SIZES.items()}
    return check_shape(
        Shape(
            **sizes,
            kv_heads=sizes["heads"],
            norm_eps=eps,
            qkv_bias=not kind.modern,
            tied=True,
            max_length=longest,
            rotary_dim=None if kind.modern else 0,
            rope_float32=True,
            encoder=kind,
        )
    )


def read_activation(config: Config, key: str) -> str:
    """One that is computed."""
    name = config.get(key, "gelu")
    if name not in ACTIVATIONS:
        raise LoadError(f"config.json: {key}={name!r} is not supported, only {' and '.join(ACTIVATIONS)} are.")
    return str(name)


def read_thetas(config: Config) -> dict[str, float]:
    """Theta of global and of local layers."""
    inside = config.get("rope_parameters")
    if isinstance(inside, Mapping):
        parts = {kind: part for kind, part in inside.items() if isinstance(part, Mapping)}
        other = [part["rope_type"] for part in parts.values() if part.get("rope_type", "default") != "default"]
        if other:
            raise LoadError(f"config.json: rope_type={other[0]!r} is not supported, only 'default' is.")
        return {kind: read_real(parts.get(kind, {}), "rope_theta") for kind in ("full_attention", "sliding_attention")}
    full = read_real(config, "global_rope_theta")
    local = full if config.get("local_rope_theta") is None else read_real(config, "local_rope_theta")
    return {"full_attention": full, "sliding_attention": local}


def read_interval(config: Config) -> int:
    """A layer whose number this divides is global."""
    listed = config.get("layer_types")
    if not isinstance(listed, list):
        return read_whole(config, "global_attn_every_n_layers")
    count = len(listed)
    for step in range(1, count + 1):
        if listed == ["sliding_attention" if index % step else "full_attention" for index in range(count)]:
            return step
    raise LoadError("config.json: layer_types must name every n-th layer full_attention, from the first on.")


def read_config(kind: Kind, config: Config, added: Mapping[str, int], name: str) -> ModelSpec:
    """config.json to a specification; ``added`` maps the tokenizer's added tokens to their ids."""
    shape = kind.read(config)
    bos, end, pad, mask = (added.get(kind.marks[role]) for role in ("bos", "end", "pad", "mask"))
    padding = read_token(config, "pad_token_id", pad, shape)
    return ModelSpec(
        name=name,
        family=kind.family,
        shape=shape,
        mask_id=read_token(config, "mask_token_id", mask, shape),
        eos_ids=drop_repeats(end, padding),
        bos_id=bos,
        pad_id=padding,
        shift=False,
        max_length=shape.max_length,
        last_id=end,
    )


def write_config(kind: Kind, spec: ModelSpec) -> dict[str, Any]:
    """The inverse of ``read_config``, under the keys of the released checkpoints."""
    shape, encoder = spec.shape, spec.shape.encoder
    if encoder is None:
        raise ValueError(f"{kind.family} is an encoder")
    written: dict[str, Any] = {
        "architectures": [kind.architectures[0]],
        "model_type": kind.model_type,
        **{theirs: getattr(shape, ours) for theirs, ours in SIZES.items()},
        "max_position_embeddings": shape.max_length + encoder.offset,
        "mask_token_id": spec.mask_id,
        "pad_token_id": spec.pad_id,
    }
    if encoder.modern:
        return written | {
            "hidden_activation": encoder.activation,
            "classifier_activation": encoder.activation,
            "norm_eps": shape.norm_eps,
            "local_attention": 2 * encoder.window,
            "global_attn_every_n_layers": encoder.every,
            "global_rope_theta": shape.rope_theta,
            "local_rope_theta": encoder.local_theta,
        }
    written |= {
        "hidden_act": encoder.activation,
        "layer_norm_eps": shape.norm_eps,
        "type_vocab_size": encoder.types,
        "position_embedding_type": "absolute",
    }
    if encoder.embed_width:
        written |= {"embedding_size": encoder.embed_width, "num_hidden_groups": encoder.groups, "inner_group_num": 1}
    return written


BERT_MARKS = {"bos": "[CLS]", "end": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
ROBERTA_MARKS = {"bos": "<s>", "end": "</s>", "pad": "<pad>", "mask": "<mask>"}


def name_embeddings(prefix: str) -> dict[str, str]:
    """The names of BERT's tables of embeddings."""
    stem = f"{prefix}.embeddings"
    return {
        "embed": f"{stem}.word_embeddings",
        "position": f"{stem}.position_embeddings",
        "token_type": f"{stem}.token_type_embeddings",
        "embed_norm": f"{stem}.LayerNorm",
    }


BERT_LAYER = {
    "attention.q_proj": "attention.self.query",
    "attention.k_proj": "attention.self.key",
    "attention.v_proj": "attention.self.value",
    "attention.o_proj": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "mlp.up_proj": "intermediate.dense",
    "mlp.down_proj": "output.dense",
    "mlp_norm": "output.LayerNorm",
}
ALBERT_LAYER = {
    "attention.q_proj": "attention.query",
    "attention.k_proj": "attention.key",
    "attention.v_proj": "attention.value",
    "attention.o_proj": "attention.dense",
    "attention_norm": "attention.LayerNorm",
    "mlp.up_proj": "ffn",
    "mlp.down_proj": "ffn_output",
    "mlp_norm": "full_layer_layer_norm",
}
CHATS = ("ModernBERT-base-chat-v0.1", "ModernBERT-large-chat-v0.1")  # of dllm-hub
TRANSFORM = "cls.predictions.transform"
ROWS = (
    Kind(
        "bert",
        ("BertForMaskedLM", "BertForPreTraining", "AntiBERTy"),
        "bert",
        "BERT",
        BERT_MARKS,
        EncoderNames(
            top=name_embeddings("bert") | {"head_dense": f"{TRANSFORM}.dense", "head_norm": f"{TRANSFORM}.LayerNorm"},
            layer="bert.encoder.layer.{}",
            in_layer=BERT_LAYER,
            head_bias="cls.predictions.bias",
            decoder="cls.predictions.decoder",
            fused={},
            spare=(
                "bert.pooler.",
                "bert.embeddings.position_ids",
                "cls.seq_relationship.",
                *("cls.species.", "cls.chain.", "cls.graft."),  # AntiBERTy
            ),
        ),
        read_bert,
    ),
    Kind(
        "roberta",
        ("RobertaForMaskedLM",),
        "roberta",
        "RoBERTa",
        ROBERTA_MARKS,
        EncoderNames(
            top=name_embeddings("roberta") | {"head_dense": "lm_head.dense", "head_norm": "lm_head.layer_norm"},
            layer="roberta.encoder.layer.{}",
            in_layer=BERT_LAYER,
            head_bias="lm_head.bias",
            decoder="lm_head.decoder",
            fused={},
            spare=("roberta.pooler.", "roberta.embeddings.position_ids"),
        ),
        partial(read_bert, offset=2),
    ),
    Kind(
        "albert",
        ("AlbertForMaskedLM", "AlbertForPreTraining"),
        "albert",
        "ALBERT",
        BERT_MARKS,
        EncoderNames(
            top=name_embeddings("albert")
            | {"embed_proj": "albert.encoder.embedding_hidden_mapping_in"}
            | {"head_dense": "predictions.dense", "head_norm": "predictions.LayerNorm"},
            layer="albert.encoder.albert_layer_groups.{}.albert_layers.0",
            in_layer=ALBERT_LAYER,
            head_bias="predictions.bias",
            decoder="predictions.decoder",
            fused={},
            spare=("albert.pooler.", "albert.embeddings.position_ids", "sop_classifier."),
        ),
        partial(read_bert, albert=True),
    ),
    Kind(
        "modernbert",
        ("ModernBertForMaskedLM",),
        "modernbert",
        "ModernBERT",
        BERT_MARKS,
        EncoderNames(
            top={
                "embed": "model.embeddings.tok_embeddings",
                "embed_norm": "model.embeddings.norm",
                "norm": "model.final_norm",
                "head_dense": "head.dense",
                "head_norm": "head.norm",
            },
            layer="model.layers.{}",
            in_layer={
                "input_norm": "attn_norm",
                "attention.o_proj": "attn.Wo",
                "mlp_norm": "mlp_norm",
                "mlp.down_proj": "mlp.Wo",
            },
            head_bias="decoder.bias",
            decoder="decoder",
            fused={
                "attn.Wqkv": ("attention.q_proj", "attention.k_proj", "attention.v_proj"),
                "mlp.Wi": ("mlp.up_proj", "mlp.gate_proj"),
            },
            spare=(),
        ),
        read_modern,
    ),
)
FAMILIES = tuple(
    Family(
        kind.family,
        kind.architectures,
        kind.members,
        partial(read_config, kind),
        partial(write_config, kind),
        kind.names,
        template=chat.ANSWER_TEMPLATE,
        template_names=CHATS,
    )
    for kind in ROWS
)
