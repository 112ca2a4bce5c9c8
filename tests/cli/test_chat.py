"""``starr chat``: the commands, and the loop with scripted input."""

import re

import pytest

import starr
from starr import api
from starr.cli.session import Session, obey, turn
from starr.errors import InputError
from starr.options import Options
from tests.tiny import tiny_model


@pytest.fixture
def session():
    return Session(options=api.resolve(Options(), tiny_model()))


def test_strategy_is_shown_and_changed(session):
    assert obey(session, "/strategy")[1] == "starr"
    changed, message = obey(session, "/strategy threshold:tau=0.8")
    assert changed.arguments["strategy"] == starr.strategy("threshold:tau=0.8")
    assert "threshold:tau=0.8" in message


def test_set_changes_decoding_and_strategy_options(session):
    changed, _ = obey(session, "/set max_tokens 64")
    assert changed.arguments["max_tokens"] == 64
    changed, _ = obey(changed, "/set temporal_window 5")
    changed, _ = obey(changed, "/set temporal_window 7")
    changed, _ = obey(changed, "/set responsive false")
    assert changed.arguments["strategy"] == starr.strategy("starr:temporal_window=7,responsive=false")
    assert "temporal_window 7" in obey(changed, "/set")[1]
    assert obey(changed, "/set block_length none")[0].arguments["block_length"] is None


def test_live_reset_history_and_quit(session):
    assert obey(session, "/live")[0].live
    talked = session.said("hi", "hello")
    assert obey(talked, "/history")[1] == "user: hi\nassistant: hello"
    assert obey(talked, "/reset")[0].messages == []
    assert obey(talked, "/quit")[1] is None
    assert [message["role"] for message in turn(talked, "more")] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/strtegy starr", "Did you mean '/strategy'?"),
        ("/set temporl_window 5", "Did you mean 'temporal_window'?"),
        ("/set max_tokens lots", "'lots'"),
        ("/strategy nope", "'nope'"),
        ("/reset now", "/reset does not take 1 word. See /help."),
    ],
)
def test_mistakes_are_named(session, line, words):
    with pytest.raises(InputError, match=re.escape(words)):
        obey(session, line)


@pytest.fixture
def talk(run, monkeypatch):
    """Run a conversation from scripted lines; an exception among them is raised at the prompt."""

    def play(*lines):
        script = iter(lines)

        def answer(_prompt):
            line = next(script, EOFError())
            if isinstance(line, BaseException):
                raise line
            return line

        monkeypatch.setattr("builtins.input", answer)
        return run("chat")

    return play


def test_a_conversation_keeps_its_turns(talk, monkeypatch):
    asked = []
    stream = api.stream

    def watched(model, messages, **options):
        asked.append([message["content"] for message in messages])
        return stream(model, messages, **options)

    monkeypatch.setattr(api, "stream", watched)
    result = talk("hello", "again", "/reset", "new")
    assert result.code == 0
    assert [messages[-1] for messages in asked] == ["hello", "again", "new"]
    assert [len(messages) for messages in asked] == [1, 3, 1]
    assert result.err.count("forwards") == 3


def test_ctrl_c_stops_the_answer_not_the_program(talk, monkeypatch):
    real = api.stream

    def interrupted(model, messages, **options):
        if messages[-1]["content"] == "hello":
            raise KeyboardInterrupt
        return real(model, messages, **options)

    monkeypatch.setattr(api, "stream", interrupted)
    result = talk("hello", KeyboardInterrupt(), "again", "/history")
    assert result.code == 0
    assert "stopped" in result.out
    assert "user: again" in result.out
    assert "user: hello" not in result.out


def test_errors_do_not_end_it(talk):
    result = talk("/strategy nope", "/set max_tokens 100000", "hello", "/set max_tokens 4", "hello")
    assert result.code == 0
    assert "Unknown strategy 'nope'" in result.err
    assert "the model has 256" in result.err
    assert result.err.count("tokens per forward") == 1


def test_a_long_conversation_forgets_its_oldest_turn(talk):
    result = talk("x" * 60, "y" * 60, "z" * 60)
    assert result.code == 0
    assert "oldest turn is forgotten" in result.err
