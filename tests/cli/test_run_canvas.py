"""``starr run`` with caches, in-place prompting, infilling and stop rules."""

import json

import pytest

ICE = "ice:steps=2,length=3,answer=2,mark=S{}:,lead=#,threshold=2"


CACHES = ["prefix", "dual", "vicinity", "dkv", "dkv-prefill", "dkv-pd", "dkv-greedy", "adaptive"]


@pytest.mark.parametrize("cache", CACHES)
def test_caches_save_positions(run, cache):
    stats = {
        name: json.loads(run("run", "Hello", "--cache", name, "--eos", "never", "--json").out)["stats"]
        for name in ("none", f"{cache}:warmup=0,before=0,after=0" if cache == "vicinity" else cache)
    }
    plain, cached = stats.values()
    assert cached["positions"] < plain["positions"]
    assert cached["reused_share"] > 0
    assert cached["buffer_bytes"] > 0
    for name in ("forwards", "full_forwards", "positions_per_token", "padded_positions"):
        assert name in cached


def test_ice_thinks_and_answers(starr, tiny):
    given = ("run", "Hello", "--model", tiny, "--max-tokens", 40, "--ice", ICE)
    done = json.loads(starr(*given, "--eos", "never", "--json").out)
    assert done["text"].startswith("S1:")
    assert "\n#" in done["text"]
    assert done["stats"]["tokens"] == 2 * 3 + 2
    hasty = [*given[:-1], ICE.replace("threshold=2", "threshold=0"), "--eos", "never", "--json"]
    assert json.loads(starr(*hasty).out)["stats"]["tokens"] == 2
    assert json.loads(starr(*hasty, "--ice-fill").out)["stats"]["tokens"] == 8


def test_infill_keeps_the_text_around_the_holes(run):
    text = run("run", "--infill", "Tom has [MASK:2] apples [[MASK]]").out
    assert text.startswith("Tom has ")
    assert text.endswith(" apples [MASK]\n")


def test_stop_rules_end_early(run):
    stats = json.loads(run("run", "Hello", "--stop-rule", "prophet:early=0", "--eos", "never", "--json").out)["stats"]
    assert stats["forwards"] == 1
    assert stats["tokens"] == 12


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("Hi", "--ice", "ice"), "max_tokens is 12"),
        (("Hi", "--ice", "ice:answer=0"), "answer must be within [1"),
        (("Hi", "--ice-fill"), "--ice-fill needs --ice"),
        (("--infill", "a [MASK:0]"), "at least 1, got [MASK:0]"),
        (("--infill", "[MASK:4]"), "There must be text beside the holes"),
        (("--infill", "a [MASK:9999]"), "The holes have 9999 positions"),
        (("Hi", "--cache", "dkv", "--strategy", "wino"), "Cache dkv cannot be used"),
        (("Hi", "--cache", "dual:refresh=-1"), "refresh must be within [0"),
        (("Hi", "--stop-rule", "never"), "Unknown stop rule"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(run, arguments, words):
    result = run("run", *arguments)
    assert result.code == 2
    assert words in result.line
