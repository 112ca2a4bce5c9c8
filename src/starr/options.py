"""Every option of decoding, once: its type, default, bounds, help, and the doors that show it.

The keywords of ``generate`` and ``stream``, the flags of every verb that decodes, ``/set`` in a chat, the JSON fields
of the server and the settings of an evaluation are read off the fields of ``Options``. ``starr.api.resolve`` makes
``ResolvedOptions`` of them, once for all prompts, and every ``Request`` carries those unchanged. A new option is one
field here; the step that needs it reads ``request.options``.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from starr.errors import InputError, did_you_mean
from starr.named import MANY, MOST, Option, check_range, check_value, make_plain, plain_number

if TYPE_CHECKING:
    from starr.decode.caches import Cache
    from starr.decode.extras.constraints.compile import Constraint
    from starr.decode.prompts.ice import Ice
    from starr.decode.prompts.tools import Toolbox
    from starr.decode.stops.base import StopRule
    from starr.decode.strategies.base import Strategy

PYTHON, FLAG, SET, JSON, EVAL = "python", "flag", "set", "json", "eval"
"""The doors: keywords, flags of the command line, ``/set`` in a chat, fields over HTTP, settings of evaluations."""

EVERYWHERE = (PYTHON, FLAG, SET, JSON, EVAL)
PER_RUN = (PYTHON, FLAG, JSON)  # an evaluation compares them, so that they are no settings of it; a chat has /strategy
PER_ROW = (PYTHON, FLAG, SET, JSON)
MOST_SEED = 2**63 - 1
MOST_ANSWERS = 1024  # to one prompt

FOREIGN = {
    # LLaDA
    "gen_length": "max_tokens",
    "cfg_scale": "guidance",
    "remasking": "strategy confidence or random",
    "steps": "strategy confidence:steps=N",
    "logits_eos_inf": "eos never",
    "confidence_eos_eot_inf": "eos last",
    # Dream and diffusers
    "max_new_tokens": "max_tokens",
    "alg": "strategy confidence, margin or entropy",
    "diffusion_steps": "strategy confidence:steps=N",
    "eps": "strategy entropy:eps=X",
    # Fast-dLLM
    "threshold": "strategy threshold:tau=X",
    "factor": "strategy factor:factor=X",
    "use_cache": "cache prefix",
    "dual_cache": "cache dual",
    # dInfer
    "gen_len": "max_tokens",
    "parallel_decoding": "strategy threshold, credit or hierarchy",
    "low_threshold": "strategy hierarchy",
    "early_stop": "stop_rule eos",
    "use_credit": "strategy credit",
    "prefix_look": "cache vicinity:before=N",
    "after_look": "cache vicinity:after=N",
    "warmup_times": "cache vicinity:warmup=N",
    "cont_weight": "smoothing",
    # SGLang and vLLM
    "dllm_algorithm": "strategy",
    "dllm_algorithm_config": "strategy name:option=value",
    "dllm_block_size": "block_length",
    "block_size": "block_length",
    "model_path": "model",
    # llama.cpp
    "-n": "max_tokens",
    "n_predict": "max_tokens",
    "diffusion_algorithm": "strategy",
    "diffusion_block_length": "block_length",
    "diffusion_cfg_scale": "guidance",
    "diffusion_eps": "strategy confidence:schedule=dream,eps=X",
    "diffusion_visual": "live",
    "temp": "temperature",
    # transformers
    "torch_dtype": "dtype",
    "device_map": "device cuda or cpu",
    "pretrained_model_name_or_path": "model",
    "num_return_sequences": "n",
    "max_length": "max_tokens",
    "stop_strings": "stop",
    "random_seed": "seed",
}
"""What other tools call our options → ours, and its value where it has one; docs/migrate.md is this table in prose."""

NO_NOISE = "There is nothing like it here: temperature draws tokens, never positions."
NO_QUANTISING = "There is nothing like it here: weights are float32, bfloat16 or float16 (dtype)."
ONE_DEVICE = "There is nothing like it here: a model runs on one device, and Ray runs copies of it."
NEEDLESS = {
    "mask_id": "It is read from the checkpoint.",
    "alg_temp": NO_NOISE,
    "diffusion_alg_temp": NO_NOISE,
    "use_tp": ONE_DEVICE,
    "tp": ONE_DEVICE,
    "tp_size": ONE_DEVICE,
    "tensor_parallel_size": ONE_DEVICE,
    **dict.fromkeys(("quantize", "quantization", "quantization_config", "load_in_4bit", "load_in_8bit"), NO_QUANTISING),
    "trust_remote_code": "It is not needed: no code of a checkpoint runs.",
    "do_sample": "A temperature above 0 draws tokens.",
    "verbose": "Figures are shown unless quiet is asked for; live shows every step.",
    "num_beams": "There is nothing like it here: n gives several answers, each with a seed of its own.",
}
"""What other tools ask for and nobody has to say, or can say, here."""

IN_PYTHON = {"live": "starr.stream", "model": "starr.load"}
"""What is no keyword of ``generate``."""


@dataclass(frozen=True, slots=True)
class DecodingOption(Option):
    """One field of ``Options``."""

    nullable: bool = False
    doors: tuple[str, ...] = EVERYWHERE
    absent: str = ""  # what the default means, in the help of a flag
    repeats: bool = False  # its flag may be given several times


def decoding(
    default: Any,
    help: str,
    *,
    choices: tuple[str, ...] = (),
    low: float | None = None,
    high: float | None = None,
    open_low: bool = False,
    doors: tuple[str, ...] = EVERYWHERE,
    absent: str = "",
    repeats: bool = False,
) -> Any:
    """A field of ``Options`` and what its doors show. Bounds are inclusive; ``open_low`` excludes the lower one."""
    shown = {"help": help, "choices": choices, "low": low, "high": high, "open_low": open_low}
    return dataclasses.field(default=default, metadata=shown | {"doors": doors, "absent": absent, "repeats": repeats})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one row is decoded. Numbers and choices are checked here; text forms are checked where they are parsed."""

    strategy: str | Strategy | None = decoding(
        None,
        "When to commit and when to revoke (remask): name:option=value; see `starr strategies`.",
        doors=PER_RUN,
        absent="the model's own, usually starr",
    )
    cache: str | Cache | None = decoding(
        None,
        "Which positions a forward recomputes: name:option=value.",
        doors=PER_RUN,
        absent="none, or exact for block-causal models",
    )
    max_tokens: int = decoding(128, "Length of the canvas, in tokens.", low=1, high=MANY)
    block_length: int | None = decoding(
        None,
        "Decode in blocks of this length; 0 is the whole canvas at once.",
        low=0,
        doors=PER_ROW,
        absent="the model's own, usually the whole canvas",
    )
    temperature: float = decoding(0.0, "Gumbel noise on the proposals; 0 is greedy.", low=0.0, high=100.0)
    top_p: float = decoding(
        1.0, "Sample from the likeliest tokens, up to this total probability.", low=0.0, high=1.0, open_low=True
    )
    top_k: int = decoding(0, "Sample from this many of the likeliest tokens; 0 is all.", low=0)
    min_p: float = decoding(
        0.0, "Sample from tokens that have this share of the likeliest one's probability; 0 is all.", low=0.0, high=1.0
    )
    logit_bias: str | Mapping[Any, float] | None = decoding(
        None, "Token ids and what is added to their logits, -100 to 100; a JSON object.", doors=(PYTHON,), absent="none"
    )
    seed: int = decoding(0, "Same seed, same tokens.", low=0, high=MOST_SEED)
    max_forwards: int | None = decoding(
        None, "At most this many forwards; the last one commits the rest.", low=1, absent="no limit"
    )
    enforce: str = decoding(
        "safe",
        "safe, bounded or strict: every step makes progress; literal: the paper's rule as printed.",
        choices=("safe", "bounded", "strict", "literal"),
    )
    max_revocations: int = decoding(
        2, "With enforce=bounded: how often one position may be revoked (remasked).", low=0, doors=PER_ROW
    )
    verify: float = decoding(
        0.0,
        "Take a held token back where the rest of the text gives it less than this share of the likeliest token's "
        "probability; 0 is off, 0.3 is a good one.",
        low=0.0,
        high=1.0,
        doors=PER_ROW,
    )
    guidance: float = decoding(0.0, "Classifier-free guidance; 0 is off.", low=0.0, high=100.0)
    smoothing: float = decoding(
        0.0, "Give each mask this much of what was last predicted there; 0 is off.", low=0.0, high=10.0
    )
    eos: str = decoding(
        "normal", "End-of-text: normal, never, or last (committed after the rest).", choices=("normal", "never", "last")
    )
    stop: str | Sequence[str] = decoding(
        (), "End the answer before this text.", doors=(PYTHON, FLAG, SET), absent="none", repeats=True
    )
    stop_rule: str | StopRule | Sequence[str | StopRule] = decoding(
        "none", "Rules that end a run early, joined by +: eos, prophet:option=value."
    )
    ice: str | Ice | None = decoding(
        None, "In-place chain of thought: ice-sp, ice-pp or ice:option=value.", doors=PER_ROW, absent="off"
    )
    regex: str | None = decoding(
        None, "The whole answer matches this regular expression.", doors=PER_ROW, absent="any text"
    )
    json_schema: str | Mapping[str, Any] | None = decoding(
        None,
        "The answer is JSON that fits this schema; @FILE reads it, object is any JSON object.",
        doors=(PYTHON, FLAG),
        absent="any text",
    )
    choices: str | Sequence[str] | None = decoding(
        None, "The answer is one of these texts: yes|no, or a JSON list.", doors=(PYTHON, FLAG), absent="any text"
    )
    tools: str | Sequence[Mapping[str, Any]] | None = decoding(
        None,
        "Functions that the answer may call, as OpenAI writes them, or that list as JSON text.",
        doors=(PYTHON,),
        absent="none",
    )
    tool_choice: str = decoding(
        "auto", "With tools: auto (text or a call), required (a call), none, or a function's name.", doors=(PYTHON,)
    )
    infill: bool = decoding(False, "Fill the [MASK:n] holes of the prompt; they alone are decoded.", doors=(PYTHON,))
    system: str | None = decoding(
        None, "System prompt: goes before the messages of the chat.", doors=(PYTHON, FLAG), absent="none"
    )
    chat: bool | None = decoding(None, "Use the chat template.", doors=(PYTHON, FLAG), absent="if there is one")
    trace: bool = decoding(False, "Return every step.", doors=(PYTHON, JSON))

    def __post_init__(self) -> None:
        for name, option in by_name().items():
            if hasattr(self, name):
                check_value(option, make_plain(self, name))

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Options from keyword arguments; an unknown name is an error with a suggestion."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in given:
            if name not in known:
                hint = ours(name, PYTHON) or did_you_mean(name, known)
                raise InputError(f"Unknown option {name!r}.", hint=hint, param=name)
        return cls(**given)

    def keywords(self) -> dict[str, Any]:
        """The same as keyword arguments of ``starr.generate``."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(Options)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOptions(Options):
    """Options for one model: members stand in place of text forms, and the model's own where none was named."""

    strategy: Strategy
    cache: Cache
    logit_bias: Mapping[Any, float] | None = None
    stop: tuple[str, ...] = ()
    stop_rule: tuple[StopRule, ...] = ()
    ice: Ice | None = None
    toolbox: Toolbox | None = None  # of ``tools`` and ``tool_choice``
    constraint: Constraint | None = None  # compiled from ``regex``, ``json_schema``, ``choices`` or ``tools``


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions(Options):
    """How a list of prompts is decoded: each row by its ``Options``, and how many at once."""

    batch_size: int = decoding(8, "Prompts decoded together.", low=1, doors=(PYTHON,))
    progress: bool = decoding(False, "Show a progress bar on standard error.", doors=(PYTHON,))


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyOptions(BatchOptions):
    """How several answers to each prompt are decoded: one for each seed."""

    n: int | None = decoding(
        None,
        "Answers to each prompt; each has a seed of its own, from seed on.",
        low=1,
        high=MOST_ANSWERS,
        doors=(PYTHON,),
        absent="one",
    )
    seeds: str | Sequence[int] = decoding(
        (), "One answer to each prompt for each of these seeds, as 1,2,3.", doors=(PYTHON,), absent="the seed alone"
    )

    @property
    def several(self) -> bool:
        """Whether a list of answers was asked for; it may have one."""
        return self.n is not None or len(self.seeds) > 0

    def list_seeds(self) -> list[int]:
        """The seed of each answer to a prompt."""
        if not len(self.seeds):
            return [self.seed + number for number in range(self.n or 1)]
        if self.n is not None:
            raise InputError("n and seeds cannot be used together.", hint="Leave n out.", param="n")
        given = self.seeds.split(",") if isinstance(self.seeds, str) else self.seeds
        found = [plain_number(int(seed) if isinstance(seed, str) and seed.isdecimal() else seed) for seed in given]
        for seed in found:
            check_range("seeds", seed, 0, MOST_SEED)
        return found


