# make demo        the demo skill on the embedded model
# make demo-agent  a skill of several files, by our own agent on a scripted model
# make quick       the unit tests, for the inner loop: two or three minutes
# make test        the gate that CI runs: meant to take ten minutes on two cores
# make nightly     everything: all tests with coverage, real agents, both browsers, benchmarks
# make agents      the real agents, installed by npm into build/agents, on a scripted model
# make golden      what golden runs show and write, renewed
# make docs        the documentation site, in build/site
# make reference   the tables of docs/ that are made from the code
# make corpus      lint, list and collect the skills of every repository in the folder DIR
#
# All you need is Python 3.11 or later. The first run creates .venv, later ones reuse it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
DEMO_SKILL := skills/wick
# No process, no browser, no model, no pytest inside pytest.
UNIT := _util checks engine lint measure models reports results skills stats trials test_errors.py

# The tests start Python many times, which is faster with compiled modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-agent quick test nightly static docs format lint types layers programs browsers \
  tests coverage agents wheel corpus bench smoke golden reference pictures clean

demo: $(VENV)/.user
	$(BIN)/pytest --skill $(DEMO_SKILL) --model local

quick: $(VENV)/.dev
	$(BIN)/pytest -q -n 2 -m "not nightly" $(UNIT:%=tests/%)

demo-agent: $(VENV)/.user
	$(BIN)/pytest --skill examples/harbour-manifest --skill-agent loop \
	  --model scripted:examples/harbour_model.py:answer -o skill_history=false -v
	@echo "A script played the model: this shows how an agent's trial goes, and measures nothing."

test:
	$(MAKE) --jobs 2 $(VENV)/.dev programs
	$(MAKE) --jobs 2 static
	$(MAKE) tests

nightly: $(VENV)/.dev programs browsers
	$(MAKE) --jobs 2 static
	$(MAKE) --keep-going coverage agents smoke

# Two at a time; the longest first.
static: types docs wheel lint layers

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python ci/count_style.py --lower

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python ci/count_style.py

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

# The tests of the HTML page need Chromium and axe-core, those of agents bubblewrap; the night needs
# Firefox, too. CI installs all; elsewhere tests are skipped without.
programs:
	@$(call install,chromium,chromium fonts-dejavu-core)
	@$(call install,bwrap,bubblewrap)
	@test -e build/axe/node_modules/axe-core || ! command -v npm >/dev/null || \
	  npm install --silent --no-audit --no-fund --ignore-scripts --prefix build/axe axe-core@4

browsers:
	@command -v firefox >/dev/null || { $(call install,firefox-esr,firefox-esr); }

# $(call install,PROGRAM,PACKAGES): as packages of Debian, in CI only.
define install
if [ -n "$$CI" ] && ! command -v $(1) >/dev/null && command -v apt-get >/dev/null; then \
  as_root=$$([ "$$(id -u)" = 0 ] || command -v sudo || true); \
  $$as_root apt-get update -qq && $$as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $(2); \
fi
endef

tests: $(VENV)/.dev programs
	$(BIN)/pytest -n 3 --dist loadfile -m "not nightly" --ignore tests/real_agents

coverage: $(VENV)/.dev programs browsers
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -n 3 --dist loadfile --ignore tests/real_agents \
	  --hypothesis-profile nightly
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

# Whether benchmarks still run; what they say means nothing on a busy machine.
smoke: $(VENV)/.dev
	$(BIN)/python benchmarks/bench.py calls store

# Some GB, once; without npm, or for agents that can't be installed, the tests are skipped.
agents: $(VENV)/.dev programs
	$(BIN)/python tests/real_agents/install.py
	$(BIN)/pytest tests/real_agents -n 2

wheel: $(VENV)/.dev
	rm -rf dist build/wheel-venv
	$(BIN)/python -m build --wheel
	$(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	build/wheel-venv/bin/python tests/try_wheel.py

# Real skills, that nobody here wrote: no model is asked. CORPUS=-v names every skill refused.
corpus: $(VENV)/.user
	@test -d "$(DIR)" || { echo "Name a folder of repositories: make corpus DIR=…"; exit 2; }
	$(BIN)/python tests/try_corpus.py $(CORPUS) "$(DIR)"

# Takes 40 minutes on an otherwise idle machine; BENCH=calls runs one benchmark, BENCH=--write
# puts each table into docs/ as soon as it is there.
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/bench.py $(BENCH)

# RUNS=chat or RUNS="chat or matrix" renews only these; read the diff.
golden: $(VENV)/.dev
	$(BIN)/pytest -q tests/golden --renew $(if $(RUNS),-k "$(RUNS)")

# Warnings are errors: a link that leads nowhere, a page that the menu lacks.
docs: $(VENV)/.dev
	$(BIN)/python -m mkdocs build --strict

# The tables of docs/ that are made from the code.
reference: $(VENV)/.dev
	$(BIN)/python docs/make_reference.py

# The pictures of docs/reports.md; needs Chromium.
pictures: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python docs/pictures/make.py

# What users install: the package and the embedded model.
$(VENV)/.user: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "pytest-upskill needs Python 3.11 or later. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade "pip>=25.1"
	$(PIP) install --quiet --editable ".[local]"
	touch $@

# What developers add: the tools of `make test`.
$(VENV)/.dev: $(VENV)/.user
	$(PIP) install --quiet --group dev
	touch $@

clean:
	rm -rf $(VENV) build dist .coverage* .mypy_cache .pytest_cache .ruff_cache
