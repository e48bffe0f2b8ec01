# SPDX-License-Identifier: GPL-3.0-or-later
# make demo    a tour on this machine, no Azure needed      make lint    every static check; make lint-all with each version
# make demo-fleet   its second act: Ansible and three real hosts, as root
# make cast    draws docs/demo.svg, from a run of the demo      make docs      the documentation site, in build/docs
# make test    every test, at size small                    make bench   how long things take
# make test-all   every test at size full, as each night    make test-root   as root: what make test leaves out
# make unit    only the unit tests, or those of PACKAGE=runner: some three minutes on two cores; make integration: the others
# make coverage     which branches the unit tests take, file by file; the minimum is in pyproject.toml
# make test-vm VM_PYTHON=3.8         the tests of the runner as a process, by that Python instead of .venv's
# make test-ansible                  the tests of the plugins by each other ansible-core, or those of CORES="2.16 2.21"
# make lab     tests on real hosts (tests/lab/README.md)    make runner  dist/forewarn.pyz, the runner for VMs
# make known-faults   brings faults back that were found and mended, one after another: a test catches each; or those of FAULTS='WORD …'
# make mutants   changes the prover, and what decides events, in one place after another, and lists the changes that no test
#              notices: about 30 minutes; PACKAGE='policy runner' changes only these, of policy, runner, smt and event_space
# make screenshots   pictures of the pages of a fleet of 300 hosts and of policies, in .cache/screenshots; it needs Chromium
# make figures   what hooks cost users of HAProxy, PostgreSQL, RabbitMQ and others, with Forewarn and without; as root
# make soak    kills the runner, plays stories of many VMs and contradicts the prover for SECONDS (default 600), in ways that no earlier run has tried
# make release VERSION=1.2.3 SIGNING_KEY=KEY   see CONTRIBUTING.md
# Each creates .venv if necessary. Variables: PYTHON (the interpreter for .venv), PYTEST_ARGS, PACKAGE, SECONDS, VERSION, SIGNING_KEY, CORES, VM_PYTHON.

PY := .venv/bin/python
INSTALLED := .venv/.installed $(addprefix .venv/.installed-,test lint docs)
# Tests of one file share what is slow to set up, but unit tests share little.
DIST := loadfile
PYTEST_ARGS ?= --numprocesses auto --dist $(DIST)
SECONDS ?= 600
# Tests of processes and of hosts mostly wait, so more of them run at once than there are processors.
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
# At size small, other Pythons and ansible-cores are left to make test-root: installing them takes minutes.
OWN_VERSIONS = $(if $(filter-out small,$(FOREWARN_SIZE)),,-m 'not versions')
report = --junitxml=.cache/reports/$(1).xml
# In a directory, the subdirectories that PACKAGE names, or the files whose names begin with them; without PACKAGE, all.
tests = $(foreach package,$(or $(PACKAGE),.),$(or $(wildcard $(1)/$(package)),\
	$(wildcard $(1)/test_$(package)*.py $(1)/*/test_$(package)*.py $(1)/*/*/test_$(package)*.py),\
	$(error There is neither $(1)/$(package) nor $(1)/test_$(package)*.py)))
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Where modules may not be kept compiled, each of some thousand processes compiles them anew.
unexport PYTHONDONTWRITEBYTECODE
# The first of these that exists and is a version that we test with.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	if $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; \
	then echo $$python; break; fi; done)
VM_TESTS := run run_service crashes_processes drill_service dry_run faults_hooks faults_journal \
	probe_service recover_service
ANSIBLE_TESTS := ansible_filters ansible_findings ansible_module ansible_policies ansible_windows fleet_callback \
	fleet_playbooks role_build role_rescue role_variables
heading = @printf '\n== %s\n'
# Each ansible-core that we test with, but for the one in .venv.
OTHER_CORES := $(filter-out $(shell sed -n 's/^ansible = .*>=\([0-9.]*\),.*/\1/p' pyproject.toml),$\
	$(shell sed -n 's/^\([0-9.]*\) .*/\1/p' tests/tools/ansible-cores.txt))
CORES ?= $(OTHER_CORES)
# What a VM may have.
VM_PYTHONS := 3.8 3.9 3.10 3.11 3.12 3.13
VM_PYTHON ?= $(firstword $(VM_PYTHONS))
# Of the other ansible-cores and Pythons, the oldest; make lint-all tries all. The longest first: the others run beside it.
LINT := sanity sanity-$(firstword $(OTHER_CORES)) sanity-$(firstword $(VM_PYTHONS)) ansible-lint mypy docs galaxy changelog ruff \
	constraints shellcheck reuse yamllint
LINT_ALL := $(LINT) $(filter-out $(LINT),$(OTHER_CORES:%=sanity-%) $(VM_PYTHONS:%=sanity-%))
# Neither directory is part of the collection.
SANITY := sanity $(addprefix --exclude ,$(wildcard demo/ tests/))

