"""Positions outside the window that a stop rule watches."""

from starr.api import Options, build_request
from starr.decode.engine import Engine
from tests.tiny import tiny_model


def engine_of(stop: str) -> Engine:
    model, engine = tiny_model(), Engine(tiny_model())
    given = Options(strategy="confidence", max_tokens=12, block_length=4, eos="never", stop_rule=stop)
    engine.add(build_request(model, "ab", given))
    engine.step()
    return engine


def test_what_a_rule_watches_is_observed_wherever_the_window_is():
    engine = engine_of("prophet:start=9,length=2,early=99,middle=99,late=99")
    start = engine.batch.rows[0].request.start
    observed = engine.batch.plan.observed[0].nonzero().flatten().tolist()
    masks = [at for at in range(start, start + 4) if engine.batch.canvas.masked[0, at]]
    assert observed == [*masks, start + 9, start + 10]
    assert (engine.batch.canvas.last.gap[0, start + 9 : start + 11] > 0).all()
    assert int(engine.batch.canvas.notes["planned"]) == 12


def test_without_such_a_rule_only_the_window_is():
    engine = engine_of("none")
    assert int(engine.batch.plan.observed.sum()) == 3
