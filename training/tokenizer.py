"""The bundled model's tokenizer: byte-level BPE trained on generated text, every digit a token of its own.

``python -m training.tokenizer OUT`` writes ``OUT/tokenizer.json`` and ``OUT/tokenizer_config.json``. Special tokens and
chat template carry LLaDA's names. Any text can be encoded, through bytes where no longer token fits.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from starr.evals.tasks import list_functions, word_problems

MASK, EOS, BOS = "<|mdm_mask|>", "<|endoftext|>", "<|startoftext|>"
EOT, HEAD, HEAD_END = "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"
SPECIAL = (BOS, EOS, HEAD, HEAD_END, EOT, MASK)
VOCAB_SIZE = 1024
PIECES = r"\n+ *| ?\p{L}+| ?\d| ?[^\s\p{L}\d]+|\s+"
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n{{ message['content'] | trim }}<|eot_id|>"
    "{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)


def corpus(count: int) -> Iterator[str]:
    """Training problems of both tasks and the words of the chat template."""
    for module in (word_problems, list_functions):
        for problem in module.generate(seed=-1, count=count):
            yield problem.prompt
            yield problem.answer
    yield from ["user\n\n", "assistant\n\n", "system\n\n"] * count


def train_tokenizer(count: int = 20_000) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PIECES), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE - len(SPECIAL), initial_alphabet=sorted(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator(corpus(count), trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return tokenizer


def render(prompt: str) -> str:
    """The chat template's text of one user turn, ready for the answer."""
    return f"{BOS}{HEAD}user{HEAD_END}\n\n{prompt.strip()}{EOT}{HEAD}assistant{HEAD_END}\n\n"


def save(tokenizer: Tokenizer, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BOS, "eos_token": EOS, "pad_token": EOS,
        "mask_token": MASK, "additional_special_tokens": [HEAD, HEAD_END, EOT], "chat_template": TEMPLATE,
        "model_max_length": 1024, "clean_up_tokenization_spaces": False,
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    folder = parser.parse_args().out
    tokenizer = train_tokenizer()
    save(tokenizer, folder)
    print(f"{tokenizer.get_vocab_size()} tokens -> {folder}")


if __name__ == "__main__":
    main()
