"""Resizing, against eager: by sizes and by factors, and eager's memory format."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from compare import ALL, BF16, F16, F32, F64, FLOATS, U8, check, check_gradients, values

pytestmark = pytest.mark.compiler

CL = torch.channels_last
SIZES = (2, 5, 13, 19)


def resize(mode, **kwargs):
    return lambda x: F.interpolate(x, mode=mode, **kwargs)


NEAREST = {
    f"{mode}, {kwargs}": resize(mode, **kwargs)
    for mode in ("nearest", "nearest-exact")
    for kwargs in (
        {"scale_factor": 2},
        {"scale_factor": 3},
        {"scale_factor": (0.5, 1.7)},
        {"scale_factor": 1.3, "recompute_scale_factor": True},
        {"size": (26, 19)},
        {"size": (7, 40)},
        {"size": (1, 1)},
    )
}
LINEAR = {
    f"{align}, {kwargs}": resize("bilinear", align_corners=align, **kwargs)
    for align in (False, True)
    for kwargs in (
        {"scale_factor": 2},
        {"scale_factor": (0.5, 1.7)},
        {"scale_factor": 1.3, "recompute_scale_factor": True},
        {"size": (13, 38)},
        {"size": (7, 40)},
        {"size": (1, 1)},
    )
}


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("layout", [torch.contiguous_format, CL])
def test_nearest(dtype, layout):
    x = values(dtype, *SIZES).contiguous(memory_format=layout)
    if dtype in (*FLOATS, U8):
        check(NEAREST, x, exact=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", [torch.contiguous_format, CL])
def test_linear(dtype, layout):
    check(LINEAR, values(dtype, *SIZES).contiguous(memory_format=layout))


def test_other_ranks():
    cases = {
        "nearest 1d": lambda x: F.interpolate(x[0], scale_factor=2),
        "exact 1d": lambda x: F.interpolate(x[0], size=20, mode="nearest-exact"),
        "linear 1d": lambda x: F.interpolate(x[0], scale_factor=1.5, mode="linear"),
        "nearest 3d": lambda x: F.interpolate(x[None], scale_factor=2),
        "exact 3d": lambda x: F.interpolate(x[None], size=(3, 20, 11), mode="nearest-exact"),
        "trilinear": lambda x: F.interpolate(x[None], scale_factor=1.5, mode="trilinear"),
        "trilinear, aligned": lambda x: F.interpolate(x[None], size=(3, 20, 11), mode="trilinear", align_corners=True),
    }
    check(cases, values(F32, 2, 5, 12, 13))


def test_specials():
    x = values(F32, *SIZES)
    x[0, 0, 3, 4], x[0, 1, 5, 6], x[1, 2, 0, 0] = math.nan, math.inf, -math.inf
    check(NEAREST, x, exact=True)
    check(LINEAR, x)
    check(LINEAR, x.contiguous(memory_format=CL))


def test_no_batch():
    cases = {"nearest": resize("nearest", scale_factor=2), "bilinear": resize("bilinear", size=(7, 8))}
    check(cases, torch.empty(0, 5, 13, 19))


def test_neighbours_fuse():
    check({"net": lambda x: F.interpolate(torch.relu(x), scale_factor=2) * 2 + 1}, values(F32, *SIZES))
    check({"view": lambda x: F.interpolate(x.transpose(2, 3)[:, 1:], size=(7, 8))}, values(F32, *SIZES))


GRADIENTS = {
    "nearest 2": resize("nearest", scale_factor=2),
    "nearest (3, 5)": resize("nearest", scale_factor=(3, 5)),
    "nearest size": resize("nearest", size=(26, 19)),
    "exact 2": resize("nearest-exact", scale_factor=2),
    "nearest 1d": lambda x: F.interpolate(x[0], scale_factor=4),
    "nearest 3d": lambda x: F.interpolate(x[None], scale_factor=2),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    for dtype in (F32, F64):
        check_gradients(GRADIENTS[name], values(dtype, *SIZES))
    if "d" not in name:
        check_gradients(GRADIENTS[name], values(F32, *SIZES).contiguous(memory_format=CL))


@pytest.mark.parametrize("dtype", [F16, BF16])
def test_gradients_in_low_precision(dtype):
    f, x = GRADIENTS["nearest 2"], values(dtype, *SIZES)
    gradient = values(dtype, *f(x).shape, seed=1)
    results = []
    for run, t in ((torch.compile(f, backend="accel"), x), (f, x.double())):
        leaf = t.clone().requires_grad_()
        run(leaf).backward(gradient.to(t.dtype))
        results.append(leaf.grad)
    torch.testing.assert_close(results[0].double(), results[1], rtol=2.0**-7, atol=1e-6)


def test_gradients_that_fall_back():
    for f in (resize("nearest", scale_factor=1.7), resize("bilinear", scale_factor=2), resize("bicubic", size=(7, 9))):
        check_gradients(f, values(F32, *SIZES), native=False)


def test_other_backends_see_what_they_did():
    """What keeps resizing whole while we trace is gone afterwards."""
    torch.compile(resize("nearest", scale_factor=2), backend="accel")(values(F32, *SIZES))
    targets = []

    def backend(gm, inputs):
        from functorch.compile import make_boxed_func
        from torch._dynamo.backends.common import aot_autograd

        def compiler(graph, inputs):
            targets.extend(str(node.target) for node in graph.graph.nodes)
            return make_boxed_func(graph.forward)

        return aot_autograd(fw_compiler=compiler)(gm, inputs)

    torch.compile(resize("nearest", scale_factor=2), backend=backend)(values(F32, *SIZES))
    assert "aten._unsafe_index.Tensor" in targets


# Factors that a lambda closes over would be symbolic too.
DYNAMIC = {
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest, size": lambda x: F.interpolate(x, size=(7, 40)),
    "nearest, factor": lambda x: F.interpolate(x, scale_factor=1.5),
    "exact": lambda x: F.interpolate(x, scale_factor=2, mode="nearest-exact"),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "bilinear, size": lambda x: F.interpolate(x, size=(26, 20), mode="bilinear"),
    "bilinear, aligned": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
    "like": lambda x: F.interpolate(x[:, :, 1:, 2:], size=x.shape[2:], mode="bilinear"),
}


@pytest.mark.parametrize("layout", [torch.contiguous_format, CL])
def test_dynamic(layout):
    check(DYNAMIC, values(F32, *SIZES).contiguous(memory_format=layout), dynamic=True)
