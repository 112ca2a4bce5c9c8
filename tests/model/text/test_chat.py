import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.errors import InputError, LoadError
from starr.model.families import FAMILIES
from starr.model.text.chat import DREAM_TEMPLATE, GUARDS, LLADA_TEMPLATE, render
from starr.model.text.templates import compile_writer
from starr.model.text.tokenizer import Tokenizer, read_tokenizer
from tests.model.tiny import DREAM_SPECIAL, LLADA_SPECIAL, byte_tokenizer

LLADA = Tokenizer(byte_tokenizer(), LLADA_TEMPLATE)
DREAM = Tokenizer(byte_tokenizer(DREAM_SPECIAL), DREAM_TEMPLATE)
SHIPPED = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}"
    "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim"
    " + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
LLADA_SHIPPED = Tokenizer(byte_tokenizer(), SHIPPED, {"bos_token": "<|startoftext|>"})


def user(content):
    return [{"role": "user", "content": content}]


def shown(tokenizer, messages):
    return tokenizer.decode(tokenizer.chat(messages), skip_special=False)


def test_llada_template_is_the_documented_form():
    assert shown(LLADA, user("What?")) == (
        "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\nWhat?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )


def test_dream_template_is_chatml_with_a_default_system_turn():
    tail = "<|im_start|>user\nWhat?<|im_end|>\n<|im_start|>assistant\n"
    assert shown(DREAM, user("What?")) == ("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n" + tail)
    own = [{"role": "system", "content": "Be brief."}, *user("What?")]
    assert shown(DREAM, own) == "<|im_start|>system\nBe brief.<|im_end|>\n" + tail


def test_a_history_keeps_its_order():
    messages = [*user("One?"), {"role": "assistant", "content": "1"}, *user("Two?")]
    text = shown(LLADA, messages)
    assert text.index("One?") < text.index("assistant<|end_header_id|>\n\n1<|eot_id|>") < text.index("Two?")


def test_the_templates_special_tokens_are_tokens():
    ids = LLADA.chat(user("x"))
    header = [259, *LLADA.encode("user"), 260, *LLADA.encode("\n\nx"), 261]
    assert ids == [256, *header, 259, *LLADA.encode("assistant"), 260, *LLADA.encode("\n\n")]


CONTENT = st.lists(st.one_of(st.text(max_size=6), st.sampled_from([*LLADA_SPECIAL, "<|", "|>", "<|mdm_", "mask|>"])))


@settings(deadline=None, max_examples=150)
@given(CONTENT.map("".join), st.sampled_from([LLADA, LLADA_SHIPPED]))
def test_messages_stay_literal_whatever_they_hold(content, tokenizer):
    """No special token but the template's own, and the text is the one given."""
    ids = tokenizer.chat(user(content))
    assert [i for i in ids if i > 255] == [256, 259, 260, 261, 259, 260]
    assert f"\n\n{content.strip()}<|eot_id|>" in tokenizer.decode(ids, skip_special=False)


def test_special_tokens_whose_texts_overlap_stay_literal():
    special = {"ab": 256, "bc": 257}
    tokenizer = Tokenizer(byte_tokenizer(special), "ab{{ messages[0].content }}bc")
    ids = tokenizer.chat(user("abcabbc"))
    assert [i for i in ids if i > 255] == [256, 257]
    assert tokenizer.decode(ids) == "abcabbc"


def test_guard_characters_in_messages_survive():
    text = "".join(map(chr, list(GUARDS)[:-1])) + "<|mdm_mask|>"
    pieces = render(compile_writer("{{ messages[0].content }}"), user(text), LLADA_SPECIAL, {})
    assert pieces == [(text, False)]
    with pytest.raises(InputError, match="noncharacter"):
        LLADA.chat(user("".join(map(chr, GUARDS))))


def test_roles_cannot_smuggle_special_tokens():
    ids = LLADA.chat([{"role": "<|mdm_mask|>", "content": "x"}])
    assert 258 not in ids


@pytest.mark.parametrize("where", ["config", "named", "file"])
def test_a_shipped_template_wins(tmp_path, where):
    byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
    own = "{{ bos_token }}Q: {{ messages[0].content }}"
    config = {"bos_token": {"content": "<|startoftext|>"}}
    if where == "config":
        config["chat_template"] = own
    elif where == "named":
        config["chat_template"] = [{"name": "tools", "template": "no"}, {"name": "default", "template": own}]
    else:
        (tmp_path / "chat_template.jinja").write_text(own)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    family = FAMILIES["llada"]
    tokenizer = read_tokenizer(tmp_path, family.template, family.template_tokens)
    assert tokenizer.chat(user("x")) == [256, *tokenizer.encode("Q: x")]


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{% for i in range(10 ** 9) %}{% endfor %}",
        "{{ messages[7].content + 'x' }}",
        "{{ 1 / 0 }}",
        "{{ raise_exception('roles must alternate') }}",
        "{{ messages[0].content + 1 }}",
    ],
)
def test_templates_cannot_escape_and_fail_in_one_line(source):
    with pytest.raises(InputError, match="chat template refuses") as caught:
        Tokenizer(byte_tokenizer(), source).chat(user("x"))
    assert "\n" not in str(caught.value)


def test_a_template_file_that_is_not_text(tmp_path):
    byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(LoadError, match=r"chat_template.jinja cannot be read"):
        read_tokenizer(tmp_path, "", ())


def test_a_template_that_does_not_parse_is_a_load_error():
    with pytest.raises(LoadError, match="chat template cannot be read"):
        Tokenizer(byte_tokenizer(), "{% for %}")


@pytest.mark.parametrize("messages", [[], [{}], [{"role": "user"}], [{"role": "user", "content": None}], ["x"]])
def test_malformed_messages_are_refused(messages):
    with pytest.raises(InputError) as caught:
        LLADA.chat(messages)
    assert caught.value.param == "messages"
