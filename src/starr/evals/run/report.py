"""``report.html``: one file with the table, the accuracy-forwards picture and the failing samples of every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from starr.errors import counted
from starr.evals.run.picture import scatter
from starr.evals.run.results import ANSWER_ONLY, WITH_END, has_form, place_of
from starr.evals.run.store import Sample, Store
from starr.options import EVAL, options_at

FAILING = 50  # shown of each run; all are in samples.jsonl
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:80rem;margin:2rem auto;padding:0 1rem;color:#1c2330;background:#fff}
table{border-collapse:collapse;display:block;overflow-x:auto}td,th{padding:.3rem .7rem;border-bottom:1px solid #d5dae3;
text-align:right;white-space:nowrap}td:first-child,th:first-child{text-align:left;white-space:normal}
pre{white-space:pre-wrap;background:#f3f5f9;padding:.6rem;border-radius:6px}a{color:#1c5fb8}
.picture{overflow-x:auto}svg{display:block;width:100%;min-width:36rem;max-width:60rem;height:auto}
.note{color:#5b6475}@media(prefers-color-scheme:dark){body{color:#e6e9f0;background:#14181f}pre{background:#1f2530}
td,th{border-color:#323a48}a{color:#7db4ff}.note{color:#98a2b5}svg text{fill:#e6e9f0}svg line{stroke:#6b7485}}
"""
HEAD = (
    "run",
    "n",
    "right",
    "formed",
    "both",
    "forwards",
    "positions",
    "tokens/forward",
    "with end",
    "tokens/s",
    "p50",
    "p95",
    "failing",
)


def write_report(store: Store, results: Mapping[str, Any]) -> Path:
    """Write ``report.html`` into the run folder."""
    path = store.folder / "report.html"
    path.write_text(page(results, {r["run"]: store.of(r["run"]) for r in results["runs"]}), encoding="utf8")
    return path


def page(results: Mapping[str, Any], samples: Mapping[str, Sequence[Sample]]) -> str:
    """The report as HTML."""
    title = f"{results['task']} · {results['model']}"
    points = [(r["run"], r["forwards"], r["both"], r["both_interval"]) for r in results["runs"]]
    goal = "share right and well formed" if has_form(results) else "share right"
    picture = scatter(points, "forwards per sample (mean)", f"{goal} (95 % interval)")
    parts = [
        f"<h1>{escape(title)}</h1><p class=note>{escape(facts(results))}</p>",
        run_table(results["runs"]),
        *(f"<p class=note>{escape(text)}.</p>" for text in notes(results)),
        kind_table(results["runs"]),
        f"<div class=picture>{picture}</div>",
        pair_table(results["pairs"]),
        *(failing(n, name, found) for n, (name, found) in enumerate(samples.items())),
    ]
    body = "\n".join(parts)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style><body>{body}</body></html>\n"
    )


def notes(results: Mapping[str, Any]) -> list[str]:
    """What a reader must know of the tables, on a page as on a terminal."""
    return [WITH_END] if has_form(results) else [WITH_END, ANSWER_ONLY]


def facts(results: Mapping[str, Any]) -> str:
    """When, where and how the samples were made."""
    machine = results["machine"]
    place = place_of(machine)
    sandbox = f", code sandbox: {results['sandbox']}" if results["sandbox"] else ""
    keys = ["form", *(option.name for option in options_at(EVAL))]
    options = ", ".join(f"{key} {results[key]}" for key in keys if results.get(key) is not None)
    return f"{results['date']} · {place} · torch {machine['versions']['torch']} · {options}{sandbox}"


def share(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.1f} %"


def interval(pair: Sequence[float]) -> str:
    """An interval in percent."""
    return f"{100 * pair[0]:.1f} to {100 * pair[1]:.1f}"


def rows(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table; cells are HTML already."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in line) + "</tr>" for line in body)
    return f"<table><tr>{top}</tr>{lines}</table>"


def run_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """One line for each run."""
    body = []
    for number, run in enumerate(runs):
        time = run["time"]
        body.append([
            escape(run["run"]), str(run["n"]), *three(run),
            f"{run['forwards']:.1f}", f"{run['positions']:.0f}", f"{run['tokens_per_forward']:.2f}",
            f"{run['tokens_per_forward_with_end']:.2f}", f"{time['tokens_per_second']:.1f}",
            f"{time['latency_p50']:.2f} s", f"{time['latency_p95']:.2f} s",
            f"<a href='#failing{number}'>{round(run['n'] * (1 - run['both']))}</a>",
        ])  # fmt: skip
    return rows(HEAD, body)


def three(run: Mapping[str, Any]) -> list[str]:
    """Cells for right, formed and both; formed is a dash where only the answer is graded."""
    return [
        "–" if run[name] is None else f"{share(run[name])}<br><small>{interval(run[f'{name}_interval'])}</small>"
        for name in ("right", "formed", "both")
    ]


def kind_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Each run on each kind of item."""
    body = [
        [escape(run["run"]), escape(kind), str(found["n"]), *three(found), f"{found['forwards']:.1f}"]
        for run in runs
        for kind, found in run["kinds"].items()
    ]
    head = ("run", "kind", "n", "right", "formed", "both", "forwards")
    return f"<details><summary>By kind of item</summary>{rows(head, body)}</details>" if body else ""


def pair_table(pairs: Sequence[Mapping[str, Any]]) -> str:
    """One line for each pair of runs."""
    if not pairs:
        return ""
    head = ("first − second", "n", "difference (points)", "95 % interval", "only first", "only second", "McNemar p")
    body = [
        [
            f"{escape(p['first'])} − {escape(p['second'])}", str(p["n"]), f"{100 * p['difference']:+.1f}",
            interval(p["interval"]), str(p["only_first"]), str(p["only_second"]), f"{p['mcnemar_p']:.3f}",
        ]
        for p in pairs
    ]  # fmt: skip
    return "<h2>Pairs on the same samples</h2>" + rows(head, body)


def fault(sample: Sample) -> str:
    """What is wrong with a sample: its answer, or how a right one is written."""
    if sample.right:
        return f"{sample.gold[:80]} is right, the text is not well formed"
    return f"{'no answer' if sample.answer is None else sample.answer[:80]} instead of {sample.gold[:80]}"


def failing(number: int, name: str, samples: Sequence[Sample]) -> str:
    """The first samples of a run that are not right and well formed, each behind its summary."""
    wrong = [s for s in samples if not s.both]
    more = f" (first {FAILING} of {len(wrong)})" if len(wrong) > FAILING else ""
    shown = "".join(
        f"<details id='s{number}-{s.index}'><summary>{escape(s.id)}: {escape(fault(s))}, "
        f"{counted(s.forwards, 'forward')}</summary><pre>{escape(s.text)}</pre></details>"
        for s in wrong[:FAILING]
    )
    return f"<h2 id='failing{number}'>{escape(name)}: failing samples{more}</h2>{shown or '<p>None.</p>'}"
