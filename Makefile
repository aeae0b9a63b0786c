# gpubroker's one menu. `make help` prints it.
.DEFAULT_GOAL := help
.PHONY: help run test test-fast test-all test-timezones code-metrics mutants crashes attacks check bench replay replay-compare controlplane demo-kubernetes demo-billing lock clean env env-dev
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

help:  ## Print this menu
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)$$/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do \
		printf '  make %-16s %s\n' "$$name" "$$what"; done
	@echo '  Options: run FRESH=1 PORT=8100 HOST=0.0.0.0 DATA=<folder>; test ONLY=<folder, file or marker> DEEP=<all|none|commit>;'
	@echo '           bench ONLY=<house|kubernetes|placement|billing|face|telemetry>, with kubernetes SIZE=<small|many>;'
	@echo '           any: PYTHON=<python3.11 or newer>'
	@echo '  DATABASE_URL=<administrator login> uses that PostgreSQL (15 or newer) instead of starting one.'

run: env  ## Start everything on this machine; Ctrl-C stops it (FRESH=1 begins anew)
	@exec $(VENV)/bin/python -m deploy.embedded run --port "$(PORT)" --host "$(HOST)" $(if $(DATA),--data "$(DATA)") $(if $(FRESH),--fresh)

test: env-dev  ## Run the tests: fast, browser, cluster, one fifth of the deep ones (ONLY=<folder, file or marker>)
	@exec $(VENV)/bin/python -m tests.run "$(ONLY)"

test-fast: env-dev  ## Run the fast tests only
	@exec $(VENV)/bin/python -m tests.run fast

test-all: env-dev  ## Run every test, all deep ones too, and measure coverage
	@exec $(VENV)/bin/python -m tests.run all

test-timezones: env-dev  ## Test charging, months and books with process and sessions in other time zones (ONLY=<folders>)
	@TESTS_IN_OTHER_TIME_ZONES=1 exec $(VENV)/bin/python -m tests.run $(if $(ONLY),$(ONLY),$(TIME_ZONE_TESTS))

check: env-dev  ## Format, lint, types, import contract, migrations, deployment checks, secrets
	@exec $(VENV)/bin/python -m deploy.check

code-metrics: env-dev  ## Count names, docstrings, templates, lines and files of journeys against their goals
	@exec $(VENV)/bin/python -m deploy.code_metrics

bench: env-dev  ## Print one JSON line per figure; fails when a goal is missed (ONLY=<area>)
	@exec $(VENV)/bin/python -m deploy.bench $(ONLY) $(SIZE)

mutants: env-dev  ## Plant each known mistake in a copy and see its test find it (ONLY="B12 B21" for some)
	@exec $(VENV)/bin/python -m tests.mutants $(ONLY)

crashes: env-dev  ## Kill the invoice run before each of its statements, run it again, compare (EVERY=20: some)
	@exec $(VENV)/bin/python -m tests.billing.crashes $(EVERY)

attacks: env-dev  ## Try to change what is append-only with every login, and the books as a superuser
	@exec $(VENV)/bin/python -m tests.billing.attacks

replay: env  ## Replay the openb trace through the real services; writes build/replay.json and .html
	@exec $(VENV)/bin/python -m deploy.embedded.scratch python manage.py replay openb $(ARGS)

replay-compare: env  ## Replay it by first fit, by best fit and by our rule, and compare them
	@for rule in first-fit best-fit; do $(VENV)/bin/python -m deploy.embedded.scratch \
		python manage.py replay openb $(ARGS) --engine $$rule --out build/$$rule || exit 1; done
	@exec $(VENV)/bin/python -m deploy.embedded.scratch python manage.py replay openb $(ARGS) \
		--compare-with build/first-fit/replay.json --compare-with build/best-fit/replay.json

controlplane: env-dev  ## Build the Kubernetes that the cluster tests speak to (needs Go; minutes, once per pin)
	@exec $(VENV)/bin/python -m tests.controlplane.build

demo-kubernetes: env-dev  ## Show it on two real control planes: leases as pods, a node and an API server killed
	@exec $(VENV)/bin/python -m deploy.embedded.scratch python -m tests.live.demo

demo-billing: env-dev  ## Live a month of five tenants, lay its invoices out, prove every line (OUT=<folder>)
	@exec $(VENV)/bin/python -m deploy.embedded.scratch python -m tests.billing.demo $(OUT)

lock:  ## Resolve the dependencies anew and rewrite both lock files (needs uv)
	@UV_PYTHON_DOWNLOADS=never uv lock --quiet --upgrade
	@uv export --quiet --extra embedded --no-default-groups --no-emit-project --no-header --no-annotate -o requirements.lock
	@uv export --quiet --extra embedded --group dev --no-emit-project --no-header --no-annotate -o requirements-dev.lock

clean:  ## Remove build/ and every cache of a tool; keeps .venv and your data
	@rm -rf build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.*
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

env:
	$(call prepare_environment,run "$(PORT)")

env-dev:
	$(call prepare_environment,dev)

# environment.py refuses what is too old for the product; this refuses what cannot even start environment.py.
define prepare_environment
@[ "$$("$(PYTHON)" -c 'import sys; print(sys.version_info >= (3, 7))' 2>/dev/null)" = True ] || { \
	echo 'PYTHON=$(PYTHON) does not start or is too old: name Python 3.11 or newer, make run PYTHON=/path/to/python3.11.' >&2; \
	exit 1; }
@"$(PYTHON)" -m deploy.embedded.environment $(1)
endef
