"""Function calling with the official client: prompts, calls held to their schema, streams, agents, refusals."""

import json

import jsonschema
import openai
import pytest

import starr
from starr.decode.prompts.prepare import encode_chat
from starr.decode.prompts.tools import Call, Toolbox, read_toolbox, split_answer, write_out
from starr.errors import InputError
from tests.model.tiny import LLADA_CONFIG, write_llada
from tests.server.running import http, running

ASK = [{"role": "user", "content": "How warm is it?"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
NOW = {"type": "function", "function": {"name": "now"}}
HERMES = """\
{%- if tools -%}<tools>{%- for tool in tools -%}{{ tool | tojson }}{%- endfor -%}</tools>{%- endif -%}
{%- for message in messages -%}
<{{ message.role }}>{{ message.content }}
{%- for call in message.tool_calls or [] -%}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{%- endfor -%}
<|eot_id|>
{%- endfor -%}
<assistant>"""


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    config = LLADA_CONFIG | {"max_sequence_length": 2048}
    return starr.load(write_llada(tmp_path_factory.mktemp("tools") / "tiny", config=config))


@pytest.fixture(scope="module")
def hermes(tmp_path_factory):
    folder = write_llada(
        tmp_path_factory.mktemp("hermes") / "tiny", config=LLADA_CONFIG | {"max_sequence_length": 2048}
    )
    (folder / "chat_template.jinja").write_text(HERMES)
    return starr.load(folder)


@pytest.fixture(scope="module")
def served(roomy):
    with running(lambda: roomy) as here:
        yield here


@pytest.fixture(scope="module")
def client(served):
    return served.client()


def ask(client, **more):
    given = {"model": "tiny", "messages": ASK, "max_tokens": 96, "tools": [WEATHER, NOW], **more}
    return client.chat.completions.create(**given)


def check(call, names=("weather", "now")):
    assert call.function.name in names
    arguments = json.loads(call.function.arguments)
    schema = WEATHER["function"]["parameters"] if call.function.name == "weather" else {"maxProperties": 0}
    jsonschema.validate(arguments, schema)
    return arguments


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_a_call_is_held_to_its_schema(client, choice):
    for seed in range(3):
        said = ask(client, tool_choice=choice, temperature=1.0, seed=seed).choices[0]
        (call,) = said.message.tool_calls
        check(call, ("weather", "now") if choice == "required" else ("weather",))
        assert (said.message.content, said.finish_reason, call.type) == (None, "tool_calls", "function")


def test_auto_gives_text_or_a_call_and_never_half_of_both(client, roomy):
    (brace,) = roomy.tokenizer.encode("{")
    for bias, calls in ((100, True), (-100, False)):
        for seed in range(2):
            given = {"temperature": 1.5, "seed": seed, "max_tokens": 80, "logit_bias": {str(brace): bias}}
            said = ask(client, **given, tool_choice="auto").choices[0]
            assert (said.finish_reason == "tool_calls") == calls
            if calls:
                check(said.message.tool_calls[0])
            else:
                assert said.message.tool_calls is None
                assert not said.message.content.startswith("{")


def test_none_and_no_tools_give_the_same_text(client):
    plain = client.chat.completions.create(model="tiny", messages=ASK, max_tokens=32)
    none = ask(client, tool_choice="none", max_tokens=32)
    assert none.choices[0].message.content == plain.choices[0].message.content
    assert none.usage.prompt_tokens == plain.usage.prompt_tokens


def test_a_stream_says_the_same_as_the_whole(client):
    whole = ask(client, tool_choice="required", seed=3).choices[0].message.tool_calls[0]
    deltas, reasons = [], []
    for chunk in ask(client, tool_choice="required", seed=3, stream=True):
        deltas += chunk.choices[0].delta.tool_calls or []
        reasons.append(chunk.choices[0].finish_reason)
        assert not chunk.choices[0].delta.content
    first, *rest = deltas
    assert (first.index, first.type, first.function.name) == (0, "function", whole.function.name)
    assert first.id
    assert all(delta.id is None and delta.function.name is None for delta in rest)
    assert "".join(delta.function.arguments for delta in deltas) == whole.function.arguments
    assert reasons[-1] == "tool_calls"


def test_the_official_client_accumulates_the_stream(client):
    with client.chat.completions.stream(
        model="tiny", messages=ASK, max_tokens=96, tools=[WEATHER], tool_choice="required"
    ) as stream:
        final = stream.get_final_completion()
    check(final.choices[0].message.tool_calls[0], ("weather",))


def test_results_of_calls_go_back(client):
    said = ask(client, tool_choice="required").choices[0].message
    result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "21 degrees"}
    done = ask(client, messages=[*ASK, said.to_dict(), result], tool_choice="none", max_tokens=8)
    assert done.choices[0].message.content is not None


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools"),
        ({"tools": [NOW, NOW]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}]}, "tools"),
        ({"tool_choice": "nothing"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
        ({"tools": [], "tool_choice": "required"}, "tool_choice"),
        ({"response_format": {"type": "json_object"}}, "tools"),
        ({"extra_body": {"diffusing": True}, "stream": True}, "diffusing"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "["}}]}]},
            "messages",
        ),
        ({"tool_choice": "required", "max_tokens": 8}, "max_tokens"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(client, more, param):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, **more)
    assert caught.value.param == param


