"""Where the package is found, and what each test starts from."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("ACCEL_BUILD_DIR", ROOT / "build")) / "python"

if importlib.util.find_spec("torch_accel") is None:
    sys.path.insert(0, str(BUILT if any(BUILT.glob("torch_accel/_compiler*")) else ROOT / "python"))

import pytest
import torch

import torch_accel

HAS_COMPILER = importlib.util.find_spec("torch_accel._compiler") is not None


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "ignore::torch_accel.backend.FallbackWarning")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("compiler") and not HAS_COMPILER:
            item.add_marker(pytest.mark.skip(reason="the C++ modules are not built"))


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Fixed random numbers, nothing compiled, no reports, no cache, and no options from the caller's environment."""
    for name in [n for n in os.environ if n.startswith("ACCEL_") and n != "ACCEL_BUILD_DIR"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ACCEL_CACHE", "off")
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch_accel.reset_reports()
