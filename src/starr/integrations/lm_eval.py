"""A model class for lm_eval (extra ``[lm-eval]``): generation with any strategy and cache, likelihood as LLaDA's bound.

``starr lm-eval ...`` is lm_eval's own command line with this class registered as ``starr``; in Python,
``lm_eval.simple_evaluate(model=StarrLM(model), tasks=[...])``.

- ``generate_until`` gives the texts of ``starr eval``: the same tokens in any batch, cut before the first stop string.
- Likelihoods are lower bounds, so perplexities are upper bounds: they compare diffusion models with each other, not
  with models that decode from left to right.
- ``is_greedy`` is False unless ``greedy=true``, which decodes the target token by token; tasks that score it
  (LAMBADA) need that.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import lm_eval.models  # noqa: F401  (built-in models register only while no other has)
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from tqdm import tqdm

import starr
from starr.api import build_request, parse_options, read_files
from starr.decode.request import Request
from starr.errors import LengthError
from starr.evals.run.runner import decode
from starr.integrations.chat_text import encode_chat, is_chat, protect, render_chat
from starr.integrations.likelihood import LikelihoodBound, log_likelihood
from starr.integrations.lm_eval_options import DEFAULT_LENGTH, decoding, of_request
from starr.model.load import Model
from starr.named import check_range, text_form
from starr.options import Options

log = logging.getLogger(__name__)
BATCH = 8  # rows decoded together where lm_eval gives no number
FIGURES = ("forwards", "positions", "tokens", "revocations", "seconds")


@register_model("starr")
class StarrLM(TemplateLM):  # type: ignore[misc]
    """``model`` (or ``pretrained``) is a folder, a hub id, a loaded model, or nothing for the bundled one.

    ``mc_num`` is the number of mask patterns of one likelihood; targets with no more patterns than that are enumerated.
    All other names are options of ``starr.generate`` or of the strategy.
    """

    def __init__(
        self,
        model: str | Model | None = None,
        *,
        pretrained: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
        mc_num: int = 128,
        greedy: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        check_range("mc_num", mc_num, 1)
        self.options = decoding(options, {"max_tokens": DEFAULT_LENGTH})
        parse_options(read_files(Options.of(self.options)))
        source = pretrained if model is None else model
        self.model = source if isinstance(source, Model) else starr.load(source, device=place(device), dtype=dtype)
        self.rows = int(str(batch_size)) if str(batch_size).isdigit() and batch_size != 0 else BATCH
        self.mc_num, self.greedy = mc_num, greedy
        self.figures: dict[str, Counter[str]] = defaultdict(Counter)

    @property
    def eot_token_id(self) -> int:
        """The first end-of-text token."""
        return self.model.spec.eos_ids[0]

    @property
    def prefix_token_id(self) -> int:
        """What stands before a text that has no context."""
        bos = self.model.spec.bos_id
        return self.eot_token_id if bos is None else bos

    @property
    def max_length(self) -> int:
        """The model's context."""
        return self.model.spec.max_length

    @property
    def tokenizer_name(self) -> str:
        """A name for lm_eval's cache of chats."""
        return self.model.name.replace("/", "__")

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """The template's text; a model has one at most, so a name chooses nothing."""
        return self.model.tokenizer.template if chat_template else None

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """The chat as text; without a generation prompt the last turn stays open, as the answer's beginning."""
        return render_chat(self.model.tokenizer, chat_history, opened=not add_generation_prompt)

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_: Any) -> list[int]:
        """Tokens of a rendered chat, or of text after a begin-of-text token where the model has one."""
        if is_chat(string):
            return encode_chat(self.model.tokenizer, string)
        bos = self.model.spec.bos_id
        start = [bos] if bos is not None and add_special_tokens is not False else []
        return start + self.model.tokenizer.encode(string)

    def _encode_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        """Context and target; spaces at the end of the context go to the target, but not out of a chat's template."""
        if is_chat(context):
            continuation = protect(self.model.tokenizer, continuation)
        else:
            kept = context.rstrip()
            context, continuation = kept, context[len(kept) :] + continuation
        before, whole = self.tok_encode(context), self.tok_encode(context + continuation)
        return before, whole[len(before) :]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Texts in the order of the requests, each cut before its first stop string."""
        rows = []
        for request, repeat in with_repeats(requests):
            options = of_request(request.args[1], self.options)
            options["seed"] = options.get("seed", 0) + repeat
            rows.append(self.row(request.args[0], options))
        texts = [""] * len(rows)
        bar = tqdm(total=len(rows), desc="Decoding", disable=disable_tqdm)
        for place, generation, elapsed in decode(self.model, rows, self.rows):
            texts[place] = generation.text
            self.count(requests[place].task_name, generation.stats, elapsed)
            self.cache_hook.add_partial("generate_until", requests[place].args, texts[place])
            bar.update()
        bar.close()
        return texts

    def row(self, context: str, options: Mapping[str, Any]) -> Request:
        """A row to decode; of a prompt that does not fit, the beginning is left out, as lm_eval's own models do."""
        tokens = self.tok_encode(context) or [self.prefix_token_id]
        room = self.max_length - options["max_tokens"]
        if room < 1:
            raise LengthError(
                f"max_gen_toks {options['max_tokens']} leaves no room for a prompt in {self.max_length} positions.",
                param="max_gen_toks",
            )
        if len(tokens) > room:
            log.warning("a prompt of %d tokens is cut to its last %d", len(tokens), room)
        return build_request(self.model, tokens[-room:], read_files(Options.of(options)))

    def _loglikelihood_tokens(
        self, requests: list[tuple[tuple[str, str], list[int], list[int]]], disable_tqdm: bool = False, **_: Any
    ) -> list[tuple[float, bool]]:
        found = []
        for texts, context, target in tqdm(requests, desc="Scoring", disable=disable_tqdm):
            value = self.bound(context, target), self.is_greedy(context, target)
            self.cache_hook.add_partial("loglikelihood", texts, value)
            found.append(value)
        return found

    def bound(self, context: Sequence[int], target: Sequence[int]) -> float:
        """The bound, with as much of the context's end as fits."""
        room = self.max_length - len(target)
        if room < 1:
            raise LengthError(f"A target of {len(target)} tokens does not fit in {self.max_length} positions.")
        result = log_likelihood(self.model, context[-room:], target, self.mc_num, self.options.get("seed", 0))
        self.count("likelihood", result, 0.0)
        return result.value

    def is_greedy(self, context: Sequence[int], target: Sequence[int]) -> bool:
        """Whether decoding one token per forward, the most confident first, gives the target."""
        if not self.greedy or not target:
            return False
        tokens = list(context[-(self.max_length - len(target)) :])
        options = Options(strategy="confidence", max_tokens=len(target))
        request = build_request(self.model, tokens, options)
        (_, generation, _), *_ = decode(self.model, [request], 1)
        return bool(generation.tokens[: len(target)] == list(target))

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """The bound of each whole text: the sum over windows of the model's length, each after one token."""
        found = []
        for request in tqdm(requests, desc="Scoring", disable=disable_tqdm):
            tokens = self.tok_encode(request.args[0], add_special_tokens=False)
            windows = get_rolling_token_windows(tokens, self.prefix_token_id, self.max_length - 1, 1)
            value = sum(self.bound(*make_disjoint_window(window)) for window in windows)
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, value)
            found.append(value)
        return found

    def count(self, task: str | None, stats: Any, elapsed: float) -> None:
        """Record what a request cost."""
        figures = self.figures[task or "unnamed"]
        figures["requests"] += 1
        figures["engine_seconds"] += elapsed  # type: ignore[assignment]
        for name in FIGURES if not isinstance(stats, LikelihoodBound) else FIGURES[:2]:
            figures[name] += getattr(stats, name)

    def get_model_info(self) -> dict[str, Any]:
        """What lm_eval writes beside its results: how it decoded, and what that cost, summed over requests."""
        plain = {name: text_form(value) if hasattr(value, "name") else value for name, value in self.options.items()}
        about = {"model": self.model.name, "version": starr.__version__, "mc_num": self.mc_num, "options": plain}
        return {
            "starr": about | {"likelihood": "lower bound", "figures": {k: dict(v) for k, v in self.figures.items()}}
        }


def place(device: str | None) -> str | None:
    """The device; lm_eval's default is cuda:0, which nobody chose, so without CUDA it is the best that there is."""
    import torch

    return None if device == "cuda:0" and not torch.cuda.is_available() else device


def with_repeats(requests: Iterable[Instance]) -> Iterator[tuple[Instance, int]]:
    """Each request with how often the very same one came before: repeats of a task are to be drawn differently."""
    seen: Counter[int] = Counter()
    for request in requests:
        yield request, seen[id(request)]
        seen[id(request)] += 1
