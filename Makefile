# Two commands for newcomers: `make demo` and `make test`. Each sets up its own environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Tests start hundreds of processes: each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

# A target that fails half-way is made again the next time.
.DELETE_ON_ERROR:
.PHONY: demo test test-slow browser services docs check format figures dist audit licences lock clean

demo: $(VENV)/.run
	$(BIN)/onlooker demo

test: $(VENV)/.dev check
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# What is long by nature: kills, clusters, peaks of memory, load, coverage, the site, worked examples.
test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m slow

# The report in headless Chromium, which is installed where it is missing. SHOTS=folder keeps the screenshots.
browser: $(VENV)/.dev
	@PYTHON="$(BIN)/python" sh scripts/browser_tests.sh

# Logs in a real PostgreSQL, which is installed where it is missing, and behind an S3 endpoint on loopback.
services: $(VENV)/.dev build/services/.done
	@PYTHON="$(BIN)/python" sh scripts/services_tests.sh

# The documentation as a site in build/docs; a warning is an error.
docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -W --keep-going -n -q -d build/doctrees docs build/docs
	@echo "the site: build/docs/index.html"

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The README's pictures; the one of the report is a screenshot, which needs Chromium.
figures: $(VENV)/.run
	$(BIN)/python scripts/figures.py

# Wheel and sdist of the last commit, built twice and compared, each tried in a clean environment.
dist: $(VENV)/.run
	$(BIN)/python scripts/make_dist.py

# Known weaknesses of the locked packages, from an environment of its own. A package that could not be asked about is a failure.
audit: build/audit/.done
	build/audit/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off \
		-r requirements/run.txt -r requirements/dev.txt -r requirements/audit.txt -r requirements/services.txt

# The licences of what runs, as the installed packages give them. A package that names none is a failure.
RUN_PACKAGES = $(shell sed -n 's/^\([a-z0-9._-]*\)==.*/\1/p' requirements/run.txt | sort -u)
licences: $(VENV)/.run build/audit/.done
	build/audit/bin/pip-licenses --python $(BIN)/python --from mixed --format markdown --fail-on UNKNOWN \
		--packages $(RUN_PACKAGES) --output-file build/table.md
	{ sed '/^|/,$$d' docs/licences.md; cat build/table.md; } > build/licences.md && mv build/licences.md docs/licences.md

# Pins with hashes, no addresses. Needs `uv` on the path; run it after changing the dependencies.
LOCK := uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links
lock:
	$(LOCK) pyproject.toml requirements/build.in --extra dev -o requirements/dev.txt
	$(LOCK) pyproject.toml requirements/build.in -c requirements/dev.txt -o requirements/run.txt
	$(LOCK) requirements/audit.in -o requirements/audit.txt
	$(LOCK) requirements/services.in -o requirements/services.txt

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@PYTHON="$(PYTHON)" sh scripts/make_venv.sh $(VENV)

build/audit/.done: requirements/audit.txt
	@PYTHON="$(PYTHON)" sh scripts/make_venv.sh build/audit
	build/audit/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/audit.txt
	@touch $@

build/services/.done: requirements/services.txt
	@PYTHON="$(PYTHON)" sh scripts/make_venv.sh build/services
	build/services/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/services.txt
	@touch $@

$(VENV)/.run: $(BIN)/python pyproject.toml requirements/run.txt
	@echo "setting up $(VENV), a minute or two the first time ..."
	$(PIP_INSTALL) --require-hashes -r requirements/run.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	@echo "adding what the tests need ..."
	$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@