def test_a_schema_that_cannot_be_held_names_the_function(client):
    odd = {"type": "object", "properties": {"x": {"not": {}}}, "required": ["x"]}
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, tools=[{"type": "function", "function": {"name": "odd_one", "parameters": odd}}])
    assert caught.value.param == "tools"
    assert "odd_one" in caught.value.message


@pytest.mark.parametrize("field", ["functions", "function_call"])
def test_the_old_fields_name_the_new_ones(served, field):
    body = {"messages": ASK, field: [{"name": "f"}]}
    error = http.post(f"{served.url}/v1/chat/completions", json=body).json()["error"]
    assert error["param"] == field
    assert "tool" in error["message"]


def test_a_template_without_tools_gets_them_as_text():
    box = read_toolbox([WEATHER, NOW], "auto")
    calls = [{"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}]
    turns = [
        {"role": "system", "content": "Be brief."},
        *ASK,
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": "noon"},
    ]
    told = write_out(turns, box)
    assert [turn["role"] for turn in told] == ["system", "user", "assistant", "user"]
    assert told[0]["content"].startswith("Be brief.")
    assert json.dumps(WEATHER["function"]) in told[0]["content"]
    assert json.loads(told[2]["content"]) == {"name": "now", "arguments": {}}
    assert "now" in told[3]["content"]
    assert "noon" in told[3]["content"]
    assert write_out(ASK, box)[0]["role"] == "system"
    assert write_out(ASK, None) == ASK


def test_a_template_with_tools_writes_them_itself(hermes):
    box = read_toolbox([NOW], "auto")
    calls = [{"id": "1", "type": "function", "function": {"name": "now", "arguments": '{"a": "<|eot_id|>"}'}}]
    tokens = encode_chat(hermes, [*ASK, {"role": "assistant", "content": None, "tool_calls": calls}], box)
    text = hermes.tokenizer.decode(tokens, skip_special=False)
    assert text.startswith('<tools>{"type": "function"')
    assert '{"name": "now", "arguments": {"a": "<|eot_id|>"}}\n</tool_call>' in text
    assert tokens.count(hermes.tokenizer.added["<|eot_id|>"]) == 2  # the template's own, and none of the call's


def test_the_marks_of_a_template_are_around_a_call_and_not_in_the_answer(hermes):
    found = starr.generate(hermes, ASK, tools=[WEATHER], tool_choice="required", max_tokens=120)
    assert found.text.startswith('<tool_call>\n{"name": "weather"')
    with running(lambda: hermes) as here:
        said = ask(here.client(), tool_choice="required", max_tokens=120).choices[0]
    check(said.message.tool_calls[0])


def test_an_answer_is_split_where_it_can_be():
    box = Toolbox((NOW["function"],), must=False)
    whole = '{"name": "now", "arguments": {"a": "}"}}'
    assert split_answer("Hello", box) == ("Hello", None)
    assert split_answer(whole, None) == (whole, None)
    assert split_answer(whole[:10], box) == ("", None)
    assert split_answer(whole[:33], box) == ("", Call("now", '{"a"', False))
    assert split_answer(whole[:-1], box) == ("", Call("now", '{"a": "}"}', False))
    assert split_answer(whole, box) == ("", Call("now", '{"a": "}"}', True))


def test_python_takes_tools_too(roomy):
    found = starr.generate(roomy, "How warm is it?", tools=[WEATHER], tool_choice="weather", max_tokens=96)
    assert json.loads(found.text)["name"] == "weather"
    same = starr.generate(roomy, ASK, tools=json.dumps([WEATHER]), tool_choice="weather", max_tokens=96)
    assert same.text == found.text
    with pytest.raises(InputError) as caught:
        starr.generate(roomy, [5, 6], tools=[WEATHER])
    assert caught.value.param == "tools"


def test_an_agent_of_langchain_calls_a_function_and_goes_on(served):
    agents = pytest.importorskip("langchain.agents", reason="langchain is not installed")
    models = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    from langchain.agents.middleware import wrap_model_call
    from langchain_core.messages import HumanMessage, ToolMessage

    asked = []

    def weather(city: str, days: int) -> str:
        """The weather of a city."""
        asked.append((city, days))
        return "21 degrees"

    @wrap_model_call
    def once(request, handler):
        """Weights are random, so that the agent is told when to call."""
        called = isinstance(request.messages[-1], ToolMessage)
        return handler(request.override(tool_choice="none" if called else "any"))

    model = models.ChatOpenAI(
        model="tiny", base_url=f"{served.url}/v1", api_key="unused", max_tokens=120, temperature=1.0, max_retries=0
    )
    agent = agents.create_agent(model, [weather], middleware=[once])
    turns = agent.invoke({"messages": [HumanMessage("How warm is it in Rome?")]})["messages"]
    assert [turn.type for turn in turns] == ["human", "ai", "tool", "ai"]
    assert turns[2].content == "21 degrees"
    ((city, days),) = asked
    assert isinstance(city, str)
    assert isinstance(days, int)
