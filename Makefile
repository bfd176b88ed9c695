# Spark Plane. On a fresh machine: `make plane`, then `make test`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
STAMP := $(VENV)/.ready

.PHONY: help setup packages plane test test-long lint lab-down clean

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: packages $(STAMP) ## The environment only: Debian packages and .venv

# Tools the lab calls; installed only when one is missing, and only with root on a machine with apt.
packages:
	@missing=$$($(call find_python) -m provision.lab.needs --packages 2>/dev/null || true); \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing $$missing"; \
	  apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing >/dev/null; \
	fi

# The newest supported Python that runs and can make an environment.
find_python = for p in python3.13 python3.12 python3.11 python3; do \
	  $$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1 && { echo $$p; break; }; done

$(STAMP): requirements.txt
	@python=$$($(find_python)); \
	if [ -z "$$python" ]; then echo "needs Python 3.11, 3.12 or 3.13 with its venv module (Debian: apt-get install python3-venv)" >&2; exit 3; fi; \
	rm -rf $(VENV) && $$python -m venv $(VENV) && echo "installing the environment with $$($$python -V)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-compile --require-hashes -r requirements.txt
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m compileall -q -j 2 $(VENV)/lib -x ansible_collections || true
	@touch $@

plane: setup ## The lab, then every phase of the plane on it
	@$(BIN)/python -m provision plane

test: setup ## Everything but the slow fault matrices
	@$(BIN)/python -m pytest -m "not long" $(ARGS)

test-long: setup ## The slow fault matrices
	@$(BIN)/python -m pytest -m long $(ARGS)

lint: $(STAMP) ## ansible-lint (production), yamllint, ruff, mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/yamllint --strict .
	$(BIN)/ansible-lint

lab-down: $(STAMP) ## Take the lab down
	@$(BIN)/python -m provision lab down
