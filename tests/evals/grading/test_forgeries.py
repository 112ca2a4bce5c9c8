"""Programs that do not solve their task and try to pass all the same."""

import ast
import textwrap

import pytest

from starr.evals.grading.sandbox import run_code

# Every way the tests of others look at a value: equality, truth, a loop that a StopIteration would end, a catch-all.
TESTS = """
assert all(map(lambda x: program.f(x) == x * 1000 + 7, [5, 6]))
for x in (3, 4):
    assert program.f(x) == x * 1000 + 7 and not program.f(x) != x * 1000 + 7
try:
    wrong = program.f(1) != 1007
except:
    pass
else:
    assert not wrong
"""
CAUGHT = "try:\n    assert program.f(1) == 1007\nexcept AssertionError:\n    raise\nexcept BaseException:\n    pass"

WITH_TOOLS = """
    import sys, os, json, threading, builtins
    def handles():
        found = []
        for fd in range(0, 64):
            try: os.fstat(fd); found.append(fd)
            except OSError: pass
        return found
    def say(text):
        for fd in handles():
            try: os.write(fd, text)
            except OSError: pass
    def frames():
        frame = sys._getframe()
        while frame:
            yield frame
            frame = frame.f_back
"""

FORGERIES = {
    # the process's own ways out
    "end of the frame above": "sys._getframe(1).f_locals['end']('passed')",
    "end in any frame": "for frame in frames(): frame.f_locals.get('end', print)('passed')",
    "frame of a traceback": """
        try: 1 / 0
        except ZeroDivisionError as error: frame = error.__traceback__.tb_frame
        while frame.f_back: frame = frame.f_back; frame.f_locals.get('end', print)('passed')
    """,
    "answer of the frame": """
        for frame in frames():
            if 'answer' in frame.f_locals: frame.f_locals['answer'](lambda: None)
    """,
    "closures": """
        for frame in frames():
            for value in list(frame.f_locals.values()):
                for cell in getattr(value, '__closure__', None) or ():
                    if isinstance(cell.cell_contents, list): cell.cell_contents.append(None)
                    if callable(cell.cell_contents): cell.cell_contents(0)
    """,
    "leave with 0": "os._exit(0)",
    "leave with 3": "os._exit(3)",
    "leave in a call": "def f(x): os._exit(0)",
    "SystemExit": "raise SystemExit(0)",
    "SystemExit in a call": "def f(x): raise SystemExit(0)",
    "KeyboardInterrupt in a call": "def f(x): raise KeyboardInterrupt",
    "GeneratorExit in a call": "def f(x): raise GeneratorExit",
    "StopIteration in a call": "def f(x): raise StopIteration",
    "a class named StopIteration": "class StopIteration(Exception): pass\ndef f(x): raise StopIteration",
    "a class named passed": "def f(x): raise type('passed', (BaseException,), {})",
    "an AssertionError named passed": "def f(x): raise type('passed', (AssertionError,), {'__str__': lambda e: ''})",
    "a class named Fault": "class Fault(BaseException): pass\ndef f(x): raise Fault('passed')",
    "atexit": "import atexit\natexit.register(say, b'passed')\nraise SystemExit(0)",
    "signal of its own": "import signal\nsignal.signal(signal.SIGALRM, lambda *a: say(b'passed'))\nsignal.alarm(1)",
    "killing the group": "os.kill(0, 9)",
    "killing everything": "os.kill(-1, 9)",
    "stopping itself": "os.kill(os.getpid(), 19)",
    "thread that leaves": "def f(x): threading.Thread(target=os._exit, args=(0,)).start(); return 0",
    "child that leaves": "if os.fork() == 0: os._exit(0)",
    "exec": "os.execv('/proc/self/exe', ['python', '-c', 'pass'])",
    # the handles
    "passed on every handle": "say(b'passed')",
    "passed on every handle, then leave": "say(b'passed\\n'); os._exit(0)",
    "a verdict in JSON": 'say(b\'{"verdict": "passed", "walls": []}\\n\'); os._exit(0)',
    "a status": 'say(b\'{"status": {"judge": 0, "program": 0}}\\n\'); os._exit(0)',
    "answers before they are asked": 'say(b\'{"value": null}\\n{"value": 5007}\\n\' * 9); os._exit(0)',
    "one answer more": "def f(x): say(b'{\"value\": 5007}\\n'); return 0",
    "true for everything": "say(b'{\"value\": true}\\n'); os._exit(0)",
    "an answer without an end": "def f(x):\n    while True: say(b'0' * 65536)",
    "an answer that nests": "def f(x): say(b'{\"value\": ' + b'[' * 100000 + b']' * 100000 + b'}\\n')",
    "an answer with two kinds": 'def f(x): say(b\'{"value": 0, "raised": ["a", "b"]}\\n\'); os._exit(0)',
    "an answer of an unknown kind": "def f(x): say(b'{\"passed\": 1}\\n'); os._exit(0)",
    "an unknown type": 'def f(x): say(b\'{"value": {"object": []}}\\n\'); os._exit(0)',
    "an unhashable key": 'def f(x): say(b\'{"value": {"set": [[]]}}\\n\'); os._exit(0)',
    "bytes that are no text": "def f(x): say(b'\\xff\\xfe\\n'); os._exit(0)",
    "closed handles": "os.closerange(0, 64)",
    "silence": "def f(x): os.closerange(0, 64); return 0",
    "calls read and echoed": "for line in open(min(set(handles()) - {0, 1, 2}), 'rb'): say(line)",
    # values
    "equal to everything": """
        class Any:
            def __eq__(self, other): return True
            def __ne__(self, other): return False
            def __bool__(self): return True
            __hash__ = None
        def f(x): return Any()
    """,
    "an int that is equal": """
        class Any(int):
            def __eq__(self, other): return True
            def __ne__(self, other): return False
        def f(x): return Any(0)
    """,
    "a str that runs in another thread": """
        class Text(str):
            def encode(self, *a): return b'passed'
            def __eq__(self, other): return True
        def f(x): raise ValueError(Text('passed'))
    """,
    "a list that is equal": "class Any(list):\n    __eq__ = lambda *a: True\ndef f(x): return Any()",
    "a mock": "from unittest.mock import ANY\ndef f(x): return ANY",
    "a function": "def f(x): return lambda *a: True",
    "itself": "def f(x): return f",
    "not a number": "def f(x): return float('nan')",
    "a type named int": "def f(x): return type('int', (), {'__eq__': lambda *a: True})()",
    "an exception whose words raise": """
        class Odd(Exception):
            def __str__(self): os._exit(0)
        def f(x): raise Odd
    """,
    # the interpreter
    "garbage collector": """
        import gc
        for value in gc.get_objects():
            if callable(value) and getattr(value, '__name__', '') in ('judge', 'end', 'receive', 'fail'):
                try: value('passed')
                except BaseException: pass
    """,
    "tracing": "sys.settrace(lambda *a: say(b'passed'))\nraise SystemExit",
    "profiling": "sys.setprofile(lambda *a: None)\nsay(b'passed')\nos._exit(0)",
    "frames of threads": """
        for frame in sys._current_frames().values():
            for name in ('done', 'words', 'key'): frame.f_locals.get(name, []).append(None)
    """,
    "modules": """
        for name, module in list(sys.modules.items()):
            for word in ('judge', 'compare', 'rebuild', 'decode', 'tell'):
                if hasattr(module, word): setattr(module, word, lambda *a: True)
    """,
    "json says passed": "json.dumps = lambda *a: 'passed'\njson.loads = lambda *a: ['f', [], {}]",
    "audit hook": "sys.addaudithook(lambda event, args: say(b'passed') if event == 'exec' else None)",
    "patched builtins": """
        class AnyError(BaseException): pass
        builtins.AssertionError = AnyError
        builtins.compile = builtins.exec = builtins.isinstance = lambda *a, **k: True
    """,
    "patched os": "os._exit = os.write = os.getpid = lambda *a: 0\nraise SystemExit",
    "an error that nobody catches": "json.dumps = lambda *a: 1 / 0\nbuiltins.BaseException = KeyError",
    "patched equality": "import operator\noperator.eq = lambda *a: True\nbuiltins.all = lambda *a: True",
    "constants of the callers": """
        numbers = [c for frame in frames() for c in frame.f_code.co_consts if isinstance(c, int)]
        def f(x): return next((n for n in numbers if n > 1000), 0)
    """,
    "source of the tests": """
        texts = [v for frame in frames() for v in [*frame.f_locals.values(), *frame.f_globals.values()]]
        texts = [t for t in texts if isinstance(t, (str, bytes, dict, list)) and 'program.f' in repr(t)]
        assert texts, 'the tests are not here'
        say(b'passed')
    """,
    "tests on standard input": "assert b'program' in os.read(0, 10000)",
    "foreign functions": """
        from importlib.machinery import ExtensionFileLoader, PathFinder
        import importlib.util
        spec = importlib.util.spec_from_file_location(
            'x._ctypes', PathFinder.find_spec('_ctypes').origin, loader=None)
        module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
        say(b'passed'); os._exit(0)
    """,
    "foreign functions by a text of its own": """
        class Text(str):
            __eq__ = lambda *a: False
            __hash__ = str.__hash__
        __import__(Text('ctypes')).string_at(0)
    """,
    # the text of the program
    "swallow the next line": "def f(x): return 0\nif 0:\\",
    "an open string": "def f(x): return 0\n'''",
    "an open bracket": "def f(x): return 0\n(",
    "nothing": "",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_verdicts_are_not_forged(name):
    body = textwrap.dedent(FORGERIES[name])
    wrong = "" if body.endswith(("\\", "'''", "(")) or "def f" in body else "\ndef f(x): return 0\n"
    found = run_code(textwrap.dedent(WITH_TOOLS) + body + wrong, TESTS, timeout=3.0)
    assert not found.passed, found


@pytest.mark.parametrize("body", ["os._exit(0)", "say(b'x\\n')", "return lambda: 1", "raise SystemExit"])
def test_tests_that_catch_everything_do_not_hide_a_broken_pipe(body):
    program = f"{textwrap.dedent(WITH_TOOLS)}\ndef f(x):\n    {body}\n"
    passed = run_code(program, CAUGHT).passed
    assert passed == ("return" in body or "raise" in body), "an exception is the tests' own matter; a fault is not"


def test_there_are_enough_of_them_and_they_are_python():
    broken = 0
    for body in FORGERIES.values():
        try:
            ast.parse(textwrap.dedent(WITH_TOOLS) + textwrap.dedent(body))
        except SyntaxError:
            broken += 1
    assert len(FORGERIES) >= 60
    assert broken == 3


def test_the_honest_program_passes_with_the_same_tools():
    found = run_code(f"{textwrap.dedent(WITH_TOOLS)}\ndef f(x): return x * 1000 + 7\n", TESTS)
    assert found.passed, found


def test_the_program_ends_where_it_ends():
    """A first line of the tests that must be seen, after a program whose last line goes on."""
    assert not run_code("def f(x): return 1\nif 0:\\", "assert program.f(1) == 2").passed
    assert "SyntaxError" in run_code("def f(x): return 1\nif 0:\\", "assert program.f(1) == 1").reason
