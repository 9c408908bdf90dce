"""Pooling, against eager: values, positions, gradients, and eager's memory format."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from compare import BF16, F16, F32, F64, FLOATS, I64, TOLERANCES, check, check_gradients, values

pytestmark = pytest.mark.compiler

CL = torch.channels_last


def max_pool(*args, **kwargs):
    return lambda x: F.max_pool2d(x, *args, return_indices=True, **kwargs)


def avg_pool(*args, **kwargs):
    return lambda x: F.avg_pool2d(x, *args, **kwargs)


MAXIMA = {
    "2": max_pool(2),
    "3, 2, 1": max_pool(3, 2, 1),
    "3, 1, 1": max_pool(3, 1, 1),
    "(2, 3), (3, 1), (1, 0)": max_pool((2, 3), (3, 1), (1, 0)),
    "ceil": max_pool(3, 2, ceil_mode=True),
    "ceil, padded": max_pool(2, 3, 1, ceil_mode=True),
    "dilation": max_pool(3, 2, 1, dilation=(2, 3)),
    "dilation, ceil": max_pool(2, 2, 1, dilation=3, ceil_mode=True),
    "7": max_pool(7, 3, 3),
    "whole": max_pool((13, 19)),
    "values": lambda x: F.max_pool2d(x, 3, 2, 1),
}
MEANS = {
    "2": avg_pool(2),
    "3, 2": avg_pool(3, 2),
    "3, 1, 1": avg_pool(3, 1, 1),
    "border not counted": avg_pool(3, 2, 1, count_include_pad=False),
    "(2, 3), (3, 1), (1, 0)": avg_pool((2, 3), (3, 1), (1, 0)),
    "ceil": avg_pool(3, 2, ceil_mode=True),
    "ceil, border": avg_pool(2, 3, 1, ceil_mode=True),
    "ceil, border not counted": avg_pool(4, 3, 1, ceil_mode=True, count_include_pad=False),
    "divisor": avg_pool(3, 2, 1, ceil_mode=True, divisor_override=7),
    "7": avg_pool(7, 3, 3),
    "7, border not counted": avg_pool(7, 3, 3, count_include_pad=False),
    "whole": avg_pool((13, 19)),
}
ADAPTIVE = {
    "even": lambda x: F.adaptive_avg_pool2d(x, (6, 4)),
    "uneven": lambda x: F.adaptive_avg_pool2d(x, (5, 7)),
    "half even": lambda x: F.adaptive_avg_pool2d(x, (4, 7)),
    "larger": lambda x: F.adaptive_avg_pool2d(x, (30, 25)),
    "row": lambda x: F.adaptive_avg_pool2d(x, (1, 7)),
    "one": lambda x: F.adaptive_avg_pool2d(x, (1, 1)),
    "same": lambda x: F.adaptive_avg_pool2d(x, (12, 20)),
}
SIZES, EVEN = (2, 5, 13, 19), (2, 5, 12, 20)


@pytest.mark.parametrize("dtype", [*FLOATS, I64])
@pytest.mark.parametrize("layout", [torch.contiguous_format, CL])
def test_maxima(dtype, layout):
    check(MAXIMA, values(dtype, *SIZES).contiguous(memory_format=layout), exact=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", [torch.contiguous_format, CL])
def test_means(dtype, layout):
    check(MEANS, values(dtype, *SIZES).contiguous(memory_format=layout))
    check(ADAPTIVE, values(dtype, *EVEN).contiguous(memory_format=layout))


def test_other_ranks():
    cases = {
        "max 1d": lambda x: F.max_pool1d(x[0], 3, 2, 1),
        "max 2d": lambda x: F.max_pool2d(x[0], 3, 2, 1, return_indices=True),
        "max 3d": lambda x: F.max_pool3d(x, 2, 2, 1, return_indices=True),
        "max 3d, large": lambda x: F.max_pool3d(x, (3, 4, 5), 1, 1, return_indices=True),
        "avg 1d": lambda x: F.avg_pool1d(x[0], 3, 2, 1, count_include_pad=False),
        "avg 2d": lambda x: F.avg_pool2d(x[0], 3, 2, 1),
        "avg 3d": lambda x: F.avg_pool3d(x, 3, 2, 1, count_include_pad=False, ceil_mode=True),
        "adaptive 1d": lambda x: F.adaptive_avg_pool1d(x[0], 5),
        "adaptive 2d": lambda x: F.adaptive_avg_pool2d(x[0], (5, 4)),
        "adaptive 3d": lambda x: F.adaptive_avg_pool3d(x, (2, 6, 3)),
    }
    check(cases, values(F32, 3, 5, 12, 13))


def test_equal_elements_and_specials():
    x = values(I64, *SIZES).to(F32) * 0.25
    x[:, 0] = 1.0
    x[:, 1] = -math.inf
    x[0, 2].flatten()[::3] = math.nan
    x[0, 3, 4:9] = math.nan
    x[1, 3].flatten()[::2] = math.inf
    x[1, 4].flatten()[::2] = -0.0
    x[1, 4].flatten()[1::2] = 0.0
    small = {name: case for name, case in MAXIMA.items() if name not in ("7", "whole")}
    for dtype in (F32, F64, BF16):
        check(small, x.to(dtype), exact=True)
        check(small, x.to(dtype).contiguous(memory_format=CL), exact=True)
    check(MAXIMA, x)
    check(MEANS, x)


def test_no_elements():
    check(MAXIMA, torch.empty(0, 5, 13, 19), exact=True)
    check(MEANS, torch.empty(0, 5, 13, 19))
    check(ADAPTIVE, torch.empty(0, 5, 12, 20))


def test_neighbours_fuse():
    def f(x, w):
        y = F.max_pool2d(torch.relu(F.conv2d(x, w, padding=1)), 3, 2, 1)
        return F.avg_pool2d(y * 2 + 1, 3, 1, 1), y

    for layout in (torch.contiguous_format, CL):
        check({"net": f}, values(F32, 2, 3, 13, 19).contiguous(memory_format=layout), values(F32, 4, 3, 3, 3))
    check({"view": lambda x: F.max_pool2d(x.transpose(2, 3)[:, 1:], 3, 2, 1)}, values(F32, *SIZES), exact=True)
    check({"twice": lambda x: F.max_pool2d(F.max_pool2d(x, 3, 1, 1), 3, 2, 1)}, values(F32, *SIZES), exact=True)
    check(
        {"shared": lambda x: (F.max_pool2d(x + 1, 5, 1, 2), F.avg_pool2d(x + 1, 3, 1, 1), x + 1)}, values(F32, *SIZES)
    )


GRADIENTS = {
    "max": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max, ceil": lambda x: F.max_pool2d(x, 2, ceil_mode=True),
    "avg": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "avg, ceil": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "avg, gaps": lambda x: F.avg_pool2d(x, 2, 3),
    "divisor": lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (6, 4)),
    "max 3d": lambda x: F.max_pool3d(x, 3, 2, 1),
    "avg 3d": lambda x: F.avg_pool3d(x, 3, 2, 1),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    for dtype in (F32, F64):
        check_gradients(GRADIENTS[name], values(dtype, *EVEN))
    if "3d" not in name:
        check_gradients(GRADIENTS[name], values(F32, *EVEN).contiguous(memory_format=CL))


@pytest.mark.parametrize("dtype", [F16, BF16])
@pytest.mark.parametrize("name", ["max", "avg", "adaptive"])
def test_gradients_in_low_precision(name, dtype):
    """Against f64 from the same rounded numbers: eager adds gradients up in the low precision."""
    f, x = GRADIENTS[name], values(dtype, *EVEN)
    gradient = values(dtype, *f(x).shape, seed=1)
    results = []
    for run, t in ((torch.compile(f, backend="accel"), x), (f, x.double())):
        leaf = t.clone().requires_grad_()
        run(leaf).backward(gradient.to(t.dtype))
        results.append(leaf.grad)
    torch.testing.assert_close(results[0].double(), results[1], rtol=TOLERANCES[dtype][0], atol=1e-6)


def test_gradients_that_fall_back():
    check_gradients(lambda x: F.max_pool2d(x, 3, 2, 1, dilation=2), values(F32, *EVEN), native=False)
    check_gradients(lambda x: F.adaptive_avg_pool2d(x, (5, 7)), values(F32, *EVEN), native=False)


@pytest.mark.parametrize("layout", [torch.contiguous_format, CL])
def test_dynamic(layout):
    check(MAXIMA, values(F32, *SIZES).contiguous(memory_format=layout), dynamic=True, exact=True)
    check(MEANS, values(F32, *SIZES).contiguous(memory_format=layout), dynamic=True)
    check(ADAPTIVE, values(F32, *EVEN).contiguous(memory_format=layout), dynamic=True)


def test_one_compilation_serves_all_sizes():
    def f(x):
        return (
            F.max_pool2d(x, 3, 2, 1, return_indices=True),
            F.max_pool2d(x, 3, 2, ceil_mode=True),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            F.adaptive_avg_pool2d(x, (3, 4)),
        )

    compiled = torch.compile(f, backend="accel", dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for sizes in ((2, 3, 13, 19), (3, 2, 24, 9), (5, 7, 8, 8)):
            x = values(F32, *sizes)
            torch.testing.assert_close(compiled(x), f(x))
