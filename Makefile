# The verbs of this checkout. Each does its own set-up in .venv, asks nothing, and needs PyPI alone.

.DEFAULT_GOAL := help
.PHONY: help setup demo test-fast test sim chaos integrity check fmt bench bench-broker bench-backup bench-tools bench-clients bench-coordinators bench-cluster bench-spark bench-registry bench-connect interop dist docs fuzz generate clean

SHELL  := bash
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(shell command -v uv 2>/dev/null)
# The first interpreter that is new enough; name another with `make PYTHON=…`.
PYTHON := $(shell for p in python3 python3.11 python3.12 python3.13 python3.14 python; do \
            $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# Workers of the tests that mostly wait, for nodes and for groups: more than cores. Of the others there is one for each core:
# a worker costs seconds of a processor, for what it imports and collects.
JOBS   := 6
# A worker takes a whole file: what the tests of a file share, a node for instance, is then made once and not by every worker.
# Files in the order of the command line.
BY_FILE := --dist loadfile --no-loadscope-reorder
# In the order in which workers take them: first what computes long, so that the end is short.
COMPUTING := tests/property tests/golden tests/sim tests/unit tests/architecture
# About a half of `make test-fast`.
FIRST_HALF := $(addprefix tests/unit/,broker client connect log)
# How long `make sim`, `make integrity` and the faults of `make chaos` go on.
SECONDS = 60

# A group is installed again only when what it was made from has changed.
BUILT_FROM := pyproject.toml $(wildcard setup.py) $(wildcard src/ottla/*/*.pyx src/ottla/*/*.pxd src/ottla/*/*/*.pyx src/ottla/*/*/*.pxd)

# uv must not fetch an interpreter: that would need more than PyPI.
export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Most of what is installed is never imported: what is, Python compiles then.
export PIP_NO_COMPILE := 1
# Where bytecode is not kept, every worker and every node that a test starts compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

say = @printf '\033[1m==>\033[0m %s\n'

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.test $(VENV)/.check ## install everything that development needs into .venv
	$(say) "ready: $(BIN)/ottla, $(BIN)/pytest, $(BIN)/ruff, $(BIN)/mypy"

demo: $(VENV)/.demo ## a live stream through a Spark pipeline that is killed half-way (two minutes; Spark is 450 MB to fetch)
	@$(BIN)/ottla demo

# Two processes with a half each, not workers that share the tests: every worker would collect all of them, for 20 s.
quick = $(BIN)/pytest -m 'not slow and not long and not interop' $(1)
test-fast: $(VENV)/.made ## the first run: the tests that need no Spark and little time (two minutes on two cores, set-up included)
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/.core $(VENV)/.unit
	$(say) "pytest tests/unit, in two halves; the output of the second comes afterwards"
	@$(call quick,$(filter-out $(FIRST_HALF),$(wildcard tests/unit/*))) > $(VENV)/second-half.log 2>&1 & second=$$!; \
	  $(call quick,$(FIRST_HALF)); first=$$?; \
	  wait $$second; ended=$$?; cat $(VENV)/second-half.log; test $$first = 0 -a $$ended = 0

test: $(VENV)/.test $(VENV)/.rewritten ## run the tests (twenty minutes on two cores, and twenty for those of Spark; the long run is `make fuzz`)
	$(say) "pytest, and beside it pytest tests/clients tests/cluster, whose output comes afterwards"
	@$(BIN)/pytest -n $(JOBS) $(BY_FILE) tests/clients tests/cluster > $(VENV)/clients.log 2>&1 & waiting=$$!; \
	  $(BIN)/pytest -n auto $(BY_FILE) $(COMPUTING); computed=$$?; \
	  wait $$waiting; waited=$$?; cat $(VENV)/clients.log; test $$computed = 0 -a $$waited = 0
	$(say) "mypy --strict, with the types of Spark"
	@$(BIN)/mypy
	$(say) "pytest tests/spark (one Spark session, one broker)"
	@$(BIN)/pytest tests/spark

sim: $(VENV)/.core ## clusters in a simulation, under faults, from new seeds, one a core: make sim SECONDS=600 SEED=1 PROFILE=elections NODES=3, or HOURS=1 of each profile
	@$(BIN)/ottla sim $(if $(HOURS),--hours $(HOURS),--for $(SECONDS)) --jobs $(or $(SIM_JOBS),$(shell nproc 2>/dev/null || echo 2)) --profile $(or $(PROFILE),all) \
	  $(if $(NODES),--nodes $(NODES)) $(if $(SEED),--seed $(SEED))

chaos: $(VENV)/.core ## three real processes, killed, paused and cut off, and a verdict: make chaos SECONDS=60 SEED=1 TARGET=apache-kafka|mixed
	@$(BIN)/python -m tests.chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(TARGET),--target $(TARGET)) \
	  $(if $(CANARY),--canary $(CANARY)) --history $(VENV)/chaos.jsonl

integrity: $(VENV)/.core ## all that producers can send at once, on real nodes, read back by every reader: make integrity SECONDS=600 SEED=1
	@$(BIN)/python -m tests.integrity --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

check: $(VENV)/.check ## lint, formatting, types, imports, freshness of generated files
	$(say) "ruff check"
	@$(BIN)/ruff check
	$(say) "ruff format --check"
	@$(BIN)/ruff format --check
	$(say) "mypy --strict"
	@$(BIN)/mypy
	$(say) "import contracts"
	@$(BIN)/lint-imports --no-logo
	$(say) "the architecture, and the generated files"
	@$(BIN)/pytest tests/architecture

fmt: $(VENV)/.check ## format and fix what can be fixed
	@$(BIN)/ruff check --fix --exit-zero
	@$(BIN)/ruff format

bench: $(VENV)/.bench ## measure beside the peers, in one run
	@$(BIN)/python bench/run.py

bench-broker: $(VENV)/.bench ## a node beside Apache Kafka's under the same load (needs Java and Maven; six minutes)
	@command -v java >/dev/null && command -v mvn >/dev/null || { echo "make bench-broker needs java and mvn on PATH"; exit 1; }
	@$(BIN)/python bench/broker

bench-coordinators: $(VENV)/.bench ## groups, transactions and cleaning beside Apache Kafka's (the same needs; ten minutes)
	@command -v java >/dev/null && command -v mvn >/dev/null || { echo "make bench-coordinators needs java and mvn on PATH"; exit 1; }
	@$(BIN)/python bench/coordinators

bench-cluster: $(VENV)/.bench ## three nodes beside three of Apache Kafka's: replication, gaps after crashes, copying, millions of partitions (the same needs; half an hour)
	@command -v java >/dev/null && command -v mvn >/dev/null || { echo "make bench-cluster needs java and mvn on PATH"; exit 1; }
	@$(BIN)/python bench/cluster

bench-clients: $(VENV)/.bench ## our clients beside confluent-kafka, aiokafka and kafka-python (needs Java and Maven; ten minutes)
	@command -v java >/dev/null && command -v mvn >/dev/null || { echo "make bench-clients needs java and mvn on PATH"; exit 1; }
	@$(BIN)/python bench/clients
	@$(BIN)/python bench/tools.py

bench-tools: $(VENV)/.bench ## the start of command-line tools beside Kafka's, and the metrics page of a node with 10,000 partitions (the same needs; five minutes)
	@command -v java >/dev/null && command -v mvn >/dev/null || { echo "make bench-tools needs java and mvn on PATH"; exit 1; }
	@$(BIN)/python bench/tools.py
	@$(BIN)/python bench/metrics_page.py

bench-backup: $(VENV)/.bench ## ottla backup and restore beside kafka-console-consumer (needs Java and Maven; three minutes): make bench-backup MEGABYTES=10000
	@command -v java >/dev/null && command -v mvn >/dev/null || { echo "make bench-backup needs java and mvn on PATH"; exit 1; }
	@$(BIN)/python bench/backup.py $(if $(MEGABYTES),--megabytes $(MEGABYTES))

bench-spark: $(VENV)/.test ## the Spark source beside Spark's own Kafka connector, operators, Nexmark (the same needs; twenty minutes)
	@command -v java >/dev/null && command -v mvn >/dev/null || { echo "make bench-spark needs java and mvn on PATH"; exit 1; }
	@$(BIN)/python bench/spark
	@$(BIN)/python bench/spark/operators.py
	@$(BIN)/python bench/spark/nexmark.py

bench-registry: $(VENV)/.test ## the schema registry beside Apicurio's (needs Java 21, which JAVA_21 may name, and Maven; ten minutes)
	@command -v mvn >/dev/null || { echo "make bench-registry needs mvn on PATH"; exit 1; }
	@$(BIN)/python bench/registry

bench-connect: $(VENV)/.test ## connectors beside Debezium on Kafka Connect, and what many of them cost (needs java and mvn; an hour)
	@command -v java >/dev/null && command -v mvn >/dev/null || { echo "make bench-connect needs java and mvn on PATH"; exit 1; }
	@$(BIN)/python bench/connect

fuzz: $(VENV)/.test $(VENV)/.rewritten ## the long run: many more cases of the fuzz and crash tests
	$(say) "pytest -m long"
	@$(BIN)/pytest -n $(JOBS) --maxschedchunk 1 -m long --ignore tests/property
	$(say) "pytest tests/property, long ones too, with examples that make test does not draw"
	@$(BIN)/pytest -n $(JOBS) --maxschedchunk 1 -m 'not interop' tests/property

interop: $(VENV)/.interop ## run beside Apache Kafka (needs Java and Maven; half an hour on two cores)
	@command -v java >/dev/null && command -v mvn >/dev/null || { echo "make interop needs java and mvn on PATH"; exit 1; }
	$(say) "pytest -m interop"
	@$(BIN)/pytest -n 4 --maxschedchunk 1 -m interop

dist: $(VENV)/.dist ## a source distribution and wheels, each tried in empty environments, with a compiler and without (Python 3.11 to 3.13)
	@$(BIN)/python tools/dist.py $(if $(ONLY),--only $(ONLY))

generate: $(VENV)/.core ## write the generated files again (stubs, settings reference, compatibility tables)
	@for tool in message_stub client_keywords admin_stub settings_reference compatibility_tables connect_reference; do \
	  if [ -e tools/$$tool.py ]; then echo "tools/$$tool.py"; $(BIN)/python tools/$$tool.py || exit 1; fi; done

docs: $(VENV)/.docs ## the documentation as a site in build/site, with a reference made from the program; a link to nowhere fails
	@$(BIN)/python tools/docs_site.py

clean: ## remove .venv, caches and build output
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis src/*.egg-info
	find src tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} +
	find src -name '*.so' -delete

# --- the virtual environment ---

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed, and none is on PATH"; exit 1; }
	$(say) "making $(VENV) with $$($(PYTHON) --version)$(if $(UV), and uv)"
ifdef UV
	@test -x $(BIN)/python || $(UV) venv --quiet --python $(PYTHON) $(VENV)
else
	@# Some distributions ship Python without ensurepip; then the outer pip puts one in.
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { $(PYTHON) -m venv --without-pip $(VENV) && \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	@# Dependency groups need pip 25.1.
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
endif
	@touch $@

ifdef UV
install = $(UV) pip install --python $(BIN)/python $(1)
else
# Of all that pip says, the names of what it fetches.
install = set -o pipefail; $(BIN)/python -m pip install $(1) | sed -n 's/^ *Collecting \([A-Za-z0-9._-]*\).*/    \1/p'
endif

# A variable, because a comma would end an argument of `call`.
IN_PLACE := .[arrow,sim]

$(VENV)/.core: $(VENV)/.made $(BUILT_FROM)
	$(say) "installing ottla, in place"
	@$(call install,--editable '$(IN_PLACE)')
	@touch $@

# Without .core: packages are fetched while the compiler works. The two install nothing that is the same.
$(VENV)/.unit: $(VENV)/.made pyproject.toml

$(VENV)/.test $(VENV)/.check $(VENV)/.demo $(VENV)/.bench $(VENV)/.dist $(VENV)/.docs $(VENV)/.interop: $(VENV)/.core

$(VENV)/.unit $(VENV)/.test $(VENV)/.check $(VENV)/.demo $(VENV)/.bench $(VENV)/.dist $(VENV)/.docs $(VENV)/.interop: $(VENV)/.%:
	$(say) "installing the dependency group '$*'"
	@$(call install,--group $*)
	@# The library of the extra `gssapi` is built with the headers of Kerberos. Where there are none, its tests are skipped.
	@$(if $(filter interop,$*),! command -v krb5-config >/dev/null || { $(call install,--editable '.[gssapi]'); })
	@touch $@

# pytest rewrites the asserts of every test file and keeps the result. Once, before workers that start together each do it;
# without a look at the tests in them.
rewrite = $(BIN)/pytest --collect-only -o python_functions=none -o python_classes=None $(1) >/dev/null
$(VENV)/.rewritten: $(VENV)/.test
	@$(call rewrite,tests/unit) & other=$$!; \
	  $(call rewrite,$(filter-out tests/unit,$(COMPUTING)) tests/clients tests/cluster); wait $$other || true
	@touch $@
