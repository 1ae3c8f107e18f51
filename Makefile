# Each verb does all the set-up it needs; `make` alone lists them.
PYTHON ?= python3
BIN := .venv/bin
NPM := $(BIN)/python web/npm.py
WORKERS ?= 2
# two torch threads that wait by spinning are slower than one where other work goes on
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help demo serve test test-slow check docs format bench screenshots clean

help:
	@echo "make demo       install, train a classifier with a planted shortcut, catch it, fix it, open the workbench"
	@echo "make serve      open the workbench on the demo again"
	@echo "make test       install, and run the tests"
	@echo "make test-slow  the tests that take minutes or much memory"
	@echo "make check      lint, types, and whether the generated docs are current"
	@echo "make docs       write the generated docs anew"
	@echo "make screenshots  a picture of every screen in both themes, in screenshots/"
	@echo "make bench      scoring core and explanation methods against the bare model and their peers"
	@echo "make format     let ruff mend what it can"
	@echo "make clean      remove .venv, the demo and everything built"

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

# the page's own tools: Node comes from PyPI, the rest from npm
web/node_modules/made: .venv/developing web/package-lock.json
	$(NPM) ci --no-audit --no-fund --silent
	@touch $@

# a page that is older than its sources is built again
src/unhans/static/index.html: web/node_modules/made $(shell find web/src web/public web/index.html -type f 2>/dev/null)
	$(NPM) run --silent build
	@touch $@

demo: .venv/installed
	$(BIN)/unhans demo

serve: .venv/installed
	$(BIN)/unhans serve demo

test: .venv/developing src/unhans/static/index.html
	$(NPM) run --silent test
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

test-slow: .venv/developing
	$(BIN)/python -m pytest -m slow

check: .venv/developing web/node_modules/made
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check
	$(NPM) run --silent types -- --check
	$(NPM) run --silent check

docs: .venv/developing web/node_modules/made
	$(BIN)/python docs/generate.py
	$(NPM) run --silent types

screenshots: .venv/developing src/unhans/static/index.html
	$(BIN)/python tests/web/screenshots.py screenshots

format: .venv/developing
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/developing
	$(BIN)/python bench/scoring.py --json bench/results/scoring.json
	$(BIN)/python bench/attributions.py --json bench/results/attributions.json
	$(BIN)/python bench/fixes.py --json bench/results/fixes.json
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv demo screenshots web/node_modules src/unhans/static
