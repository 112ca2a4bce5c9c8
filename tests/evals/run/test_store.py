"""The run folder: a full disk, a second writer, lost settings, another model under the same name."""

import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from starr.errors import InputError, WorkError
from starr.evals.run.evaluate import run_evaluation
from starr.evals.run.runs import fingerprint, settings_for
from starr.evals.run.store import Store, read_samples
from starr.model.files.hub import BUNDLED_FOLDER
from starr.model.text.tokenizer import read_tokenizer
from tests.evals.toy import toy_job
from tests.tiny import tiny_model

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def full_disk():
    """No file of this process can grow beyond 64 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_settings_and_samples(tmp_path):
    run_evaluation(*toy_job(tmp_path / "run", limit=2))
    before = (tmp_path / "run" / "settings.json").read_bytes()
    with full_disk(), pytest.raises(WorkError, match="too large"):
        Store(tmp_path / "run").open({"a": "b" * 1000}, resume=True)
    assert (tmp_path / "run" / "settings.json").read_bytes() == before
    assert len(list(read_samples(tmp_path / "run" / "samples.jsonl"))) == 4
    assert not list((tmp_path / "run").glob(".*"))


def test_equal_settings_are_not_written_again(tmp_path):
    run_evaluation(*toy_job(tmp_path / "run", limit=2))
    path = tmp_path / "run" / "settings.json"
    os.utime(path, (1, 1))
    with full_disk(), pytest.raises(WorkError, match="too large"):  # the results, at the end
        run_evaluation(*toy_job(tmp_path / "run", limit=2, resume=True))
    assert path.stat().st_mtime == 1


def test_a_folder_has_one_writer(tmp_path):
    out = tmp_path / "run"
    program = f"from tests.evals.toy import *\nrun_evaluation(*toy_job({str(out)!r}, limit=2, resume=True))"
    store = Store(out)
    store.open(toy_job(out)[1].settings.to_dict() | {"runs": []}, resume=True)
    other = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert other.returncode != 0
    assert str(out) in other.stderr
    store.close()
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


@pytest.mark.parametrize("tail", ["", '{"run": "cut off'])
@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_without_a_whole_sample_is_as_good_as_new(tmp_path, resume, tail):
    """Also with other settings, and with or without --resume."""
    store = Store(tmp_path / "run")
    store.open({"task": "another"}, resume=False)
    store.close()
    store.path.write_text(tail)
    run_evaluation(*toy_job(tmp_path / "run", limit=2, resume=resume))
    assert len(list(read_samples(store.path))) == 4
    assert store.settings()["task"] == "toy"


def test_samples_without_settings_are_not_taken_unasked(tmp_path):
    run_evaluation(*toy_job(tmp_path / "run", limit=2))
    (tmp_path / "run" / "settings.json").unlink()
    with pytest.raises(InputError, match="--resume"):
        run_evaluation(*toy_job(tmp_path / "run", limit=2))
    run_evaluation(*toy_job(tmp_path / "run", limit=3, resume=True))
    assert len(list(read_samples(tmp_path / "run" / "samples.jsonl"))) == 6


@pytest.mark.parametrize("place", [0, 100, -1])
def test_one_changed_weight_far_inside_changes_the_fingerprint(place):
    model = tiny_model()
    before = fingerprint(model)
    weight = model.net.lm_head.weight.view(-1)
    step = (weight.numel() - 1) / 255
    weight[round(step * (place % 256))] += 1.0
    assert fingerprint(model) != before


def test_every_tensor_counts_in_the_fingerprint():
    model = tiny_model()
    for parameter in model.net.parameters():
        before = fingerprint(model)
        parameter.add_(0.5)
        assert fingerprint(model) != before
    assert fingerprint(tiny_model()) == fingerprint(tiny_model())
    assert isinstance(next(model.net.parameters()), torch.Tensor)


def test_another_template_or_tokenizer_is_refused(tmp_path):
    model, job = toy_job(tmp_path / "run", limit=2)
    run_evaluation(model, job)
    letters = type(model.tokenizer)()
    letters.digest = "with another template"
    changed = replace(model, tokenizer=letters)
    settings = settings_for(changed, job.task, form="base")
    with pytest.raises(InputError, match=r"letters.*with another template"):
        run_evaluation(changed, replace(job, settings=settings, resume=True))


def test_the_digest_knows_template_vocabulary_and_variables(tmp_path):
    source = BUNDLED_FOLDER
    digests = set()
    for name, old, new in [
        ("tokenizer.json", "", ""),
        ("tokenizer_config.json", "assistant", "helper"),
        ("tokenizer_config.json", "<|startoftext|>", "<|endoftext|>"),
    ]:
        folder = tmp_path / f"copy{len(digests)}"
        folder.mkdir()
        for file in ("tokenizer.json", "tokenizer_config.json"):
            text = (source / file).read_text()
            (folder / file).write_text(text.replace(old, new) if file == name else text)
        digests.add(read_tokenizer(folder, "", ()).digest)
    assert len(digests) == 3
