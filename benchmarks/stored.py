"""Results of benchmarks that are kept: rows in a JSON file, added one by one, so that an interrupted run can continue.

The file has the shape of those of ``starr reproduce``, so that docs/results/README.md lists it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from starr.research.reproduce.result import Context, table, write_index

Row = dict[str, Any]


@dataclass(frozen=True)
class Stored:
    """A result, and the page in the same folder, or relative to it, that shows it."""

    name: str
    title: str
    page: str
    notes: Sequence[str] = ()

    def known(self, folder: Path, where: Context) -> list[Row]:
        """Rows that were made before for the same task with the same weights."""
        path = folder / f"{self.name}.json"
        body = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
        same = (body.get("task"), body.get("model")) == (where.task, where.model)
        return list(body["rows"]) if same else []

    def write(self, folder: Path, where: Context, rows: Sequence[Row]) -> None:
        """The file, its page where that is of the same folder, and the folder's list of results."""
        folder.mkdir(parents=True, exist_ok=True)
        body = asdict(self) | {"rows": list(rows)} | asdict(where)
        text = json.dumps(body, indent=1, ensure_ascii=False)
        (folder / f"{self.name}.json").write_text(text + "\n", encoding="utf8")
        if "/" not in self.page:
            parts = [f"# {self.title}", table(rows), *(f"- {note}" for note in self.notes), where.line()]
            (folder / self.page).write_text("\n\n".join(parts) + "\n", encoding="utf8")
        write_index(folder)
