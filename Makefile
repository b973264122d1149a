python := $(or $(PYTHON),python3)
make-env := $(python) tools/misc/make_env.py
stack-option := $(if $(STACK),--stack $(STACK))

# Quick tests come first, so that a mistake shows before the trainings start. The last
# ones are short, so that all processes end at once.
long-tests := tests/test_mim tests/test_configs
tests := $(filter-out $(long-tests),$(sort $(wildcard tests/test_*))) \
	$(wildcard $(long-tests))

# Made once, by the first Python that can create environments.
lint := .venv-lint/bin/python -m
lint-pythons := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.10 \
	python3.9)
# A fresh clone has no torch when it's checked; a stack's environment adds its types.
typed-python := $(firstword $(wildcard .venv/bin/python .venv-modern/bin/python))

# One process per core, each with one thread: the tests' tensors are small.
# After a crash, other processes would wait forever for the tests of the lost one.
pytest-options := -n $(or $(JOBS),auto) --maxprocesses 8 --no-loadscope-reorder \
	--max-worker-restart 0

.PHONY: help env quickstart gpu lint types format hooks docs docs-if-possible test \
	test-full test-openmmlab test-modern coverage clean

help:  ## show this
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | expand -t 12
	@echo 'STACK=openmmlab or modern, PYTHON=/path/to/python: default, what fits.'
	@echo 'JOBS=n: processes that run tests; default, one per core.'

env:  ## make .venv (openmmlab stack) or .venv-modern (modern stack)
	@$(make-env) $(stack-option)

quickstart: env  ## train and test a small Mask R-CNN, and draw what it finds
	@folder=$$($(make-env) $(stack-option) --print-folder) && \
	$$folder/bin/python tools/misc/quickstart.py

lint: .venv-lint/installed.txt  ## check style and types (seconds)
	@$(lint) ruff check --quiet
	@$(lint) ruff format --quiet --check || \
		{ echo 'These files are not formatted: make format' >&2; exit 1; }
	@$(MAKE) --no-print-directory types

types: .venv-lint/installed.txt
	@$(lint) mypy --no-error-summary
	@$(if $(typed-python),$(lint) mypy --no-error-summary \
		--cache-dir .mypy_cache/torch --python-executable $(typed-python))

format: .venv-lint/installed.txt  ## format the code, fix what ruff can
	@$(lint) ruff check --quiet --fix
	@$(lint) ruff format --quiet

hooks: .venv-lint/installed.txt  ## check every commit of this clone (pre-commit)
	@$(lint) pre_commit install

# MkDocs reads the docstrings without importing the package.
docs: .venv-docs/installed.txt  ## build the documentation in site/, links checked
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build --strict --quiet
	@.venv-docs/bin/python docs/site/search_words.py site
	@echo 'Open site/index.html through a server: python -m http.server -d site'

# MkDocs needs Python 3.10, a stack runs on 3.9.
docs-if-possible:
	@for python in $(lint-pythons); do \
		$$python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
			&& exec $(MAKE) --no-print-directory docs; \
	done; echo 'no Python 3.10 or newer: the documentation is not built'

# $(call tool-env,FOLDER,OLDEST,TARGET): an environment with what $< lists.
define tool-env
	@for python in $(lint-pythons); do \
		$$python -c 'import sys; sys.exit(sys.version_info < (3, $(2)))' 2>/dev/null \
			&& $$python -m venv --clear $(1) >/dev/null 2>&1 && break; \
	done; \
	test -x $(1)/bin/pip || \
		{ echo 'make $(3) needs a Python 3.$(2) or newer that has venv' >&2; exit 1; }
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@cp $< $@
endef

.venv-lint/installed.txt: requirements/lint.txt
	$(call tool-env,.venv-lint,9,lint)

.venv-docs/installed.txt: requirements/docs.txt
	$(call tool-env,.venv-docs,10,docs)

test: lint docs-if-possible  ## check code and pages, then run the tests on every stack that has its Python
	@stacks=$(or $(STACK),$$($(make-env) --print-stacks)) && \
	for stack in $$stacks; do $(MAKE) --no-print-directory test-$$stack || exit; done

test-full:  ## the same with the long tests
	@$(MAKE) --no-print-directory test FULL=1

# Threads that sleep while they wait are many times faster where cores are shared.
test-openmmlab test-modern: export OMP_WAIT_POLICY ?= PASSIVE

test-openmmlab:
	@$(make-env) --stack openmmlab
	OMP_NUM_THREADS=1 $(if $(COVER),.venv/bin/coverage run) .venv/bin/pytest $(pytest-options) $(tests) -m '$(if $(FULL),,not full)' $(ARGS)

test-modern:  # all but the tests that are for the other stack
	@$(make-env) --stack modern
	OMP_NUM_THREADS=1 $(if $(COVER),.venv-modern/bin/coverage run) .venv-modern/bin/pytest $(pytest-options) $(tests) -m 'not openmmlab$(if $(FULL),, and not full and not modern_full)' $(ARGS)

# -m would import the tree in place of the installed package
coverage: export COVERAGE_FILE = $(CURDIR)/.coverage
coverage:  ## show which lines the tests run on all stacks; fails below 95 %
	@rm -f .coverage .coverage.*
	@stacks=$(or $(STACK),$$($(make-env) --print-stacks)) && \
	for stack in $$stacks; do \
		$(MAKE) --no-print-directory test-$$stack COVER=yes || exit; \
	done
	@coverage=$$(ls .venv/bin/coverage .venv-modern/bin/coverage 2>/dev/null | head -1) && \
	$$coverage combine --quiet && $$coverage report

gpu:  ## run every measurement that needs a GPU; resumes where it stopped
	@$(python) -c 'import torch; exit(not torch.cuda.is_available() and "no GPU is found")'
	-$(python) -m pytest tests -m gpu -q
	@for suite in ops solvers backbones attentions detectors; do \
		for options in '' '--batch 16' '--dtype bfloat16' '--dtype bfloat16 --batch 16'; do \
			$(python) benchmarks/run.py --suite $$suite --device cuda $$options \
				--out docs/benchmarks $(ARGS); \
		done; \
	done
	$(python) benchmarks/loss_scale.py --out docs/benchmarks/loss_scale.json

clean:  ## remove the environments and what builds leave; keeps data and results
	rm -rf .venv .venv-modern .venv-lint .venv-docs site build dist *.egg-info mmlinattn/.mim
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	find mmlinattn tools tests -name __pycache__ -prune -exec rm -rf {} +
