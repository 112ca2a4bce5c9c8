"""Any text is shown as text and never run as HTML."""

from __future__ import annotations

import pytest

from tests.viewer.traces import make

pytestmark = pytest.mark.browser

NASTY = (
    "<script>window.hacked=1</script>", '"quoted"', "'", "</script>", "<img src=x onerror=window.hacked=2>", " 😀",
    "\n", "\u05e9\u05dc\u05d5\u05dd", "\u202eabc", "&amp;", "<b>bold</b>", "`${window.hacked=3}`", "",
    "\t", "<!--", "]]>",
)  # fmt: skip


def test_quotes_tags_emoji_right_to_left_and_newlines(show):
    prompt = "</script><script>window.hacked=4</script>" + "".join(NASTY)
    traces = [make(length=48, words=NASTY, prompt=prompt, strategy="<i>s</i>", seed=seed) for seed in (0, 1)]
    for trace in traces:
        trace["answer"], trace["model"] = "<u>7</u>", "<script>window.hacked=5</script>"
    one = show(traces, link="#p=0")
    one.press("End")
    one.page.click("#space")
    one.page.hover("#lane0-4")
    one.page.click("#space")
    one.settle()
    assert one.value("window.hacked") is None
    assert one.value("document.querySelectorAll('main script, main img, main b, main i, main u, pre *').length") == 0
    assert one.page.text_content("#prompt") == prompt
    shown = one.value(
        "[...document.querySelectorAll('.text')].map((text) => [...text.children].map((cell) => cell.textContent))"
    )
    for trace, cells in zip(traces, shown, strict=True):
        assert cells == [trace["pieces"][str(token)] or "∅" for token in trace["tokens"]]
