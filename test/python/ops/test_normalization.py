"""Softmax, normalizations and the negative log likelihood, forward and backward, against eager."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from compare import BF16, F16, F32, F64, FLOATS, I64, check, check_gradients, values

pytestmark = pytest.mark.compiler

aten = torch.ops.aten
INF, NAN = math.inf, math.nan

SIZES = (5, 12, 19)

SOFTMAXES = {
    f"{name}({dim})": lambda x, name=name, dim=dim: getattr(torch, name)(x, dim)
    for name in ("softmax", "log_softmax")
    for dim in (0, 1, -1)
} | {
    "softmax(dtype=f64)": lambda x: torch.softmax(x, -1, dtype=F64),
    "log_softmax(dtype=f32)": lambda x: torch.log_softmax(x, 0, dtype=F32),
    "_safe_softmax(-1)": lambda x: aten._safe_softmax.default(x, -1),
    "_safe_softmax(0)": lambda x: aten._safe_softmax.default(x, 0),
}


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax(dtype):
    check(SOFTMAXES, values(dtype, *SIZES) * 4)


@pytest.mark.parametrize("dtype", [F32, BF16])
def test_softmax_of_nan_and_infinity(dtype):
    x = values(dtype, 8, 21)
    x[1, 4], x[2, 7], x[3, 9], x[4], x[5], x[6, 3] = NAN, INF, -INF, -INF, 1e4, -1e4
    check(SOFTMAXES, x)


def test_softmax_of_few_elements():
    check(SOFTMAXES, values(F32, 1, 1))
    check({"softmax": lambda x: x.softmax(0), "log_softmax": lambda x: x.log_softmax(-1)}, torch.tensor(3.0))
    check(SOFTMAXES, torch.empty(3, 0))
    check({"softmax": lambda x: torch.softmax(x, 0, dtype=F32)}, torch.arange(7))


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_backward(dtype):
    for name in ("softmax", "log_softmax"):
        for dim in (0, 1, -1):
            output = getattr(torch, name)(values(dtype, *SIZES, seed=1), dim)
            backward = getattr(aten, f"_{name}_backward_data").default
            cases = {f"{name}({dim})": lambda g, y, op=backward, dim=dim: op(g, y, dim, y.dtype)}
            check(cases, values(dtype, *SIZES), output)


def test_softmax_of_other_layouts():
    check(SOFTMAXES, values(F32, 19, 12, 5).permute(2, 1, 0))
    check(SOFTMAXES, values(F32, 5, 1, 19).expand(*SIZES))


# ---- layer, RMS, group norm


@pytest.mark.parametrize("dtype", FLOATS)
def test_layer_norm(dtype):
    cases = {
        "one": lambda x, w, b: F.layer_norm(x, (19,), w[0], b[0]),
        "two": lambda x, w, b: F.layer_norm(x, (12, 19), w, b, eps=1e-3),
        "all": lambda x, w, b: F.layer_norm(x, (5, 12, 19)),
        "weight": lambda x, w, b: F.layer_norm(x, (19,), w[0]),
        "native": lambda x, w, b: aten.native_layer_norm.default(x, [12, 19], w, b, 1e-5),
        "plain": lambda x, w, b: aten.native_layer_norm.default(x, [19], None, None, 1e-5),
        "rms": lambda x, w, b: F.rms_norm(x, (19,), w[0]),
        "_fused_rms_norm": lambda x, w, b: aten._fused_rms_norm.default(x, [12, 19], w, 1e-4),
    }
    check(cases, values(dtype, *SIZES) + 2, values(dtype, 12, 19, seed=1), values(dtype, 12, 19, seed=2))


def test_layer_norm_of_mixed_dtypes():
    # Only the first result: PyTorch's own fake tensors have the dtypes of the others wrong.
    cases = {"native": lambda x, w, b: aten.native_layer_norm.default(x, [19], w, b, 1e-5)[0]}
    check(cases, values(BF16, *SIZES), values(F32, 19), values(F32, 19, seed=1))


@pytest.mark.parametrize("dtype", [F32, F64, BF16])
def test_layer_norm_backward(dtype):
    weight, bias = values(dtype, 19, seed=1), values(dtype, 19, seed=2)
    check_gradients(lambda x, w, b: F.layer_norm(x, (19,), w, b), values(dtype, *SIZES), weight, bias)
    if dtype == F32:
        check_gradients(lambda x, w: F.layer_norm(x, (12, 19), w), values(dtype, *SIZES), values(dtype, 12, 19))
        check_gradients(lambda x: F.layer_norm(x, (5, 12, 19)), values(dtype, *SIZES))
        check_gradients(lambda x: F.layer_norm(x, (19,)), values(dtype, *SIZES), dynamic=True)


@pytest.mark.parametrize("dtype", [F32, BF16])
def test_layer_norm_backward_gives_what_the_mask_asks_for(dtype):
    def backward(mask):
        def run(g, x, w, b):
            _, mean, rstd = aten.native_layer_norm.default(x, [19], w, b, 1e-5)
            results = aten.native_layer_norm_backward.default(g, x, [19], mean, rstd, w, b, mask)
            return [t for t in results if t is not None]

        return run

    masks = ([True, True, True], [True, False, False], [False, True, False], [False, False, True])
    gradient, weight, bias = values(dtype, *SIZES, seed=1), values(dtype, 19, seed=2), values(dtype, 19, seed=3)
    check({str(mask): backward(mask) for mask in masks}, gradient, values(dtype, *SIZES), weight, bias)


@pytest.mark.parametrize("dtype", FLOATS)
def test_group_norm(dtype):
    cases = {
        f"{groups}": lambda x, w, b, groups=groups: (F.group_norm(x, groups, w, b), F.group_norm(x, groups))
        for groups in (1, 3, 12)
    } | {"native": lambda x, w, b: aten.native_group_norm.default(x, w, b, 5, 12, 19, 4, 1e-5)}
    check(cases, values(dtype, *SIZES), values(dtype, 12), values(dtype, 12, seed=1))


def test_group_norm_of_images_and_its_backward():
    x, w, b = values(F32, 2, 6, 5, 7), values(F32, 6), values(F32, 6, seed=1)
    check({"images": lambda x, w, b: F.group_norm(x, 2, w, b)}, x, w, b)
    check({"rows": lambda x, w, b: F.group_norm(x, 2, w, b)}, values(F32, 5, 6), w, b)
    check_gradients(lambda x, w, b: F.group_norm(x, 2, w, b), x, w, b)
    check_gradients(lambda x: F.group_norm(x, 3), x)


# ---- batch norm


@pytest.mark.parametrize("dtype", [F32, F64, BF16])
def test_batch_norm_with_running_statistics(dtype):
    statistics = F32 if dtype == BF16 else dtype
    cases = {
        "affine": lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b),
        "plain": lambda x, m, v, w, b: F.batch_norm(x, m, v, eps=1e-3),
        "bias": lambda x, m, v, w, b: F.batch_norm(x, m, v, None, b),
    }
    parameters = [values(statistics, 6), values(statistics, 6, seed=1).abs() + 0.1]
    parameters += [values(statistics, 6, seed=2), values(statistics, 6, seed=3)]
    check(cases, values(dtype, 3, 6, 5, 7), *parameters)
    check(cases, values(dtype, 5, 6), *parameters)
    check(cases, values(dtype, 3, 6, 5, 7).contiguous(memory_format=torch.channels_last), *parameters)


def test_batch_norm_of_the_batch():
    def updating(x, m, v, w, b):
        m, v = m.clone(), v.clone()
        return F.batch_norm(x, m, v, w, b, training=True, momentum=0.3), m, v

    cases = {"updating": updating, "plain": lambda x, m, v, w, b: F.batch_norm(x, None, None, w, b, training=True)}
    x = values(F32, 3, 6, 5, 7) + 1
    parameters = [values(F32, 6), values(F32, 6, seed=1).abs() + 0.1, values(F32, 6, seed=2), values(F32, 6, seed=3)]
    check(cases, x, *parameters)
    check(cases, x, *parameters, dynamic=True)


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_backward(training):
    m, v = values(F32, 6), values(F32, 6, seed=1).abs() + 0.1

    def f(x, w, b):
        return F.batch_norm(x, m.to(x.dtype, copy=True), v.to(x.dtype, copy=True), w, b, training=training)

    # Not seed 0, which the gradient is drawn with: one parallel to x gives a gradient of rounding errors alone.
    check_gradients(f, values(F32, 3, 6, 5, 7, seed=5), values(F32, 6), values(F32, 6, seed=1))


def test_batch_norm_modules_train():
    module = torch.nn.BatchNorm2d(6)
    twin = torch.nn.BatchNorm2d(6)
    x = values(F32, 3, 6, 5, 7)
    for net in (module, twin):
        run = torch.compile(net, backend="accel") if net is module else net
        for _ in range(2):
            run(x).square().sum().backward()
    for name, tensor in twin.state_dict().items():
        torch.testing.assert_close(module.state_dict()[name], tensor, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(module.weight.grad, twin.weight.grad, rtol=1e-4, atol=1e-3)


# ---- negative log likelihood

LOSSES = {
    f"nll_loss({reduction}, weight={weighted}, ignore={ignored})": lambda x, t, w, r=reduction, h=weighted, i=ignored: (
        F.nll_loss(x, t, w if h else None, ignore_index=i, reduction=r)
    )
    for reduction in ("mean", "sum", "none")
    for weighted in (False, True)
    for ignored in (-100, 3)
}


@pytest.mark.parametrize("dtype", [F32, F64, BF16])
def test_nll_loss(dtype):
    target = torch.randint(0, 7, (13,))
    target[4] = -100
    target[5] = 3
    check({n: c for n, c in LOSSES.items() if "-100" in n}, values(dtype, 13, 7), target, values(dtype, 7).abs())
    target[4] = 3
    check(LOSSES, values(dtype, 13, 7), target, values(dtype, 7).abs())


def test_nll_loss_of_one_and_of_images():
    check(LOSSES, values(F32, 7), torch.tensor(4), values(F32, 7).abs())
    check(LOSSES, values(F32, 2, 7, 3, 5), torch.randint(0, 7, (2, 3, 5)), values(F32, 7).abs())


def test_cross_entropy_trains():
    target = torch.randint(0, 7, (13,))
    target[2] = -100
    for reduction in ("mean", "sum", "none"):
        check_gradients(lambda x, r=reduction: F.cross_entropy(x, target, reduction=r), values(F32, 13, 7))
    weight = values(F32, 7).abs()
    check_gradients(lambda x: F.cross_entropy(x, target, weight.to(x.dtype)), values(F32, 13, 7))
    check_gradients(lambda x: F.cross_entropy(x, target), values(F32, 13, 7), dynamic=True)


def test_all_labels_ignored():
    cases = {"mean": F.nll_loss, "sum": lambda x, t: F.nll_loss(x, t, reduction="sum")}
    check(cases, values(F32, 3, 7), torch.full((3,), -100))


def test_labels_out_of_range_are_an_error():
    x, target = values(F32, 3, 7), torch.tensor([0, 7, 1])
    for run in (F.nll_loss, torch.compile(F.nll_loss, backend="accel")):
        with pytest.raises((IndexError, RuntimeError)):
            run(x, target)


# ---- sizes known at run time


def test_dynamic():
    cases = SOFTMAXES | {
        "layer_norm": lambda x: F.layer_norm(x, (x.shape[2],)),
        "layer_norm(all)": lambda x: F.layer_norm(x, x.shape),
        "native": lambda x: aten.native_layer_norm.default(x, [x.shape[1], x.shape[2]], None, None, 1e-5),
    }
    check(cases, values(F32, *SIZES), dynamic=True)
    check({"group_norm": lambda x: F.group_norm(x, 2)}, values(F16, 3, 6, 5, 7), dynamic=True)


def test_one_compilation_serves_all_sizes():
    def f(x, w):
        return torch.softmax(x, -1), F.layer_norm(x, (x.shape[-1],), w), torch.log_softmax(x, 0)

    compiled = torch.compile(f, backend="accel", dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for rows, columns in ((5, 37), (64, 3), (17, 128)):
            x, w = values(F32, rows, columns), values(F32, columns, seed=1)
            for got, want in zip(compiled(x, w), f(x, w), strict=True):
                torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


def test_integer_softmax_is_an_error():
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.compile(lambda x: torch.softmax(x, 0), backend="accel")(values(I64, 5))
