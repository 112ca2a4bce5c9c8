"""The block length that nobody names: the model's at every door; where it has none, one with which a server streams."""

from dataclasses import replace

import pytest

import starr
from starr.api import resolve
from starr.cli.session import Session, obey
from starr.evals.run.runs import Run, requests_for, settings_for
from starr.evals.tasks import load_task
from starr.model.spec import Habits
from starr.options import Options
from starr.server.http.bodies import CompletionBody
from starr.server.http.read import build_rows, read_body
from starr.server.settings import STREAMED, Settings
from tests.tiny import tiny_model

PLAIN = tiny_model()
BLOCKS = replace(PLAIN, spec=replace(PLAIN.spec, habits=Habits(strategy="confidence", block_length=8)))


def serve(model, settings=None, **fields):
    """The row that a server makes of a request."""
    settings = settings or Settings()
    asked = read_body(CompletionBody(prompt="some", max_tokens=40, **fields), model, settings)
    return build_rows(asked, model, settings)[0]


def test_every_door_reads_the_models_own():
    """Python, chat, evaluations and the server, all without a word about blocks."""
    resolved = resolve(Options(max_tokens=40), BLOCKS)
    session, _ = obey(Session(options=resolved), "/set seed 3")
    task = load_task("lines", None)
    item = replace(task.items[0], prompt="some")
    row = requests_for(BLOCKS, [item], Run("confidence"), settings_for(BLOCKS, task, form="base"))[0]
    found = (resolved, session.options, resolve(session.options, BLOCKS), row.options, serve(BLOCKS).options)
    assert [options.block_length for options in found] == [8] * 5


def test_the_same_tokens_from_python_and_from_the_server():
    row = serve(BLOCKS, seed=5, temperature=0.8)
    ours = starr.generate(BLOCKS, "some", max_tokens=40, seed=5, temperature=0.8, chat=False)
    theirs = starr.api.run_all(BLOCKS, [row], 1)[0]
    assert ours.tokens == theirs.tokens
    assert starr.generate(BLOCKS, "some", max_tokens=40, seed=5, temperature=0.8, block_length=0).tokens != ours.tokens


@pytest.mark.parametrize(
    ("model", "settings", "fields", "length"),
    [
        (PLAIN, Settings(), {}, STREAMED),
        (PLAIN, Settings(), {"block_length": 0}, None),
        (PLAIN, Settings(), {"block_length": 12}, 12),
        (PLAIN, Settings(), {"ice": "ice-sp"}, None),
        (PLAIN, Settings(block_length=0), {}, None),
        (PLAIN, Settings(block_length=16), {"block_length": 12}, 12),
        (BLOCKS, Settings(), {"block_length": 0}, None),
        (BLOCKS, Settings(block_length=16), {}, 16),
        (BLOCKS, Settings(block_length=16), {"ice": "ice-sp"}, None),
    ],
)
def test_the_nearest_word_counts(model, settings, fields, length):
    """The request's, then the server's, then the model's, then one that streams."""
    assert serve(model, settings, **fields).block_length == length


def test_zero_is_the_whole_canvas_everywhere():
    whole = starr.generate(PLAIN, "some", max_tokens=40, seed=1, temperature=1.0)
    zero = starr.generate(PLAIN, "some", max_tokens=40, seed=1, temperature=1.0, block_length=0)
    assert whole.tokens == zero.tokens
