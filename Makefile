# Each target sets up .venv by itself; a second call finds the stamp and is quick.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/pytest -q --numprocesses=auto --maxprocesses=4 --dist=loadfile
KERNELS := $(addprefix tests/,kernels encoders/test_adaptive.py encoders/test_polish.py \
	ftl/test_solvers.py ftl/test_size.py jax/test_conversion.py)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-avx2 checked kernels test-browser torture docs pictures lint bench clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: $(VENV)/.rl ## an agent plans in a world model, live, and who forgets: a minute or two; figures in results/demo
	$(BIN)/losse demo

test: checked ## everything that lint does, and the tests
	$(PYTEST) -m "not long"

test-all: checked ## and the long versions of some tests
	$(PYTEST)

test-avx2: ## the same as test, with kernels for a processor without AVX-512
	NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES= $(MAKE) --no-print-directory test

checked: $(VENV)/.dev # lint takes one core; beside it, kernels are compiled once for all processes
	$(MAKE) --no-print-directory --jobs=2 lint kernels

kernels: $(VENV)/.dev ## compile the kernels, by the tests that need most of them
	$(BIN)/pytest -q -m "not long" $(KERNELS)

test-browser: $(VENV)/.dev $(VENV)/axe.min.js ## the page of losse watch in Chromium, which it installs
	@command -v chromium chromium-browser >/dev/null || apt-get install --yes chromium || \
		sudo apt-get install --yes chromium
	LOSSE_BROWSER=1 $(BIN)/pytest -q tests/watch

torture: $(VENV)/.dev ## random lives of models and spoilt files, an hour or TORTURE_SECONDS
	$(BIN)/python -m tests.torture

docs: $(VENV)/.dev ## the documentation site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html; with a search: $(BIN)/mkdocs serve"

pictures: $(VENV)/.dev ## run the tutorials and notebooks anew, and keep their pictures
	$(BIN)/python docs/pictures.py

lint: $(VENV)/.dev ## ruff, the import contract and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/mypy

bench: $(VENV)/.dev ## measure speed against the yardstick; writes to results/bench
	$(BIN)/losse bench

clean: ## remove the environment and everything built
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "losse needs Python 3.11 or newer; found: '$(PYTHON)'." >&2; \
		echo "Install it, or name it: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

# The development set contains what the demo needs, so its stamp stands for both.
$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --editable '.[dev]' --constraint constraints.txt
	@touch $(VENV)/.rl $@

# axe-core finds what is hard to use without eyes or a mouse; only the tests have it.
$(VENV)/axe.min.js: | $(BIN)/python
	cd $(VENV) && tar -xzf $$(npm pack --silent axe-core@4.14.0) --strip-components=1 package/axe.min.js

$(VENV)/.rl: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --editable '.[rl,watch]' --constraint constraints.txt
	@touch $@
