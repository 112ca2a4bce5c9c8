"""Tiny checkpoints of the block-causal and expert families in their released formats, made from transformers' classes.

Each maker gives the native network, the released config.json and the released tensors with the same weights.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import (
    Glm4MoeConfig,
    Glm4MoeForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Ministral3Config,
    Ministral3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from tests.model.tiny import byte_tokenizer

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|MASK|>", "|<MASK>|", "<|mask|>", "<|role_end|>"]
EOS, MASK = 256, {"<|MASK|>": 259, "|<MASK>|": 260, "<|mask|>": 261}
SIZES = {
    "vocab_size": 272,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
IDS = {"eos_token_id": EOS, "pad_token_id": EOS}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": True}


@dataclass
class Released:
    """One tiny checkpoint, and the network it was made from."""

    native: torch.nn.Module
    config: dict[str, Any]
    tensors: dict[str, torch.Tensor]
    block: int | None

    def write(self, folder: Path, **change: Any) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps({**self.config, **change}))
        byte_tokenizer(SPECIAL).save(str(folder / "tokenizer.json"))
        save_file({name: tensor.contiguous() for name, tensor in self.tensors.items()}, folder / "model.safetensors")
        return folder


def native(kind: type, config: type, theta: float, rope: dict[str, Any] | None = None, **sizes: Any) -> torch.nn.Module:
    torch.manual_seed(3)
    parameters = {"rope_type": "default", "rope_theta": theta, **(rope or {})}
    net = kind(config(**{**SIZES, **sizes}, rope_parameters=parameters, attn_implementation="eager")).eval()
    for name, tensor in net.state_dict().items():  # biases start at zero and norms at one: make every tensor matter
        torch.nn.init.normal_(tensor, std=1.0 if "gate.weight" in name else 0.25)
    return net


def split_experts(state: dict[str, torch.Tensor], stacked: bool = False) -> dict[str, torch.Tensor]:
    """Transformers' joined expert tensors under the released names: one matrix each, or one stack for a projection."""
    found = {}
    for name, tensor in state.items():
        stem = name.rpartition(".")[0]
        parts = {}
        if name.endswith("experts.gate_up_proj"):
            parts = dict(zip(("gate_proj", "up_proj"), tensor.chunk(2, dim=1), strict=True))
        elif name.endswith("experts.down_proj"):
            parts = {"down_proj": tensor}
        for projection, stack in parts.items():
            if stacked:
                found[f"{stem}.{projection}"] = stack
            else:
                found |= {f"{stem}.{e}.{projection}.weight": matrix for e, matrix in enumerate(stack)}
        if not parts:
            found[name] = tensor
    return found


def sdar(block: int = 4, **change: Any) -> Released:
    net = native(Qwen3ForCausalLM, Qwen3Config, 1e6, head_dim=16, **change)
    config = {
        **SIZES,
        **IDS,
        "architectures": ["SDARForCausalLM"],
        "model_type": "sdar",
        "attention_bias": False,
        "attn_implementation": "flex_attention",
        "block_size": block,
        "bos_token_id": EOS,
        "fuse_cross_entropy": True,
        "head_dim": 16,
        "hidden_act": "silu",
        "mask_token_id": MASK["<|MASK|>"],
        "rope_scaling": None,
        "rope_theta": 1e6,
        **change,
    }
    return Released(net, config, dict(net.state_dict()), block)


def sdar_moe(stacked: bool = False) -> Released:
    net = native(Qwen3MoeForCausalLM, Qwen3MoeConfig, 1e6, head_dim=16, moe_intermediate_size=24, **EXPERTS)
    config = {
        **sdar().config,
        **EXPERTS,
        "architectures": ["SDARMoeForCausalLM"],
        "model_type": "sdar_moe",
        "moe_intermediate_size": 24,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }
    return Released(net, config, split_experts(dict(net.state_dict()), stacked), 4)


def fast_dllm(tied: bool = False) -> Released:
    net = native(Qwen2ForCausalLM, Qwen2Config, 1e6, tie_word_embeddings=tied)
    config = {
        **SIZES,
        **IDS,
        "architectures": ["Fast_dLLM_QwenForCausalLM"],
        "model_type": "Fast_dLLM_Qwen",
        "bd_size": 8,
        "hidden_act": "silu",
        "layer_types": ["full_attention"] * 3,
        "rope_theta": 1e6,
        "tie_word_embeddings": tied,
    }
    state = dict(net.state_dict())
    if tied:
        del state["lm_head.weight"]
    return Released(net, config, state, 8)


def llada_moe() -> Released:
    sizes = {"moe_intermediate_size": 24, "num_key_value_heads": 4, **EXPERTS, "norm_topk_prob": False}
    net = native(Qwen3MoeForCausalLM, Qwen3MoeConfig, 5e4, head_dim=8, **sizes)
    config = {
        **{key: value for key, value in SIZES.items() if key != "intermediate_size"},
        **IDS,
        **EXPERTS,
        "architectures": ["LLaDAMoEModelLM"],
        "model_type": "llada",
        "dense_intermediate_size": 48,
        "expert_intermediate_size": 24,
        "moe_layer_freq": [1, 1, 1],
        "num_key_value_heads": 4,
        "partial_rotary_factor": 1,
        "qk_layernorm": True,
        "rope_theta": 5e4,
        "shared_expert_intermediate_size": None,
    }
    return Released(net, config, split_experts(dict(net.state_dict())), None)


