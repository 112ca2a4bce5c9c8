"""Each attack is a program; the sandbox must end it, report it, and leave this process and machine as they were."""

import errno
import os
import socket
import time
from pathlib import Path

import pytest

from starr.evals.grading import sandbox
from starr.evals.grading.sandbox import isolation, run_code

needs_namespaces = pytest.mark.skipif(isolation().weak, reason="this kernel or user cannot make namespaces")


def test_a_program_that_ends_passes(verdict):
    assert verdict("import math, hashlib, collections\nassert math.gcd(4, 6) == 2") == "passed"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("assert 1 == 2, 'no'", "AssertionError: no"),
        ("def f(:", "SyntaxError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("import sys; sys.exit()", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import os; os._exit(0)", "exited early with status 0"),
        ("x = 'a' * 2**31", "MemoryError"),
        ("x = []\nwhile True: x.append(bytearray(2**20))", "MemoryError"),
        ("import ctypes; ctypes.string_at(0)", ("killed by signal 11", "refused")),
        ("import torch", "ModuleNotFoundError"),
        ("input()", "EOFError"),
    ],
)
def test_failures_are_named(verdict, program, words):
    found = verdict(program)
    assert any(word in found for word in ([words] if isinstance(words, str) else words))


def test_endless_loop_ends_at_the_wall_clock(verdict):
    start = time.perf_counter()
    assert verdict("while True: pass", 1.0) == "timed out"
    assert time.perf_counter() - start < 30  # mostly the start of a process on a busy machine


def test_endless_loop_ends_when_its_processor_time_is_used_up(monkeypatch):
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    outcome = run_code("while True: pass", "")
    assert outcome.reason == "out of processor time or killed"
    assert outcome.seconds < 50


def test_sleeping_and_ignoring_signals_ends_too(verdict):
    program = "import signal, time\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)"
    assert verdict(program, 1.0) == "timed out"


def test_fork_bomb_is_contained(verdict):
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except BlockingIOError: pass"
    start = time.perf_counter()
    assert verdict(bomb, 1.0) != "passed"
    assert time.perf_counter() - start < 30
    assert verdict("x = 1") == "passed", "the next program must find a healthy machine"


@needs_namespaces
def test_children_do_not_outlive_the_program():
    program = "import os, time\nif os.fork() == 0:\n    os.setsid(); os.nice(13)\n    time.sleep(30)\ntime.sleep(0.3)"
    assert run_code(program, "").passed
    assert not [p for p in Path("/proc").glob("[0-9]*") if leftover(p)]


def leftover(process):
    try:
        return (
            b"grading.inside" in (process / "cmdline").read_bytes()
            and (process / "stat").read_text().split()[-34] == "13"
        )
    except OSError:
        return False


def test_threads_do_not_keep_it_alive():
    program = "import threading, time\nthreading.Thread(target=time.sleep, args=(300,)).start()"
    start = time.perf_counter()
    run_code(program, "", timeout=100.0)
    assert time.perf_counter() - start < 60


def test_killing_everything_it_sees_hurts_nobody(verdict):
    found = verdict("import os, signal\nos.kill(-1, signal.SIGKILL)\nos.kill(os.getppid(), signal.SIGKILL)")
    assert found != "the sandbox could not be set up"
    assert verdict("x = 1") == "passed"


@needs_namespaces
def test_killed_child_of_the_program_is_its_own_matter():
    program = (
        "import os, signal, time\npid = os.fork()\nif pid == 0: time.sleep(60)\n"
        "os.kill(pid, signal.SIGKILL)\nassert os.waitpid(pid, 0)[1] == signal.SIGKILL"
    )
    assert run_code(program, "").passed


def test_gigabytes_of_output_vanish(verdict):
    assert verdict("import sys\nfor _ in range(64): sys.stdout.write('x' * 2**24)", 10.0) == "passed"


def test_a_flood_on_every_handle_is_cut(verdict):
    program = "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'no ' * 2**22)\n    except OSError: pass"
    found = verdict(program, 5.0)
    assert found != "passed"
    assert len(found) < 1000


@pytest.mark.parametrize("path", ["/etc/passwd", __file__, "/proc/1/environ", "../../../../etc/passwd"])
def test_reading_outside_fails(verdict, path):
    assert "Error" in verdict(f"open({path!r}).read()")


def test_writing_outside_fails(verdict, tmp_path):
    tmp_path.chmod(0o777)
    target = tmp_path / "made"
    assert "Error" in verdict(f"open({str(target)!r}, 'w').write('x')")
    assert not target.exists()
    assert "Error" in verdict(f"import os; os.mkdir({str(target)!r})")
    assert not target.exists()


def test_library_is_read_only(verdict):
    program = "import os\nopen(os.path.dirname(os.__file__) + '/starr_made_this.py', 'w')"
    assert "Error" in verdict(program)


def test_its_own_folder_is_empty_writable_and_gone_afterwards(verdict):
    program = "import os\nassert os.listdir('.') == []\nopen('a', 'w').write('b')\nassert open('a').read() == 'b'"
    assert verdict(program) == "passed"
    assert verdict(program) == "passed"


def test_large_files_are_refused(verdict):
    assert verdict("f = open('big', 'wb')\nfor _ in range(64): f.write(b'x' * 2**20)\nf.flush()") != "passed"


def test_environment_is_not_inherited(verdict, monkeypatch):
    monkeypatch.setenv("STARR_SECRET", "abc")
    assert verdict("import os\nassert 'STARR_SECRET' not in os.environ and 'HOME' not in os.environ") == "passed"


