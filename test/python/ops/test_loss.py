"""Losses of differences, against eager: values, gradients, every reduction, and where their pieces meet."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from compare import BF16, F16, F32, F64, FLOATS, check, check_gradients, values

pytestmark = pytest.mark.compiler

REDUCTIONS = ("mean", "sum", "none")
LOSSES = {
    "mse": F.mse_loss,
    "smooth_l1": F.smooth_l1_loss,
    "smooth_l1, beta 0.3": lambda x, y, **kwargs: F.smooth_l1_loss(x, y, beta=0.3, **kwargs),
    "huber": F.huber_loss,
    "huber, delta 0.4": lambda x, y, **kwargs: F.huber_loss(x, y, delta=0.4, **kwargs),
    "l1": F.l1_loss,
    "bce with logits": lambda x, y, **kwargs: F.binary_cross_entropy_with_logits(x, y.sigmoid(), **kwargs),
}
CASES = {
    f"{name}, {reduction}": lambda x, y, loss=loss, reduction=reduction: loss(x, y, reduction=reduction)
    for name, loss in LOSSES.items()
    for reduction in REDUCTIONS
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes", [(13,), (3, 65), (2, 3, 4, 5), (), (0, 4)])
def test_values(dtype, sizes):
    x, y = values(dtype, *sizes), values(dtype, *sizes, seed=1)
    check(CASES, x, y, native=False)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name, reduction):
    def function(x, y):
        return LOSSES[name](x * 2, y, reduction=reduction)

    check_gradients(function, values(F32, 5, 33), values(F32, 5, 33, seed=1), native=name != "bce with logits")


@pytest.mark.parametrize("name", ["mse", "smooth_l1", "huber, delta 0.4"])
def test_symbolic_sizes(name):
    def function(x, y):
        return LOSSES[name](x, y)

    check_gradients(function, values(F32, 6, 9), values(F32, 6, 9, seed=1), dynamic=True)


def test_pieces_meet_as_in_eager():
    edge = torch.tensor([-1.0, 1.0, -0.3, 0.3, 0.4, -0.4, 0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, 3e38])
    check({name: case for name, case in CASES.items() if "bce" not in name}, edge, torch.zeros_like(edge))
    for name in ("smooth_l1", "smooth_l1, beta 0.3", "huber", "huber, delta 0.4"):
        check_gradients(lambda x, y, name=name: LOSSES[name](x, y, reduction="none"), edge[:8], torch.zeros(8))


@pytest.mark.parametrize("dtypes", [(F32, F64), (BF16, F32), (F16, F16)])
def test_mixed_types_and_layouts(dtypes):
    x, y = values(dtypes[0], 8, 6), values(dtypes[1], 6, 8, seed=1).t()
    check({"mse": F.mse_loss}, x, y)


def test_sizes_that_differ_run_in_pytorch():
    with pytest.warns(UserWarning, match="mse_loss"):
        check({"mse": lambda x, y: torch.ops.aten.mse_loss(x, y)}, values(F32, 3, 4), values(F32, 4), native=False)
