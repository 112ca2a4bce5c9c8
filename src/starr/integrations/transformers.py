"""transformers modules in our engine (extra ``[transformers]``): ``wrap`` one, or hand ``generate`` to its own.

    model = starr.wrap(module, tokenizer)
    starr.generate(model, "…", strategy="starr")
    module.generate(**inputs, custom_generate=partial(generate, tokenizer=tokenizer), strategy="starr")

The module stays as it was loaded: quantised, sharded, with a LoRA, compiled. It keeps no K/V for us, so every forward
is a whole one and caches are refused.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import tokenizers
import torch
from torch import Tensor, nn

from starr.api import build_requests, run_all
from starr.errors import InputError, LoadError
from starr.integrations.module import ModuleNetwork, find_powers, unwrap
from starr.model.families import FAMILIES, get_family
from starr.model.families.base import Family
from starr.model.files.config import drop_repeats
from starr.model.load import Model, check_mask, read_attention
from starr.model.network.shape import Shape
from starr.model.spec import ModelSpec
from starr.model.text.tokenizer import MARKS, Tokenizer, read_tokenizer
from starr.options import Options

MASKS = ("<|mdm_mask|>", "<|mask|>", "<|MASK|>", "[MASK]", "<mask>")
ENDS = ("<|im_end|>", "<|eot_id|>")
EXACT = ("eager", "sdpa")  # kinds of attention that take any mask


def wrap(
    module: nn.Module,
    tokenizer: Any,
    *,
    family: str | None = None,
    attention: str | None = None,
    mask_id: int | None = None,
    shift: bool | None = None,
    name: str | None = None,
) -> Model:
    """A model that decodes with a transformers module that is already loaded.

    ``tokenizer`` is the module's own. ``family`` reads its config as one of that family; ``attention`` is "full" or
    "blocks:n". ``mask_id`` and ``shift`` (row i - 1 predicts position i) are for a config that does not say them.
    """
    inner = unwrap(module)
    config = getattr(inner, "config", None)
    if config is None or not hasattr(inner, "get_input_embeddings"):
        raise InputError(f"wrap takes a transformers module, got {type(module).__name__}.", param="model")
    check_module(module, inner)
    text = read_text_rules(tokenizer, find_family(inner, family))
    called = name or getattr(config, "name_or_path", "") or type(inner).__name__
    spec = describe(inner, text, called, find_family(inner, family), attention, mask_id)
    spec = spec if shift is None else replace(spec, shift=shift)
    check_mask(spec, text)
    net = ModuleNetwork(module, spec.shape).eval()
    net.powers = find_powers(net)
    if spec.block_length is not None and not net.powers.masks:
        raise InputError(f"{called} ignores masks, so its attention cannot be in blocks.", param="attention")
    habits = replace(spec.habits, cache="none")
    spec = replace(spec, habits=habits, buffered=False, extra_queries=net.powers.places)
    return Model(spec, net, text, called)


def check_module(module: nn.Module, inner: nn.Module) -> None:
    """Raise if the module would draw at random, lies nowhere, or has an attention without masks."""
    if module.training:
        raise InputError("The module is in training mode, so its dropout draws.", hint="Call eval().", param="model")
    if inner.get_input_embeddings().weight.is_meta:  # type: ignore[operator]
        raise InputError("The module's embeddings are offloaded.", hint="Keep them on a device.", param="model")
    kind = getattr(inner.config, "_attn_implementation", None)
    if kind is not None and kind not in EXACT:
        hint = 'Load it with attn_implementation="sdpa".'
        raise InputError(f"The attention {kind!r} does not take a mask for each query.", hint=hint, param="model")


def find_family(inner: nn.Module, name: str | None) -> Family | None:
    """The family of the module's class, or the one that is named; None for a class of no family."""
    if name is not None:
        return get_family(name)
    own = type(inner).__name__
    return next((family for family in FAMILIES.values() if own in family.architectures), None)


def describe(
    inner: nn.Module, text: Tokenizer, name: str, family: Family | None, attention: str | None, mask_id: int | None
) -> ModelSpec:
    """The specification of a module: its family's, or one of its sizes and of the tokens that its tokenizer names."""
    config = dict(inner.config.to_dict())  # type: ignore[union-attr,operator]
    masks = [mask_id, config.get("mask_token_id"), text.mask_id, *(text.added.get(mask) for mask in MASKS)]
    found = next((mask for mask in masks if mask is not None), None)
    if found is None:
        raise InputError("Neither config nor tokenizer names a mask token.", hint="Give mask_id.", param="mask_id")
    config["mask_token_id"] = found
    if family is not None:
        config["architectures"] = [family.architectures[0]]
        if attention is not None:
            config["block_size"] = read_attention(attention, family)
        return family.read_config(config, text.added, name)
    spec = generic_spec(inner, config, text, name, found)
    size = 0 if attention is None else read_attention(attention, next(f for f in FAMILIES.values() if f.any_attention))
    return replace(spec, block_length=size or None)


