# make demo   the idea in two minutes: a table here and demo/report.html
# make test   everything CI runs: check, then every test
# make check  ruff, mypy --strict, import-linter
# make docs   the documentation as a site in site/; a dead link fails
#
# Needs Python 3.11 or newer. The first call makes .venv and installs; later calls do so only when pyproject.toml or
# constraints.txt have changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# what `make check` and `make test` install beside the package itself; tests of what is left out skip
EXTRAS ?= train,annotate,dev,docs,activeml,ray
WORKERS ?= 2

comma := ,
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt

.PHONY: demo test check docs install
.DELETE_ON_ERROR:

demo: $(INSTALLED)
	$(BIN)/shortlist demo

# -v takes back the -q of pyproject.toml, so that the summary is the usual one; -rs says why tests skipped
# one thread a worker: small matrices gain nothing from more, and workers would fight over the cores; worksteal: the last
# tests are the longest (kernels in an interpreter), and would all wait for one worker
test: check
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -v -rs

check: $(INSTALLED_DEV)
	$(BIN)/ruff check --output-format concise .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(INSTALLED_DEV)
	$(BIN)/python -m mkdocs build --strict --quiet

install: $(INSTALLED_DEV)

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Shortlist into $(VENV) (the first time takes a few minutes)"
	$(PIP) -e ".[train]"
	@touch $@

$(INSTALLED_DEV): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Shortlist with [$(EXTRAS)] into $(VENV) (the first time takes a few minutes)"
	$(PIP) -e ".[$(EXTRAS)]"
	@touch $(INSTALLED) $@

$(BIN)/python:
	@command -v "$(PYTHON)" >/dev/null || { echo "make: $(PYTHON) was not found: Shortlist needs Python 3.11 or newer (make PYTHON=/path/to/python3)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $$("$(PYTHON)" --version 2>&1) is too old: Shortlist needs Python 3.11 or newer (make PYTHON=/path/to/python3.11)" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
