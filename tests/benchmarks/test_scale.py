"""The figures of docs/scale.md are those of the stored result."""

from benchmarks.scale import model_of
from docs.scale_table import BEGIN, END, PAGE, block, stored

RESULT = {
    "command": "python -m benchmarks.scale", "machine": "a machine", "date": "2026-01-01",
    "one_process_all_cores": 3.0, "one_worker": 2.0, "two_workers": 4.0, "driver_most": 900.0,
    "driver_ms_per_sample": 1.11, "ray_ms_per_sample": 1.0, "workers_that_one_driver_feeds": 450,
    "pace_at_which_1000_workers_fill_it": 0.9, "model": model_of(2.0, 900.0),
}  # fmt: skip


def test_the_page_shows_the_stored_result():
    text = PAGE.read_text(encoding="utf8")
    assert text[text.index(BEGIN) : text.index(END) + len(END)] == block(stored())


def test_the_table_has_what_was_measured_and_what_follows():
    text = block(RESULT)
    assert "| 2 workers | 4.0 |" in text
    assert "| 100 | 200.0 |" in text
    assert "| 1000 | 900.0 |" in text
    assert "None" not in text
