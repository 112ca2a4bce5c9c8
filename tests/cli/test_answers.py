"""Several answers, system prompts, files of messages or plain text; ``/system`` and ``/save`` in a chat."""

import json

import pytest

import starr as door
from starr.cli.session import Session, obey
from starr.errors import InputError
from starr.options import Options

DRAW = ("--temperature", 1, "--seed", 4)


def read(text):
    return [json.loads(line) for line in text.splitlines()]


def test_several_answers_are_those_of_python(run, tiny):
    found = read(run("run", "hello", "--n", 3, "--json", *DRAW).out)
    python = door.generate(door.load(tiny), "hello", n=3, seed=4, temperature=1.0, max_tokens=12)
    assert [each["tokens"] for each in found] == [each.tokens for each in python]
    assert [each["seed"] for each in found] == [4, 5, 6]
    chosen = read(run("run", "hello", "--seeds", "5,4", "--json", *DRAW).out)
    assert [each["tokens"] for each in chosen] == [found[1]["tokens"], found[0]["tokens"]]
    assert run("run", "hello", "--n", 2, *DRAW).out.strip() == f"{found[0]['text']}\n\n{found[1]['text']}".strip()


@pytest.mark.parametrize(
    "flags", [("--n", 0), ("--n", 2, "--seeds", "1"), ("--seeds", "x"), ("--n", 2, "--live"), ("--seeds", "-1")]
)
def test_what_are_no_answers_is_one_line(run, flags):
    result = run("run", "hello", *flags)
    assert (result.code, result.err.count("\n")) == (2, 1)


def test_several_answers_to_each_line_of_a_file(run, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"prompt": "hello", "id": 1}\n{"prompt": "other", "id": 2}\n')
    flags = ("run", "--input", source, "-o", out, "--n", 2, "--quiet", *DRAW)
    assert run(*flags).code == 0
    whole = out.read_text()
    assert [(row["id"], row["seed"]) for row in read(whole)] == [(1, 4), (1, 5), (2, 4), (2, 5)]
    out.write_text("".join(whole.splitlines(keepends=True)[:3]))
    assert run(*flags, "--resume").code == 0
    assert [row["tokens"] for row in read(out.read_text())] == [row["tokens"] for row in read(whole)]
    out.write_text("".join(whole.splitlines(keepends=True)[:3]))
    assert run("run", "--input", source, "-o", out, "--n", 3, "--quiet", *DRAW, "--resume").code == 2


def test_messages_and_plain_text_are_prompts(run, tmp_path):
    talk = [{"role": "system", "content": "be"}, {"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    alone = read(run("run", "hello", "--system", "be", "--json").out)[0]["tokens"]
    lines, plain, quoted = (tmp_path / name for name in ("in.jsonl", "in.prompts", "in.txt"))
    lines.write_text(json.dumps({"messages": talk, "id": 7}))
    (found,) = read(run("run", "--input", lines, "--quiet").out)
    assert (found["tokens"], found["id"], "messages" in found) == (alone, 7, False)
    plain.write_text("hello\n\nother\n")
    assert read(run("run", "--input", plain, "--system", "be", "--quiet").out)[0]["tokens"] == alone
    quoted.write_text('"hello"\n')
    shown = read(run("run", "--input", quoted, "--quiet").out)[0]["tokens"]
    assert shown == read(run("run", '"hello"', "--json").out)[0]["tokens"]


def test_a_system_prompt_changes_the_answer_and_needs_a_place(run):
    assert run("run", "hello", "--system", "be").out != run("run", "hello").out
    assert run("run", "hello", "--system", "be", "--no-chat").code == 2


def test_system_and_save_in_a_chat(tmp_path):
    session, _ = obey(Session(options=Options()), "/system Be very brief.")
    assert session.arguments["system"] == obey(session, "/system")[1] == "Be very brief."
    file = tmp_path / "talk.jsonl"
    with pytest.raises(InputError):
        obey(session, f"/save {file}")
    obey(session.said("hi", "hello"), f"/save {file}")
    assert [m["role"] for m in json.loads(file.read_text())["messages"]] == ["system", "user", "assistant"]
    with pytest.raises(InputError):
        obey(session.said("hi", "hello"), f"/save {file}")
    assert obey(session, "/system none")[0].options.system is None


def test_the_list_of_strategies_begins_with_one_line_each(starr):
    first = starr("strategies").out.partition("`starr strategies show")[0]
    for entry in (*door.strategies(), *door.caches()):
        (line,) = [line for line in first.splitlines() if line.split()[:1] == [entry.name]]
        assert len(line) <= 80
        assert entry.help[:20] in line


def test_one_forward_is_told_from_an_answer_that_is_worked_out(starr, tiny):
    result = starr("choose", "hello", "--choices", "a|b", "--model", tiny)
    assert "starr run" in result.line
    assert starr("choose", "hello", "--choices", "a|b", "--model", tiny, "--quiet").err == ""


def test_an_empty_thinking_section_is_told(starr):
    ask = "Tom has 12 apples. Tom buys 8 more. How many apples does Tom have now?"
    short = starr("run", ask, "--ice", "ice-pp:steps=1")
    assert ("Step 1:\n" in short.out, "--ice-fill" in short.err) == (True, True)
    full = starr("run", ask, "--ice", "ice-pp:steps=1", "--ice-fill")
    assert ("Step 1:\n" in full.out, "--ice-fill" in full.err) == (False, False)