def illada() -> Released:
    net = native(LlamaForCausalLM, LlamaConfig, 5e5, tie_word_embeddings=True)
    config = {
        **SIZES,
        "architectures": ["ILLaDAForCausalLM"],
        "model_type": "illada",
        "bos_token_id": 0,
        "eos_token_id": 2,
        "pad_token_id": 1,
        "rope_theta": 5e5,
        "tie_word_embeddings": True,
    }
    return Released(net, config, {n: t for n, t in net.state_dict().items() if n != "lm_head.weight"}, None)


def stable_diffcoder() -> Released:
    net = native(LlamaForCausalLM, LlamaConfig, 5e5)
    config = {
        **illada().config,
        "architectures": ["StableDiffcoderForCausalLM"],
        "model_type": "llama",
        "tie_word_embeddings": False,
    }
    return Released(net, config, dict(net.state_dict()), 4)


def dream_reasoner() -> Released:
    made = sdar(32)
    made.config |= {"architectures": ["DreamForCausalLM"], "model_type": "Dream", "mask_token_id": MASK["<|mask|>"]}
    return made


GROUPS = {"n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5, "first_k_dense_replace": 1}


def llada2(stacked: bool = False) -> Released:
    net = native(
        Glm4MoeForCausalLM,
        Glm4MoeConfig,
        6e5,
        {"partial_rotary_factor": 0.5},
        head_dim=16,
        moe_intermediate_size=24,
        n_routed_experts=16,
        num_experts_per_tok=3,
        n_shared_experts=1,
        norm_topk_prob=True,
        use_qk_norm=True,
        attention_bias=False,
        **GROUPS,
    )
    config = {
        **SIZES,
        **IDS,
        **GROUPS,
        "architectures": ["LLaDA2MoeModelLM"],
        "model_type": "llada2_moe",
        "head_dim": 16,
        "hidden_act": "silu",
        "mask_token_id": MASK["<|mask|>"],
        "moe_intermediate_size": 24,
        "moe_router_enable_expert_bias": True,
        "norm_head": False,
        "norm_topk_prob": True,
        "num_experts": 16,
        "num_experts_per_tok": 3,
        "num_shared_experts": 1,
        "partial_rotary_factor": 0.5,
        "rope_scaling": None,
        "rope_theta": 6e5,
        "rotary_dim": 8,
        "router_dtype": "fp32",
        "score_function": "sigmoid",
        "sliding_window": 4096,
        "use_bias": False,
        "use_qk_norm": True,
        "use_qkv_bias": False,
        "use_rmsnorm": True,
    }
    return Released(net, config, llada2_tensors(dict(net.state_dict()), stacked), 32)


RENAMED = {
    "model.embed_tokens": "model.word_embeddings",
    "self_attn.o_proj": "attention.dense",
    "self_attn.q_norm": "attention.query_layernorm",
    "self_attn.k_norm": "attention.key_layernorm",
    "mlp.gate.e_score_correction_bias": "mlp.gate.expert_bias",
}


def llada2_tensors(state: dict[str, torch.Tensor], stacked: bool) -> dict[str, torch.Tensor]:
    """LLaDA2's names: queries, keys and values are one tensor."""
    found = {}
    for name, tensor in split_experts(state, stacked).items():
        if "self_attn.q_proj" in name:
            fused = [state[name.replace("q_proj", f"{letter}_proj")] for letter in "qkv"]
            found[name.replace("self_attn.q_proj", "attention.query_key_value")] = torch.cat(fused)
        elif "self_attn.k_proj" not in name and "self_attn.v_proj" not in name:
            for theirs, ours in RENAMED.items():
                name = name.replace(theirs, ours)
            found[name] = tensor
    return found


def a2d(block: int = 8) -> Released:
    made = sdar(block)
    made.config |= {"architectures": ["A2DQwen3LMHeadModel"], "model_type": "a2d-qwen3"}
    made.config["mask_token_id"] = MASK["<|mask|>"]
    return made


def rnd1() -> Released:
    made = sdar_moe()
    made.config |= {"architectures": ["RND1LM"], "model_type": "rnd1", "mask_token_id": MASK["<|mask|>"]}
    del made.config["block_size"]
    return Released(made.native, made.config, made.tensors, None)


YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 64,
    "beta_fast": 8.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 0.5,
    "llama_4_scaling_beta": 0.1,
}


def nemotron() -> Released:
    net = native(Ministral3ForCausalLM, Ministral3Config, 1e4, YARN, head_dim=16, sliding_window=None)
    config = {
        **SIZES,
        **IDS,
        "architectures": ["NemotronLabsDiffusionModel"],
        "model_type": "nemotron_labs_diffusion",
        "block_size": 32,
        "head_dim": 16,
        "hidden_act": "silu",
        "mask_token_id": 100,
        "rope_parameters": {**YARN, "rope_theta": 1e4},
    }
    renamed = {"model.": "encoder.", "lm_head": "diffusion_head"}
    tensors = {}
    for name, tensor in net.state_dict().items():
        for theirs, ours in renamed.items():
            name = ours + name.removeprefix(theirs) if name.startswith(theirs) else name
        tensors[name] = tensor
    return Released(net, config, tensors, 32)


MAKERS: dict[str, Callable[[], Released]] = {
    "sdar": sdar,
    "sdar_moe": sdar_moe,
    "fast_dllm_v2": fast_dllm,
    "llada_moe": llada_moe,
    "illada": illada,
    "stable_diffcoder": stable_diffcoder,
    "dream_reasoner": dream_reasoner,
    "llada2": llada2,
    "a2d_qwen3": a2d,
    "rnd1": rnd1,
    "nemotron": nemotron,
}
