# make demo    decode with the bundled model        make test    the whole test suite
# make setup   only create .venv/bin/starr          make check   ruff and mypy --strict
# make model   train the bundled models again       make docs    the documentation site, in site/

PYTHON  ?= $(shell command -v python3.11 || command -v python3)
VENV    := .venv
BIN     := $(VENV)/bin
# torch is named outright: a range would fetch the newest build with gigabytes of CUDA libraries.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0

.DEFAULT_GOAL := help
.PHONY: help setup demo test check browser proxy model docs

help:
	@sed -n '1,3s/^# //p' Makefile

setup: $(VENV)/.installed

demo: setup
	@$(BIN)/starr demo

test: $(VENV)/.tested browser proxy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

check: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet src tests benchmarks training docs
	$(BIN)/mypy

docs: $(VENV)/.tested
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

$(BIN)/python:
	@echo "creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing starr into $(VENV)"
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
	@echo "installing the test extras into $(VENV)"
	@$(INSTALL) -e ".[test]"
	@touch $@

# Trains the bundled models again: eight hours, continuing where an interrupted run stopped. See training/README.md.
model: $(VENV)/.tested
	$(BIN)/python -m training.tokenizer runs/tokenizer
	$(TRAIN) --out runs/bundled --minutes 280
	$(BIN)/python -m training.known src/starr/model/bundled/known.json
	$(call land,bundled,bundled)
	$(BIN)/python -m training.card src/starr/model/bundled
	$(TRAIN) --out runs/bundled_dream --minutes 90 --format dream --weights src/starr/model/bundled
	$(call land,bundled_dream,bundled-dream)
	$(BIN)/python -m training.card src/starr/model/bundled_dream --log runs/bundled_dream/log.jsonl
	$(TRAIN) --out runs/bundled_blocks --minutes 90 --format sdar --weights src/starr/model/bundled
	$(call land,bundled_blocks,bundled-blocks)
	$(BIN)/python -m training.card src/starr/model/bundled_blocks --log runs/bundled_blocks/log.jsonl

TRAIN = $(BIN)/python -m training.train --tokenizer runs/tokenizer --resume
define land  # folder, name
	$(BIN)/python -m training.export runs/$(1)/last.safetensors runs/tokenizer src/starr/model/$(1)
	$(BIN)/python -m training.golden runs/$(1)/last.safetensors runs/tokenizer tests/model/$(1)_golden.json --model $(2)
	$(BIN)/python -m training.plot runs/$(1)/log.jsonl src/starr/model/$(1)/training.svg
	$(BIN)/python -m training.evaluate --model $(2) --dtype bfloat16 --out src/starr/model/$(1)/results.json
endef

# Browser tests need Debian's chromium. Without it, and without the right to install it, they are skipped.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } \
	  || echo "no chromium: the browser tests will be skipped"

# Tests of the proxy need Debian's nginx. Without it, and without the right to install it, they are skipped.
proxy:
	@command -v nginx >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nginx-light \
	  >/dev/null; } || echo "no nginx: the tests of the proxy will be skipped"
