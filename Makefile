# Two commands do everything: `make serve` (or `make demo`) and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --prefer-binary -c constraints.txt
# What serving needs, and what testing and checking need beside it: nobody who serves pays for Node and linters.
STAMP  := $(VENV)/.installed
TOOLS  := $(VENV)/.installed-tools
# Tests start the program hundreds of times: compiled files are kept, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup tools serve demo test test-fast mutants sweep lint format bench bench-quality docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Commonplace needs Python 3.11 or newer; say which with: make PYTHON=python3.12 setup"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "This Python cannot make a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }
	@# The distribution had another name once; two of them would own the same commands.
	@test ! -x $(BIN)/commonplace || $(PIP) uninstall --yes commonplace 2>/dev/null
	@echo "Installing into $(VENV) (once, about a minute) …"
	@$(INSTALL) -e '.[fast]' || $(INSTALL) -e .
	@touch $@

tools: $(TOOLS)

$(TOOLS): $(STAMP)
	@echo "Installing the tools for tests and checks (once, about a minute) …"
	@$(INSTALL) -e '.[test,lint]'
	@touch $@

demo: setup
	@$(BIN)/commonplace demo

serve: setup
	@$(BIN)/commonplace serve

# On all cores; a worker keeps to neighbouring tests, which share servers and models, and takes over from others at the end.
# STORE=postgresql: the engine, the dialects and every protocol with PostgreSQL as the primary.
ifeq ($(STORE),postgresql)
test: test-postgresql
else
test: tools
	@$(BIN)/python -m pytest -n auto --dist worksteal
endif

# The contract and the paper's scenarios on every store there is, on the real products, which are installed into .venv-backends/
# and .venv-letta/: prints the matrix and writes docs/conformance.md. A product that cannot be installed is named, and the run fails;
# so it does where that page said something else before. Beside that the suite on PostgreSQL; then a cluster of three PostgreSQL servers (.venv-patroni/) loses its leader three times.
# Two of them at a time: products and clusters are waited for more than they compute. What each prints is shown when it has ended,
# none of it among another's; all of them end, and one that fails fails the whole.
SIDE_BY_SIDE := --no-print-directory --keep-going $(if $(filter output-sync,$(.FEATURES)),--jobs=2 --output-sync=target)
.PHONY: test-backends test-products test-postgresql test-cluster
test-backends: tools
	@$(BIN)/python tests/backends/install_products.py
	@echo "The products, the suite on PostgreSQL and a cluster: each is shown when it has ended …"
	@$(MAKE) $(SIDE_BY_SIDE) test-products test-postgresql test-cluster

test-products: tools
	@.venv-backends/bin/python tests/backends/conformance.py

test-postgresql: tools
	@COMMONPLACE_TEST_STORE=postgresql $(BIN)/python -m pytest -n auto --dist worksteal tests/engine tests/dialects tests/serve

test-cluster: tools
	@$(BIN)/python -m pytest -m cluster tests/backends/test_postgres_failover.py

