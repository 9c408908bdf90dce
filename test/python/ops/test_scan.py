"""Running sums and their like, against eager."""

from __future__ import annotations

import pytest
import torch
from compare import ALL, BF16, F16, F32, F64, FLOATS, I32, I64, check, check_gradients, values

pytestmark = pytest.mark.compiler

NAN, INF = float("nan"), float("inf")

SUMS = {f"cumsum({dim})": lambda x, d=dim: x.cumsum(d) for dim in (0, 1, 2, -1)} | {
    "cumsum(f64)": lambda x: x.cumsum(1, dtype=F64),
    "cumsum(i32)": lambda x: x.round().cumsum(2, dtype=I32),
    "computed": lambda x: (x * 2).cumsum(-1) + 1,
}
PRODUCTS = {f"cumprod({dim})": lambda x, d=dim: x.cumprod(d) for dim in (0, 1, 2)}
LOGSUMEXPS = {f"logcumsumexp({dim})": lambda x, d=dim: x.logcumsumexp(d) for dim in (0, 1, 2)}

SIZES = (5, 37, 19)


@pytest.mark.parametrize("dtype", ALL)
def test_sums(dtype):
    check(SUMS, values(dtype, *SIZES))


@pytest.mark.parametrize("dtype", ALL)
def test_products(dtype):
    check(PRODUCTS, values(dtype, 3, 6, 4))


@pytest.mark.parametrize("dtype", FLOATS)
def test_logsumexps(dtype):
    check(LOGSUMEXPS, values(dtype, *SIZES) * 3)


def test_nan_and_infinity():
    x = values(F32, *SIZES)
    x[0, 3], x[1, 4], x[2, 5], x[3, 6, 7], x[4, :2], x[2, 9] = NAN, INF, -INF, INF, -INF, INF
    check(SUMS | LOGSUMEXPS | PRODUCTS, x)


def test_long_rows():
    cases = {"cumsum": lambda x: x.cumsum(-1), "cumsum(0)": lambda x: x.cumsum(0)}
    check(cases, values(F32, 3, 100003))
    check(cases, values(F32, 100003))
    check(cases, values(BF16, 2, 1003))


def test_layouts():
    check(SUMS, values(F32, 19, 37, 5).permute(2, 1, 0))
    check(SUMS, values(F32, 10, 37, 57)[::2, :, 1::3])
    check(SUMS, values(F32, 5, 1, 19).expand(5, 37, 19))
    check({"transposed": lambda x: x.transpose(0, 2).cumsum(0).transpose(0, 2)}, values(F32, *SIZES))


def test_small_and_empty():
    cases = {"cumsum": lambda x: x.cumsum(0), "cumprod": lambda x: x.cumprod(0), "l": lambda x: x.logcumsumexp(0)}
    check(cases, torch.tensor(2.5))
    check(cases, torch.tensor([3.0]))
    check(cases, torch.empty(0, 3))
    check(cases, torch.empty(3, 0))
    check(SUMS, values(F32, 1, 9, 1))


def test_gradients():
    check_gradients(lambda x: (x.cumsum(1), x.cumsum(0)), values(F32, 6, 13))


@pytest.mark.parametrize("dtype", [F32, F16, I64])
def test_dynamic(dtype):
    check(SUMS, values(dtype, *SIZES), dynamic=True)


def test_one_compilation_serves_all_sizes():
    def f(x):
        return x.cumsum(0), x.cumsum(1), x.logcumsumexp(1)

    compiled = torch.compile(f, backend="accel", dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for sizes in ((5, 37), (64, 3), (17, 128)):
            x = values(F32, *sizes)
            for got, want in zip(compiled(x), f(x), strict=True):
                torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_running_extremes_and_sorting_are_the_library_s():
    cases = {
        "cummax": lambda x: x.cummax(1),
        "cummin": lambda x: x.cummin(0),
        "sort": lambda x: x.sort(1),
        "sort(stable)": lambda x: torch.sort(x, stable=True, dim=0, descending=True),
        "argsort": lambda x: x.argsort(-1),
        "topk": lambda x: x.topk(3, 1),
        "kthvalue": lambda x: x.kthvalue(2, 0),
        "median": lambda x: x.median(1),
    }
    check(cases, values(F32, *SIZES), exact=True)
