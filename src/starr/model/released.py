"""The models that are known to load: in the package and on the hub."""

from __future__ import annotations

import difflib

RELEASED = (
    ("bundled", "llada", "packaged: four kinds of small tasks"),
    ("bundled-dream", "dream", "packaged: the same, logits shifted"),
    ("bundled-blocks", "sdar", "packaged: the same, block-causal"),
    ("GSAI-ML/LLaDA-8B-Base", "llada", "8 B, base"),
    ("GSAI-ML/LLaDA-8B-Instruct", "llada", "8 B, chat"),
    ("GSAI-ML/LLaDA-1.5", "llada", "8 B, chat, preference-tuned"),
    ("Dream-org/Dream-v0-Base-7B", "dream", "7 B, base"),
    ("Dream-org/Dream-v0-Instruct-7B", "dream", "7 B, chat"),
    ("Dream-org/Dream-Coder-v0-Instruct-7B", "dream", "7 B, code"),
    ("apple/DiffuCoder-7B-cpGRPO", "dream", "7 B, code"),
    ("inclusionAI/LLaDA-MoE-7B-A1B-Instruct", "llada_moe", "7 B, 1 B active, chat"),
    ("inclusionAI/LLaDA2.0-mini", "llada2", "16 B, 1.4 active, chat, block-causal"),
    ("inclusionAI/LLaDA2.1-mini", "llada2", "16 B, 1.4 active, chat, blocks, edits"),
    ("JetLM/SDAR-4B-Chat", "sdar", "4 B, chat, block-causal"),
    ("JetLM/SDAR-30B-A3B-Chat", "sdar_moe", "30 B, 3 B active, chat, block-causal"),
    ("Gen-Verse/TraDo-4B-Instruct", "sdar", "4 B, chat, block-causal"),
    ("Efficient-Large-Model/Fast_dLLM_v2_1.5B", "fast_dllm_v2", "1.5 B, chat, block-causal"),
    ("dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1", "a2d_qwen3", "0.6 B, chat: runs on a laptop"),
    ("dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1", "a2d_qwen3", "0.6 B, chat, blocks: runs on a laptop"),
    ("dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1", "a2d_qwen2", "0.5 B, code: runs on a laptop"),
    ("dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1", "a2d_qwen2", "0.5 B, code, block-causal"),
    ("answerdotai/ModernBERT-base", "modernbert", "0.15 B, fills holes"),
    ("dllm-hub/ModernBERT-large-chat-v0.1", "modernbert", "0.4 B, chat, weak"),
    ("google-bert/bert-base-uncased", "bert", "0.11 B, fills holes"),
    ("FacebookAI/roberta-base", "roberta", "0.12 B, fills holes"),
    ("albert/albert-base-v2", "albert", "0.01 B, fills holes"),
    ("nvidia/Nemotron-Labs-Diffusion-3B", "nemotron", "3.8 B, chat, block-causal"),
    ("radicalnumerics/RND1-Base-0910", "rnd1", "30 B, 3 B active, base"),
    ("ByteDance-Seed/Stable-DiffCoder-8B-Instruct", "stable_diffcoder", "8 B, code, block-causal"),
)
"""Name, family, and a few words about each."""
CLEAR = 0.85  # how alike a name must be to be suggested


def suggest_name(name: str) -> str:
    """``Did you mean 'bundled'?`` for bundeld, or with the whole hub id for LLaDA-8B-Instruct; "" if none is meant."""
    plain = {known.lower(): known for known, _, _ in RELEASED}
    tails = {known.rpartition("/")[2]: name for known, name in plain.items()}
    found = difflib.get_close_matches(name.lower(), [*tails, *plain], n=1, cutoff=CLEAR)
    return f"Did you mean {(tails | plain)[found[0]]!r}?" if found else ""
