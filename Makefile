# Spark Plane. On a fresh machine: `make plane`, then `make test`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Tests wait for hosts more than they compute: one worker more than cores, on labs of their own.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)
STAMP := $(VENV)/.ready

.PHONY: help setup packages plane test test-long lint lab-down

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: $(STAMP) packages ## The environment only: .venv, and Debian packages for the lab

# The newest supported Python that can make an environment.
find_python = for p in python3.13 python3.12 python3.11 python3; do \
	  $$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1 && { echo $$p; break; }; done
# With root, on a machine with apt. The lists are read anew: a fresh machine has none.
apt_install = apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends
may_install = [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null

$(STAMP): requirements.txt
	@python=$$($(find_python)); \
	if [ -z "$$python" ] && $(may_install); then \
	  echo "installing python3-venv"; $(apt_install) python3 python3-venv >/dev/null; python=$$($(find_python)); \
	fi; \
	if [ -z "$$python" ]; then \
	  echo "needs Python 3.11, 3.12 or 3.13 with its venv module (Debian: apt-get install python3-venv)" >&2; exit 3; \
	fi; \
	echo "installing the environment with $$($$python -V) into $(VENV)"; \
	rm -rf $(VENV) && $$python -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-compile --require-hashes -r requirements.txt
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m compileall -q -j 0 -x ansible_collections $(VENV)/lib || true
	@touch $@

packages: $(STAMP)
	@missing=$$($(BIN)/python -c 'from provision.lab.needs import packages_missing; print(*packages_missing())'); \
	if [ -n "$$missing" ] && $(may_install); then echo "installing $$missing"; $(apt_install) $$missing >/dev/null; fi

plane: setup ## The lab, then every phase of the plane on it
	@$(BIN)/python -m provision plane

test: setup ## Everything but the slow fault matrices
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not long" $(ARGS)

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
