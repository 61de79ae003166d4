# Two commands matter: `make demo` and `make test`. Each sets up .venv first if it must.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: demo test check format docs bench clean

demo: .venv/.ready
	@$(BIN)/unmix reproduce --all --quick; status=$$?; \
	if [ $$status -eq 1 ]; then echo "note: a refuted claim is a result; the report says which"; \
	elif [ $$status -ne 0 ]; then exit $$status; fi

test: .venv/.ready
	$(BIN)/pytest -n 2

check: .venv/.ready
	$(BIN)/ruff format --check src tests examples benchmarks docs
	$(BIN)/ruff check src tests examples benchmarks docs
	$(BIN)/mypy

docs: .venv/.ready
	$(BIN)/python docs/gallery.py docs/gallery
	$(BIN)/sphinx-build -W --keep-going -q -j auto -b html docs build/docs
	@echo "build/docs/index.html"

format: .venv/.ready
	$(BIN)/ruff format src tests examples benchmarks docs
	$(BIN)/ruff check --fix src tests examples benchmarks docs

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	@touch $@

bench: .venv/.ready
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/steps.py
	$(BIN)/python benchmarks/flow.py
	$(BIN)/python benchmarks/page.py
	$(BIN)/python benchmarks/attacks.py
	$(BIN)/python benchmarks/certify.py

clean:
	rm -rf .venv build dist *.egg-info
