python := $(or $(PYTHON),python3)
make-env := $(python) tools/misc/make_env.py $(if $(PYTHON),--python $(PYTHON))
stack-option := $(if $(STACK),--stack $(STACK))

# Quick ones first: a mistake shows before the trainings start.
long-tests := tests/test_configs tests/test_mim
tests := $(filter-out $(long-tests),$(sort $(wildcard tests/test_*))) \
	$(wildcard $(long-tests))

# Threads that wait asleep: many times faster where cores are shared.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help env quickstart test test-full test-openmmlab test-modern clean

help:  ## show this
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | expand -t 12
	@echo 'STACK=openmmlab or modern, PYTHON=/path/to/python: default, what fits.'

env:  ## make .venv (openmmlab stack) or .venv-modern (modern stack)
	@$(make-env) $(stack-option)

quickstart: env  ## train and test a small Mask R-CNN, and draw what it finds
	@folder=$$($(make-env) $(stack-option) --print-folder) && \
	$$folder/bin/python tools/misc/quickstart.py

test:  ## run the tests on every stack that has its Python here (minutes)
	@stacks=$(or $(STACK),$$($(make-env) --print-stacks)) && \
	for stack in $$stacks; do $(MAKE) --no-print-directory test-$$stack || exit; done

test-full:  ## the same with the long tests
	@$(MAKE) --no-print-directory test FULL=1

test-openmmlab:
	@$(make-env) --stack openmmlab
	.venv/bin/pytest $(tests) -m '$(if $(FULL),,not full)' $(ARGS)

test-modern:  # its share: the tests marked so
	@$(make-env) --stack modern
	.venv-modern/bin/pytest $(tests) -m 'modern$(if $(FULL),, and not full)' $(ARGS)

clean:  ## remove the environments and what builds leave; keeps data and results
	rm -rf .venv .venv-modern build dist *.egg-info .pytest_cache mmlinattn/.mim
	find mmlinattn tools tests -name __pycache__ -prune -exec rm -rf {} +
