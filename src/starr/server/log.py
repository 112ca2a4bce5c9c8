"""Log lines: one JSON object each, whatever they hold, written by a thread of their own.

On a terminal, the line that says where the server listens is plain text, for the person who reads it.
A full or unread standard error blocks that thread alone: the server goes on, and lines beyond KEPT are dropped.
"""

from __future__ import annotations

import json
import logging
import queue
import sys
import threading
from time import monotonic, sleep
from typing import TextIO

KEPT = 10_000
ADDRESS = "starr.server.address"  # the logger of the line for people
NAMES = ("starr.access", "starr.server", "uvicorn", "asyncio")
lost = [0]


class JsonLine(logging.Formatter):
    """An access line is JSON already; everything else becomes an object, so that no text can begin a line."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.as_it_is = ("starr.access", ADDRESS) if terminal else ("starr.access",)

    def format(self, record: logging.LogRecord) -> str:
        """A record as one line of JSON."""
        if record.name in self.as_it_is:
            return record.getMessage()
        line: dict[str, object] = {"time": round(record.created, 3), "level": record.levelname.lower()}
        line["message"] = record.getMessage()
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


class Patient(logging.Handler):
    """Hands lines to a thread that writes them; never waits."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream
        self.lines: queue.Queue[str] = queue.Queue(KEPT)
        self.setFormatter(JsonLine(terminal=stream.isatty()))
        threading.Thread(target=self._write, name="starr-log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line; where the queue is full, count it as lost."""
        try:
            self.lines.put_nowait(self.format(record))
        except queue.Full:
            lost[0] += 1

    def _write(self) -> None:
        while True:
            line = self.lines.get()
            try:
                self.stream.write(line + "\n")
                self.stream.flush()
            except (OSError, ValueError):
                lost[0] += 1
            self.lines.task_done()

    def drain(self, seconds: float = 1.0) -> None:
        """Wait a moment for what is left, at the end."""
        end = monotonic() + seconds
        while self.lines.unfinished_tasks and monotonic() < end:
            sleep(0.01)


def log_to_stderr(quiet: bool) -> Patient:
    """All of the server's logs to standard error."""
    handler = Patient(sys.stderr)
    for name in NAMES:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING if quiet or not name.startswith("starr") else logging.INFO)
    return handler
