# The same few commands for people and for CI. `make` alone lists them.
PYTHON ?= python3
# In parallel, because most of the time goes into processes that wait for each other.
PYTEST_ARGS ?= -n auto --dist loadgroup
VENV   ?= .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help venv demo test check lint soak format install uninstall deb bench wheel-test clean docs lock

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(VENV)/.ready  ## a virtual environment with everything that development needs

$(VENV)/.ready: pyproject.toml requirements/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: venv  ## two minutes: a limit is crossed, a used cache is spared, the least recently used one goes
	$(BIN)/python -m tests.system.demo

test: venv  ## all tests (as root: also those with mounts and namespaces)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: lint test  ## format, lint, types, import contracts, tests: what CI runs

lint: venv  ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: venv  ## as root, for two hours: 100,000 evictions under hammers and what others do (the table of docs/hammers.md), 1,000 kills
	$(BIN)/python -m tests.soak
	$(BIN)/python -m tests.system.killing --kills 1000

format: venv  ## put the source in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheel-test: venv  ## the tests against the built wheel, with the sources out of the way
	.ci/wheel-test $(BIN)/python

docs: venv  ## write anew what is made from code: tables of layouts, man pages, dashboards
	$(BIN)/python -m cachewarden.layouts docs/layouts.md
	$(BIN)/python -m docs.man
	$(BIN)/python -m grafana

lock: venv  ## write the locked dependencies anew, without URLs
	.ci/lock $(PYTHON)

bench: venv  ## side-by-side measurements against du, lsof, rm; rewrites docs/BENCHMARKS.md
	$(BIN)/python -m benchmarks

PREFIX ?= /opt/cachewarden
UNITS  ?= /etc/systemd/system

install:  ## as root: the service with its own environment, the command, the units; enabled when the configuration is valid
	systemd/install $(PYTHON) $(PREFIX) $(UNITS)

uninstall:  ## as root: takes away what install brought; configuration and state stay, unless PURGE=1
	systemd/uninstall $(PREFIX) $(UNITS) $(PURGE)

deb:  ## a Debian package for this release and architecture, in dist/
	systemd/deb/build $(PYTHON)

clean:  ## remove what was built
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
