"""Every strategy that decides within one block, as a diffusion algorithm of SGLang.

SGLang runs the forwards, our engine takes the steps. The strategy's options and those of decoding come from the file of
``--dllm-algorithm-config``.
"""

from __future__ import annotations

from typing import Any

import starr
from starr.errors import InputError
from starr.integrations.hosted import HostedBlock, build_block, host_model

BLOCK = 32  # of the trial that tells which strategies fit; its length plays no part


def register() -> None:
    """Put our algorithms into SGLang's table; its entry point."""
    from sglang.srt.dllm.algorithm import algo_name_to_cls
    from sglang.srt.dllm.algorithm.base import DllmAlgorithm

    algo_name_to_cls.update(make_algorithms(DllmAlgorithm))


def make_algorithms(base: type) -> dict[str, type]:
    """One class for each strategy on offer, by its name."""
    names = {class_name(name): name for name, why in find_offers().items() if not why}
    return {called: type(called, (Steps, base), {"strategy": name}) for called, name in names.items()}


def class_name(strategy: str) -> str:
    """``StarrConfidenceTopk`` of ``confidence_topk``."""
    return "Starr" + "".join(part.capitalize() for part in strategy.split("_"))


def find_offers() -> dict[str, str]:
    """Every strategy, and why it cannot be offered; "" where it can."""
    model, found = host_model(mask_id=1, vocab_size=4, block_length=BLOCK), {}
    for entry in starr.strategies():
        try:
            build_block(model, {"strategy": entry.name}, [])
            found[entry.name] = ""
        except InputError as error:
            found[entry.name] = error.message
    return found


class Steps:
    """The members of ``DllmAlgorithm`` that are ours; a subclass names the strategy."""

    strategy = ""
    block_size: int
    mask_id: int

    def __init__(self, config: Any) -> None:
        super().__init__(config)  # type: ignore[call-arg]
        given = dict(config.algorithm_config)
        form = ",".join(f"{name}={value}" for name, value in dict(given.pop("options", {})).items())
        self.options = {**given, "strategy": f"{self.strategy}:{form}" if form else self.strategy}
        trial = host_model(self.mask_id, self.mask_id + 1, self.block_size)
        self.longest = build_block(trial, self.options, []).step_limit

    def max_steps(self, block_size: int) -> int:
        """The steps that the strategy may take, and the forward that stores the final tokens."""
        return self.longest + 1

    def init_step_state(self, forward_batch: Any) -> list[dict[str, Any]]:
        """One state for each row: how many of its tokens are known, and its block once there are logits."""
        return [{"known": known, "block": None} for known in self._block_start_list(forward_batch)]  # type: ignore[attr-defined]

    def step(self, forward_batch: Any, full_logits: Any, states: list[dict[str, Any]]) -> list[bool]:
        """One step for each row, in place. A row is done when a forward has seen its final tokens."""
        size = self.block_size
        ids = forward_batch.input_ids.view(-1, size)
        logits = full_logits.view(len(states), size, -1)
        done, tokens = [], ids.tolist()
        for row, state in enumerate(states):
            if state["block"] is None:
                model = host_model(self.mask_id, logits.shape[-1], size, logits.device)
                state["block"] = HostedBlock(model, self.options, tokens[row], state["known"])
            done.append(state["block"].done)
            tokens[row] = state["block"].step(logits[row])
        ids.copy_(ids.new_tensor(tokens))
        return done
