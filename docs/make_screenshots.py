"""Makes the pictures in docs/images from runs of the bundled model: python docs/make_screenshots.py"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

import starr
from starr.evals import word_problems
from starr.viewer.html import page

IMAGES = Path(__file__).parent / "images"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
LANES = ("starr", "threshold", "confidence", "starr")
SHOTS = (  # name, lanes, link, width
    ("light", 1, "#t=8&p=4&theme=light", 1600),
    ("dark", 1, "#t=8&p=4&theme=dark", 1280),
    ("narrow", 1, "#t=8&p=4&theme=light", 360),
    ("race", 4, "#t=45&p=4&theme=light", 1600),
)


def traces() -> list[dict[str, Any]]:
    """Four runs of one bundled problem: three strategies, and STaRR in blocks with a cache."""
    model = starr.load()
    problem = next(problem for problem in word_problems.load() if problem.steps == 3)
    found = []
    for lane, name in enumerate(LANES):
        more = {"block_length": 32, "cache": "dual"} if lane == 3 else {}
        run = starr.generate(model, problem.prompt, strategy=name, max_tokens=96, trace=True, **more)
        right = word_problems.grade(problem, run.text)
        found.append(run.trace.to_dict() | {"answer": problem.answer.split("####")[-1].strip(), "correct": right})
    return found


def shoot(browser: Browser, address: str, name: str, width: int) -> None:
    view = browser.new_page(viewport={"width": width, "height": 900})
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
            path.write_text(page(runs[:lanes], "How STaRR solves a word problem"), encoding="utf-8")
            shoot(browser, path.as_uri() + link, name, width)
        browser.close()


if __name__ == "__main__":
    main()
