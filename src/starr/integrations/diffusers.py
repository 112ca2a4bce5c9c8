"""Our strategies as a scheduler of diffusers' ``LLaDA2Pipeline`` (extra ``[diffusers]``).

    pipe = LLaDA2Pipeline(model=module, scheduler=STaRRScheduler(strategy="starr"), tokenizer=tokenizer)

The pipeline runs the forwards, our engine takes the steps: ``num_inference_steps``, ``threshold``, ``minimal_topk`` and
``generator`` of the pipeline mean nothing here, the strategy's options and ``seed`` do. Strategies that need more than
the logits of one block are refused.
"""

from __future__ import annotations

from typing import Any

import torch
from diffusers import BlockRefinementScheduler
from diffusers.configuration_utils import register_to_config
from diffusers.schedulers.scheduling_block_refinement import BlockRefinementSchedulerOutput
from torch import Tensor

from starr.integrations.hosted import HostedBlock, host_model


class STaRRScheduler(BlockRefinementScheduler):  # type: ignore[misc]
    """A scheduler for blocks of ``block_length`` positions; ``seed`` is that of the first row, the next is one more."""

    @register_to_config  # type: ignore[untyped-decorator]
    def __init__(self, strategy: str = "starr", block_length: int = 32, seed: int = 0) -> None:
        self.num_inference_steps = block_length
        self.blocks: list[HostedBlock] = []

    def set_timesteps(
        self, num_inference_steps: int, device: str | torch.device | None = None, block_length: int | None = None
    ) -> None:
        """Begin a text; how many steps a block takes is the strategy's affair."""
        self.num_inference_steps, self.blocks = num_inference_steps, []

    def step(
        self,
        model_output: Tensor,
        timestep: int | Tensor,
        sample: Tensor,
        *,
        mask_token_id: int,
        temperature: float = 0.0,
        top_p: float | None = None,
        top_k: int | None = None,
        prompt_mask: Tensor | None = None,
        return_dict: bool = True,
        **_: Any,
    ) -> Any:
        """One step of every row: logits (B, W, V) and tokens (B, W) in, the next tokens out."""
        tokens = sample.tolist()
        if int(timestep) == 0:
            known = 0 if prompt_mask is None else int(prompt_mask.sum())
            options = {"strategy": self.config.strategy, "temperature": temperature}
            options |= {name: value for name, value in (("top_p", top_p), ("top_k", top_k)) if value is not None}
            size, device = model_output.shape[-1], model_output.device
            self.blocks = [
                HostedBlock(
                    host_model(mask_token_id, size, len(row), device),
                    {**options, "seed": self.config.seed + number},
                    row,
                    known,
                )
                for number, row in enumerate(tokens)
            ]
        after = sample.new_tensor(
            [list(block.step(logits)) for block, logits in zip(self.blocks, model_output, strict=True)]
        )
        masked, changed = sample == mask_token_id, after != sample
        chances = model_output.float().softmax(dim=-1).gather(-1, after[..., None])[..., 0]
        parts = (after, changed & masked, changed & ~masked, after, chances, model_output)
        return BlockRefinementSchedulerOutput(*parts) if return_dict else parts

    def check_block_should_continue(self, *, finished: Tensor, **_: Any) -> bool:
        """Whether a row that has not ended its text is still to be decided."""
        return any(not block.done and not over for block, over in zip(self.blocks, finished.tolist(), strict=True))
