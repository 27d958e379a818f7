# Two commands are all a newcomer needs: `make demo` and `make test`. Both set everything up.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

# Container images often set it. Every command that a test starts would then compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup web demo demo-cost test check test-full coverage bench docs lock clean

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(INSTALLED) web ## Build the environment in .venv and the web page (quick when nothing changed)

$(INSTALLED): requirements.lock pyproject.toml scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup

# Compares a hash of the sources, so that nothing is built twice.
web: $(INSTALLED)
	@$(BIN)/python scripts/build_web.py

demo: setup ## Scan a lake, break a SQL model, see who is named; then serve it (SERVE=0: no server)
	@$(BIN)/python demo/run.py

demo-cost: setup ## Show what the data of a web shop costs, and what its end would save
	@$(BIN)/python demo/cost.py

# Tests wait for servers and JVMs about half of the time, so that three processes keep two cores busy.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile

test: check ## Everything that CI runs: house rules and all tests
	@$(PYTEST)

check: setup ## The house rules alone: style, types, layers, names, licences
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python scripts/check_structure.py
	@$(BIN)/python scripts/check_licences.py
	@$(BIN)/python scripts/build_web.py check

test-full: setup ## All tests with all examples, the slow ones too; about an hour and a half
	@FULL_TESTS=1 $(PYTEST) -m ""
	@scripts/test_oldest_sqlglot

coverage: setup ## The lines that the quick tests run; measuring makes them about twice as slow
	@$(PYTEST) --cov --cov-report=term

bench: setup ## Measure, and write build/bench.json
	@$(BIN)/python -m benchmarks

docs: setup ## Update the pages that are made from code, and the output that all pages show
	@$(BIN)/python scripts/write_cli_page.py
	@$(BIN)/python scripts/write_api_page.py
	@$(BIN)/python scripts/write_snapshot_schema.py
	@$(BIN)/python scripts/write_rules_page.py
	@WRITE_DOCS=1 $(BIN)/python -m pytest -q -m "" tests/docs

lock: setup ## Resolve requirements.lock anew from pyproject.toml
	@scripts/lock

clean: ## Remove everything that was built
	rm -rf .venv build dist web/node_modules src/lumos/server/static .lumos .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
