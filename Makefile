# Everything a newcomer needs.  `make` alone prints this help.
PYTHON ?= python3
UV := $(or $(shell command -v uv 2>/dev/null),.uv/bin/uv)
# Most of a test is waiting: for a process to start, for a disk, for a clock.
WORKERS := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 3)')
RUN := $(UV) run --frozen --no-sync

# Tests start hundreds of processes: without bytecode each one would compile everything that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup page run test proofs check format bench drill chaos mutants fresh docs clean

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.uv/bin/uv:
	@$(PYTHON) -m venv .uv
	@.uv/bin/python -m pip install --quiet --disable-pip-version-check uv

# What the gateway runs on and the page is built with; tests and checks need four times as much.
.venv/.runs: pyproject.toml uv.lock | $(UV)
	@echo "Installing what Holdfast runs on, into .venv"
	@$(UV) sync --frozen --inexact --no-default-groups --group page
	@touch $@

.venv/.synced: pyproject.toml uv.lock | $(UV)
	@echo "Installing what Holdfast is tested and checked with, into .venv"
	@$(UV) sync --frozen --quiet
	@touch .venv/.runs $@

setup: .venv/.synced ## Install everything into .venv

page: .venv/.runs ## Build the web page, if its sources have changed
	@$(RUN) python page/build.py

run: page ## Run the gateway on the embedded store; no key needed
	@$(RUN) holdfast serve

test: setup page ## Run the tests: on SQLite and a real PostgreSQL, and of the page in a real browser if there is one
	@$(RUN) python page/build.py test
	@$(RUN) python -m pytest -q -n $(WORKERS) --dist worksteal $(ARGS)

proofs: setup page ## Run the proofs that take too long for every change
	@$(RUN) python page/build.py tools
	@$(RUN) python -m pytest -q -n $(WORKERS) --dist worksteal -m long

check: setup ## Check format, lint, types, layers and generated pages
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) pyright
	@$(RUN) lint-imports
	@$(RUN) python docs/diagrams.py --check
	@$(RUN) python docs/promises.py --check
	@$(RUN) python page/wire.py --check
	@$(RUN) python page/build.py check

format: setup ## Format the code and fix what can be fixed
	@$(RUN) ruff check --fix --quiet .
	@$(RUN) ruff format --quiet .
	@$(RUN) python page/build.py format

bench: setup ## Measure the hot path beside the raw limit of this machine
	@$(RUN) python -m bench

drill: setup ## Kill a scratch gateway 100 times and check every promise
	@$(RUN) holdfast drill --kills 100

chaos: setup page ## Break real gateways and all around them at random, and check every promise (ARGS="--faults 500")
	@$(RUN) python -m tests.chaos $(ARGS)

mutants: setup page ## Remove each guard in turn; the tests must notice every time
	@$(RUN) python page/build.py tools
	@$(RUN) python tests/mutants.py

fresh: ## Run `make run` and `make test` in a minimal Debian that has only Python and make (needs root)
	@$(PYTHON) tests/fresh.py

docs: setup page ## Redraw the state diagrams, write the promises, and take the pictures of terminal and page
	@$(RUN) python docs/diagrams.py
	@$(RUN) python docs/promises.py
	@$(RUN) python docs/pictures.py
	@$(RUN) python -m docs.screenshots

clean: ## Remove everything that was installed or generated
	@rm -rf .venv .uv page/node_modules src/holdfast/web/static .pytest_cache .ruff_cache .hypothesis .import_linter_cache .fresh
