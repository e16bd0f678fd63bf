# make run   opens wltui on the bundled example (without a terminal: prints its report)
# make test  sets up everything by itself, then lint, types, import contracts and all tests
# make check lint, types, import contracts and the fast tests: no terminals, no processes, few examples
# make prove runs the tests with as many examples as each property asks for: make test takes at most 15
# make bench runs every benchmark, writes the tables of benchmarks/README.md, lists the budgets that are missed
# make digests        writes golden files and digests anew (tests/digests) and says what has changed
# make digests-check  says so, writes nothing, and fails if anything has
# make gallery writes the pages of docs/gallery, which git does not keep, and pictures of them
# make wheel makes a wheel of the tracked files in dist; make sbom prints its bill of materials
# make shell writes the shell completions and the manual page anew, from the parsers of the commands
# make constraints writes requirements/*.txt: the versions of constraints.txt with the hashes of all their files
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# For what pip builds of a source, by its two ways of saying it.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt

.PHONY: run test check prove bench lint collected digests digests-check pictures gallery shell constraints wheel sbom clean

run: $(VENV)/.stamp-run
	@$(BIN)/wltui

# Bytecode is kept whoever asks for none: compiled anew, each of the thousand processes that the tests start takes
# 0.4 s longer, and the tests themselves a fifth of `make check`.
test check prove: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/.stamp-test
	@$(MAKE) --no-print-directory -j 2 lint collected
	$(BIN)/python -m pytest -n 4 --dist loadfile

# The bytecode of the tests, while types have one core alone: each of four processes made it by itself in 17 s.
collected: $(VENV)/.stamp-test
	@$(BIN)/python -m pytest --collect-only >/dev/null 2>&1 || true

check: $(VENV)/.stamp-test lint
	$(BIN)/python -m pytest -n 2 --fast --durations=5 --durations-min=1

prove: $(VENV)/.stamp-test
	$(BIN)/python -m pytest -n 4 --dist loadfile --whole

bench: $(VENV)/.stamp-test
	$(BIN)/python benchmarks/bench.py

lint: $(VENV)/.stamp-test
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# A minute of processor time; `make digests CASES=002` runs those with 002 in their names.
digests: $(VENV)/.stamp-test
	$(BIN)/python -m tests.digests $(CASES)

digests-check: $(VENV)/.stamp-test
	$(BIN)/python -m tests.digests --check $(CASES)

shell: $(VENV)/.stamp-test
	$(BIN)/python -m shell.generate

# What is installed has the hash that it had when its version was chosen, whichever index serves it. wltui itself
# has none: it is built by what is there by then.
define set_up
@$(PYTHON) -m venv $(VENV)
@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --require-hashes -r $(1)
@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
endef

$(VENV)/.stamp-run: pyproject.toml requirements/run.txt
	@echo "setting up wltui in $(VENV): once, about a minute"
	$(call set_up,requirements/run.txt)
	@touch $@

$(VENV)/.stamp-test: pyproject.toml requirements/test.txt
	@echo "setting up the tests in $(VENV): once, about a minute"
	$(call set_up,requirements/test.txt)
	@touch $@ $(VENV)/.stamp-run

# For all Python versions and systems at once; uv asks the index that it is configured for.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-emit-index-url \
	--no-header --no-annotate --constraint constraints.txt pyproject.toml requirements/build.in

constraints:
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check uv
	$(COMPILE) --upgrade --output-file requirements/run.txt
	$(COMPILE) --upgrade --extra test --output-file requirements/test.txt

# A wheel of the files that git knows, as they were committed: nothing else that lies here can get in.
wheel: $(VENV)/.stamp-test
	rm -rf build/tracked && mkdir -p build/tracked
	git archive HEAD | tar -x -C build/tracked
	cd build/tracked && $(abspath $(BIN))/python -m hatchling build -t wheel -d $(CURDIR)/dist

# The bill of materials of what is installed here, CycloneDX as JSON.
sbom: $(VENV)/.stamp-run
	@$(BIN)/python docs/sbom.py

# The pictures of README and docs, by the program itself.
pictures: $(VENV)/.stamp-run
	$(BIN)/python docs/pictures.py
	$(BIN)/python -m docs.model_table

# Pages of the examples, and pictures of them where there is a Chromium.
gallery: $(VENV)/.stamp-run
	$(BIN)/python docs/gallery.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build
