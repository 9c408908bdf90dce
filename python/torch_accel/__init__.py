"""accel: a graph compiler for PyTorch. `torch.compile(model, backend="accel")` compiles a model with it."""

from __future__ import annotations

from torch_accel.options import MODES, Options
from torch_accel.report import GraphReport, reports, reset_reports

__version__ = "0.1.0"
__all__ = ["MODES", "GraphReport", "Options", "explain", "reports", "reset_reports"]


def explain(fn, *args, options=None, dynamic=None, **kwargs):
    """Compiles `fn`, runs it on the arguments, and returns an `Explanation` of what the compiler did.

    `options` and `dynamic` are those of `torch.compile`; all other keywords go to `fn`.
    """
    from torch_accel.explanation import explain as run

    return run(fn, *args, options=options, dynamic=dynamic, **kwargs)


def _register() -> None:
    """Makes the name `accel` known where no installed package's entry point does (a plain source or build folder)."""
    from importlib.metadata import entry_points

    if entry_points(group="torch_dynamo_backends", name="accel"):
        return
    from torch._dynamo.backends.registry import _COMPILER_FNS, register_backend

    from torch_accel.backend import accel

    if "accel" not in _COMPILER_FNS:
        register_backend(accel, name="accel")


_register()
