"""A short answer on a long canvas: the page opens on its words, end-of-text is one sign, and no words overprint."""

from __future__ import annotations

import pytest

from tests.viewer.traces import END, ended, make

pytestmark = pytest.mark.browser

WATCH = """() => {
    const write = CanvasRenderingContext2D.prototype.fillText;
    window.written = [];
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
        const width = this.measureText(text).width, share = { left: 0, center: 0.5, right: 1 }[this.textAlign];
        const left = x - width * share;
        if (this.getTransform().b === 0) window.written.push([this.canvas.id, String(text), left, y, left + width]);
        return write.call(this, text, x, y, ...rest);
    };
}"""


def written(one, canvas):
    """Every level text of a canvas as (text, left, baseline, right), drawn anew in the other theme."""
    one.page.evaluate(WATCH)
    one.press("d")
    one.settle()
    return [tuple(place) for name, *place in one.value("window.written") if name == canvas]


def first_word(trace):
    """(step, position) of the first commit that is no end-of-text."""
    for number, step in enumerate(trace["steps"]):
        for place, action in enumerate(step["action"]):
            if action == 1 and trace["pieces"][str(step["proposal"][place])] != END:
                return number, place
    return None


def test_it_opens_on_the_first_word_and_not_on_end_of_text(show):
    trace = ended(length=24, text=2)
    step, position = first_word(trace)
    assert step > next(number for number, each in enumerate(trace["steps"]) if 1 in each["action"])
    one = show([trace])
    assert one.frame() == step + 1
    assert one.page.text_content("#life-now").startswith(f"Position {position}, starr, step {step + 1}: fresh")
    race = show([make(length=24, seed=1), trace])
    assert race.frame(1) == 1, "another lane's words are not waited for"
    nothing = show([ended(length=24, text=0)])
    assert nothing.frame() == 1
    assert "fresh ∎" in nothing.page.text_content("#life-now")


def test_the_panel_shows_end_of_text_as_the_canvas_does(show):
    trace = ended(length=24, text=2) | {"sets": [[0, []], [2, [END, "a"]]]}
    for step in trace["steps"]:
        step["allowed"] = [1] * 24
    one = show([trace], link="#p=20&t=9")
    panel = one.page.text_content("#life")
    assert "commit ∎" in panel
    assert '∎ of 2 allowed: ∎ "a"' in panel
    assert END not in panel
    assert set(one.value("[...document.querySelectorAll('#life [title]')].map((node) => node.title)")) == {END}
    assert END in one.page.get_attribute("#lane0-20", "aria-label")


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize(("length", "text", "pace"), [(128, 1, 40), (17, 2, 9), (400, 12, 150), (1200, 90, 300)])
def test_no_words_of_the_map_overprint(show, width, length, text, pace):
    one = show([ended(length=length, text=text, pace=pace)], width=width)
    found = written(one, "map")
    assert "position →" in {name for name, *_ in found}
    assert any(name.startswith("+ ") for name, *_ in found)
    wide = one.value("document.getElementById('map').clientWidth")
    assert wide <= one.value("document.getElementById('map-scroll').clientWidth")
    for index, (_, left, base, right) in enumerate(found):
        assert 0 <= left < right <= wide
        assert all(other[2] != base or other[1] > right + 4 or other[3] < left - 4 for other in found[:index])


def test_a_few_steps_are_numbered_too(show):
    one = show([ended(length=24, text=2, pace=9)])
    assert "2" in {name for name, left, _, _ in written(one, "map") if left < 48}


def test_one_step_is_one_step(show):
    trace = make(length=4)
    trace["steps"], trace["stats"] = trace["steps"][:1], {"forwards": 1}
    one = show([trace], link="#t=1&p=0")
    assert one.page.text_content("#now") == "1 of 1 forward"
    assert "1 step" in {name for name, *_ in written(one, "life-chart")}


def test_shares_have_round_ticks(show):
    trace = make(length=24)
    for step in trace["steps"]:
        step["threshold"] = [1.2] * 24
    one = show([trace], link="#t=3&p=2")
    assert [name for name, left, _, _ in written(one, "life-chart") if left < 40 and "step" not in name] == [
        "0",
        "0.5",
        "1",
    ]
