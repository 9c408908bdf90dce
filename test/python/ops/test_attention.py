"""Attention in one kernel: values against f64, masks, layouts, gradients, and memory."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch
from compare import BF16, F16, F32, F64, assert_layout, values
from torch.nn import functional

import torch_accel

# A softmax of f32 is off by the rounding of the scores, which grow with the head size; half precision by its own.
ERRORS = {F32: 1e-5, F64: 1e-12, BF16: 2.0**-6, F16: 2.0**-9}


def heads(batch, number, length, size, dtype=F32, seed=0):
    """[batch, number, length, size], as a view of [batch, length, number, size] like in a transformer."""
    return values(dtype, batch, length, number, size, seed=seed).transpose(1, 2)


def compare(q, k, v, mask=None, *, causal=False, scale=None, native=True, dynamic=False, run=None):
    def attention(q, k, v, mask):
        return functional.scaled_dot_product_attention(
            q, k, v, mask, is_causal=causal, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
        )

    torch_accel.reset_reports()
    if run is None:
        torch._dynamo.reset()
        run = torch.compile(attention, backend="accel", fullgraph=True, dynamic=dynamic)
    with torch.no_grad():
        got, want = run(q, k, v, mask), attention(q, k, v, mask)
        wide = mask.double() if mask is not None and mask.is_floating_point() else mask
        truth = attention(q.double(), k.double(), v.double(), wide)
    if native and torch_accel.reports():
        (report,) = torch_accel.reports()
        assert report.nodes["library"] == report.nodes["fallback"] == 0, report.library + report.fallbacks
    assert_layout(got, want, "attention")
    if got.numel():
        assert torch.equal(got.isnan(), want.isnan())
        difference = (got.double() - truth).nan_to_num().abs().max().item()
        assert difference <= ERRORS[q.dtype] * truth.nan_to_num().abs().max().item()
    return run


@pytest.mark.parametrize(("length", "keys"), [(1, 1), (1, 100), (3, 7), (16, 16), (33, 65), (100, 31), (130, 257)])
@pytest.mark.parametrize("size", [1, 8, 64, 80])
@pytest.mark.parametrize("causal", [False, True])
def test_sizes(length, keys, size, causal):
    compare(heads(2, 3, length, size), heads(2, 3, keys, size, seed=1), heads(2, 3, keys, size, seed=2), causal=causal)


def test_values_of_another_size():
    compare(heads(1, 2, 20, 16), heads(1, 2, 30, 16, seed=1), heads(1, 2, 30, 40, seed=2), native=False)


@pytest.mark.parametrize("dtype", [F64, BF16, F16])
def test_types(dtype):
    compare(*(heads(2, 3, 50, 32, dtype, seed) for seed in range(3)))
    compare(*(heads(2, 3, 50, 32, dtype, seed) for seed in range(3)), causal=True)


@pytest.mark.parametrize("shape", [(2, 3, 20, 40), (2, 1, 20, 40), (1, 1, 20, 40), (20, 40), (2, 3, 1, 40)])
def test_masks(shape):
    q, k, v = heads(2, 3, 20, 16), heads(2, 3, 40, 16, seed=1), heads(2, 3, 40, 16, seed=2)
    compare(q, k, v, values(F32, *shape))
    compare(q, k, v, values(torch.bool, *shape, seed=3))


def test_rows_without_a_key():
    q, k, v = heads(1, 2, 20, 16), heads(1, 2, 40, 16, seed=1), heads(1, 2, 40, 16, seed=2)
    mask = torch.zeros(20, 40)
    mask[3], mask[7, 5:] = float("-inf"), float("-inf")
    compare(q, k, v, mask)


def test_scale():
    compare(*(heads(1, 2, 30, 16, seed=seed) for seed in range(3)), scale=0.7)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_query_heads_share_keys(groups):
    compare(heads(2, 8, 20, 16), heads(2, groups, 30, 16, seed=1), heads(2, groups, 30, 16, seed=2))


def test_layouts():
    contiguous = [values(F32, 2, 3, 40, 16, seed=seed) for seed in range(3)]
    compare(*contiguous)
    compare(*(x[:, :, ::2, :] for x in contiguous))
    # PyTorch takes this one apart itself.
    compare(*(x.transpose(2, 3).contiguous().transpose(2, 3) for x in contiguous), native=False)
    together = values(F32, 2, 40, 3, 3, 16).permute(2, 0, 3, 1, 4)
    compare(*together.unbind(0))


def test_large_scores_do_not_overflow():
    q, k, v = (heads(1, 2, 40, 16, seed=seed) for seed in range(3))
    compare(q * 100, k * 100, v)


def test_nan_and_infinity_reach_their_rows():
    q, k, v = (heads(1, 2, 40, 16, seed=seed).clone() for seed in range(3))
    q[0, 1, 3, 5] = float("nan")
    compare(q, k, v)
    v[0, 0, 7, 2] = float("nan")
    compare(q, k, v)


@pytest.mark.parametrize("shape", [(0, 2, 5, 7), (1, 2, 0, 7)])
def test_no_elements(shape):
    batch, number, length, keys = shape
    compare(
        heads(batch, number, length, 8),
        heads(batch, number, keys, 8, seed=1),
        heads(batch, number, keys, 8, seed=2),
        native=False,
    )


def test_one_compile_serves_many_lengths():
    run = None
    for length, keys in ((20, 40), (33, 65), (130, 50)):
        q, k, v = heads(2, 3, length, 16), heads(2, 3, keys, 16, seed=1), heads(2, 3, keys, 16, seed=2)
        for tensor in (q, k, v):
            torch._dynamo.mark_dynamic(tensor, 2)
        run = compare(q, k, v, native=False, run=run)


def test_gradients():
    def attention(q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    inputs = [heads(2, 3, 30, 16, seed=seed) for seed in range(3)]
    results = []
    for run in (torch.compile(attention, backend="accel"), attention):
        leaves = [x.clone().requires_grad_() for x in inputs]
        out = run(*leaves)
        out.backward(values(F32, *out.shape, seed=9))
        results.append([out.detach(), *(x.grad for x in leaves)])
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_memory_grows_with_the_sequence_not_its_square():
    """At sequence 4096 less than a tenth of the written-out form's, whose scores alone are 64 MiB a head."""
    script = """
        import resource, sys, torch
        from torch.nn import functional
        torch.set_num_threads(2)
        q, k, v = (torch.randn(1, 4, 4096, 64) for _ in range(3))
        if sys.argv[1] == "fused":
            run = torch.compile(functional.scaled_dot_product_attention, backend="accel")
        else:
            run = lambda q, k, v: (q @ k.transpose(2, 3) / 8).softmax(-1) @ v
        with torch.no_grad():
            # Compiling takes memory of its own: the kernel is made at a length that needs little.
            for length in (64, 128, 4096):
                args = [x[:, :, :length].contiguous() for x in (q, k, v)]
                for x in args:
                    torch._dynamo.mark_dynamic(x, 2)
                if length == 4096:
                    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                run(*args)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    grown = {}
    for form in ("fused", "written out"):
        command = [sys.executable, "-c", textwrap.dedent(script), form]
        grown[form] = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown["written out"] > 4 * 64 * 1024  # KiB
    assert grown["fused"] < grown["written out"] / 10
