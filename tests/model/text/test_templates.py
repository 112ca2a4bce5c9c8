"""Templates that loop or allocate end in one line; the others write the same in this process and in a child."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.errors import InputError, LoadError, StarrError
from starr.model import child
from starr.model.files.hub import BUNDLED_FOLDER
from starr.model.text.chat import DREAM_TEMPLATE, LLADA_TEMPLATE
from starr.model.text.templates import compile_writer, is_plain, read_template, start_writer

CHAT = [{"role": "user", "content": "Hi"}]
LARGE = [{"role": "user", "content": "x" * 100_000}] * 3
LOOP = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
HOSTILE = {
    "loops": LOOP,
    "loops late": "{% if messages|length > 0 %}" + LOOP + "{% endif %}",
    "allocates": "{{ 'x' * 4000000000 }}",
    "allocates late": "{{ messages[0].content * 4000000000 }}",
    "power": "{{ 9 ** (9 ** 9) }}",
    "doubles": "{% set n = namespace(x='xy') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
    "pads": "{{ '%4000000000d' % 1 }}",
    "centres": "{{ messages[0].content|center(4000000000) }}",
    "recurses": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "writes much": "{% for i in range(99999) %}{{ 'x' * 100 }}{% endfor %}",
    "nests": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "long": "x" * 300_000,
    "40,000 terms": "{{ " + " + ".join(["'a'"] * 40_000) + " }}",
    "many terms": "{{ " + " + ".join(["1"] * 900) + " }}{{ " + "-" * 900 + "1 }}",
    "many names": "{{ messages }}" * 2_000,
}
# What a plain template might do to a large chat: each of these is one time the chat, for every message.
SQUARES = (
    "{% for m in messages %}{{ messages }}{% endfor %}",
    "{% for m in messages %}{{ messages[0].content }}{% endfor %}",
    "{% for m in messages %}{% if messages == messages %}{% endif %}{% endfor %}",
    "{% for m in messages %}{{ bos_token }}{% endfor %}",
    "{% for c in bos_token %}{{ 'x' }}{% endfor %}",
    "{% for m in messages if messages %}{{ m.role }}{% endfor %}",
    "{% for m in messages %}{% else %}{% for n in messages %}{% endfor %}{% endfor %}",
)
SHIPPED = (
    "{% set first = messages[0] %}{{ first['content'] }}{% for m in messages %}{{ m.role ~ loop.index }}{% endfor %}"
)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(child, "SECONDS", 1.0)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates_end_in_one_line_and_soon(name):
    began = time.monotonic()
    with pytest.raises(StarrError) as caught:
        read_template(HOSTILE[name])(LARGE if name == "many names" else CHAT, {})
    assert time.monotonic() - began < 30
    assert "\n" not in str(caught.value)


def test_the_child_is_back_after_it_was_ended():
    write = start_writer("{% if messages[0].content == 'loop' %}" + LOOP + "{% endif %}{{ messages[0].content }}")
    with pytest.raises(InputError, match="took more than"):
        write([{"role": "user", "content": "loop"}], {})
    assert write(CHAT, {}) == "Hi"
    process = write.args[0].process
    del write
    assert process.wait(10) != 0  # gone with the template


def test_what_stands_in_the_package_is_plain_and_assignments_calls_and_loops_in_loops_are_not():
    own = json.loads((BUNDLED_FOLDER / "tokenizer_config.json").read_text())["chat_template"]
    assert all(map(is_plain, (LLADA_TEMPLATE, DREAM_TEMPLATE, own)))
    assert not any(map(is_plain, (SHIPPED, *SQUARES, *HOSTILE.values())))
    assert not is_plain("{% for a in messages %}{% for b in messages %}{% endfor %}{% endfor %}")
    assert not is_plain("{% for a in 'x' * 9999999 %}{% endfor %}")
    assert not is_plain("{{ messages.pop() }}")


def test_both_write_the_same_and_refuse_the_same():
    for source in (LLADA_TEMPLATE, DREAM_TEMPLATE, SHIPPED, "{{ raise_exception('no') }}", "{{ messages[7].role.x }}"):
        found = []
        for kind in (compile_writer, start_writer):
            try:
                found.append(kind(source)([*CHAT, {"role": "assistant", "content": "ü\n\u2028🙂"}], {}))
            except InputError as error:
                found.append(str(error))
        assert found[0] == found[1]


@pytest.mark.parametrize("kind", [compile_writer, start_writer])
def test_what_a_template_writes_is_bounded(kind, monkeypatch):
    write = kind("{% for m in messages %}{{ m.content }}{% endfor %}")
    assert len(write(LARGE, {})) == 300_000
    with pytest.raises(InputError, match="too much") as caught:
        write([{"role": "user", "content": "x" * 100_000}] * 81, {})
    assert caught.value.param == "messages"


def test_a_template_that_cannot_be_read_is_one_line():
    with pytest.raises(LoadError, match="cannot be read"):
        start_writer("{% for %}")


PARTS = [
    "{{ 9**(9**9) }}", "{% for i in range(9999) %}", "{% endfor %}", "{% set x = 'a' * 99999999 %}", "{{ x }}", "{%",
    "{{ messages|join('x'*9999) }}", "}}", "{% if x %}", "{% endif %}", "{{ x.__class__ }}", "{{ loop }}",
]  # fmt: skip


@settings(max_examples=6, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=6))
def test_random_templates_write_text_or_end_in_one_line(parts):
    try:
        found = read_template("".join(parts))(CHAT, {})
    except StarrError as error:
        found = str(error).replace("\n", "a second line")
    assert "a second line" not in found
