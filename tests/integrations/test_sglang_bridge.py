"""The bridge against SGLang's contract, and against our engine on the same logits. SGLang itself is not run."""

import sys
import tomllib
import types
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import starr
from starr.api import build_request
from starr.decode.engine import Engine
from starr.errors import InputError
from starr.model.network.masks import block_mask
from starr.options import Options
from tests.tiny import MASK, tiny_model

BRIDGE = Path(__file__).parents[2] / "bridges" / "sglang"
sys.path.insert(0, str(BRIDGE / "src"))
import starr_sglang  # noqa: E402

WIDTH = 6
PROMPT = [20, 33, 41, 52, 60, 71]
ABSENT = {"adablock", "daedal", "freedave", "klass", "learn2pd", "saber", "wino", "calibrated"}


class Base:
    """What the bridge uses of ``DllmAlgorithm``, as SGLang 0.5.23 has it."""

    def __init__(self, config):
        self.block_size, self.mask_id = config.block_size, config.mask_id
        self.fdfo = config.first_done_first_out_mode

    def _block_start_list(self, forward_batch):
        return (forward_batch.input_ids.view(-1, self.block_size) != self.mask_id).sum(dim=1).tolist()


def config_of(**given):
    return SimpleNamespace(block_size=WIDTH, mask_id=MASK, first_done_first_out_mode=False, algorithm_config=given)


def batch_of(*rows):
    return SimpleNamespace(batch_size=len(rows), input_ids=torch.tensor(rows).flatten())


def logits_of(model, batch):
    """(B * W, V): what the model says of each block behind the prompt."""
    blocks = batch.input_ids.view(-1, WIDTH)
    whole = torch.cat([torch.tensor([PROMPT]).expand(len(blocks), -1), blocks], dim=1)
    with torch.inference_mode():
        states = model.net(whole, attend=block_mask(whole.shape[1], WIDTH).expand(len(blocks), -1, -1))
        return model.net.head(states[:, WIDTH:]).flatten(0, 1)


OFFERED = sorted(name for name, why in starr_sglang.find_offers().items() if not why)


def test_strategies_that_need_more_than_a_block_are_absent_with_a_reason():
    offers = starr_sglang.find_offers()
    assert {name for name, why in offers.items() if why} == ABSENT
    readme = (BRIDGE / "README.md").read_text()
    assert all(f"`{name}`" in readme for name in ABSENT)


@pytest.mark.parametrize("name", OFFERED)
def test_the_bridge_takes_the_steps_of_the_engine(name):
    model = tiny_model(block=WIDTH)
    options = Options(strategy=name, max_tokens=WIDTH, cache="none", seed=3)
    engine = Engine(model, max_rows=1)
    engine.add(replace(build_request(model, PROMPT, options, stream=True), ends=False))
    algorithm = starr_sglang.make_algorithms(Base)[starr_sglang.class_name(name)](config_of(seed=3))
    batch = batch_of([MASK] * WIDTH)
    states = algorithm.init_step_state(batch)
    for _ in range(algorithm.max_steps(WIDTH)):
        if not engine.busy:
            break
        assert algorithm.step(batch, logits_of(model, batch), states) == [False]
        (event,) = engine.step()
        assert batch.input_ids.tolist() == event.tokens
    final = batch.input_ids.clone()
    assert algorithm.step(batch, logits_of(model, batch), states) == [True]
    assert torch.equal(batch.input_ids, final)
    assert MASK not in final.tolist()


def test_rows_of_a_batch_do_not_touch_each_other_and_the_tensor_stays_the_same():
    model = tiny_model(block=WIDTH)
    algorithm = starr_sglang.make_algorithms(Base)["StarrThreshold"](config_of(options={"tau": 0.3}))
    rows = [[40, 41, MASK, MASK, MASK, MASK], [MASK] * WIDTH, [50, 51, 52, 53, 54, 55]]
    found = []
    for several in ([row] for row in rows):
        found += run(algorithm, model, batch_of(*several))
    batch = batch_of(*rows)
    kept = batch.input_ids
    assert run(algorithm, model, batch) == found
    assert batch.input_ids is kept
    assert found[0][:2] == [40, 41]
    assert found[2] == rows[2]


def run(algorithm, model, batch):
    states = algorithm.init_step_state(batch)
    for _ in range(algorithm.max_steps(WIDTH)):
        if all(algorithm.step(batch, logits_of(model, batch), states)):
            return batch.input_ids.view(-1, WIDTH).tolist()
    raise AssertionError("the bridge did not end within its own bound")


def test_options_come_from_the_file_and_wrong_ones_are_refused_at_the_start():
    kinds = starr_sglang.make_algorithms(Base)
    with pytest.raises(InputError):
        kinds["StarrThreshold"](config_of(options={"tau": 7}))
    for unfit in ({"nonsense": 1}, {"guidance": 0.5}, {"cache": "dual"}):
        with pytest.raises(InputError):
            kinds["StarrThreshold"](config_of(**unfit))


def test_the_entry_point_fills_the_table(monkeypatch):
    table = {}
    for name in ("sglang", "sglang.srt", "sglang.srt.dllm"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    inside = types.ModuleType("sglang.srt.dllm.algorithm")
    inside.algo_name_to_cls = table
    base = types.ModuleType("sglang.srt.dllm.algorithm.base")
    base.DllmAlgorithm = Base
    monkeypatch.setitem(sys.modules, inside.__name__, inside)
    monkeypatch.setitem(sys.modules, base.__name__, base)
    written = tomllib.loads((BRIDGE / "pyproject.toml").read_text())["project"]
    module, function = written["entry-points"]["sglang.srt.plugins"]["starr"].split(":")
    getattr(sys.modules[module], function)()
    assert set(table) == {starr_sglang.class_name(name) for name in OFFERED}
    assert not [need for need in written["dependencies"] if need.startswith(("torch", "transformers"))]
    assert {starr_sglang.class_name(entry.name) for entry in starr.strategies()} >= set(table)
