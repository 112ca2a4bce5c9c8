"""Makes the pictures in docs/images from runs of the bundled model: python docs/make_screenshots.py"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from statistics import median_low
from typing import Any

from playwright.sync_api import Browser, sync_playwright

import starr
from starr.evals.tasks import word_problems
from starr.evals.tasks.problem import Problem
from starr.model.load import Model
from starr.viewer.html import build_page

IMAGES = Path(__file__).parent / "images"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
LANES = ("starr", "threshold", "confidence")
COUNT = 100  # test problems among which the typical one is looked for
SHOTS = (  # name, lanes, link, width
    ("light", 1, "#t=8&p=4&theme=light", 1600),
    ("dark", 1, "#t=8&p=4&theme=dark", 1280),
    ("narrow", 1, "#theme=light", 390),
    ("race", 3, "#t=6&p=4&theme=light", 1600),
)


def typical(model: Model, problems: list[Problem]) -> Problem:
    """The first problem that all lanes answer rightly and on which STaRR's lead over the threshold is the median.

    The lead is counted in forwards, over all the problems. The README's caption states this rule.
    """
    prompts = [problem.prompt for problem in problems]
    runs = {name: starr.generate(model, prompts, strategy=name, max_tokens=96) for name in ("starr", "threshold")}
    pairs = list(zip(runs["threshold"], runs["starr"], strict=True))
    lead = [slow.stats.forwards - fast.stats.forwards for slow, fast in pairs]
    middle = median_low(lead)
    print(f"STaRR's lead over the threshold, median of {len(lead)} problems: {middle} forwards")
    for problem, here, pair in zip(problems, lead, pairs, strict=True):
        if here == middle and all(good(problem, run.text) for run in pair):
            one = starr.generate(model, problem.prompt, strategy="confidence", max_tokens=96)
            if good(problem, one.text):
                return problem
    raise SystemExit("no problem is typical")


def good(problem: Problem, text: str) -> bool:
    return word_problems.grade(problem, text) and word_problems.formed(problem, text)


def traces() -> list[dict[str, Any]]:
    """The lanes of the typical problem."""
    model = starr.load()
    problem = typical(model, word_problems.load()[:COUNT])
    found = []
    for name in LANES:
        run = starr.generate(model, problem.prompt, strategy=name, max_tokens=96, trace=True)
        known = {"right": word_problems.grade(problem, run.text), "formed": word_problems.formed(problem, run.text)}
        found.append(run.trace.to_dict() | {"answer": problem.answer.split("####")[-1].strip()} | known)
    return found


def shoot(browser: Browser, address: str, name: str, width: int) -> None:
    view = browser.new_page(viewport={"width": width, "height": 900})
    view.set_default_timeout(120_000)
    view.goto(address)
    view.wait_for_selector("[data-ready]", state="attached")
    view.wait_for_timeout(500)
    view.screenshot(path=str(IMAGES / f"{name}.png"), full_page=True)
    view.close()
    print(f"wrote {IMAGES.name}/{name}.png")


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    runs = traces()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, lanes, link, width in SHOTS:
            path = Path(folder) / f"{name}.html"
            path.write_text(build_page(runs[:lanes], "How STaRR solves a word problem"), encoding="utf-8")
            shoot(browser, path.as_uri() + link, name, width)
        browser.close()


if __name__ == "__main__":
    main()