def test_file_handles_are_not_inherited(verdict, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("abc")
    with secret.open() as file:
        os.set_inheritable(file.fileno(), True)
        loop = "n = 0\nfor fd in range(3, 64):\n    try: os.fstat(fd); n += 1\n    except OSError: pass"
        program = f"import os\n{loop}\nassert n == 2"
        assert verdict(program) == "passed", "only the calls' and the answers' pipes may be open"


def test_network_is_off(verdict):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        program = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=1)"
        assert "Error" in verdict(program)


def test_output_does_not_reach_ours(capfd):
    run_code("print('loud'); import sys; print('louder', file=sys.stderr)", "")
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_outcome_has_time_and_reason():
    outcome = run_code("import time; time.sleep(0.2)", "")
    assert outcome.passed
    assert outcome.reason == "passed"
    assert 0.2 <= outcome.seconds < 10


def test_asyncio_and_classes_work_as_at_home(verdict):
    program = """
import asyncio, dataclasses, enum, pickle, random, signal, tempfile, threading, collections, decimal, zoneinfo
@dataclasses.dataclass
class A: x: int = 1
assert A() == A()
Point = collections.namedtuple("Point", "x y")
async def f(): await asyncio.sleep(0.01); return 5
assert __name__ == "__main__" and tempfile.gettempdir()
"""
    assert verdict(program) == "passed"
    if "seccomp" in isolation().filters and verdict.mode != "accident guard":
        assert verdict(f"{program}assert asyncio.run(f()) == 5") == "passed"


@pytest.mark.parametrize(
    ("script", "said"),
    [("import time; time.sleep(60)", "no answer within"), ("raise SystemExit('broken')", "broken"), ("", "no answer")],
)
def test_only_a_refusal_of_the_kernel_leads_to_the_weaker_mode(monkeypatch, script, said):
    """A child that is slow, fails or says nothing is a failed evaluation, and the weaker mode is not even tried."""
    real, modes = sandbox.converse, []
    monkeypatch.setattr(sandbox, "START", script)
    monkeypatch.setattr(sandbox, "GRACE", 0.3)
    monkeypatch.setattr(sandbox, "converse", lambda a, t, mode, _, b: modes.append(mode) or real(a, t, mode, 0.2, b))
    monkeypatch.setattr(sandbox, "isolation", sandbox.isolation.__wrapped__)
    with pytest.raises(sandbox.SetupError, match=f"cannot be set up: .*{said}"):
        sandbox.isolation()
    assert modes == ["namespaces"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOSPC, errno.EIO, None])
def test_only_eperm_weakens_the_sandbox(monkeypatch, code):
    """A kernel without the system calls, or one that denies them otherwise, gets no weaker mode."""
    answers = {"namespaces": {"failed": "no", "errno": code}, "limits": {"verdict": "passed", "walls": []}}
    monkeypatch.setattr(sandbox, "converse", lambda _, __, mode, *more: answers[mode])
    if code == errno.EPERM:
        assert sandbox.isolation.__wrapped__().mode == "limits"
    else:
        with pytest.raises(sandbox.SetupError, match="cannot be set up: no"):
            sandbox.isolation.__wrapped__()


# ---- what tests may do with a program


@pytest.mark.parametrize(
    ("program", "tests", "passes"),
    [
        ("def f(*a, k=1): return sum(a) * k", "assert program.f(1, 2, k=3) == 9", True),
        ("def f(x): return x", "assert program.f([(1, {2}), {'a': 1j}]) == [(1, {2}), {'a': 1j}]", True),
        ("def f(x): return x", "assert program.f((1,)) == [1]", False),
        ("def f(x): return 1 / x", "try: program.f(0)\nexcept ZeroDivisionError: pass\nelse: assert 0", True),
        ("def f(x): return 1", "try: program.f(0)\nexcept ZeroDivisionError: pass\nelse: assert 0", False),
        ("class P:\n    x = 3\ndef f(p): return p.x", "assert program.f(program.P()) == 3", True),
        ("def f(k): return lambda x: x + k", "assert program.f(2)(3) == 5", True),
        ("def f(x, kind): return isinstance(x, kind)", "assert program.f(3, int)", True),
        ("def f(g): return g(1)", "assert program.f(lambda x: x) == 1", False),  # a test's function cannot cross
        ("def f(x): x.append(1)", "a = []\nprogram.f(a)\nassert a == []", True),  # arguments are copies
        ("def g(x): return x", "assert program.f(1) == 1", False),
        ("def f(x): return 10 ** x", "assert program.f(3000) == 10 ** 3000", True),
        ("def f(x): return f(x)", "assert program.f(1)", False),
        ("def f(x):\n    a = []; a.append(a); return a", "program.f(1)", False),
        ("def f(x): return 'a' * 2**25", "assert program.f(1)", False),
        ("def f(x): return '\\ud800'", "assert program.f(1) == '\\ud800'", True),
    ],
)
def test_tests_call_the_program(program, tests, passes):
    found = run_code(program, tests, timeout=20.0)
    assert found.passed == passes, found


@pytest.mark.parametrize("test", ["assert program.f(1)", "assert not program.f(1)", "assert program.f(1) != 3"])
def test_an_object_that_stays_behind_proves_nothing(test):
    assert not run_code("def f(x): return object()", test).passed


def test_setup_runs_with_the_program():
    found = run_code(
        "class P: pass\ndef f(p): return p.x", "assert program.f(program.p) == 4", setup="p = P()\np.x = 4"
    )
    assert found.passed, found


def test_tests_have_the_same_walls(verdict):
    assert "Error" in verdict("", tests="open('/etc/passwd')")
    assert "Error" in verdict("", tests="import socket; socket.create_connection(('127.0.0.1', 9), timeout=1)")
    assert verdict("", 2.0, tests="while True: pass") == "timed out"
    assert verdict("", tests="raise SystemExit(0)") != "passed"
    assert verdict("", tests="import os; os._exit(0)") == "the tests: exited early with status 0"
