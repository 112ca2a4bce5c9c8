"""The model class in lm_eval: the answers of ``starr eval``, whatever the batch, and likelihoods that are right."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lm_eval.api.instance import Instance

import starr
from starr.cli.main import main
from starr.errors import InputError, LengthError
from starr.evals.run.store import read_samples
from starr.evals.tasks import MODULES, load_task
from starr.integrations.lm_eval import StarrLM
from tests.integrations.harness import answers, evaluate, write_tasks
from tests.integrations.test_likelihood import mean_over_orders
from tests.model.tiny import LLADA_CONFIG, write_llada
from tests.tiny import tiny_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    config = LLADA_CONFIG | {"max_sequence_length": 6000, "n_layers": 1}
    return str(write_llada(tmp_path_factory.mktemp("lm") / "tiny", config=config))


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    return write_tasks(tmp_path_factory.mktemp("lm") / "tasks")


@pytest.fixture(scope="module")
def gsm8k():
    folder = Path(os.environ.get("STARR_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "gsm8k"
    if not (folder / "test.jsonl").is_file():
        pytest.skip("no benchmark files: set STARR_DATA")
    return folder


def eval_samples(task, out, *options):
    """What ``starr eval`` decodes, by item."""
    assert main(["eval", task, "--quiet", "-o", str(out), *options]) == 0
    return {sample.index: sample for sample in read_samples(out / "samples.jsonl")}


def test_the_command_line_gives_the_answers_of_starr_eval(tiny, gsm8k, tmp_path):
    """lm_eval's own program, in a process of its own, over GSM8K from local files and both bundled tasks."""
    folder, strategy = write_tasks(tmp_path / "tasks", gsm8k), "threshold:tau=0.5"
    names = {"gsm8k": "gsm8k_local", "word-problems": "starr_word_problems", "list-functions": "starr_list_functions"}
    command = [sys.executable, "-m", "starr.cli.main", "lm-eval", "run", "--tasks", ",".join(names.values()), "which"]
    command += ["--model_args", f"model={tiny},strategy={strategy}", "--gen_kwargs", "max_gen_toks=3", "--limit", "20"]
    command += ["--include_path", str(folder), "--output_path", str(tmp_path / "out"), "--log_samples"]
    done = subprocess.run(command, env=os.environ | {"HF_HUB_OFFLINE": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(next((tmp_path / "out").rglob("results_*.json")).read_text())
    options = ("--model", tiny, "--strategy", strategy, "--limit", "20", "--form", "base", "--max-tokens", "3")
    for task, name in names.items():
        data = ("--data", str(gsm8k)) if task == "gsm8k" else ()
        ours = eval_samples(task, tmp_path / task, *options, *data)
        theirs = [json.loads(line) for line in next((tmp_path / "out").rglob(f"samples_{name}_*")).open()]
        assert {row["doc_id"]: row["resps"][0][0] for row in theirs} == {i: sample.text for i, sample in ours.items()}
        figures = results["config"]["starr"]["figures"][name]
        assert figures["requests"] == len(ours) == 20
        assert figures["forwards"] == sum(sample.forwards for sample in ours.values())
        assert figures["positions"] == sum(sample.positions for sample in ours.values())
        scores = {key.partition(",")[0]: value for key, value in results["results"][name].items()}
        if task != "gsm8k":
            assert scores["both"] == sum(sample.both for sample in ours.values()) / 20
    assert results["results"]["which"]["sample_len"] == 3


def test_scores_of_the_bundled_model_are_those_of_starr_eval(tasks, tmp_path):
    found = evaluate(StarrLM(starr.load()), tasks, "starr_word_problems", limit=6, apply_chat_template=True)
    ours = eval_samples("word-problems", tmp_path / "ours", "--limit", "6")
    assert answers(found, "starr_word_problems") == {i: [[sample.text]] for i, sample in ours.items()}
    right = sum(sample.right for sample in ours.values())
    assert right > 2
    assert found["results"]["starr_word_problems"]["right,none"] == right / 6


def test_batch_and_part_change_nothing(tiny, tasks):
    """Temperature included: a request's draws are its own."""
    model = starr.load(tiny)
    kept = {"starr_word_problems": [1, 4], "which": [0, 2]}
    runs = []
    for rows, samples in ((1, None), (3, None), (2, kept)):
        lm = StarrLM(model, batch_size=rows, strategy="random", temperature=0.7, mc_num=16)
        some = {"samples": samples} if samples else {"limit": 5}
        runs.append(
            evaluate(lm, tasks, *kept, gen_kwargs={"max_gen_toks": 5, "temperature": 0.7, "do_sample": True}, **some)
        )
    for task, places in kept.items():
        assert answers(runs[0], task) == answers(runs[1], task)
        part = answers(runs[2], task)
        assert [answers(runs[0], task)[place] for place in places] == [part[place] for place in sorted(part)]


@pytest.mark.parametrize("shift", [False, True])
def test_a_choice_is_scored_by_brute_force(shift):
    """Context and target in text, tokenised by the class, against every order of decoding the target."""
    model = tiny_model(shift=shift)
    lm = StarrLM(model)
    pairs = [("ask me: ", "b"), ("ask me:", " yes"), ("", "hello"), ("x", " abcde")]
    found = lm.loglikelihood([request("loglikelihood", pair) for pair in pairs], disable_tqdm=True)
    for (context, target), (value, greedy) in zip(pairs, found, strict=True):
        moved = context[len(context.rstrip()) :] + target
        tokens = [model.spec.bos_id, *model.tokenizer.encode(context.rstrip())]
        expected = mean_over_orders(model, tokens, model.tokenizer.encode(moved))
        assert value == pytest.approx(expected, abs=1e-4)
        assert greedy is False


def test_greedy_says_whether_decoding_gives_the_target():
    model = tiny_model()
    lm = StarrLM(model, greedy=True)
    tokens = starr.generate(model, [0, *model.tokenizer.encode("ask")], strategy="confidence", max_tokens=3).tokens
    said = "".join(chr(90 + token - 3) for token in tokens)
    assert model.tokenizer.encode(said) == tokens
    found = lm.loglikelihood([request("loglikelihood", ("ask", text)) for text in (said, "zzz")], disable_tqdm=True)
    assert [greedy for _, greedy in found] == [True, False]


def test_a_rolling_likelihood_is_the_sum_over_windows():
    model = tiny_model(length=9)
    lm = StarrLM(model, mc_num=255)
    text = "abcdefghijklmnopqrst"
    (value,) = lm.loglikelihood_rolling([request("loglikelihood_rolling", (text,))], disable_tqdm=True)
    tokens = model.tokenizer.encode(text)
    first, second, third = (
        lm.bound([0], tokens[:8]),
        lm.bound(tokens[7:8], tokens[8:16]),
        lm.bound(tokens[11:16], tokens[16:]),
    )
    assert value == pytest.approx(first + second + third)


def test_a_perplexity_and_a_choice_run_through(tiny, tasks):
    found = evaluate(StarrLM(tiny, mc_num=8), tasks, "which", "wording")["results"]
    assert 0 <= found["which"]["acc,none"] <= 1
    assert found["wording"]["word_perplexity,none"] > 1


def test_a_chat_is_encoded_as_generate_does(tiny):
    """Special tokens that a user wrote stay text, and an opened answer is not closed."""
    lm = StarrLM(tiny)
    tokenizer = lm.model.tokenizer
    messages = [{"role": "user", "content": "what is <|eot_id|>?"}]
    text = lm.apply_chat_template(messages)
    assert lm.tok_encode(text) == tokenizer.chat(messages)
    opened = lm.apply_chat_template([*messages, {"role": "assistant", "content": "It <|eot_id|>"}], False)
    assert lm.tok_encode(opened)[: len(tokenizer.chat(messages))] == tokenizer.chat(messages)
    assert tokenizer.added["<|eot_id|>"] not in lm.tok_encode(opened)[len(tokenizer.chat(messages)) :]
    context, target = lm._encode_pair(text, "<|mdm_mask|> no")
    assert context == tokenizer.chat(messages)
    assert target == tokenizer.encode("<|mdm_mask|> no")
    assert lm.chat_template(True) == tokenizer.template
    with pytest.raises(InputError, match="U\\+FDD0"):
        lm.apply_chat_template([{"role": "user", "content": "\ufdd0"}])


def test_options_of_the_strategy_may_stand_beside_it():
    lm = StarrLM(tiny_model(), strategy="starr", temporal_window=5)
    assert lm.options["strategy"] == starr.strategy("starr:temporal_window=5")
    assert lm.get_model_info()["starr"]["options"]["strategy"] == "starr:temporal_window=5"


def test_what_is_unknown_is_refused_by_name():
    with pytest.raises(InputError, match=r"'temporal_widow'.*'temporal_window'"):
        StarrLM(tiny_model(), temporal_widow=5)
    lm = StarrLM(tiny_model())
    with pytest.raises(InputError, match="num_beams"):
        lm.generate_until([request("generate_until", ("ask", {"num_beams": 4}))])
    with pytest.raises(LengthError, match="256"):
        lm.generate_until([request("generate_until", ("ask", {"max_gen_toks": 256}))])
    with pytest.raises(InputError, match="mc_num"):
        StarrLM(tiny_model(), mc_num=0)


def test_repeats_are_drawn_differently_and_stops_cut():
    lm = StarrLM(tiny_model(), strategy="random")
    asked = request("generate_until", ("ask", {"max_gen_toks": 8, "do_sample": True}))
    first, second = lm.generate_until([asked, asked], disable_tqdm=True)
    assert first != second
    assert lm.generate_until([asked], disable_tqdm=True) == [first]
    cut = request("generate_until", ("ask", {"max_gen_toks": 8, "do_sample": True, "until": first[3]}))
    assert lm.generate_until([cut], disable_tqdm=True) == [first[: first.index(first[3])]]


def test_answers_are_kept_in_lm_evals_cache(tiny, tasks, tmp_path):
    lm, options = StarrLM(tiny), {"limit": 2, "gen_kwargs": {"max_gen_toks": 4}, "use_cache": str(tmp_path / "kept")}
    first = evaluate(lm, tasks, "starr_word_problems", **options)
    again = StarrLM(tiny)
    assert answers(evaluate(again, tasks, "starr_word_problems", **options), "starr_word_problems") == answers(
        first, "starr_word_problems"
    )
    assert not again.figures


def test_the_built_in_models_stay_visible():
    from lm_eval.api.registry import model_registry

    assert {"starr", "hf", "vllm", "dummy"} <= set(model_registry.keys())


def request(kind, arguments):
    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0, metadata=("task", 0, 1))


def test_every_bundled_task_has_the_canvas_of_starr_eval(tiny, tasks):
    names = [name for name, module in MODULES.items() if module == "bundled"]
    ours = {f"starr_{name.replace('-', '_')}": load_task(name).max_tokens for name in names}
    found = evaluate(StarrLM(tiny, strategy="threshold:tau=0.01"), tasks, *ours, limit=1)["configs"]
    assert {name: found[name]["generation_kwargs"]["max_gen_toks"] for name in found} == ours
