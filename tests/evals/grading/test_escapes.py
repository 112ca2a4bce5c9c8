"""Eleven ways out that once worked: each is tried in every kind of sandbox."""

import os
import resource
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from starr.errors import WorkError
from starr.evals.grading import sandbox
from starr.evals.grading.inside.seccomp import ARCHITECTURES, REFUSED, filter_program
from starr.evals.grading.sandbox import Isolation, isolation

ROOT = Path(sandbox.ROOT)


@pytest.fixture
def outside(tmp_path):
    """A folder that everybody may write to, with a secret that everybody may read."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        if folder != Path("/tmp"):
            folder.chmod(0o777)
    (tmp_path / "secret").write_text("the secret")
    (tmp_path / "secret").chmod(0o666)
    return tmp_path


def attack(verdict, program, **values):
    """Run an attack that asserts its own success; it must not pass."""
    body = "".join(f"{name} = {value!r}\n" for name, value in values.items()) + textwrap.dedent(program)
    found = verdict(body, 60.0)
    assert found != "passed", found
    assert found != "timed out", found
    return found


def test_sqlite_reads_and_writes_nothing_outside(verdict, outside):
    program = """
        import sqlite3
        base = sqlite3.connect(":memory:")
        base.execute(f"attach database '{target}' as t")
        base.execute("create table t.x (y)")
        base.commit()
    """
    attack(verdict, program, target=str(outside / "made.db"))
    assert not (outside / "made.db").exists()


def test_readline_writes_nothing_outside(verdict, outside):
    program = """
        import readline
        readline.add_history("x")
        readline.write_history_file(target)
    """
    attack(verdict, program, target=str(outside / "history"))
    assert not (outside / "history").exists()


def test_dir_fd_leads_nowhere(verdict, outside):
    program = """
        import os
        os.makedirs("a/b/c/d/e/f")
        here = os.open(".", os.O_RDONLY)
        os.chdir("a/b/c/d/e/f")
        up = os.open("../../../../..", os.O_RDONLY, dir_fd=here)
        file = os.open(target.lstrip("/"), os.O_RDONLY, dir_fd=up)
        assert os.read(file, 100) == b"the secret"
    """
    attack(verdict, program, target=str(outside / "secret"))


def test_truncating_while_reading_is_writing(verdict, outside):
    attack(verdict, "import os\nos.open(target, os.O_RDONLY | os.O_TRUNC)", target=str(outside / "secret"))
    assert (outside / "secret").read_text() == "the secret"
    attack(verdict, "import os\nos.open(os.__file__, os.O_RDONLY | os.O_TRUNC)")
    assert Path(os.__file__).stat().st_size > 1000


@pytest.mark.parametrize("make", ["os.mkfifo(target)", "os.mknod(target)", "os.mknod(target, 0o20666, 259)"])
def test_no_special_files(verdict, outside, make):
    attack(verdict, f"import os\n{make}", target=str(outside / "made"))
    assert not (outside / "made").exists()


def test_no_signal_to_the_parent(verdict):
    program = """
        import os, signal
        signal.pidfd_send_signal(os.pidfd_open(os.getppid()), signal.SIGTERM)
    """
    attack(verdict, program)
    with subprocess.Popen(["sleep", "60"]) as bystander:
        attack(verdict, "import os\nos.kill(pid, 9)", pid=bystander.pid)
        assert bystander.poll() is None
        bystander.kill()


def test_no_limits_of_other_processes(verdict):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    program = "import os, resource\nresource.prlimit(pid or os.getppid(), resource.RLIMIT_NOFILE, (5, 5))"
    attack(verdict, program, pid=0)
    attack(verdict, program, pid=os.getpid())
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_the_hook_is_not_found_among_the_objects(verdict):
    program = """
        import gc
        hooks = [x for x in gc.get_objects() if getattr(x, "__name__", "") == "hook"]
        assert hooks
    """
    attack(verdict, program)


def test_disk_is_bounded_in_total(verdict, monkeypatch):
    program = """
        for i in range(40):
            with open(f"f{i}", "wb") as file:
                for _ in range(15): file.write(b"x" * 2**20)
        import time; time.sleep(1)
    """
    attack(verdict, program)
    deleted = """
        import os, time
        files = [open(f"f{i}", "wb") for i in range(40)]
        for i in range(40): os.remove(f"f{i}")
        for file in files:
            for _ in range(15): file.write(b"x" * 2**20)
        time.sleep(1)
    """
    attack(verdict, deleted)


def test_many_small_files_are_bounded_too(verdict):
    attack(verdict, "import time\nfor i in range(6_000): open(f'f{i}', 'w').close()\ntime.sleep(1)")


def test_memory_is_bounded_in_total(verdict):
    program = """
        import os, time
        for _ in range(6):
            if os.fork() == 0:
                x = bytearray(100 << 20); time.sleep(20); os._exit(0)
        time.sleep(10)
    """
    found = attack(verdict, program)
    if verdict.mode == "namespaces":
        assert "in all" in found


def test_a_child_that_falls_through_says_nothing():
    if isolation().weak:
        pytest.skip("new processes are refused here")
    program = "import os\nif os.fork(): os.wait(); raise ValueError('the parent knows')"
    assert sandbox.run_code(program, "").reason == "ValueError: the parent knows"


# ---- what may run where


@pytest.fixture
def fresh(monkeypatch):
    """No answer remembered, no permission given."""
    sandbox.isolation.cache_clear()
    sandbox.check_isolation.cache_clear()
    monkeypatch.setattr(sandbox.Permission, "weak", False)
    yield monkeypatch
    sandbox.isolation.cache_clear()
    sandbox.check_isolation.cache_clear()


def refusing(number):
    real = sandbox.converse

    def converse(sources, tests, mode, *rest, **more):
        if mode == "namespaces":
            return {"failed": "unshare", "errno": number}
        return {"verdict": "passed", "walls": []} if not any(sources) else real(sources, tests, mode, *rest, **more)

    return converse


def test_without_namespaces_nothing_runs_unasked(fresh):
    fresh.setattr(sandbox, "converse", refusing(1))
    with pytest.raises(WorkError, match="--allow-weak-sandbox"):
        sandbox.run_code("x = 1", "")


def test_with_permission_it_warns_once(fresh):
    fresh.setattr(sandbox, "converse", refusing(1))
    sandbox.permit_weak()
    with pytest.warns(UserWarning, match="accident guard") as caught:
        outcomes = [sandbox.run_code("", ""), sandbox.run_code("", "")]
    assert len(caught) == 1
    assert all(outcome.passed for outcome in outcomes)


@pytest.mark.parametrize(
    "answer", [{"failed": "x", "errno": 12}, {"verdict": "timed out", "walls": []}, {"failed": ""}]
)
def test_only_a_refusal_downgrades(fresh, answer):
    fresh.setattr(sandbox, "converse", lambda *_, **__: answer)
    sandbox.permit_weak()
    with pytest.raises(WorkError, match="cannot be set up"):
        sandbox.run_code("x = 1", "")


def test_root_that_would_stay_root_is_refused():
    start = (
        "import sys; sys.path.append(sys.argv[1]); import starr.evals.grading.inside.walls as w; "
        "w.open_to_all = lambda path: False; w.os.getuid = lambda: 0; "
        "from starr.evals.grading.inside.main import main; main(int(sys.argv[2]))"
    )
    original, sandbox.START = sandbox.START, start
    try:
        with pytest.raises(WorkError, match="rights of root cannot be dropped"):
            sandbox.ask(["x = 1"], "", "limits", 10.0, 2**29)
    finally:
        sandbox.START = original


def test_an_ordinary_user_gets_the_same_walls():
    """The path through a user namespace, where this test runs as root and a user may make one."""
    python = "/usr/bin/python3"
    if os.getuid() != 0 or not Path(python).exists():
        pytest.skip("needs root to become an ordinary user, and the system's Python")
    script = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); from starr.evals.grading import sandbox as s\n"
        "kill = 'import os; os.kill({}, 9)'\n"
        "programs = ['x = 1', 'import socket; socket.socket()', kill.format(0), kill.format(-1)]\n"
        "reasons = [s.run_code(p, '').reason for p in programs]\n"
        "print(s.isolation(), *reasons, sep=' | ')"
    )
    done = subprocess.run(
        [python, "-c", script, str(ROOT)], user=54321, group=54321, extra_groups=[], cwd="/tmp", env={},
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    if "cannot make namespaces" in done.stderr:
        pytest.skip("users may not make namespaces here")
    how, good, bad, *killed = done.stdout.strip().split(" | ")
    assert (how, good) == (str(isolation()), "passed")
    assert "PermissionError" in bad
    assert len(killed) == 2, "whom it kills, the watch lives and answers"
    assert killed[0] != "passed"


def test_names_of_what_holds():
    assert str(Isolation("namespaces")) == "namespaces"
    assert str(Isolation("limits", ("landlock",))) == "limits + landlock"
    assert str(Isolation("limits")) == "accident guard"


def test_filters_have_the_kernels_numbers():
    headers = [Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm-generic/unistd.h")]
    if not all(header.exists() for header in headers):
        pytest.skip("no kernel headers here")
    from starr.evals.grading.inside.seccomp import CLONE, CLONE3, KILL_CALLS, MODES, OWN_ONLY

    for column, header in enumerate(headers):
        words = [line.split() for line in header.read_text().splitlines() if line.startswith("#define __NR")]
        known = {
            name.partition("_NR")[2].partition("_")[2]: int(number) for _, name, number, *_ in words if number.isdigit()
        }
        ours = {name: pair[column] for name, pair in (REFUSED | MODES).items()}
        ours |= {name: pair[0][column] for name, pair in OWN_ONLY.items()}
        ours |= dict(zip(("kill", "tgkill"), (pair[column] for pair in KILL_CALLS), strict=True))
        ours |= {"clone": CLONE[column], "clone3": CLONE3[column]}
        for name, number in ours.items():
            assert known.get(name) in (number, None), name
    assert all(filter_program(machine, 1, namespaces=False) for machine in ARCHITECTURES)
    assert filter_program("riscv64", 1, namespaces=False) == b""


def test_a_program_costs_little(verdict):
    start = time.perf_counter()
    assert verdict("x = 1") == "passed"
    assert time.perf_counter() - start < 10, sys.version
