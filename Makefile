# Two promises to a newcomer: `make demo` and `make test`, each complete from a fresh clone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
TESTS  ?= tests

.PHONY: demo test lint types format clean

demo: $(VENV)/ready
	$(BIN)/discreet train --config examples/digits.toml

test: $(VENV)/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto $(TESTS)

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready
	$(BIN)/mypy

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Everything that is installed is pinned in constraints.txt.
$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13) and "discreet needs Python 3.11, 3.12 or 3.13")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]' --group dev
	touch $@

clean:
	rm -rf $(VENV) build dist
