"""Every option of every strategy, cache, stop rule, template and of decoding itself: at its bounds and beyond them."""

import math
import time

import pytest

import starr
from starr.decode.caches import CACHES
from starr.decode.prompts.ice import ICES, Ice
from starr.decode.stops.base import STOPS
from starr.decode.strategies import STRATEGIES
from starr.errors import InputError, LengthError
from starr.named import MOST_TEXT
from starr.options import by_name
from tests.tiny import EOS, MASK, form_of, tiny_model

PROMPT = "some prompt"
HUGE = [2**31, 2**63, 10**30, -1, -(2**31), -(10**30), 1e38, 1e308, -1e308, math.inf, -math.inf, math.nan]
REGISTRIES = {
    "strategy": STRATEGIES,
    "cache": CACHES,
    "stop_rule": STOPS,
    "ice": ICES,
}
MEMBERS = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.entries]
NUMBERS = [
    (kind, name, option)
    for kind, name in MEMBERS
    for option in REGISTRIES[kind].entries[name].options
    if option.type in ("int", "float")
]


@pytest.fixture(scope="module")
def model():
    return tiny_model(length=128)


def decode(model, **options):
    """One short answer; it ends soon, holds no mask, and refusals are the only errors."""
    began = time.process_time()
    try:
        found = starr.generate(model, PROMPT, max_tokens=options.pop("max_tokens", 6), **options)
    except InputError:
        return None
    assert time.process_time() - began < 30
    for answer in found if "n" in options else [found]:
        assert MASK not in answer.tokens
    return found


@pytest.mark.parametrize(("kind", "name", "option"), NUMBERS, ids=lambda v: getattr(v, "name", v))
def test_options_at_their_bounds_decode_and_beyond_them_are_refused(model, kind, name, option):
    assert option.high is not None, "every number has an upper bound"
    assert option.low is not None
    assert option.high <= 2**31 - 1
    for value in (option.low, option.high):
        value = int(value) if option.type == "int" else value
        decode(model, **{kind: f"{name}:{option.name}={value}"})
    beyond = [option.high + 1, option.low - 1] if option.type == "int" else [option.high * 1.01 + 1, option.low - 1]
    for value in [*beyond, *(v for v in HUGE if not option.low <= v <= option.high)]:
        with pytest.raises(InputError):
            starr.generate(model, PROMPT, max_tokens=6, **{kind: f"{name}:{option.name}={value}"})


@pytest.mark.parametrize("name", [name for name, option in by_name().items() if option.type in ("int", "float")])
def test_options_of_decoding_are_bounded(model, name):
    option = by_name()[name]
    for value in (option.low, option.high):
        assert value is not None
        if name not in ("max_tokens", "batch_size", "n") or value == 1:
            decode(model, **{name: value})
    for value in HUGE:
        if not option.low <= value <= option.high:
            with pytest.raises(InputError):
                starr.generate(model, PROMPT, **{name: value})


@pytest.mark.parametrize(("kind", "name"), [("daedal", "ends"), ("adablock", "delimiters")])
def test_ids_are_tokens_of_the_model_and_never_the_mask(model, kind, name):
    for ids in ("96", "2147483648", "9" * 60, str(MASK), f"5/{MASK}"):
        with pytest.raises(InputError, match="token ids"):
            starr.generate(model, PROMPT, strategy=f"{kind}:{name}={ids}", max_tokens=6)
    assert decode(model, strategy=f"{kind}:{name}={EOS}")


def test_a_canvas_grows_within_the_context(model):
    found = decode(model, strategy="daedal:expand=4096,tail=4096,start_end=2.0,most=1048576", max_tokens=8)
    assert len(PROMPT) + found.stats.canvas_tokens <= 130
    with pytest.raises(InputError):
        starr.generate(model, PROMPT, strategy="daedal:expand=40000000")


def test_texts_are_short():
    for kind, registry in REGISTRIES.items():
        with pytest.raises(InputError, match="characters"):
            registry.parse("x" * (MOST_TEXT + 1))
        assert kind


def test_too_much_is_refused_before_it_is_built(model):
    began = time.process_time()
    with pytest.raises((InputError, LengthError)):
        starr.generate(model, PROMPT, max_tokens=2**20)
    assert time.process_time() - began < 5


# ---- found by an attack


@pytest.mark.parametrize("cache", ["adaptive", "adaptive:share=0.0", "adaptive:share=0.001"])
@pytest.mark.parametrize("enforce", ["safe", "literal"])
def test_adaptive_always_queries_something(model, cache, enforce):
    for strategy in ("starr", "threshold", "edit"):
        assert decode(model, cache=cache, enforce=enforce, strategy=strategy, max_forwards=30, max_tokens=20)


MORE = [{"strategy": "edit", "stop_rule": "prophet"}, {"strategy": "threshold", "guidance": 1.0}]


@pytest.mark.parametrize("given", [*({"strategy": entry.name} for entry in STRATEGIES.all()), *MORE], ids=str)
def test_max_forwards_holds(model, given):
    """Also where a canvas grows, a full window stays open, or a step takes two forwards."""
    for most in (2, 3, 4):
        found = decode(model, **given | {"strategy": form_of(given["strategy"])}, max_forwards=most, max_tokens=12)
        assert found.stats.forwards <= most
        assert MASK not in found.tokens


def test_a_guided_step_takes_two_forwards(model):
    with pytest.raises(InputError, match=r"max_forwards.*2.*1"):
        starr.generate(model, PROMPT, guidance=1.0, max_forwards=1, max_tokens=8)


def test_the_texts_of_a_template_are_bounded_and_encoded_once(model, monkeypatch):
    """A mark of 100 kB took 73 s."""
    with pytest.raises(InputError, match=r"mark.*1000.*100000"):
        starr.generate(model, PROMPT, max_tokens=60, ice=Ice(mark="x" * 100_000, steps=1024))
    told = []
    layout, _ = Ice(steps=2, answer=1).layout(lambda text: told.append(text) or [1], MASK, 20)
    assert len(layout.tokens) == 20
    assert sorted(told) == ["\n####", "\nStep 2:", "Step 1:"]
