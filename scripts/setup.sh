#!/bin/sh
# Installs what building and testing need: Debian packages, and a virtual environment in .venv with pinned packages.
# What is there already is left alone: stamps in .setup/ hold the checksums of the two lists.
set -eu
cd "$(dirname "$0")/.."
mkdir -p .setup

missing_packages() {
  grep -v '^#' scripts/debian-packages.txt | while read -r package; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || echo "$package"
  done
}

install_packages() {
  missing=$(missing_packages | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  as_root=
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: not root and no sudo; have these installed: apt-get install --no-install-recommends $missing" >&2
      exit 1
    fi
    as_root=sudo
  fi
  echo "setup: installing $missing"
  $as_root apt-get update -qq
  # shellcheck disable=SC2086
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
}

# A Python that torch 2.13 supports, with venv and headers.
find_python() {
  for candidate in python3 /usr/bin/python3 python3.13 python3.12 python3.11; do
    if "$candidate" - 2>/dev/null <<'PY'; then
import ensurepip, os, sys, sysconfig, venv
headers = os.path.join(sysconfig.get_paths()["include"], "Python.h")
sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 14) and os.path.exists(headers)))
PY
      echo "$candidate"
      return 0
    fi
  done
  echo "setup: no Python from 3.11 to 3.14 with venv and headers" >&2
  return 1
}

checksum() { sha256sum "$@" | sha256sum | cut -d ' ' -f 1; }

debian=$(checksum scripts/debian-packages.txt)
if [ "$(cat .setup/debian 2>/dev/null || true)" != "$debian" ]; then
  install_packages
  echo "$debian" >.setup/debian
fi

python=$(checksum requirements-dev.txt)
if [ "$(cat .setup/python 2>/dev/null || true)" != "$python" ] || ! .venv/bin/python -c '' 2>/dev/null; then
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    rm -rf .venv
    "$(find_python)" -m venv .venv
  fi
  echo "setup: installing Python packages"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
  echo "$python" >.setup/python
fi
