"""Attention against eager: sizes, masks, grouped heads, layouts, changing sizes, gradients and memory."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from compare import BF16, BOOL, F16, F32, FLOATS, assert_native, assert_same, check, check_gradients, values

import torch_accel

pytestmark = pytest.mark.compiler

INF, NAN = math.inf, math.nan

# B, H, key heads, L, S, E, V: one row, a few, less than a register, more than a block; E and V of no round number.
SIZES = (
    (1, 2, 2, 1, 100, 64, 64),
    (2, 2, 1, 2, 37, 20, 20),
    (1, 2, 2, 5, 7, 8, 8),
    (1, 2, 1, 17, 17, 13, 13),
    (2, 3, 3, 33, 65, 64, 64),
    (2, 4, 2, 130, 300, 80, 80),
    (1, 1, 1, 197, 129, 128, 128),
    (1, 2, 2, 64, 256, 1, 1),
    (1, 1, 1, 70, 1, 3, 3),
)


def inputs(dtype, batch, heads, key_heads, rows, columns, depth, width):
    sizes = ((heads, rows, depth), (key_heads, columns, depth), (key_heads, columns, width))
    return [values(dtype, batch, *size, seed=k) for k, size in enumerate(sizes)]


def masks(dtype, batch, heads, rows, columns):
    boolean = values(BOOL, batch, 1, rows, columns)
    boolean[:, :, 0] = False  # a row without keys
    padding = torch.zeros(batch, 1, 1, columns).masked_fill(values(BOOL, batch, 1, 1, columns), -INF).to(dtype)
    return {
        "Boolean": boolean,
        "of keys": values(BOOL, batch, 1, 1, columns),
        "of rows": values(dtype, rows, 1).expand(rows, columns),
        "added": values(dtype, 1, heads, rows, columns),
        "padding": padding,
        "swapped": values(dtype, columns, rows).t(),
    }


def attention(q, k, v, mask=None, causal=False, scale=None):
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale, enable_gqa=True)


PLAIN = {
    "plain": attention,
    "causal": lambda q, k, v: attention(q, k, v, causal=True),
    "scale": lambda q, k, v: attention(q, k, v, scale=0.25),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_attention(sizes, dtype):
    batch, heads, _, rows, columns, *_ = sizes
    given = masks(dtype, batch, heads, rows, columns)
    cases = PLAIN | {name: lambda q, k, v, *masks, i=i: attention(q, k, v, masks[i]) for i, name in enumerate(given)}
    check(cases, *inputs(dtype, *sizes), *given.values())


@pytest.mark.parametrize("target", ["cpu:x86-64-v3", "cpu:x86-64"])
def test_narrower_registers(target, monkeypatch):
    monkeypatch.setenv("ACCEL_TARGET", target)
    for sizes in SIZES[:6]:
        check(PLAIN, *inputs(F32, *sizes))


@pytest.mark.parametrize("dtype", FLOATS)
def test_both_results(dtype):
    op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    for sizes in ((2, 3, 3, 33, 65, 64, 64), (1, 2, 2, 1, 40, 16, 16)):
        check({"plain": op, "causal": lambda q, k, v: op(q, k, v, 0.0, True)}, *inputs(dtype, *sizes))


@pytest.mark.parametrize("rows", [1, 20])
def test_nan_and_infinity(rows):
    q, k, v = inputs(F32, 1, 2, 2, rows, 50, 16, 16)
    for what, bad in (
        ("query", (NAN, 3)),
        ("key", (NAN, 0)),
        ("key", (INF, 0)),
        ("value", (NAN, 1)),
        ("value", (INF, 2)),
    ):
        tensors = {"query": q.clone(), "key": k.clone(), "value": v.clone()}
        tensors[what][0, 1, min(bad[1], rows - 1) if what == "query" else 7, 2] = bad[0]
        torch._dynamo.reset()  # the same graph again
        check({"plain": attention}, *tensors.values())


def test_large_scores():
    """The maximum that grows from step to step scales the sums down to nothing."""
    q, k, v = inputs(F32, 1, 1, 1, 40, 500, 16, 16)
    growth = torch.linspace(0, 40, 500)[:, None]
    cases = {
        "growing": lambda q, k, v, by: attention(q, k * by, v),
        "falling": lambda q, k, v, by: attention(q, k * (40 - by), v),
    }
    check(cases, q, k, v, growth)


def test_no_elements():
    for sizes in ((0, 2, 2, 4, 4, 8, 8), (1, 2, 2, 0, 4, 8, 8)):
        check({"plain": attention}, *inputs(F32, *sizes))


def test_other_layouts():
    """Heads side by side in memory, as linear layers give them; packed; keys and values the other way round."""
    packed = values(F32, 2, 30, 3, 4, 32)
    check(PLAIN, *[packed[:, :, i].transpose(1, 2) for i in range(3)])
    q, k, v = inputs(F32, 2, 4, 4, 30, 50, 32, 32)
    swapped = [t.transpose(2, 3).contiguous().transpose(2, 3) for t in (q, k, v)]
    check(PLAIN, *swapped)
    # Keys 4 KiB apart fall on the same lines of a cache.
    wide = [values(F32, 1, 70, 16, 64, seed=k).transpose(1, 2) for k in range(3)]
    check(PLAIN, *wide)

    def packed_layer(x):
        q, k, v = (x[:, :, i].transpose(1, 2) for i in range(3))
        return attention(q, k, v).transpose(1, 2).reshape(2, 30, 128) * 2

    check({"layer": packed_layer}, packed)


def layer(q, k, v, mask=None, causal=False):
    """As models have it: the numbers of heads and their sizes are constants, all others change."""
    q, k, v = (x.view(x.shape[0], x.shape[1], heads, 64).transpose(1, 2) for x, heads in ((q, 4), (k, 2), (v, 2)))
    return attention(q, k, v, mask, causal)


@pytest.mark.parametrize("dtype", [F32, BF16])
def test_changing_sizes(dtype):
    # Dynamo's limit of compilations counts for one function.
    variants = {
        "plain": lambda q, k, v, mask: layer(q, k, v),
        "causal": lambda q, k, v, mask: layer(q, k, v, None, True),
        "mask": lambda q, k, v, mask: layer(q, k, v, mask),
        "mask of rows": lambda q, k, v, mask: layer(q, k, v, mask[:, :, :1]),
    }
    compiled = {n: torch.compile(f, backend="accel", dynamic=True, fullgraph=True) for n, f in variants.items()}
    torch_accel.reset_reports()
    for batch, rows, columns in ((2, 40, 30), (3, 1, 100), (1, 5, 129), (5, 200, 64), (2, 8, 1)):
        q, k, v = (
            values(dtype, batch, *size, seed=i) for i, size in enumerate(((rows, 256), (columns, 128), (columns, 128)))
        )
        mask = values(dtype, batch, 1, rows, columns)
        given, truth = (q, k, v, mask), [x.double() for x in (q, k, v, mask)]
        for name, run in compiled.items():
            assert_same(run(*given), variants[name](*given), f"{name} {(batch, rows, columns)}", variants[name](*truth))
    assert_native()
    assert not any(report.nodes["library"] for report in torch_accel.reports())


@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients(dynamic):
    q, k, v = inputs(F32, 2, 3, 3, 33, 40, 16, 16)
    check_gradients(attention, q, k, v, dynamic=dynamic)
    check_gradients(lambda q, k, v: attention(q, k, v, causal=True), q, k, v, dynamic=dynamic)


def test_is_one_kernel():
    torch_accel.reset_reports()
    # Laid out as eager's result, which is laid out as the queries.
    q, k, v = (x.transpose(1, 2) for x in inputs(F16, 1, 300, 300, 2, 2, 16, 16))
    torch.compile(attention, backend="accel")(q, k, v)
    (report,) = torch_accel.reports()
    assert report.nodes["library"] == 0
    assert [kernel["class"] for kernel in report.kernels] == ["attention"]


def softmax_product(scores, v, dtype=None):
    return torch.softmax(scores, -1, dtype=dtype).to(v.dtype) @ v


WRITTEN_OUT = {
    "plain": lambda q, k, v, m: softmax_product(q @ k.transpose(2, 3) / 8, v),
    "added mask": lambda q, k, v, m: softmax_product(q @ k.transpose(2, 3) * 0.125 + m, v),
    "mask first": lambda q, k, v, m: softmax_product(m + (q * 0.125) @ k.transpose(2, 3), v),
    "hidden": lambda q, k, v, m: softmax_product((q @ k.transpose(2, 3) / 8).masked_fill(m < -0.5, -INF), v),
    "low": lambda q, k, v, m: softmax_product(torch.where(m > -0.5, q @ k.transpose(2, 3) / 8, -1e4), v),
    "layer": lambda q, k, v, m: (
        softmax_product(q @ k.transpose(2, 3) / 8, v).transpose(1, 2).reshape(q.shape[0], -1, 192)
    ),
    "no heads": lambda q, k, v, m: softmax_product(q[:, 0] @ k[:, 0].transpose(1, 2) / 8, v[:, 0]),
}


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_written_out(name, dtype):
    """Products around a softmax are the same kernel; a row that a mask hides entirely is what softmax makes of it."""
    for batch in (1, 2):
        q, k, v = (x.transpose(1, 2) for x in inputs(dtype, batch, 40, 50, 3, 3, 64, 64))
        mask = values(dtype, batch, 1, 40, 50)
        mask[:, :, 5] = -1
        check({name: WRITTEN_OUT[name]}, q, k, v, mask)
        (report,) = torch_accel.reports()
        assert [kernel["class"] for kernel in report.kernels].count("attention") == 1
        assert report.nodes["library"] == 0


def test_written_out_with_gradients():
    """What the backward pass reads is stored, so that the softmax stays."""
    q, k, v = (x.transpose(1, 2) for x in inputs(F32, 2, 20, 20, 3, 3, 64, 64))
    check_gradients(lambda q, k, v: WRITTEN_OUT["plain"](q, k, v, None), q, k, v)


MEMORY = """
import resource, torch, torch_accel
def peak(run):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
def written_out(q, k, v):
    return torch.softmax(q @ k.transpose(2, 3) / 8, -1) @ v
def attention(x):
    q, k, v = x.view(1, x.shape[1], 3, 2, 64).permute(2, 0, 3, 1, 4)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v), q, k, v
run = torch.compile(attention, backend="accel", dynamic=True)
with torch.no_grad():
    for size in (96, 160):
        run(torch.randn(1, size, 384))
    x = torch.randn(1, 4096, 384)
    own = peak(lambda: run(x))
    assert not any(report.nodes["library"] for report in torch_accel.reports())
    print(own, peak(lambda: written_out(*attention(x)[1:])))
"""


def test_memory():
    """At sequence 4096, less than a tenth of what the written-out form takes."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    own, other = map(int, done.stdout.split())
    assert own * 10 < other, f"{own} KiB against {other} KiB"