def generic_spec(inner: nn.Module, config: Mapping[str, Any], text: Tokenizer, name: str, mask_id: int) -> ModelSpec:
    """The specification of a class that no family knows: Llama's, Qwen's and those with their config keys."""
    try:
        heads = int(config["num_attention_heads"])
        shape = Shape(
            vocab_size=len(inner.get_input_embeddings().weight),  # type: ignore[operator]
            width=int(config["hidden_size"]),
            layers=int(config["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            mlp_width=int(config.get("intermediate_size") or config["hidden_size"]),
            max_length=int(config["max_position_embeddings"]),
        )
    except KeyError as error:
        raise LoadError(
            f"The module's config has no {error.args[0]}.", hint="Name its family.", param="family"
        ) from None
    listed = config.get("eos_token_id")
    marks = text.marks
    ends = drop_repeats(
        *(listed if isinstance(listed, list) else [listed]), marks["eos_token"], *map(text.added.get, ENDS)
    )
    if not ends:
        raise InputError("Neither config nor tokenizer names an end of text.", param="tokenizer")
    pad = config.get("pad_token_id")
    pad = marks["pad_token"] if pad is None else pad
    return ModelSpec(
        name=name,
        family=str(config.get("model_type", "")),
        shape=shape,
        mask_id=mask_id,
        eos_ids=drop_repeats(*ends, pad),
        bos_id=marks["bos_token"],
        pad_id=ends[0] if pad is None else pad,
        shift=False,
        max_length=shape.max_length,
    )


def read_text_rules(tokenizer: Any, family: Family | None) -> Tokenizer:
    """Our tokenizer of a transformers one: its rules, its chat template, or its family's where it has none."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    named = {mark: str(value) for mark in MARKS if (value := getattr(tokenizer, mark, None)) is not None}
    more = dict(family.template_variables) if family else {}
    spare, needed = (family.template, family.template_tokens) if family else (None, ())
    if backend is None:
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save_pretrained(folder)
            return read_tokenizer(Path(folder), spare, needed, more)
    raw = tokenizers.Tokenizer.from_str(backend.to_str())
    raw.no_padding()
    raw.no_truncation()
    names = {token.content for token in raw.get_added_tokens_decoder().values()}
    own = tokenizer.chat_template
    source = own if isinstance(own, str) else (spare if names.issuperset(needed) else None)
    return Tokenizer(raw, source, dict.fromkeys(MARKS, "") | named | more)


def generate(
    model: nn.Module, input_ids: Tensor, generation_config: Any = None, tokenizer: Any = None, **given: Any
) -> Tensor:
    """What ``module.generate`` does with ``custom_generate``: prompts (B, P) in, prompts and answers (B, P + N) out.

    Options of ``starr.generate`` are keywords of ``module.generate``. Rows are padded behind their end of text.
    """
    if tokenizer is None:
        hint = "custom_generate=functools.partial(generate, tokenizer=tokenizer)."
        raise InputError("generate needs the module's tokenizer.", hint=hint, param="tokenizer")
    wrapped = wrap(model, tokenizer)
    own = {field.name: given[field.name] for field in fields(Options) if field.name in given}
    own.setdefault("max_tokens", generation_config.max_length - input_ids.shape[1])
    if generation_config.do_sample:
        own.setdefault("temperature", generation_config.temperature or 1.0)
    real = given.get("attention_mask")  # not by name: transformers would hand it over twice
    real = torch.ones_like(input_ids) if real is None else real
    prompts = [row[kept.bool()].tolist() for row, kept in zip(input_ids, real, strict=True)]
    found = run_all(wrapped, build_requests(wrapped, prompts, Options.of(own)), len(prompts))
    longest = max(len(one.tokens) for one in found)
    rows = [one.tokens + [wrapped.spec.pad_id] * (longest - len(one.tokens)) for one in found]
    return torch.cat([input_ids, torch.tensor(rows, device=input_ids.device)], dim=1)


def show_options() -> None:
    """Give ``generate`` a signature with our options, which is how transformers knows that they are not the model's."""
    own = inspect.signature(generate).parameters.values()
    more = [p for p in inspect.signature(Options).parameters.values() if p.name not in {q.name for q in own}]
    kept = [p for p in own if p.kind is not p.VAR_KEYWORD]
    rest = [p for p in own if p.kind is p.VAR_KEYWORD]
    generate.__signature__ = inspect.Signature([*kept, *more, *rest])  # type: ignore[attr-defined]


show_options()
