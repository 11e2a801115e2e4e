# Everything runs in .venv, which make builds and keeps up to date with pyproject.toml. It needs
# python3 (3.11 or later) with its venv module, nothing else; pip's own settings and environment
# variables choose the package index.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# A file of versions to install instead of the newest that pyproject.toml allows; .ci/run sets it to
# constraints.txt.
CONSTRAINTS ?=

# make sim
SEED ?= 0
SEEDS ?= 1
TIER ?= 1

# make soak; without a SEED of its own it takes a new one, and says which
MINUTES ?= 10

# make mutants
ONLY ?=

# make run
INPUT ?=
OUT ?= $(if $(filter-out behaviour,$(PIPELINE)),out-$(PIPELINE),out)
MASTER ?=
SERVICE ?=
SERVERS ?=
PIPELINE ?= behaviour
FORMATS ?=

.DEFAULT_GOAL := help
.PHONY: help run test test-all check lint docs format quick sim soak mutants bench bench-kafka \
	bench-spark dist clean

help:
	@echo 'make run    the demonstration: a broker, a web server'\''s log, Spark, $(OUT)/report.html'
	@echo '            INPUT=access.log  SERVICE=1  OUT=directory  MASTER=local[4]'
	@echo '            PIPELINE=logs the logs of systems instead: INPUT=directory'
	@echo '            PIPELINE=events the events of pages and apps instead: INPUT=file'
	@echo '            FORMATS=file with formats of your own'
	@echo '            SERVERS=localhost:9092 into a cluster that runs, instead of a broker of its own;'
	@echo '            with INPUT=none for what others send to its topic'
	@echo 'make test   tests of every kind (a test that needs more software skips, and says what to install)'
	@echo 'make test-all the rest: the slow tests, which make test leaves out'
	@echo 'make check  under a minute: format, lint, types, layers, unit and quick property tests'
	@echo 'make lint   the first four of these, and the documentation'
	@echo 'make docs   the documentation as a site: build/site/index.html'
	@echo 'make sim    a cluster under faults, from a seed: SEED=7, or SEEDS=1000 from there on;'
	@echo '            its machines alone, with TIER=2 whole brokers and clients, with TIER=keeper these'
	@echo '            on our ZooKeeper server, or with TIER=alone one broker whose metadata is damaged'
	@echo 'make soak   three brokers and a ZooKeeper killed, paused and stopped at random while all kinds'
	@echo '            of clients work, then the whole account: MINUTES=10  SEED=7; and the tests that'
	@echo '            take minutes'
	@echo 'make mutants puts small mistakes into a copy of the sources, one by one, and tells which of'
	@echo '            them no test finds: ONLY=words of their names'
	@echo 'make format puts right what can be put right: format, imports'
	@echo 'make bench  the numbers of the README, on this machine; bench-kafka and bench-spark put a'
	@echo '            real Kafka and Spark'\''s own connector beside them'
	@echo 'make dist   wheel and sdist into dist/, checked, installed into a bare environment and tried'
	@echo 'make clean  removes what was made here, except $(VENV)'

run: $(VENV)/run.stamp
	@$(BIN)/python -m barnabas_pipeline run --out '$(OUT)' \
		--pipeline '$(PIPELINE)' $(if $(FORMATS),--formats '$(FORMATS)') \
		$(if $(filter none,$(INPUT)),--no-input,$(if $(INPUT),--input '$(INPUT)')) $(if $(MASTER),--master '$(MASTER)') \
		$(if $(filter-out 0,$(SERVICE)),--service) \
		$(if $(SERVERS),--bootstrap-servers '$(SERVERS)')

