# `make help` prints the targets.
.DEFAULT_GOAL := help
.PHONY: help run test test-fast test-all test-timezones house-figures mutants crashes attacks fuzz check bench replay replay-compare controlplane demo-kubernetes demo-first-day demo-billing lock clean env env-dev
PYTHON ?= python3
VENV ?= .venv
PORT ?= 8000
HOST ?= 127.0.0.1
ONLY ?=
SIZE ?=
EVERY ?=
OUT ?=
DEEP ?=
TIME_ZONE_TESTS = $(addprefix tests/billing/,domain catalogue documents ledger month_close periods quotes rating reports)
export VENV DEEP

help:  ## Print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)$$/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do \
		printf '  make %-16s %s\n' "$$name" "$$what"; done
	@echo '  Options: run FRESH=1 PORT=8100 HOST=0.0.0.0 DATA=<folder>; test ONLY=<folder, file or marker> DEEP=<all|none|commit>;'
	@echo '           bench ONLY=<house|kubernetes|placement|billing|face|telemetry>, with kubernetes SIZE=<small|many>;'
	@echo '           any: PYTHON=<python3.11 or newer>'
	@echo '  DATABASE_URL=<administrator login> uses that PostgreSQL (15 or newer) instead of starting one.'

run: env  ## Start everything on this machine; Ctrl-C stops it (FRESH=1 starts over)
	@exec $(VENV)/bin/python -m deploy.embedded run --port "$(PORT)" --host "$(HOST)" $(if $(DATA),--data "$(DATA)") $(if $(FRESH),--fresh)

test: env-dev  ## Run the tests: fast, browser, cluster, one fifth of the deep tests (ONLY=<folder, file or marker>)
	@exec $(VENV)/bin/python -m tests.run "$(ONLY)"

test-fast: env-dev  ## Run the fast tests only
	@exec $(VENV)/bin/python -m tests.run fast

test-all: env-dev  ## Run every test, including all deep tests, and measure coverage
	@exec $(VENV)/bin/python -m tests.run all

test-timezones: env-dev  ## Run the billing tests with process and database sessions in other time zones (ONLY=<folders>)
	@TESTS_IN_OTHER_TIME_ZONES=1 exec $(VENV)/bin/python -m tests.run $(if $(ONLY),$(ONLY),$(TIME_ZONE_TESTS))

check: env-dev  ## Format, lint, types, import contract, migrations, deployment checks, secrets
	@exec $(VENV)/bin/python -m deploy.check

house-figures: env-dev  ## Code-size metrics (names, docstrings, templates, lines, executed files), compared with limits
	@exec $(VENV)/bin/python -m deploy.code_metrics

bench: env-dev  ## Print one JSON line per figure; fails when a goal is missed (ONLY=<area>)
	@exec $(VENV)/bin/python -m deploy.bench $(ONLY) $(SIZE)

mutants: env-dev  ## Run mutation tests: plant each known billing bug and check that its test finds it (ONLY="B12 B21")
	@exec $(VENV)/bin/python -m tests.mutants $(ONLY)

crashes: env-dev  ## Run crash tests: kill the invoice run before each statement, repeat it, compare (EVERY=20: some)
	@exec $(VENV)/bin/python -m tests.billing.crashes $(EVERY)

attacks: env-dev  ## Attack a running product and its append-only data; prints a table, all must be refused
	@$(VENV)/bin/python -m tests.attacks
	@exec $(VENV)/bin/python -m tests.billing.attacks

fuzz: env-dev  ## Send generated requests to every operation of the API as every role (EXAMPLES=<each, default 10>)
	@FUZZ_EXAMPLES=$(or $(EXAMPLES),10) exec $(VENV)/bin/python -m pytest tests/fuzz -q -s

replay: env  ## Replay the openb trace through the real services; writes build/replay.json and .html
	@exec $(VENV)/bin/python -m deploy.embedded.scratch python manage.py replay openb $(ARGS)

replay-compare: env  ## Replay the trace with first fit, best fit and our rule, and compare the results
	@for rule in first-fit best-fit; do $(VENV)/bin/python -m deploy.embedded.scratch \
		python manage.py replay openb $(ARGS) --engine $$rule --out build/$$rule || exit 1; done
	@exec $(VENV)/bin/python -m deploy.embedded.scratch python manage.py replay openb $(ARGS) \
		--compare-with build/first-fit/replay.json --compare-with build/best-fit/replay.json

controlplane: env-dev  ## Build the Kubernetes control plane for the cluster tests (needs Go; minutes, once per pin)
	@exec $(VENV)/bin/python -m tests.controlplane.build

demo-kubernetes: env-dev  ## Run a demo on two real control planes: leases as pods, a node and an API server killed
	@exec $(VENV)/bin/python -m deploy.embedded.scratch python -m tests.live.demo

demo-first-day: env-dev  ## Run the first day of an operator and a tenant: seven kinds of nodes, spot, logs, terminal; screenshots in build/first-day
	@exec $(VENV)/bin/python -m deploy.embedded.scratch python -m tests.live.first_day

demo-billing: env-dev  ## Run a two-month demo of five tenants with PDFs and verified bundles (OUT=<folder>)
	@exec $(VENV)/bin/python -m deploy.embedded.scratch python -m tests.billing.demo $(OUT)

lock:  ## Resolve all dependencies again and rewrite both lock files (needs uv)
	@UV_PYTHON_DOWNLOADS=never uv lock --quiet --upgrade
	@uv export --quiet --extra embedded --no-default-groups --no-emit-project --no-header --no-annotate -o requirements.lock
	@uv export --quiet --extra embedded --group dev --no-emit-project --no-header --no-annotate -o requirements-dev.lock

clean:  ## Remove build/ and all tool caches; keeps .venv and your data
	@rm -rf build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.*
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

env:
	$(call prepare_environment,run "$(PORT)")

env-dev:
	$(call prepare_environment,dev)

# environment.py rejects a Python that is too old for the product; this check rejects one that cannot run environment.py.
define prepare_environment
@[ "$$("$(PYTHON)" -c 'import sys; print(sys.version_info >= (3, 7))' 2>/dev/null)" = True ] || { \
	echo 'PYTHON=$(PYTHON) does not start or is too old: name Python 3.11 or newer, make run PYTHON=/path/to/python3.11.' >&2; \
	exit 1; }
@"$(PYTHON)" -m deploy.embedded.environment $(1)
endef
