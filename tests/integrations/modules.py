"""Small transformers modules of random weights, and the same weights as checkpoints that our families read."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from tests.model.tiny import LLADA_CONFIG, LLADA_SPECIAL, byte_tokenizer

SIZES = {
    "vocab_size": 272,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "eos_token_id": 257,
    "pad_token_id": 257,
    "bos_token_id": None,
}
LLADA_NAMES = {
    "model.embed_tokens": "model.transformer.wte",
    "model.norm": "model.transformer.ln_f",
    "lm_head": "model.transformer.ff_out",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ff_norm",
    "self_attn.o_proj": "attn_out",
    "self_attn.": "",
    "mlp.gate_proj": "ff_proj",
    "mlp.up_proj": "up_proj",
    "mlp.down_proj": "ff_out",
    "model.layers": "model.transformer.blocks",
}
QWEN_SPECIAL = {
    "<|beginoftext|>": 256,
    "<|endoftext|>": 257,
    "<|mask|>": 258,
    "<|im_start|>": 259,
    "<|im_end|>": 260,
}


def sharpened(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """Random weights whose confidences spread over (0, 1)."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in module.named_parameters():
            scale = 3.0 if "lm_head" in name else 1.5
            if weight.dim() >= 2:
                weight.copy_(torch.randn(weight.shape, generator=generator) * scale / weight.shape[-1] ** 0.5)
            elif name.endswith("bias"):
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.1)
    return module.eval()


def llama() -> torch.nn.Module:
    return sharpened(LlamaForCausalLM(LlamaConfig(rope_theta=500000.0, rms_norm_eps=1e-5, **SIZES)))


def qwen3() -> torch.nn.Module:
    return sharpened(Qwen3ForCausalLM(Qwen3Config(head_dim=8, **SIZES)))


def qwen2() -> torch.nn.Module:
    return sharpened(Qwen2ForCausalLM(Qwen2Config(**SIZES)))


def qwen3_moe() -> torch.nn.Module:
    config = Qwen3MoeConfig(head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, **SIZES)
    return sharpened(Qwen3MoeForCausalLM(config))


def tokenizer_for(special=LLADA_SPECIAL) -> PreTrainedTokenizerFast:
    """One token per byte; the mask has no role, as in the released repositories."""
    bos = next(iter(special))
    raw = byte_tokenizer(special)
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token=bos, eos_token="<|endoftext|>")


def write_as_llada(module: torch.nn.Module, folder: Path) -> Path:
    """A Llama module as a LLaDA checkpoint: other names for the same layers."""

    def rename(name: str) -> str:
        for theirs, ours in LLADA_NAMES.items():
            name = name.replace(theirs, ours)
        return name

    folder.mkdir(parents=True, exist_ok=True)
    own = {"n_layers": SIZES["num_hidden_layers"], "max_sequence_length": 64, "mlp_hidden_size": 48}
    (folder / "config.json").write_text(json.dumps(LLADA_CONFIG | own))
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    tensors = {rename(name): tensor.detach().clone() for name, tensor in module.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    return folder


def write_as_a2d(module: torch.nn.Module, folder: Path, architecture: str = "A2DQwen3LMHeadModel") -> Path:
    """A Qwen module as dllm's checkpoint of full attention: the same names, another architecture."""
    module.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    own = {"architectures": [architecture], "block_size": 0, "mask_token_id": 258}
    (folder / "config.json").write_text(json.dumps(config | own))
    byte_tokenizer(QWEN_SPECIAL).save(str(folder / "tokenizer.json"))
    return folder