# Units, properties and house rules are the quick tests; all others start processes. Many of both wait
# more than they compute, so there are more workers than cores; each takes one file at a time, the
# longest first.
QUICK := tests/tidy tests/unit tests/property
OTHERS := $(filter-out $(QUICK),$(patsubst %/,%,$(wildcard tests/*/)))
BY_FILE := --dist loadfile --no-loadscope-reorder
FOUR := -n 4 $(BY_FILE)

# The tests with the marker `secured` run once more with each broker and client secured: all of them
# by `make soak`, a part of each kind by `make test-all`.
SECURED := BARNABAS_SECURED=1 $(BIN)/python -m pytest $(FOUR) -m 'secured and not soak'
SECURED_PART := \
	$(addprefix tests/integration/test_,secured_suites.py kill.py moving_coordinators.py) \
	$(addprefix tests/conformance/test_,topics.py mixed_group.py transactions_java.py)

# Every worker collects all files that it is given. Only a few files of the quick tests contain slow
# tests, so select these files.
SLOW_FILES = $(OTHERS) $(shell grep -rl --include='test_*.py' mark.slow $(QUICK))

# The second part runs even if the first one fails, so one run reports all failures.
test: $(VENV)/classes.stamp
	@$(call QUICK_TESTS); status=$$?; \
	$(BIN)/python -m pytest $(FOUR) -m 'not slow and not soak' $(OTHERS) && exit $$status

test-all: $(VENV)/classes.stamp
	@$(BIN)/python -m pytest $(FOUR) -m 'slow and not soak' $(SLOW_FILES); status=$$?; \
	$(SECURED) $(SECURED_PART) && exit $$status

# The quick tests write their files to memory if at least a gigabyte is free there. On a disk, they would
# spend twice as much time in the kernel. All other tests write to the disk.
IN_MEMORY = $(shell test "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $$4 }')" -gt 1000000 \
	2>/dev/null && echo TMPDIR=/dev/shm)

# Clear PYTHONDONTWRITEBYTECODE in case the environment sets it. Without cached bytecode, every run
# would spend ten seconds compiling the tests.
QUICK_TESTS = PYTHONDONTWRITEBYTECODE= $(IN_MEMORY) \
	$(BIN)/python -m pytest -q -n 3 $(BY_FILE) -m 'not slow and not soak$(1)' \
	-o tmp_path_retention_policy=failed -o tmp_path_retention_count=1 $(QUICK)

check: $(VENV)/dev.stamp
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint quick

# lint-imports runs without its cache, which does not notice when a missing module has been added.
lint: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.tidy.site

docs: $(VENV)/dev.stamp
	$(BIN)/python -m tests.tidy.site

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

quick: $(VENV)/dev.stamp
	BARNABAS_QUICK=1 $(call QUICK_TESTS, and not thorough)

sim: $(VENV)/dev.stamp
	@$(BIN)/python -m simulation$(if $(filter 2 keeper alone,$(TIER)),.whole)$(if $(filter alone,$(TIER)),.alone) \
		--seed '$(SEED)' --seeds '$(SEEDS)' $(if $(filter keeper,$(TIER)),--keeper)

soak: $(VENV)/classes.stamp
	@$(BIN)/python -m tests.integration.soak --minutes '$(MINUTES)' \
		$(if $(filter file,$(origin SEED)),,--seed '$(SEED)')
	BARNABAS_SOAK=1 $(BIN)/python -m pytest tests/property
	BARNABAS_SOAK=1 $(BIN)/python -m pytest -m 'soak or repeated' tests --ignore tests/property
	BARNABAS_FRAMES=100000 $(BIN)/python -m pytest tests/integration/test_sasl_hostile.py
	$(SECURED) tests/conformance tests/integration

mutants: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.mutants $(ONLY)

bench: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks

bench-kafka: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.kafka
	$(BIN)/python -m benchmarks.cluster --kafka

bench-spark: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.spark_beside_connector

dist: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.release

clean:
	rm -rf out out-logs out-events build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

# The lines of pip's output to show: large downloads, builds, and the final installation.
INSTALL_STEPS = -e 's|-[cp][py][0-9][^ ]*\.whl|.whl|' \
	-e 's|^ *Downloading \(.*/\)*\([^/ ]*\) (\([0-9.]* [MG]B\)).*|  downloading \2, \3|p' \
	-e 's|^ *Using cached \(pyspark[^ ]*\).*|  taking \1 from the cache|p' \
	-e 's|^ *Building wheel for \([^ ]*\) .*started$$|  building \1|p' \
	-e 's|^Installing collected.*|  installing|p'

# A stamp is newer than pyproject.toml once the dependencies in that file are installed. The
# demonstration has a stamp of its own, because it does not need the development tools.
$(VENV)/run.stamp: EXTRAS = pages
$(VENV)/dev.stamp: EXTRAS = dev
$(VENV)/run.stamp $(VENV)/dev.stamp: pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo '$(PYTHON) is missing or older than 3.11: install Python 3.11 or later,' \
		     'or name one: make PYTHON=python3.12 ...' >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo 'Python cannot make a virtual environment here. On Debian or Ubuntu:' \
		     'apt-get install python3-venv' >&2; exit 1; }
	@if $(BIN)/python -c 'import pyspark' 2>/dev/null; then \
		echo 'Bringing $(VENV) up to date with pyproject.toml ...'; \
	else \
		echo 'Setting up $(VENV), once: some 650 MB, of which Spark is 450, are downloaded' \
		     'unless pip has kept them ...'; \
	fi
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@began=$$(date +%s); log=$(VENV)/install.log; failed=$(VENV)/install.failed; rm -f $$failed; \
	{ $(BIN)/python -u -m pip install --progress-bar off --editable '.[$(EXTRAS)$(NO_JAVA)]' \
		$(addprefix --constraint ,$(CONSTRAINTS)) 2>&1 || touch $$failed; } \
		| tee $$log | sed -n $(INSTALL_STEPS); \
	if [ -e $$failed ]; then tail -n 30 $$log >&2; exit 1; fi; \
	echo "  ready after $$(($$(date +%s) - began)) s"
	@touch $@

# With an archive of Spark's classes, the JVMs of the tests start faster. The tests also pass without it.
$(VENV)/classes.stamp: $(VENV)/dev.stamp
	@echo 'Archiving the classes that Spark loads, once: about a minute ...'
	@$(BIN)/python -m tests.kit.pipeline.class_archive || \
		echo 'There is no archive: Spark starts as slowly as usual.' >&2
	@touch $@

# Spark needs Java 17 or later. If it is not installed, the extra `java` installs it from a wheel.
NO_JAVA = $(shell version=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 \
	| sed -n 's/.* version "\([0-9]*\).*/\1/p'); [ "$${version:-0}" -ge 17 ] || echo ,java)
