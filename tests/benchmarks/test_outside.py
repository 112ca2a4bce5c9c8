"""The benchmark of models from outside: masks, samples that are kept, paired rows, a package opened as an archive."""

from random import Random
from zipfile import ZipFile

import pytest
import torch
from transformers import AlbertConfig, AlbertForMaskedLM

import starr
from benchmarks import outside, outside_models
from starr.decode.prompts.infill import split_holes
from tests.model import encoders

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "C", "O", "N", "=", "(", ")", ">>", "Cl", "[Na+]", "."]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A wheel of a tiny model in the form of the real one, in a cache of its own."""
    cache = tmp_path_factory.mktemp("cache")
    sizes = {**encoders.SIZES, "vocab_size": len(TOKENS), "embedding_size": 16}
    native = encoders.filled(AlbertForMaskedLM(AlbertConfig(**sizes, hidden_act="gelu")))
    native.save_pretrained(cache / "native")
    torch.save(native.state_dict(), cache / "native" / "pytorch_model.bin")
    (cache / "native" / "vocab.txt").write_text("\n".join(TOKENS))
    made = outside_models.Package("tiny", "1.0", "tiny/model", "tiny/model/vocab.txt", outside_models.RXNMAPPER.pattern)
    with ZipFile(cache / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        for name in ("config.json", "pytorch_model.bin", "vocab.txt"):
            wheel.write(cache / "native" / name, f"tiny/model/{name}")
    return made, cache, native


@pytest.fixture(scope="module")
def model(package):
    made, cache, _ = package
    return starr.load(outside_models.model_folder(made, cache), dtype="float32")


def test_a_wheels_model_is_that_of_its_weights(package, model):
    native = package[2]
    ids = model.tokenizer.encode("CC(=O)Cl.[Na+]>>CN")
    assert [TOKENS[i] for i in ids] == ["C", "C", "(", "=", "O", ")", "Cl", ".", "[Na+]", ">>", "C", "N"]
    with torch.no_grad():
        want = native(torch.tensor([ids])).logits
    torch.testing.assert_close(model.net.head(model.net(torch.tensor([ids]))), want, atol=1e-5, rtol=0)
    assert model.tokenizer.decode(ids) == "CC(=O)Cl.[Na+]>>CN"


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_a_share_of_the_tokens_is_masked(share):
    pieces = list("abcdefgh")
    text = outside.masked_text(pieces, share, Random(1))
    parts = split_holes(text)
    assert sum(part for part in parts if isinstance(part, int)) == max(1, round(8 * share))
    assert sum(part if isinstance(part, int) else len(part) for part in parts) == 8
    assert text == outside.masked_text(pieces, share, Random(1))


def test_samples_are_kept_and_not_made_again(model, tmp_path):
    jobs = outside.reaction_jobs(model, ["CC(=O)Cl>>CN", "C[Xx]>>C", "CCO>>C=O"], 3, [0.5], 2)
    assert {job.truth for job in jobs} == {"CC(=O)Cl>>CN", "CCO>>C=O"}  # one has a token that the model lacks
    samples = outside.Samples(tmp_path / "kept.jsonl")
    way = outside.Way("confidence")
    samples.add(outside.fill(model, way, [job for job in jobs if job.seed == 0]))
    again = outside.Samples(tmp_path / "kept.jsonl")
    assert again.made == samples.made
    assert [again.lacks(way, job) for job in jobs] == [job.seed == 1 for job in jobs]
    assert again.lacks(outside.Way("confidence", 0.3), jobs[0])


def test_grades_are_against_the_truth(model):
    job = outside.Job("reactions", 0.5, 0, 0, "CC[MASK:2]C=O", "CCONC=O")
    (made,) = outside.fill(model, outside.Way("confidence"), [job])
    truth, own = model.tokenizer.encode(job.truth), model.tokenizer.encode(made.text)
    if len(truth) == len(own):
        assert made.right == made.masked - sum(a != b for a, b in zip(truth, own, strict=True))
    assert (made.masked, made.exact) == (2, made.text == job.truth)


def sample(item: int, exact: bool, strategy: str = "a") -> outside.Filled:
    return outside.Filled(strategy, 0.0, 0.5, 0, item, "", exact, int(exact), 1, 0.0, 4, 8)


def test_a_row_has_the_paired_difference():
    base = [sample(item, True, "confidence") for item in range(20)]
    other = [sample(item, item % 2 == 0) for item in range(20)]
    found = outside.row(outside.Way("a"), "reactions", other, base)
    assert (found["exact %"], found["n"]) == (50.0, 20)
    assert found["to one per step"].startswith("-50.0 (")
    assert outside.row(outside.Way("confidence"), "reactions", base, base)["to one per step"] == ""
    assert outside.row(outside.Way("a"), "reactions", other[:10], base)["to one per step"] == ""


def test_leave_one_out_is_the_mean_over_masked_places(model):
    tokens = model.tokenizer.encode("CC=O")
    logs = []
    for place, token in enumerate(tokens):
        row = [model.spec.bos_id, *tokens, model.spec.last_id]
        row[place + 1] = model.spec.mask_id
        logits = model.net.head(model.net(torch.tensor([row])))[0, place + 1]
        logs.append(float(logits.log_softmax(0)[token]))
    assert outside.leave_one_out(model, tokens) == pytest.approx(sum(logs) / len(logs), abs=1e-5)


def test_verify_is_a_second_column_where_there_is_that_option():
    can = "verify" in {field.name for field in outside.fields(outside.Options)}
    ways = outside.ways_of(["threshold"])
    assert [way.strategy for way in ways if not way.verify] == ["confidence", "threshold"]
    assert any(way.verify for way in ways) == can
    assert "verify" not in outside.Way("threshold").options


def test_reactions_are_read_from_a_file(tmp_path):
    (tmp_path / "some.csv").write_text(",rxn\n7,CC>>C\n")
    assert outside_models.reactions(tmp_path, tmp_path / "some.csv") == ["CC>>C"]


def test_what_cannot_be_bound_is_left_out(model, capsys):
    assert outside.usable(model, ["threshold", "calibrated"]) == ["threshold"]
    assert "calibrated" in capsys.readouterr().out