AnyOptions = TypeVar("AnyOptions", bound=Options)


def options_at(door: str = PYTHON) -> tuple[DecodingOption, ...]:
    """The options that a door shows, in order."""
    return tuple(option for option in read_fields(Options) if door in option.doors)


@functools.cache
def by_name() -> dict[str, DecodingOption]:
    """Every option there is."""
    return {option.name: option for option in read_fields(ManyOptions)}


@functools.cache
def read_fields(kind: type[Options]) -> tuple[DecodingOption, ...]:
    """The options of a class. An annotation names first the type that text doors take: ``str | Strategy`` is text."""
    found = []
    for field in dataclasses.fields(kind):
        first, *others = str(field.type).split(" | ")
        found.append(DecodingOption(field.name, first, field.default, nullable="None" in others, **field.metadata))
    return tuple(found)


def describe_options(kind: type[Options]) -> str:
    """One paragraph for each option of a class: its meaning, its default and its bounds."""
    return "\n".join(f"    {option.name}: {option.help} {describe_bounds(option)}" for option in read_fields(kind))  # type: ignore[arg-type]


def describe_bounds(option: DecodingOption) -> str:
    """``Default 128; from 1 on.``"""
    default = option.absent or repr(option.default)
    if option.choices:
        return f"Default: {default}; one of {', '.join(option.choices)}."
    if option.type not in ("int", "float"):
        return f"Default: {default}."
    low, high = option.low, option.high
    above = f"above {low:g}" if option.open_low else f"from {low:g}"
    most = "on" if high in (MANY, MOST[option.type], MOST_SEED) else f"to {high:g}"
    return f"Default: {default}; {above} {most}."


