# Two commands need nothing but Python 3.11 or later and make: `make demo`, `make test`.
# Each makes .venv itself and leaves the system's Python alone; a second run reuses it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
DEMO_SKILL := skills/wick

# The tests start Python hundreds of times, which is quicker with compiled modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test format lint types layers browser tests wheel bench pictures clean

demo: $(VENV)/.user
	$(BIN)/pytest --skill $(DEMO_SKILL) --model local --skill-max-output 120

test: lint types layers tests wheel

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

# Tests of the HTML report need a browser. A machine of CI is new and gets one; on a developer's
# that has none they are skipped.
browser:
	@if [ -n "$$CI" ] && ! command -v chromium >/dev/null && command -v apt-get >/dev/null; then \
	  as_root=$$([ "$$(id -u)" = 0 ] || command -v sudo || true); \
	  $$as_root apt-get update -qq && \
	  $$as_root env DEBIAN_FRONTEND=noninteractive \
	    apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; \
	fi

tests: $(VENV)/.dev browser
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -n 2 --dist loadgroup
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

wheel: $(VENV)/.dev
	rm -rf dist build/wheel-venv
	$(BIN)/python -m build --wheel
	$(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	build/wheel-venv/bin/python tests/try_wheel.py

# Takes some minutes and wants a machine to itself; BENCH=calls runs one of them.
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/bench.py $(BENCH)

# The pictures of docs/reports.md; wants Chromium.
pictures: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python docs/pictures/make.py

# What a user has: the package and the embedded model.
$(VENV)/.user: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "pytest-upskill needs Python 3.11 or later; say which: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	$(PIP) install --editable ".[local]"
	touch $@

# What a developer has besides: the tools of `make test`.
$(VENV)/.dev: $(VENV)/.user
	$(PIP) install --group dev
	touch $@

clean:
	rm -rf $(VENV) build dist .coverage* .mypy_cache .pytest_cache .ruff_cache
