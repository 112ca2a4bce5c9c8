"""Files that were fitted on a model: read once and anew when written anew, refused elsewhere."""

import json
import os
from types import SimpleNamespace

import pytest

import starr
from starr.decode.strategies.fitted import check_fitted_on, find_fitted, fingerprint, on_device
from starr.errors import InputError
from tests.tiny import random_rule, tiny_model


def parse(body, source):
    return [body["value"], source]


def find(where, model):
    return find_fitted(str(where), model, "rule", "starr.decode.strategies.calibrated", parse, "Fit one.")


def test_a_file_is_read_once_and_anew_when_it_changes(tmp_path):
    model, path = tiny_model(), tmp_path / "rule.json"
    path.write_text(json.dumps({"value": 1}))
    first = find(path, model)
    assert first == [1, str(path)]
    assert find(path, model) is first
    path.write_text(json.dumps({"value": 2}))
    os.utime(path, ns=(1, 1))
    assert find(path, model)[0] == 2


def test_what_is_absent_is_named(tmp_path):
    with pytest.raises(InputError, match=r"Cannot read the rule .*FileNotFoundError"):
        find(tmp_path / "none.json", tiny_model())
    with pytest.raises(InputError, match=r"No rule ships for the model tiny. Fit one."):
        find("auto", tiny_model())


def test_its_tensors_go_where_the_model_is():
    weight = SimpleNamespace(device="meta")
    moved = on_device(random_rule(), SimpleNamespace(net=SimpleNamespace(head_weight=weight)))
    assert {moved.mean.device.type, moved.w1.device.type, moved.habits.device.type} == {"meta"}
    assert moved.budget == random_rule().budget


def test_another_model_is_refused_with_what_to_do():
    model, other = tiny_model(seed=1), tiny_model(seed=2)
    assert fingerprint(model) != fingerprint(other)
    check_fitted_on(model, {"fingerprint": fingerprint(model)}, "rule", "Do it.")
    with pytest.raises(InputError, match=r"The rule was fitted on another model \(x, .*Do it."):
        check_fitted_on(other, {"fingerprint": fingerprint(model), "model": "x"}, "rule", "Do it.")


@pytest.mark.parametrize("name", ["bundled", "bundled-dream", "bundled-blocks"])
@pytest.mark.parametrize("form", ["calibrated", "learn2pd"])
def test_what_ships_is_found_and_decodes(name, form):
    """A rule for each model of the package; a filter for those that learn2pd can decode."""
    if (name, form) == ("bundled-blocks", "learn2pd"):
        pytest.skip("learn2pd has blocks of its own")
    model = starr.load(name)
    prompt = "Tom has 12 apples. Tom buys 8 more. Then Tom gives 5 to a friend. How many apples does Tom have now?"
    found = starr.generate(model, prompt, strategy=form, max_tokens=64)
    assert found.text.endswith("#### 15")
    assert found.stats.forwards < 40
