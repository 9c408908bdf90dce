# make demo   sets up, builds, and runs a BERT under torch.compile(backend="accel")
# make test   sets up, builds, and runs every check
# Both install what is missing; a second run installs nothing.

JOBS ?= 2
BUILD ?= build
PYTHON := .venv/bin/python
WITH_PACKAGE := PYTHONPATH=$(BUILD)/python

.PHONY: demo test build lint format unit lit pytest sanitize bench setup docs clean

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

# The C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer. MLIR, LLVM and libtorch are not instrumented: what they
# allocate is not checked for leaks, nor their containers for overflow.
sanitize: setup
	cmake -G Ninja -S . -B $(BUILD)-sanitize -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
	  -DPython_EXECUTABLE=$(CURDIR)/$(PYTHON) -DACCEL_SANITIZE=ON
	ninja -C $(BUILD)-sanitize -j $(JOBS) compiler_tests runtime_tests cache_tests
	ASAN_OPTIONS=detect_leaks=0:detect_container_overflow=0 \
	  LD_LIBRARY_PATH=/usr/lib/llvm-22/lib/clang/22/lib/linux \
	  ctest --test-dir $(BUILD)-sanitize --output-on-failure -j $(JOBS)

pytest: build
	$(WITH_PACKAGE) $(PYTHON) -m pytest

bench: build
	$(WITH_PACKAGE) $(PYTHON) bench/run.py

docs: setup
	PYTHONPATH=python $(PYTHON) -c 'from torch_accel.options import markdown; print(markdown(), end="")' > docs/options.md

clean:
	rm -rf $(BUILD)
