"""Convolutions in kernels of ours and in the library's, against f64."""

from __future__ import annotations

import copy

import pytest
import torch
from compare import assert_layout
from torch import nn

import torch_accel

CHANNELS_LAST = torch.channels_last


def compare(model: nn.Module, x: torch.Tensor, library: int = 0, options=None, dynamic=False):
    model = model.eval().requires_grad_(False)
    torch_accel.reset_reports()
    run = torch.compile(model, backend="accel", options=options, dynamic=dynamic)
    got, want, truth = run(x), model(x), copy.deepcopy(model).double()(x.double())
    assert_layout(got, want, "convolution")
    (report,) = torch_accel.reports()
    assert report.nodes["fallback"] == 0, report.fallbacks
    assert report.nodes["library"] == library, report.library
    if got.numel():
        error = (got.double() - truth).abs().max() / truth.abs().max()
        assert error <= 1e-5, error
    return run


FORMS = [
    # channels, output channels, kernel, stride, padding, dilation, groups, bias
    (16, 32, 1, 1, 0, 1, 1, True),
    (64, 20, 1, 2, 0, 1, 1, False),
    (16, 33, 3, 1, 1, 1, 1, True),
    (17, 8, 3, 2, 1, 1, 1, False),
    (3, 16, 7, 2, 3, 1, 1, True),
    (1, 12, 5, 1, 2, 1, 1, True),
    (20, 40, 3, 1, 2, 2, 1, True),
    (18, 24, 2, 1, 1, 1, 1, True),
    (24, 24, 3, 1, 1, 1, 24, True),
    (33, 33, 5, 2, 2, 1, 33, False),
    (16, 16, 3, 1, 2, 2, 16, True),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("size", [(1, 13, 17), (2, 28, 9)])
def test_forms(form, last, size):
    channels, out, kernel, stride, padding, dilation, groups, bias = form
    batch, height, width = size
    conv = nn.Conv2d(channels, out, kernel, stride, padding, dilation, groups, bias)
    x = torch.randn(batch, channels, height, width)
    compare(conv, x.contiguous(memory_format=CHANNELS_LAST) if last else x)


@pytest.mark.parametrize(
    ("conv", "size", "library"),
    [
        (nn.Conv1d(16, 24, 5, 2, 2), (2, 16, 50), 0),
        (nn.Conv3d(8, 16, 3, 1, 1), (1, 8, 6, 7, 5), 0),
        (nn.Conv2d(16, 32, (1, 3), (2, 1), (0, 1)), (1, 16, 12, 14), 0),
        (nn.Conv2d(16, 32, 3, groups=4), (1, 16, 12, 14), 1),
        (nn.ConvTranspose2d(16, 8, 3, 2, 1), (1, 16, 9, 7), 1),
        (nn.Conv2d(16, 4, 3), (1, 16, 9, 7), 1),
        (nn.Conv2d(16, 16, 3, padding=1), (0, 16, 9, 7), 1),
    ],
    ids=["1d", "3d", "sides", "groups", "transposed", "few channels", "no batch"],
)
def test_other_forms(conv, size, library):
    compare(conv, torch.randn(size), library)


def test_half_precision_is_the_librarys():
    conv = nn.Conv2d(16, 32, 3).to(torch.bfloat16).requires_grad_(False)
    x = torch.randn(1, 16, 10, 10, dtype=torch.bfloat16)
    torch.testing.assert_close(torch.compile(conv, backend="accel")(x), conv(x))


def test_one_compile_serves_many_batches():
    conv = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()).eval().requires_grad_(False)
    run = torch.compile(conv, backend="accel", dynamic=True)
    for batch in (2, 3, 5):
        x = torch.randn(batch, 16, 9, 11)
        torch._dynamo.mark_dynamic(x, 0)
        torch.testing.assert_close(run(x), conv(x), rtol=1e-4, atol=1e-5)


class Network(nn.Module):
    """What vision models are made of: strided convolutions, branches, concatenation, depthwise ones, pooling."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.left = nn.Sequential(nn.Conv2d(16, 24, 1), nn.SiLU(), nn.Conv2d(24, 24, 3, 1, 1, groups=24))
        self.right = nn.Sequential(nn.Conv2d(16, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.Hardswish())
        self.join = nn.Conv2d(48, 48, 3, padding=1)
        self.head = nn.Linear(48, 10)
        for norm in (self.stem[1], self.right[1]):
            nn.init.uniform_(norm.running_mean)
            nn.init.uniform_(norm.running_var, 0.5, 2)

    def forward(self, x):
        x = self.stem(x)
        both = torch.cat([self.left(x), self.right(x)], 1)
        both = torch.relu(self.join(both) + both)
        return self.head(both.mean((2, 3)))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
def test_a_network(last, target):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 34, 38)
    compare(Network(), x.contiguous(memory_format=CHANNELS_LAST) if last else x, options={"target": target})


def test_a_network_keeps_channels_last_throughout():
    """Beside the image itself nothing is copied to another order of memory."""
    with torch.no_grad():
        (graph,) = torch_accel.explain(Network().eval(), torch.randn(2, 3, 34, 38)).graphs
    copies = [
        kernel
        for kernel in graph.kernels
        if kernel["class"] == "elementwise" and not kernel["once"] and kernel["ops"] == ["aten.convolution.default"]
    ]
    assert sum(kernel["launches"] for kernel in copies) == 1


def test_nan_and_infinities_at_the_border():
    conv = nn.Conv2d(16, 16, 3, padding=1).requires_grad_(False)
    x = torch.randn(1, 16, 8, 8)
    x[0, 3, 0, 0], x[0, 4, 7, 7] = float("nan"), float("inf")
    got, want = torch.compile(conv, backend="accel")(x), conv(x)
    assert torch.equal(got.isnan(), want.isnan())
    assert torch.equal(got.isinf(), want.isinf())
    finite = want.isfinite()
    torch.testing.assert_close(got[finite], want[finite], rtol=1e-4, atol=1e-5)


def test_training_keeps_the_librarys():
    conv = nn.Conv2d(8, 16, 3, padding=1)
    x = torch.randn(2, 8, 9, 9, requires_grad=True)
    torch_accel.reset_reports()
    torch.compile(conv, backend="accel")(x).sum().backward()
    assert all(r.nodes["library"] == 1 for r in torch_accel.reports())
    assert conv.weight.grad is not None
