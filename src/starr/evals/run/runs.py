"""What is evaluated: one way of decoding (a run), and what all runs of an evaluation share (settings)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from starr.errors import InputError
from starr.evals.tasks import Item, Task
from starr.named import check_range
from starr.options import EVAL, Options, check_option, options_at

if TYPE_CHECKING:
    from starr.decode.request import Request
    from starr.model.load import Model

FORMS = ("chat", "base")
DEFAULTS = Options()
STRIDED = 256


@dataclass(frozen=True, slots=True)
class Run:
    """One way of decoding, in text forms."""

    strategy: str
    cache: str = "none"
    block_length: int | None = None
    ice: str | None = None
    verify: float = 0.0

    @property
    def name(self) -> str:
        """One text for tables and keys, e.g. ``starr + dual + block 32``."""
        parts = [self.strategy]
        parts += [self.cache] if self.cache != "none" else []
        parts += [f"block {self.block_length}"] if self.block_length else []
        parts += [self.ice] if self.ice else []
        parts += [f"verify {self.verify:g}"] if self.verify else []
        return " + ".join(parts)


def make_runs(
    strategies: Sequence[str],
    caches: Sequence[str] = ("none",),
    block_length: int | None = None,
    ice: str | None = None,
    verify: Sequence[float] = (0.0,),
) -> list[Run]:
    """Every strategy with every cache and ratio, each in its shortest text form, without repetitions."""
    from starr.api import strategy
    from starr.decode.caches import CACHES
    from starr.named import text_form

    check_option("block_length", block_length)
    for ratio in verify:
        check_option("verify", ratio)
    forms = [text_form(strategy(text)) for text in strategies]
    stores = [text_form(CACHES.parse(text)) for text in caches]
    return list(dict.fromkeys(Run(s, c, block_length, ice, v) for s in forms for c in stores for v in verify))


@dataclass(frozen=True, slots=True)
class EvalSettings:
    """What every run of an evaluation shares; samples made under other settings cannot be joined to it.

    ``options`` are the decoding options of evaluations; a run has the others.
    """

    task: str
    model: str
    weights: str  # a fingerprint: samples of another checkpoint under the same name do not belong here
    text: str  # a fingerprint of tokenizer and chat template
    dtype: str
    form: str
    options: Options

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise InputError(f"The form of prompts must be chat or base, got {self.form!r}.", param="form")

    @property
    def max_tokens(self) -> int:
        """Length of the canvas, in tokens."""
        return self.options.max_tokens

    def to_dict(self) -> dict[str, Any]:
        """The settings as they are stored, options in their text forms."""
        about = {name: getattr(self, name) for name in ("task", "model", "weights", "text", "dtype", "form")}
        return about | {option.name: getattr(self.options, option.name) for option in options_at(EVAL)}

    @property
    def folder(self) -> str:
        """A name for samples that can be joined, where several checkpoints and tasks stand side by side."""
        return f"{self.task}-{self.weights}-{self.text}-{self.dtype}"

    def check_same(self, other: dict[str, Any], where: str) -> None:
        """Raise unless samples stored with the settings ``other`` belong to this evaluation.

        An option that was not stored had its default.
        """
        absent = {option.name: option.default for option in options_at(EVAL)}
        for name, ours in self.to_dict().items():
            theirs = other.get(name, absent.get(name))
            if ours != theirs:
                raise InputError(
                    f"{where} was made with {name} {theirs!r}, this evaluation has {ours!r}.",
                    hint="Use the same settings or another --out.",
                    param=name,
                )


def settings_for(
    model: Model, task: Task, *, form: str | None = None, max_tokens: int | None = None, options: Options = DEFAULTS
) -> EvalSettings:
    """EvalSettings with the task's stop strings; its length and the model's own form of prompts are the defaults."""
    chosen = form or ("chat" if model.tokenizer.has_chat else "base")
    dtype = str(model.dtype).removeprefix("torch.")
    prints = fingerprint(model), model.tokenizer.digest
    length = task.max_tokens if max_tokens is None else max_tokens
    own = replace(options, max_tokens=length, stop=task.stops)
    return EvalSettings(task.name, model.name, *prints, dtype, chosen, own)


def fingerprint(model: Model) -> str:
    """A short hash over name, shape and STRIDED values of every weight, from its first to its last."""
    import torch

    from starr.model.load import sample_values

    found = hashlib.sha256()
    for name, weight in model.net.named_parameters():
        found.update(f"{name} {tuple(weight.shape)} ".encode())
        found.update(sample_values(weight, STRIDED).to("cpu", torch.float32).numpy().tobytes())
    return found.hexdigest()[:12]


def requests_for(
    model: Model, items: Iterable[Item], run: Run, settings: EvalSettings, *, trace: bool = False
) -> list[Request]:
    """The rows that decode the answers to some items."""
    from starr.api import build_requests

    options = replace(settings.options, trace=trace, **asdict(run))
    return build_requests(model, [tokens_of(model, item, settings.form) for item in items], options)


def tokens_of(model: Model, item: Item, form: str) -> list[int]:
    """The tokens of an item's prompt."""
    from starr.decode.prompts.prepare import encode_prompt

    if form == "chat":
        return model.tokenizer.chat([{"role": "user", "content": item.chat}]) + model.tokenizer.encode(item.prefix)
    return encode_prompt(model, item.prompt, False)[0]


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
    if limit is not None:
        check_range("--limit", limit, 1)
    chosen = list(enumerate(task.items))[:limit]
    return chosen if shard is None else chosen[shard[0] - 1 :: shard[1]]