def check_option(name: str, value: Any) -> None:
    """Raise unless the value is within the bounds, or among the choices, of the option."""
    check_value(by_name()[name], value)


def ours(name: str, door: str = JSON) -> str:
    """``That is --max-tokens here.`` for ``--gen-length`` at the door of flags; "" for a name that nobody uses.

    The same is ``strategy="credit"`` as a keyword of Python, and ``strategy credit`` anywhere else.
    """
    plain = name.lstrip("-").replace("-", "_").lower()
    found = FOREIGN.get(name) or FOREIGN.get(plain)
    if not found:
        return NEEDLESS.get(plain, "")
    option, _, value = found.partition(" ")
    if door == PYTHON:
        forms = re.sub(r"\S*[^\s,]", lambda word: word[0] if word[0] == "or" else f'"{word[0]}"', value)
        return f"That is {IN_PYTHON.get(option, option)}{'=' if value else ''}{forms} here."
    shown = f"--{option.replace('_', '-')}" if door == FLAG else option
    return f"That is {shown}{' ' if value else ''}{value} here."


_KINDS: tuple[type[Options], ...] = (Options, BatchOptions, ManyOptions)
for _kind in _KINDS:  # what ``help`` shows
    _kind.__doc__ = f"{_kind.__doc__}\n\n{describe_options(_kind)}\n"
