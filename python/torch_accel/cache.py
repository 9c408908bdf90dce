"""The persistent cache: which folder it is, and opening it as the options say.

The store itself is in C++ (`runtime/cache`); here are only its place and its settings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch  # noqa: F401  its libraries have to be there before `_runtime` is

from torch_accel._runtime import (
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
