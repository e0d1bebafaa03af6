# make demo    the idea in two minutes: a table here and demo/report.html
# make quick   most tests in a minute and a half: no browser, PostgreSQL, kernels, kill -9, docs (tests/conftest.py), and
#              fewer examples of Hypothesis's
# make test    everything CI runs: check, docs, then every test (make -j2 test: the tests begin beside docs)
# make kernels every check of the GPU kernels on the CPU (minutes); make test leaves the longest out while nothing has changed
# make check   ruff, mypy --strict, import-linter
# make docs    the documentation as a site in site/; a dead link fails
# make lowest  make quick with the lowest versions that pyproject.toml allows, in .venv-lowest
# make extras  the wheel with each extra alone in an empty environment (installs for minutes)
#
# Needs Python 3.11 or newer. The first call makes .venv and installs; later calls do so only when pyproject.toml or
# the constraints have changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS ?= constraints.txt
# what all but `make demo` install beside the package itself; tests of what is left out skip
EXTRAS ?= train,annotate,dev,docs,activeml,ray
WORKERS ?= 3

comma := ,
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))
# without --no-compile pip compiles 20,000 modules, four in five of which nothing here ever imports; the others are
# compiled by whoever imports them first, which must then be allowed to keep the result
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile -c $(CONSTRAINTS)
# -v takes back the -q of pyproject.toml, so that the summary is the usual one; -rs says why tests skipped
# one thread per worker: small matrices gain nothing from more, and workers would fight over the cores; worksteal: the
# last tests are the longest (kernels in an interpreter), and would all wait for one worker
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -v -rs

.PHONY: demo quick test tests kernels check docs lowest extras install
.DELETE_ON_ERROR:

demo: $(INSTALLED)
	$(BIN)/shortlist demo

# nothing in it waits: more than there are cores would only load PyTorch once more
quick: WORKERS = 2
quick: $(INSTALLED_DEV)
	$(PYTEST) --hypothesis-profile quick -m "not (browser or kernels or kill or docs or slow or postgres)"

test: check docs tests

tests: check
	$(PYTEST)

kernels: $(INSTALLED_DEV)
	SHORTLIST_KERNELS=1 $(PYTEST) -m kernels
	$(BIN)/python -m tests.training.fleet.checked

check: $(INSTALLED_DEV)
	$(BIN)/ruff check --output-format concise .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(INSTALLED_DEV)
	OMP_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

lowest:
	$(MAKE) quick VENV=.venv-lowest CONSTRAINTS=constraints-lowest.txt EXTRAS=train,annotate,activeml,test

extras:
	$(PYTHON) tools/check_extras.py

install: $(INSTALLED_DEV)

$(INSTALLED): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing Shortlist into $(VENV) (the first time takes a few minutes)"
	$(PIP) -e ".[train]"
	@touch $@

$(INSTALLED_DEV): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing Shortlist with [$(EXTRAS)] into $(VENV) (the first time takes a few minutes)"
	$(PIP) -e ".[$(EXTRAS)]"
	@touch $(INSTALLED) $@

$(BIN)/python:
	@command -v "$(PYTHON)" >/dev/null || { echo "make: $(PYTHON) was not found: Shortlist needs Python 3.11 or newer (make PYTHON=/path/to/python3)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $$("$(PYTHON)" --version 2>&1) is too old: Shortlist needs Python 3.11 or newer (make PYTHON=/path/to/python3.11)" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
