"""The oracle writes the text of the conservative run in fewer forwards, and a bench counts the limit from it."""

import starr
from starr.evals.run.runs import choose, settings_for
from starr.evals.tasks import load_task
from starr.research.limit import CONSERVATIVE, LIMIT, limit_samples, oracle_samples
from tests.evals.toy import toy_bench


def test_the_bundled_models_limit_is_below_every_strategys_forwards():
    model = starr.load()
    task = load_task("list-functions")
    items = choose(task, 6)
    settings = settings_for(model, task)
    oracle = list(limit_samples(model, task, settings, items, 4))
    texts = starr.generate(model, [item.chat for _, item in items], strategy=CONSERVATIVE, max_tokens=task.max_tokens)
    assert {s.index: s.text for s in oracle} == {index: g.text for (index, _), g in zip(items, texts, strict=True)}
    assert all(s.run == LIMIT for s in oracle)
    assert sum(s.forwards for s in oracle) < sum(g.stats.forwards for g in texts)


def test_a_bench_decodes_the_limit_once(tmp_path):
    bench = toy_bench(tmp_path)
    first = oracle_samples(bench)
    lines = bench.store.path.read_text().splitlines()
    assert oracle_samples(bench) == first
    assert all(sample.forwards >= 1 for sample in first)
    assert bench.store.path.read_text().splitlines() == lines
