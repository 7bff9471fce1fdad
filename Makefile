# Everything runs in .venv, which is made from pyproject.toml when it is absent or older.
# Needs Python >= 3.11, pip and make. Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
PYTEST_FLAGS ?= -n auto
BENCH_FLAGS ?=
RESULTS ?= reproduced
RESULTS_FLAGS ?=
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check
CHECKED := src tests $(wildcard benchmarks examples)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow coverage faults lint format bench results docs clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.dev ## train with several algorithms on small data, compare them, write a report
	$(BIN)/crosshatch demo

# One thread a process: pytest already uses every core, and small models lose by sharing them.
test: $(VENV)/.dev ## run all tests but the slow ones, on all cores (PYTEST_FLAGS="-k tdcd")
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(PYTEST_FLAGS)

test-slow: $(VENV)/.dev ## run the slow tests, one after the other
	$(BIN)/python -m pytest -q -m slow

coverage: $(VENV)/.dev ## run the tests and say which lines they leave out (PYTEST_FLAGS="tests/data")
	$(PIP_INSTALL) "pytest-cov>=7.0"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(PYTEST_FLAGS) --cov=crosshatch --cov-report=term-missing:skip-covered

faults: $(VENV)/.dev ## plant faults one by one and see whether the tests notice
	$(BIN)/python -m tests.faults.plant

lint: $(VENV)/.dev ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(CHECKED)

format: $(VENV)/.dev ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## race the local steps against central training and the naive loop
	$(BIN)/python -m benchmarks $(BENCH_FLAGS)

# Another folder or profile: make results RESULTS=reproduced RESULTS_FLAGS="--data DIR"
results: $(VENV)/.dev ## write docs/results_papers.md from the last run of `crosshatch reproduce`
	$(BIN)/crosshatch reproduce page --out $(RESULTS) --docs docs/results_papers.md $(RESULTS_FLAGS)

# A page that was built with a warning would not warn again: after a failure start afresh.
docs: $(VENV)/.docs ## build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html || { rm -rf docs/_build; exit 1; }
	@echo "docs/_build/html/index.html"

clean: ## remove .venv and everything else made here
	rm -rf $(VENV) build dist docs/_build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests $(wildcard benchmarks examples docs) -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.dev: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Crosshatch needs Python 3.11 or newer, '$(PYTHON)' is not: name one with make PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing Crosshatch and its tools into $(VENV) (minutes the first time)"
	@$(PIP_INSTALL) -e ".[dev]"
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	@echo "installing the documentation tools into $(VENV)"
	@$(PIP_INSTALL) -e ".[docs]"
	@touch $@
