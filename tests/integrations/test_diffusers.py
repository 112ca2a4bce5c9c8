"""diffusers' own pipeline with our scheduler gives the tokens of our engine on the same checkpoint."""

import json

import pytest
import torch

import starr
from starr.errors import InputError
from starr.model.network.masks import block_mask
from tests.integrations import modules

diffusers = pytest.importorskip("diffusers", minversion="0.42", reason="diffusers with LLaDA2Pipeline is not installed")

WIDTH, EOS, MASK = 6, 257, 258
PROMPTS = [[40, 41, 42, 43, 44, 45], [50, 51, 52, 53], [60, 61, 62, 63, 64, 65, 66, 67]]


class BlockCausal(torch.nn.Module):
    """A module with the pipeline's call, whose positions see their own block and those before it."""

    def __init__(self, module):
        super().__init__()
        self.module, self.dtype, self.device = module, torch.float32, torch.device("cpu")

    def forward(self, tokens, attention_mask, position_ids):
        seen = block_mask(tokens.shape[1], WIDTH).expand(len(tokens), -1, -1)[:, None]
        hidden = torch.full(seen.shape, torch.finfo(torch.float32).min).masked_fill(seen, 0.0)
        return self.module(tokens, attention_mask=hidden, position_ids=position_ids)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The pipeline's module, and the same weights as a native block-causal model."""
    module, folder = modules.qwen3(), tmp_path_factory.mktemp("sdar")
    modules.write_as_a2d(module, folder, "SDARForCausalLM")
    config = json.loads((folder / "config.json").read_text()) | {"block_size": WIDTH}
    (folder / "config.json").write_text(json.dumps(config))
    return BlockCausal(module).eval(), starr.load(folder, dtype="float32", device="cpu")


def pipeline_of(module, **options):
    from starr.integrations.diffusers import STaRRScheduler

    pipe = diffusers.LLaDA2Pipeline(module, STaRRScheduler(block_length=WIDTH, **options), None)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def run(pipe, *prompts, **options):
    found = pipe(
        input_ids=torch.tensor(prompts),
        gen_length=3 * WIDTH - len(prompts[0]) % WIDTH,
        block_length=WIDTH,
        mask_token_id=MASK,
        eos_token_id=EOS,
        output_type="seq",
        **options,
    )
    return [cut(row.tolist()) for row in found.sequences]


def cut(tokens):
    return tokens[: tokens.index(EOS)] if EOS in tokens else tokens


def native_tokens(model, prompt, **options):
    length = 3 * WIDTH - len(prompt) % WIDTH
    return cut(starr.generate(model, prompt, max_tokens=length, cache="none", **options).tokens)


@pytest.mark.parametrize("strategy", ["starr", "threshold:tau=0.3", "factor", "confidence", "r2", "edit", "entropy"])
@pytest.mark.parametrize("prompt", PROMPTS, ids=["whole", "short", "long"])
def test_the_pipeline_gives_the_tokens_of_the_engine(pair, strategy, prompt):
    module, native = pair
    found = run(pipeline_of(module, strategy=strategy), prompt)
    assert found == [native_tokens(native, prompt, strategy=strategy)]


def test_rows_of_a_batch_give_the_tokens_that_they_give_alone(pair):
    pipe = pipeline_of(pair[0], strategy="starr")
    rows = [PROMPTS[0], [70, 71, 72, 73, 74, 75]]
    assert run(pipe, *rows) == [run(pipe, row)[0] for row in rows]


def test_a_seed_draws_the_same_tokens_again(pair):
    first, again, other = (
        run(pipeline_of(pair[0], strategy="threshold", seed=seed), PROMPTS[0], temperature=1.0) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("strategy", ["wino", "freedave", "klass"])
def test_strategies_that_need_more_than_a_block_are_refused(pair, strategy):
    with pytest.raises(InputError) as found:
        run(pipeline_of(pair[0], strategy=strategy), PROMPTS[0])
    assert found.value.param == "strategy"


def test_the_scheduler_is_saved_and_loaded(pair, tmp_path):
    from starr.integrations.diffusers import STaRRScheduler

    STaRRScheduler(strategy="threshold:tau=0.3", block_length=WIDTH, seed=4).save_pretrained(tmp_path)
    found = STaRRScheduler.from_pretrained(tmp_path)
    assert (found.config.strategy, found.config.block_length, found.config.seed) == ("threshold:tau=0.3", WIDTH, 4)
