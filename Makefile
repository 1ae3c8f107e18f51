# Each verb does all the set-up it needs; `make` alone lists them.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
# two torch threads that wait by spinning are slower than one where other work goes on
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help demo test test-slow check docs format bench clean

help:
	@echo "make demo       install, train a classifier with a planted shortcut, and catch it"
	@echo "make test       install, and run the tests"
	@echo "make test-slow  the tests that take minutes or much memory"
	@echo "make check      lint, types, and whether the generated docs are current"
	@echo "make docs       write the generated docs anew"
	@echo "make bench      scoring core and explanation methods against the bare model and their peers"
	@echo "make format     let ruff mend what it can"
	@echo "make clean      remove .venv and the demo"

.venv/made:
	$(PYTHON) -m venv .venv
	@touch $@

# the product alone, then the tools of development: `make demo` need not wait for the latter
.venv/installed: .venv/made pyproject.toml constraints.txt
	@echo "Installing unhans and what it needs into .venv (a few minutes the first time) …"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/developing: .venv/installed
	@echo "Installing the tools of development …"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: .venv/installed
	$(BIN)/unhans demo

test: .venv/developing
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

test-slow: .venv/developing
	$(BIN)/python -m pytest -m slow

check: .venv/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check

docs: .venv/developing
	$(BIN)/python docs/generate.py

format: .venv/developing
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/developing
	$(BIN)/python bench/scoring.py --json bench/results/scoring.json
	$(BIN)/python bench/attributions.py --json bench/results/attributions.json
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv demo