.PHONY: demo demo-fleet cast docs test test-all compiled test-plan test-root test-processes test-hosts test-unit test-vm test-ansible unit integration coverage lab figures soak mutants known-faults lint lint-all bench screenshots runner release venv \
	constraints format clean $(LINT_ALL:%=lint-%) $(CORES:%=test-ansible-%)

demo: .venv/.installed
	$(PY) demo/demo.py

demo-fleet: .venv/.installed
	@$(PY) demo/fleet_demo.py

cast: .venv/.installed
	$(PY) demo/cast.py docs/demo.svg

docs: .venv/.installed-docs
	tests/tools/docs/site/build.sh build/docs

# In three runs: connections to hosts have threads, which tests of processes count.
test: test-plan test-unit test-processes test-hosts

# What the unit tests cover is measured here alone: measuring doubles their time.
test-all: export FOREWARN_SIZE = full
test-all: test-plan coverage test-processes test-hosts

# In a fresh checkout, each of pytest's workers would compile every file of tests, all at the same time.
compiled: .venv/.installed-test
	$(PY) -m pytest -n0 --collect-only --quiet tests/unit tests/integration >/dev/null

# What runs, what this machine lacks, and how long it takes.
test-plan: .venv/.installed-test
	@cd tests && ../$(PY) -m tools.suite.timings plan

test-processes: .venv/.installed-test
	$(heading) 'tests of processes'
	$(PY) -m pytest $(PYTEST_ARGS) $(OWN_VERSIONS) $(call report,processes) tests/integration

test-hosts: .venv/.installed-test
	$(heading) 'tests on hosts'
	$(PY) -m pytest $(PYTEST_ARGS) $(call report,hosts) tests/lab

test-unit: .venv/.installed-test
	$(heading) 'unit tests'
	$(PY) -m pytest $(PYTEST_ARGS) $(OWN_VERSIONS) $(call report,unit) tests/unit

# For CI, after make test as a plain user.
test-root: .venv/.installed-test
	$(heading) 'tests that need root, or other versions of Python and ansible-core'
	$(PY) -m pytest $(PYTEST_ARGS) $(call report,root) -m 'root or versions' $(shell grep -rlE 'mark\.(root|versions)\b' --include='*.py' tests/unit tests/integration)

