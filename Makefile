# make demo   sets up, builds, and runs a BERT under torch.compile(backend="accel")
# make test   sets up, builds, and runs every check
# Both install what is missing; a second run installs nothing.

JOBS ?= 2
BUILD ?= build
PYTHON := .venv/bin/python
WITH_PACKAGE := PYTHONPATH=$(BUILD)/python

.PHONY: demo test build lint format unit lit pytest bench setup docs clean

setup:
	@scripts/setup.sh

$(BUILD)/build.ninja: CMakeLists.txt | setup
	cmake -G Ninja -S . -B $(BUILD) -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
	  -DPython_EXECUTABLE=$(CURDIR)/$(PYTHON)

build: setup $(BUILD)/build.ninja
	ninja -C $(BUILD) -j $(JOBS)

demo: build
	$(WITH_PACKAGE) $(PYTHON) examples/bert.py

# One after the other, whatever -j says; pytest last.
test: build
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory lit
	$(MAKE) --no-print-directory unit
	$(MAKE) --no-print-directory pytest

lint: build
	JOBS=$(JOBS) scripts/lint.sh

format: setup
	scripts/lint.sh --fix

lit: build
	.venv/bin/lit -v -j $(JOBS) $(BUILD)/test

unit: build
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

pytest: build
	$(WITH_PACKAGE) $(PYTHON) -m pytest

bench: build
	$(WITH_PACKAGE) $(PYTHON) bench/run.py

docs: setup
	PYTHONPATH=python $(PYTHON) -c 'from torch_accel.options import markdown; print(markdown(), end="")' > docs/options.md

clean:
	rm -rf $(BUILD)
