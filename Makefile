# Each verb does all the set-up it needs; `make` alone lists them.
PYTHON ?= python3
BIN := .venv/bin
NPM := $(BIN)/python web/npm.py
WORKERS ?= 2
# two torch threads that wait by spinning are slower than one where other work goes on
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help demo serve test test-slow check docs format bench bench-check bench-opponents screenshots clean

help:
	@echo "make demo       install, train a classifier with a planted shortcut, catch it, fix it, open the workbench"
	@echo "make serve      open the workbench on the demo again"
	@echo "make test       install, and run the tests"
	@echo "make test-slow  the tests that take minutes or much memory"
	@echo "make check      lint, types, and whether the generated docs are current"
	@echo "make docs       write the generated docs anew"
	@echo "make screenshots  a picture of every screen in both themes, in screenshots/"
	@echo "make bench      every benchmark against the bare model and its peers, and one table of all bars; DATA=, MODEL=,"
	@echo "                ENCODER=, TEXTS= are folders (and a file) that some need, ONLY= names, see docs/speed.md"
	@echo "make bench-check      the same, quicker: fails where a figure is worse than the committed one"
	@echo "make bench-opponents  an environment for opponents that do not go into one with the product"
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

# folders are handed on; what a benchmark needs and was not given is told in the table
BENCH_OPTIONS = $(if $(DATA),--data $(DATA)) $(if $(MODEL),--model $(MODEL)) $(if $(ENCODER),--encoder $(ENCODER)) \
	$(if $(TEXTS),--texts $(TEXTS)) $(if $(TEXTATTACK),--textattack $(TEXTATTACK)) $(if $(ONLY),--only $(ONLY))

bench: .venv/developing
	$(BIN)/python bench/harness.py run $(BENCH_OPTIONS); status=$$?; $(BIN)/python docs/generate.py && exit $$status

bench-check: .venv/developing
	$(BIN)/python bench/harness.py check $(BENCH_OPTIONS)

bench-opponents: .venv-bench/made

# TextAttack wants an older transformers; kronfluence wants torchvision, whose wheel does not go with torch for CPUs
.venv-bench/made: .venv/made
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --disable-pip-version-check -c constraints.txt torch "transformers<5" \
		lru-dict more-itertools pandas scipy terminaltables editdistance Levenshtein
	.venv-bench/bin/pip install --quiet --disable-pip-version-check --no-deps textattack==0.3.11
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target .venv-bench/beside \
		kronfluence einconv einops opt_einsum
	@touch $@

clean:
	rm -rf .venv .venv-bench demo screenshots web/node_modules src/unhans/static