# What a VM runs, as a process of its own: started, killed, with hooks, drills and a damaged journal.
test-vm: .venv/.installed-test
	$(heading) 'the runner, with Python $(VM_PYTHON)'
	FOREWARN_VM_PYTHON=$(VM_PYTHON) $(PY) -m pytest $(PYTEST_ARGS) $(call report,vm) $(VM_TESTS:%=tests/integration/*/test_%.py)

test-ansible: $(CORES:%=test-ansible-%)

$(CORES:%=test-ansible-%): test-ansible-%: .venv/.installed-test
	$(heading) 'the plugins, with ansible-core $*'
	FOREWARN_ANSIBLE_CORE=$* $(PY) -m pytest $(PYTEST_ARGS) $(call report,ansible) $(ANSIBLE_TESTS:%=tests/integration/collection/test_%.py)

unit test-unit coverage: DIST := worksteal
unit test-unit coverage: export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell expr 1 + $(PROCESSORS))
integration test-processes test-root test-vm $(CORES:%=test-ansible-%): export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell expr 3 \* $(PROCESSORS))
# Without root there are no hosts, and little to do.
lab test-hosts: export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(if $(filter 0,$(shell id -u)),$(shell expr 2 \* $(PROCESSORS)),0)

unit: .venv/.installed-test
	$(heading) 'unit tests'
	$(PY) -m pytest $(PYTEST_ARGS) $(call tests,tests/unit)

integration: .venv/.installed-test
	$(heading) 'integration tests'
	$(PY) -m pytest $(PYTEST_ARGS) $(call tests,tests/integration)

coverage: .venv/.installed-test
	$(heading) 'coverage by the unit tests'
	$(PY) -m pytest $(PYTEST_ARGS) --cov --cov-report=term $(if $(PACKAGE),--cov-fail-under=0) $(call tests,tests/unit)

lab: .venv/.installed-test
	$(heading) 'lab'
	FOREWARN_REQUIRED=hosts FOREWARN_SIZE=full $(PY) -m pytest $(PYTEST_ARGS) tests/lab

# What hooks cost the users of real software, with Forewarn and without: docs/hooks/README.md.
# One file after the other: the processors of this machine are what the software has.
figures: .venv/.installed-test
	$(heading) 'figures of hooks'
	rm -rf .cache/figures
	FOREWARN_REQUIRED=hosts FOREWARN_SIZE=full FOREWARN_FIGURES=$(CURDIR)/.cache/figures $(PY) -m pytest -q --numprocesses 0 tests/lab/hooks
	cd tests && ../$(PY) -m tools.docs.hook_figures ../.cache/figures

soak: .venv/.installed-test
	cd tests && ../$(PY) -m tools.suite.soak $(SECONDS)

known-faults: .venv/.installed-test
	cd tests && ../$(PY) -m tools.suite.known_faults $(FAULTS)

mutants: .venv/.installed-test
	cd tests && ../$(PY) -m tools.suite.mutants $(PACKAGE)

bench: .venv/.installed-test
	$(PY) tests/benchmarks/run.py

screenshots: .venv/.installed-test
	cd tests && ../$(PY) -m tools.docs.screenshots ../.cache/screenshots

runner: .venv/.installed
	@mkdir -p dist
	@$(PY) -m forewarn.cli.main bundle --output dist/forewarn.pyz

release: .venv/.installed-test .venv/.installed-lint
	@.ci/release '$(VERSION)'

lint: $(LINT:%=lint-%)

lint-all: $(LINT_ALL:%=lint-%)

lint-ruff: .venv/.installed-lint
	$(heading) 'ruff'
	ruff check
	ruff format --check

lint-mypy: .venv/.installed-test .venv/.installed-lint .venv/.installed-docs
	$(heading) 'mypy'
	tests/tools/mypy.sh

lint-constraints: $(INSTALLED)
	$(heading) 'constraints.txt'
	@cd tests && ../$(PY) -m tools.suite.pins

lint-shellcheck: .venv/.installed-lint
	$(heading) 'shellcheck'
	shellcheck .ci/* demo/hooks/* tests/tools/*.sh

lint-reuse: .venv/.installed-lint
	$(heading) 'reuse'
	reuse lint --lines

lint-yamllint: .venv/.installed-lint
	$(heading) 'yamllint'
	yamllint --strict .

lint-changelog: .venv/.installed-lint
	$(heading) 'antsibull-changelog'
	antsibull-changelog lint

lint-docs: .venv/.installed-test .venv/.installed-docs
	$(heading) 'antsibull-docs, and the site'
	antsibull-docs lint-collection-docs --plugin-docs --validate-collection-refs all --skip-rstcheck .
	tests/tools/docs/site/build.sh
	FOREWARN_SIZE=full $(PY) -m pytest -n0 tests/integration/project/test_site.py::test_site_has_every_page_and_no_external_request

lint-ansible-lint: .venv/.installed-lint
	$(heading) 'ansible-lint'
	$(PY) tests/tools/sites/link_collection.py .cache/collections
	ANSIBLE_COLLECTIONS_PATH=.cache/collections ansible-lint --offline --profile production

lint-galaxy: .venv/.installed-lint
	$(heading) 'galaxy-importer'
	tests/tools/galaxy-importer.sh

lint-sanity: .venv/.installed-lint
	$(heading) 'ansible-test sanity'
	tests/tools/ansible-test.sh $(SANITY)

# Only what may differ from the above, see ansible-test.sh. Skipped, with a message, where that version cannot be had.
$(OTHER_CORES:%=lint-sanity-%): lint-sanity-%: .venv/.installed-lint
	$(heading) 'ansible-test sanity, ansible-core $*'
	tests/tools/ansible-test.sh --core $* $(SANITY)

$(VM_PYTHONS:%=lint-sanity-%): lint-sanity-%: .venv/.installed-lint
	$(heading) 'ansible-test sanity, Python $*'
	tests/tools/ansible-test.sh --python $* $(SANITY)

format: .venv/.installed-lint
	ruff check --fix
	ruff format

# All of them, whatever fails.
venv:
	@$(MAKE) --no-print-directory --keep-going $(INSTALLED)

.venv/pyvenv.cfg:
	@test -n '$(PYTHON)' || { echo 'Python 3.11, 3.12 or 3.13 is required, and none of python3, python3.13, python3.12, python3.11 qualifies. Install one, or set it: make PYTHON=/path/to/python' >&2; exit 1; }
	@echo 'Creating .venv with $(PYTHON)'
	@$(PYTHON) -m venv .venv

# What the demo needs, the tests, the static checks and the documentation.
$(INSTALLED): .venv/pyvenv.cfg pyproject.toml constraints.txt
	@$(PY) tests/tools/sites/install.py $(or $(patsubst .installed-%,%,$(filter .installed-%,$(@F))),demo)
	@touch $@

.venv/.installed-test: .venv/.installed

# Pinned versions stay, as far as pyproject.toml allows; new packages get their newest version.
constraints: .venv/pyvenv.cfg
	$(PY) -m pip install -qq --disable-pip-version-check --editable '.[ansible,test,lint,docs]'
	{ sed -n '/^#/p' constraints.txt; $(PY) -m pip freeze --exclude-editable | LC_ALL=C sort -f; } >.venv/constraints.txt
	mv .venv/constraints.txt constraints.txt
	cd tests && ../$(PY) -m tools.suite.pins

clean:
	rm -rf .venv .cache .ansible .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -prune -exec rm -rf {} +
