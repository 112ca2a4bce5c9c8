"""A reproduced result: a table, a figure, and what a reader must know; written as Markdown, JSON and PNG."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """Rows are dictionaries in column order; ``draw`` fills a matplotlib figure."""

    name: str
    title: str
    rows: Sequence[Row]
    draw: Callable[[Figure], None]
    caption: str
    paper: Sequence[Row] = ()
    notes: Sequence[str] = ()
    size: tuple[float, float] = (8.0, 5.0)
    data: Mapping[str, Any] = field(default_factory=dict)  # goes into the JSON file only
    more: Sequence[tuple[str, Sequence[Row]]] = ()  # further tables of the page, each with its title


@dataclass(frozen=True, slots=True)
class Context:
    """Where a result comes from: the command, model, task, machine and date under every table and figure."""

    command: str
    model: str
    task: str
    machine: str
    date: str

    def line(self) -> str:
        """One line that says how a result was made."""
        return f"`{self.command}` · model {self.model} · task {self.task} · {self.machine} · {self.date}"


def write_result(result: Result, context: Context, folder: Path) -> list[Path]:
    """Write NAME.md, NAME.json and NAME.png into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{result.name}.{kind}" for kind in ("md", "json", "png")]
    paths[0].write_text(markdown(result, context), encoding="utf8")
    body = {
        "name": result.name, "title": result.title, "rows": result.rows, "paper": result.paper, "notes": result.notes,
        "command": context.command, "model": context.model, "task": context.task, "machine": context.machine,
        "date": context.date, "more": {title: list(rows) for title, rows in result.more}, **result.data,
    }  # fmt: skip
    paths[1].write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf8")
    save_figure(result, context, paths[2])
    return paths


def write_index(folder: Path) -> Path:
    """README.md of a results folder: every result in it with its command, and the other pages there."""
    lines, told = ["# Results", "Each as its command wrote it, with the machine and the date.", ""], {"README.md"}
    for path in sorted(folder.glob("*.json")):
        body = json.loads(path.read_text(encoding="utf8"))
        if "title" not in body:  # figures of a page that stands there besides
            continue
        page = body.get("page", f"{path.stem}.md")
        told.add(page)
        models = re.sub(r" \(weights [^)]*\)", "", body["model"])
        lines.append(f"- [{body['title']}]({page}), {models}: `{body['command']}` ({body['date']}, {body['machine']})")
    for path in (page for page in sorted(folder.glob("*.md")) if page.name not in told):
        lines.append(f"- [{path.read_text(encoding='utf8').splitlines()[0].lstrip('# ')}]({path.name})")
    index = folder / "README.md"
    index.write_text("\n".join(lines) + "\n", encoding="utf8")
    return index


def markdown(result: Result, context: Context) -> str:
    """A result as a page."""
    parts = [f"# {result.title}", table(result.rows), f"![{result.title}]({result.name}.png)", result.caption]
    for title, rows in result.more:
        parts += [f"## {title}", table(rows)]
    if result.paper:
        parts += ["## The paper's numbers (paper)", table(result.paper)]
    parts += [f"- {note}" for note in result.notes]
    return "\n\n".join([*parts, context.line()]) + "\n"


def table(rows: Sequence[Row]) -> str:
    """A Markdown table; the keys of the first row are the columns."""
    if not rows:
        return "No rows."
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row.get(column)) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def cell(value: Any) -> str:
    """A value as a table shows it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1 else f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"
    return str(value).replace("|", "\\|")


def save_figure(result: Result, context: Context, path: Path) -> None:
    """Draw the figure with its caption and command below it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context({"font.size": 10, "axes.grid": True, "grid.alpha": 0.3}):
        figure = pyplot.figure(figsize=result.size, layout="constrained")
        result.draw(figure)
        figure.suptitle(result.title, fontsize=12)
        figure.supxlabel(foot(result, context), fontsize=7.5, x=0.01, ha="left")
        figure.savefig(path, dpi=150)
        pyplot.close(figure)


def foot(result: Result, context: Context) -> str:
    """Caption and context, wrapped to the figure's width."""
    import textwrap

    width = int(result.size[0] * 17)
    text = f"{result.caption} Model {context.model}, task {context.task}."
    return "\n".join([*textwrap.wrap(text, width), context.command]).replace("$", r"\$")
