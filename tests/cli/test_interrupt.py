"""Ctrl-C: code 130, no traceback, and what is done stays."""

import json
import re
import signal
import subprocess
import sys

STARR = [sys.executable, "-m", "starr.cli.main"]


def heed_ctrl_c():
    """A suite that runs in the background of a shell ignores SIGINT, and its children would too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupted_file_keeps_the_results_that_are_done(tiny, tmp_path):
    source, out = tmp_path / "prompts.jsonl", tmp_path / "out.jsonl"
    source.write_text('"hello"\n' * 4000)
    command = [*STARR, "run", "--input", source, "-o", out, "--batch-size", "1", "--model", tiny, "--max-tokens", "4"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c) as child:
        first = child.stderr.readline()
        child.send_signal(signal.SIGINT)
        rest = child.stderr.read()
        assert child.wait() == 130
    assert re.fullmatch(r"\d+ of 4000 prompts\n", first)
    assert "Traceback" not in rest
    results = [json.loads(line) for line in out.read_text().splitlines()]
    assert 4 <= len(results) < 4000
    assert f"{len(results)} of 4000 prompts written to {out}; --resume continues" in rest
