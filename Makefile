# Targets with a double hash are shown by `make help`. Each makes the environment first.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# The plugin costs each worker a second and a half; the tests of the API's schema alone use it.
PYTEST_PLAIN := $(PYTEST) -p no:schemathesis
# Modules are kept compiled, even in a container that forbids it: the gate starts a hundred processes.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.NOTPARALLEL:
SUITES := test-unit test-serve test-e2e test-spark

.PHONY: help env env-unit demo demo-once test test-all test-nightly test-repeat test-storage $(SUITES) \
	audit audit-if-there flights-data class-archive services golden bench-landing bench-refresh bench-histories \
	bench-models bench-serve bench-command bench-soak bench-storage bench-rules lint format lock clean

help: ## Show what there is
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: ## Make .venv from the lock and fetch the Delta jars (once)
	@$(PYTHON) scripts/setup.py

env-unit:
	@$(PYTHON) scripts/setup.py --without-java

demo: env ## Orders of 15 days, then live ones, until Ctrl-C; SOURCE=kafka: through a topic; STORAGE=s3: in a bucket
	@$(BIN)/python -m demo --source $(or $(SOURCE),files) --storage $(or $(STORAGE),disk)

demo-once: env ## The same, ending by itself with the exit code of verify
	@$(BIN)/python -m demo --once --source $(or $(SOURCE),files) --storage $(or $(STORAGE),disk)

test: env $(SUITES) ## The gate: one proof of each promise (13 minutes on two cores)
	@$(BIN)/python -m tests.skipped

test-all: export LIVEMART_TESTS := all
test-all: export PYTEST_ADDOPTS := --timeout=1800
test-all: flights-data test audit-if-there ## Every test that is certain (an hour)

test-nightly: export LIVEMART_TESTS := nightly
test-nightly: export PYTEST_ADDOPTS := --timeout=14400
test-nightly: flights-data test ## All tests, every count in full, random ones with new seeds (hours)

test-repeat: env ## The gate, or SUITE=unit, serve, ..., N=5 times; goes on where it was cut off
	@$(BIN)/python scripts/repeat.py --runs $(or $(N),5) $(SUITE)

test-unit: env-unit ## Tests without a JVM
	$(PYTEST_PLAIN) tests/unit -n 2 -q

test-serve: env-unit ## Serving store, API and push, and attacks on them, without a JVM, on SQLite and PostgreSQL
	$(PYTEST) tests/serve tests/attacks tests/store tests/publish -n 4 -q

test-storage: export LIVEMART_TESTS := all
test-storage: env ## Tables, state and commands over a disk, a memory that fails, and S3 (moto)
	$(PYTEST) tests/unit/storage tests/unit/state tests/unit/delta tests/integration/run/test_bucket.py -q

test-e2e: env-unit ## The owner's page in Chromium; pictures of every state in artifacts/e2e
	$(PYTEST_PLAIN) tests/e2e -n 2 -q

audit: ## Known vulnerabilities of the locked packages, from PyPI; fails if it cannot be asked
	@$(PYTHON) scripts/audit.py

# Without an answer from PyPI the tests are as certain as before: said, and no failure.
audit-if-there:
	@$(PYTHON) scripts/audit.py --may-be-away

flights-data: env
	@$(BIN)/python -m examples.flights.deliver --fetch-only

class-archive: env
	@$(BIN)/python -m tests.class_archive

services: env
	@$(BIN)/python -m tests.services.maven kafka

# Files stay in their order, which begins with the longest.
test-spark: env class-archive services ## Spark in the tests' own process, and commands as processes
	$(PYTEST_PLAIN) tests/equivalence tests/faults tests/dbt tests/integration -q \
		-n 2 --dist loadfile --no-loadscope-reorder

golden: env-unit ## Rewrite the golden files of the planner; review the diff
	@$(BIN)/python -m tests.unit.plan.golden

bench-landing: env ## Records of each format into an empty table, beside a plain stream of Spark (ARGS="--help")
	@$(BIN)/python -m bench.landing $(ARGS)

bench-refresh: env ## Refresh at 1 M and 10 M orders against recompute and DuckDB (hours, 12 GB; ARGS="--help")
	@$(BIN)/python -m bench.refresh $(ARGS)

bench-histories: env ## Histories whose orders may tie at 200 k to 2 M changes, against recompute (ARGS="--help")
	@$(BIN)/python -m bench.histories $(ARGS)

bench-models: env ## A tick of a hundred small models, against recompute, dbt and DuckDB (ARGS="--help")
	@$(BIN)/python -m bench.models $(ARGS)

bench-serve: env-unit ## Reads and push under load on one core (ARGS="--pipeline": from a file to the page, needs Java)
	@$(BIN)/python -m bench.serve $(ARGS)

bench-command: env ## One refresh as a command, from its call to its end, with and without news (ARGS="--help")
	@$(BIN)/python -m bench.command $(ARGS)

bench-rules: env ## A refresh by each rule of the planner, beside a recomputation (an hour; ARGS="--help")
	@$(BIN)/python -m bench.rules $(ARGS)

bench-storage: env ## A batch of the mart with tables and files in a bucket, beside a disk (ARGS="--help")
	@$(BIN)/python -m bench.storage $(ARGS)

bench-soak: env ## What 1,000 batches of the mart leave behind: files, versions, store, memory (hours; ARGS="--help")
	@$(BIN)/python -m bench.soak $(ARGS)

lint: env-unit ## Every check that needs no test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/names.py
	$(BIN)/python scripts/prose.py
	$(BIN)/python scripts/touches.py
	$(BIN)/sqlfluff lint models tests/dbt examples
	$(BIN)/yamllint --strict .
	git ls-files -z | xargs -0 $(BIN)/codespell

format: env-unit ## Format Python
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: ## Resolve requirements/dev.lock anew from pyproject.toml (needs uv)
	$(PYTHON) -m uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" --extra dev -o requirements/dev.lock pyproject.toml

clean: ## Remove what runs left behind; .venv and the jars stay
	rm -rf warehouse landing target logs spark-warehouse artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis
