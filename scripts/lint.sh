#!/bin/sh
# Checks the sources' form: ruff, clang-format and clang-tidy. `lint.sh --fix` reformats instead of complaining.
set -eu
cd "$(dirname "$0")/.."

cpp_sources() { git ls-files -co --exclude-standard -- '*.cpp' '*.h' | while read -r f; do [ -f "$f" ] && echo "$f"; done; }

if [ "${1:-}" = --fix ]; then
  .venv/bin/ruff check --quiet --fix .
  .venv/bin/ruff format --quiet .
  cpp_sources | xargs -r clang-format-22 -i
else
  .venv/bin/ruff check .
  .venv/bin/ruff format --check .
  cpp_sources | xargs -r clang-format-22 --dry-run -Werror
  .venv/bin/python scripts/tidy.py --jobs "${JOBS:-2}"
fi
