"""What is evaluated: one way of decoding (a run), and what all runs of an evaluation share (settings)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from starr.errors import InputError
from starr.evals.tasks import Item, Task

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.request import Request

FORMS = ("chat", "base")


@dataclass(frozen=True, slots=True)
class Run:
    """One way of decoding, in text forms."""

    strategy: str
    cache: str = "none"
    block_length: int | None = None
    ice: str | None = None

    @property
    def name(self) -> str:
        """One text for tables and keys, e.g. ``starr + dual + block 32``."""
        parts = [self.strategy]
        parts += [self.cache] if self.cache != "none" else []
        parts += [f"block {self.block_length}"] if self.block_length else []
        parts += [self.ice] if self.ice else []
        return " + ".join(parts)


def make_runs(
    strategies: Sequence[str],
    caches: Sequence[str] = ("none",),
    block_length: int | None = None,
    ice: str | None = None,
) -> list[Run]:
    """Every strategy with every cache, each in its shortest text form, without repetitions."""
    from starr.api import options_from
    from starr.query import CACHES
    from starr.strategy import strategy
    from starr.strategy.registry import text_form

    options_from({"ice": ice} if ice else {})
    forms = [text_form(strategy(text)) for text in strategies]
    stores = [text_form(CACHES.parse(text)) for text in caches]
    return list(dict.fromkeys(Run(s, c, block_length, ice) for s in forms for c in stores))


@dataclass(frozen=True, slots=True)
class Settings:
    """What every run of an evaluation shares; samples made under other settings cannot be joined to it."""

    task: str
    model: str
    weights: str  # a fingerprint: samples of another checkpoint under the same name do not belong here
    dtype: str
    form: str
    max_tokens: int
    seed: int = 0
    temperature: float = 0.0
    enforce: str = "safe"
    eos: str = "normal"

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise InputError(f"The form of prompts must be chat or base, got {self.form!r}.", param="form")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def folder(self) -> str:
        """A name for samples that can be joined, where several checkpoints and tasks stand side by side."""
        return f"{self.task}-{self.weights}-{self.dtype}"

    def check_same(self, other: dict[str, Any], where: str) -> None:
        """Raise unless samples stored with the settings ``other`` belong to this evaluation."""
        for field in fields(self):
            ours, theirs = getattr(self, field.name), other.get(field.name)
            if ours != theirs:
                raise InputError(
                    f"{where} was made with {field.name} {theirs!r}, this evaluation has {ours!r}.",
                    hint="Use the same settings or another --out.",
                    param=field.name,
                )


def settings_for(
    model: Model, task: Task, *, form: str | None = None, max_tokens: int | None = None, **others: Any
) -> Settings:
    """Settings with the task's own length and the form that the model was trained for, unless given."""
    chosen = form or ("chat" if model.tokenizer.has_chat else "base")
    dtype = str(model.dtype).removeprefix("torch.")
    return Settings(task.name, model.name, fingerprint(model), dtype, chosen, max_tokens or task.max_tokens, **others)


def fingerprint(model: Model) -> str:
    """A short hash over the first values of every weight; cheap for any size, different after any training step."""
    import torch

    first = [weight.flatten()[:64].to("cpu", torch.float32) for weight in model.net.parameters()]
    return hashlib.sha256(torch.cat(first).numpy().tobytes()).hexdigest()[:12]


def request_for(model: Model, item: Item, run: Run, settings: Settings, *, trace: bool = False) -> Request:
    """The row that decodes an item's answer."""
    from starr.api import options_from, prompt_tokens, request_of

    if settings.form == "chat":
        tokens = model.tokenizer.chat([{"role": "user", "content": item.chat}]) + model.tokenizer.encode(item.prefix)
    else:
        tokens, _ = prompt_tokens(model, item.prompt, False)
    given = {name: getattr(settings, name) for name in ("max_tokens", "temperature", "seed", "enforce", "eos")}
    given |= {"strategy": run.strategy, "cache": run.cache, "block_length": run.block_length, "trace": trace}
    if run.ice is not None:
        given["ice"] = run.ice
    return request_of(model, tokens, options_from(given))


def parse_shard(text: str | None) -> tuple[int, int] | None:
    """``i/n`` with 1 <= i <= n as (i, n)."""
    if text is None:
        return None
    left, slash, right = text.partition("/")
    if not slash or not left.isdigit() or not right.isdigit() or not 1 <= int(left) <= int(right):
        raise InputError(f"--shard is written i/n with 1 <= i <= n, got {text!r}.", param="shard")
    return int(left), int(right)


def choose(task: Task, limit: int | None, shard: tuple[int, int] | None = None) -> list[tuple[int, Item]]:
    """The first ``limit`` items with their places; of these every n-th, from the i-th on, in shard i of n."""
    if limit is not None and limit < 1:
        raise InputError(f"--limit must be at least 1, got {limit}.", param="limit")
    chosen = list(enumerate(task.items))[:limit]
    return chosen if shard is None else chosen[shard[0] - 1 :: shard[1]]
