"""The persistent cache: which folder it is, and opening it as the options say.

The store itself is in C++ (`runtime/cache`); here are its place, its settings and the keys of executables.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch  # its libraries have to be there before `_runtime` is

from torch_accel._runtime import (
    BUNDLE_VERSION,
    CacheError,
    CacheKey,
    CacheLock,
    CacheOutcome,
    CacheResult,
    CacheStore,
)
from torch_accel.options import Options

__all__ = [
    "KINDS",
    "CacheError",
    "CacheKey",
    "CacheLock",
    "CacheOutcome",
    "CacheResult",
    "CacheStore",
    "executable_key",
    "folder",
    "open_store",
]

KINDS = ("executable", "tuning")


def folder(options: Options, environ: Mapping[str, str] | None = None) -> Path | None:
    """The cache's folder: the option `cache_dir` (or `ACCEL_CACHE_DIR`), `$XDG_CACHE_HOME/accel`, `~/.cache/accel`.

    As the XDG specification says, an `XDG_CACHE_HOME` that is no absolute path counts as unset. None for a user without
    a home.
    """
    environ = os.environ if environ is None else environ
    if options.cache_dir:
        return Path(os.path.expanduser(options.cache_dir))
    base = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")
    return Path(base, "accel") if os.path.isabs(base) else None


def open_store(options: Options) -> CacheStore | None:
    """The store that the options describe, or None if they turn it off or it has no place. Touches no file."""
    place = folder(options)
    if options.cache == "off" or place is None:
        return None
    return CacheStore(place, trust=options.cache_trust, locks=options.cache_locks == "on")


def executable_key(graph: str, target: str, graph_options: Mapping[str, Any]) -> CacheKey:
    """The key of a compiled graph: all that its bundle depends on.

    `graph` is the FX JSON without its name, `graph_options` those of `options.graph_options`. Where the host is the
    target, its processor is part of the key. Reads the compiler's file once in a process, but doesn't load it.
    """
    return CacheKey(
        [
            ("bundle", str(BUNDLE_VERSION)),
            ("compiler", _compiler_identity()),
            ("torch", torch.__version__),
            ("target", f"{target} {_host()}" if target == "cpu" else target),
            ("options", json.dumps(graph_options, sort_keys=True)),
            ("graph", graph),
        ]
    )


@functools.lru_cache(maxsize=1)
def _compiler_identity() -> str:
    """A checksum of the compiler. LLVM itself, a library of the system's, is known by the version it was built with."""
    spec = importlib.util.find_spec("torch_accel._compiler")
    if spec is None or spec.origin is None:
        return ""
    with open(spec.origin, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.lru_cache(maxsize=1)
def _host() -> str:
    """The processor as Linux describes it: model and features, from which the compiler takes what it may use."""
    lines: dict[str, str] = {}
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if not value:
                break  # the first processor only
            lines[name.strip()] = value.strip()
    names = ("vendor_id", "cpu family", "model", "stepping", "flags")
    return "; ".join(f"{name} {lines[name]}" for name in names if name in lines)
