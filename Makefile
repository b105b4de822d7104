# `make help` lists what can be done here. Every target sets up what it needs (tools/setup).
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check lint bench campaign nightly reproduce docs lock clean

BIN := .venv/bin
READY := .venv/.ready

# Where `make demo` forwards events: emulator, or ovs for Open vSwitch (as root).
DATAPLANE ?= emulator
export DATAPLANE

help: ## Show this list
	@echo 'Plerion: publish/subscribe whose filters run inside the network.'
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'Needs Python 3.11 or later, git and make; the rest is fetched on first use.'

demo: $(READY) ## Watch real weather cross a fat tree while Spark finds a better index and it goes live (about a minute)
	@[ "$$(id -u)" -ne 0 ] || tools/setup --system java $(if $(filter ovs,$(DATAPLANE)),ovs)
	@$(BIN)/plerion demo --figure demo.png

test: ## Run the linters and the tests, those against Open vSwitch included; `make campaign` has the long ones
	@echo '== programs of the system: Java 17 or later, Open vSwitch'
	@tools/setup --system pip java ovs
	@$(MAKE) --no-print-directory lint
	@echo '== tests, two at a time'
	@$(BIN)/pytest -n 2 --dist loadfile -m 'not campaign'

check: lint ## Run the linters and the fast tests, before every commit (seconds)
	@echo '== fast tests'
	@$(BIN)/pytest -m 'not slow and not ovs' tests/unit tests/architecture

lint: $(READY) ## Run ruff, mypy --strict and import-linter
	@echo '== ruff'
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@echo '== mypy --strict'
	@$(BIN)/mypy --no-error-summary
	@echo '== import-linter'
	@$(BIN)/lint-imports --no-logo

bench: $(READY) ## Measure the hot paths and compare with what they must reach
	@$(BIN)/plerion bench

campaign: $(READY) ## Run the scenarios on real switches, hosts and processes; wants an idle machine
	@tools/setup --system ovs
	@$(BIN)/pytest -m campaign tests/ovs

nightly: $(READY) ## Check the promises of every update strategy on 10,000 random networks (half an hour)
	@$(BIN)/plerion simulate --seed 1000 --runs 10000

reproduce: $(READY) ## Compute the papers' figures again into figures/ (long; SCALE=0.2 for less, DATA= the real data)
	@$(BIN)/plerion reproduce --scale $(or $(SCALE),1) $(if $(DATA),--data $(DATA))

docs: $(READY) ## Check the documents: every link leads somewhere, every example runs
	@$(BIN)/pytest tests/architecture/test_documents.py

lock: $(READY) ## Bring requirements.lock in line with pyproject.toml
	@PATH="$$PATH:$(CURDIR)/.venv-tools/bin" uv pip compile --quiet --universal --generate-hashes --no-header \
		--no-annotate --python-version 3.11 --extra controller --extra demo --extra pipeline --group dev pyproject.toml -o requirements.lock
	@echo 'requirements.lock agrees with pyproject.toml; the next target installs it'

clean: ## Remove everything that can be made again
	rm -rf .venv .venv-tools .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .numba_cache site build dist
	find . -name __pycache__ -prune -exec rm -rf {} +

$(READY): pyproject.toml requirements.lock tools/setup
	@tools/setup