test-fast: tools
	@$(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow and not process'

# Every page, light, dark and on a phone, into site/screenshots; in Chromium, which is installed where it is missing.
# DOCS=yes: those that the documentation shows are taken anew.
.PHONY: screenshots
screenshots: tools
	@$(BIN)/python tests/browser/screenshots.py $(if $(DOCS),--docs)

# Hundreds of damaged stores and generated requests: what the suite tries a few dozen of. Half an hour.
sweep: tools
	@$(BIN)/python -m pytest -n auto -m sweep

# Breaks the product on purpose for every requirement that must hold; reports those whose tests do not notice.
mutants: tools
	@$(BIN)/python tests/requirements/mutants.py

lint: $(TOOLS)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-timing 2>/dev/null || $(BIN)/lint-imports

format: $(TOOLS)
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

bench: tools
	@$(INSTALL) -e '.[fast,bench]'
	@$(BIN)/python -m bench

# COMMONPLACE_BENCH_DATA names a folder with locomo-dev.json and microbench.json, which are not ours to ship.
bench-quality: tools
	@$(INSTALL) -e '.[fast,bench]'
	@$(BIN)/python -m bench.quality $(if $(COMMONPLACE_BENCH_DATA),--shared $(COMMONPLACE_BENCH_DATA))

# The wheel in empty environments, with uv and with pip, for every Python from 3.11 that is here.
.PHONY: try-install
try-install: tools
	@$(BIN)/python tests/packaging/install_check.py

# The steps of the Dockerfile in a fresh folder, and the server that they make: there need be no Docker.
.PHONY: try-image
try-image: tools
	@$(BIN)/python tests/deploy/image_check.py

# What a rogue store can do to an answer that several stores give; writes bench/results/adversarial.json and docs/adversarial.svg.
.PHONY: bench-adversarial
bench-adversarial: setup
	@$(BIN)/python -m bench.adversarial

# The adapters with the frameworks themselves. CrewAI wants older libraries than the others bring, so that it has an environment of its own.
# LangGraph publishes its tests of a store with its source, which is fetched beside it in the version that is installed.
# Each adapter over a memory in its own process and over a server on this machine. Nothing goes over a network while they run:
# pytest-socket sees to that. Frameworks warn about themselves, which is no error here.
ADAPTERS := anthropic,langchain,langgraph,llamaindex,openai-agents,pydantic-ai
ADAPTERS_APART := crewai
ADAPTER_TOOLS := hypothesis pytest pytest-asyncio pytest-mock pytest-socket pytest-timeout pytest-xdist
ADAPTER_TESTS := -m pytest tests/integrations -n auto --dist worksteal --disable-socket --allow-unix-socket --allow-hosts=127.0.0.1 -o asyncio_mode=auto \
  -o asyncio_default_fixture_loop_scope=function -W default -W error::RuntimeWarning --disable-warnings
.PHONY: test-integrations
test-integrations: tools
	@test -x .venv-integrations/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .venv-integrations
	@$(BIN)/uv pip install --quiet --python .venv-integrations/bin/python -e '.[$(ADAPTERS)]' $(ADAPTER_TOOLS) langchain-tests
	@test -d .venv-integrations/langgraph-tests || { $(PIP) download --no-deps --no-binary :all: --dest .venv-integrations/langgraph-tests \
	  langgraph-checkpoint==$$(.venv-integrations/bin/python -c 'from importlib.metadata import version; print(version("langgraph-checkpoint"))') && \
	  tar -xzf .venv-integrations/langgraph-tests/*.tar.gz -C .venv-integrations/langgraph-tests; }
	@.venv-integrations/bin/python $(ADAPTER_TESTS)
	@test -x .venv-integrations-crewai/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .venv-integrations-crewai
	@$(BIN)/uv pip install --quiet --python .venv-integrations-crewai/bin/python -e '.[$(ADAPTERS_APART)]' $(ADAPTER_TOOLS)
	@.venv-integrations-crewai/bin/python $(ADAPTER_TESTS)

# Beside others, which are installed into .bench-peers/. PEERS="--sizes 1k,10k,100k" for more; docs/benchmarks.md explains.
.PHONY: bench-peers
bench-peers: setup
	@$(BIN)/python -m bench.peers $(PEERS)

# The documentation as a site in site/; what makes it is installed into .venv-docs/, without Commonplace itself.
DOCS_TOOLS = $(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])'
docs:
	@test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip --disable-pip-version-check --quiet install --prefer-binary $$($(DOCS_TOOLS))
	@.venv-docs/bin/python docs/build.py

# The casts of docs/casts, recorded anew from the commands themselves.
.PHONY: casts
casts: setup
	@$(BIN)/python docs/casts.py

clean:
	rm -rf $(VENV) site bench/results .pytest_cache .mypy_cache .ruff_cache .hypothesis
