"""Compares compiled ops with eager: values, dtypes, sizes, strides, and that nothing fell back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

import torch_accel

F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
I8, I16, I32, I64, U8, BOOL = torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool
FLOATS = (F32, F64, F16, BF16)
INTEGERS = (I64, I32, I16, I8, U8)
ALL = (*FLOATS, *INTEGERS, BOOL)

Case = Callable[..., Any]

# Relative error against eager, or against f64 beside twice eager's own error; and absolute error for values of order 1.
TOLERANCES = {F32: (1e-5, 1e-6), F64: (1e-10, 1e-13), F16: (2.0**-10, 1e-6), BF16: (2.0**-7, 1e-6)}


def values(dtype: torch.dtype, *sizes: int, seed: int = 0) -> Tensor:
    """Random values: normal ones, small integers, or booleans."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == BOOL:
        return torch.rand(sizes, generator=generator) < 0.5
    if dtype.is_floating_point:
        return torch.randn(sizes, generator=generator, dtype=F64).to(dtype)
    return torch.randint(0 if dtype == U8 else -9, 10, sizes, generator=generator).to(dtype)


def runs(case: Case, inputs: Sequence[Any]) -> bool:
    """Whether eager has the op for these inputs."""
    try:
        case(*inputs)
    except (RuntimeError, NotImplementedError, TypeError, IndexError):
        return False
    return True


def _wide(inputs: Iterable[Any]) -> list[Any]:
    return [t.double() if isinstance(t, Tensor) and t.is_floating_point() else t for t in inputs]


def assert_layout(got: Tensor, want: Tensor, name: str) -> None:
    """Equal dtypes, sizes and strides; those of dimensions of size 1 and of tensors without elements mean nothing."""
    assert got.dtype == want.dtype, f"{name}: {got.dtype} is not {want.dtype}"
    assert got.shape == want.shape, f"{name}: {got.shape} is not {want.shape}"
    strides = [[s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1] for t in (got, want)]
    assert strides[0] == strides[1] or want.numel() == 0, f"{name}: strides {got.stride()} are not {want.stride()}"


def assert_same(got: Any, want: Any, name: str, truth: Any = None, exact: bool = False) -> None:
    """`truth` is what eager computes in f64, if it does."""
    if not isinstance(want, Tensor):
        assert got == want, name
        return
    assert_layout(got, want, name)
    if not want.is_floating_point() or exact:
        same = ((got == want) & (got.signbit() == want.signbit())) | ((got != got) & (want != want))
        assert same.all(), f"{name}: {got[~same][:5]} is not {want[~same][:5]}, at {(~same).nonzero()[:5].tolist()}"
        return
    a, b = got.double(), want.double()
    relative, absolute = TOLERANCES[want.dtype]
    close = (a - b).abs() <= relative * b.abs() + absolute
    if isinstance(truth, Tensor) and truth.shape == want.shape:
        t = truth.double()
        close |= (a - t).abs() <= 2 * (b - t).abs() + relative * t.abs() + absolute
    wrong = ~(close | (a == b) | (a.isnan() & b.isnan()))
    assert not wrong.any(), f"{name}: {got[wrong][:5]} is not {want[wrong][:5]}, at {wrong.nonzero()[:5].tolist()}"


def assert_native() -> None:
    """No op of the graphs compiled since `reset_reports` runs in PyTorch."""
    reports = torch_accel.reports()
    assert reports, "nothing was compiled"
    fallbacks = [f for report in reports for f in report.fallbacks]
    assert not fallbacks, fallbacks
    assert not any(report.whole_graph_reason for report in reports)


def check(
    cases: Mapping[str, Case], *inputs: Any, dynamic: bool | None = False, exact: bool = False, native: bool = True
) -> None:
    """Compiles all cases that eager runs on these inputs as one graph, and compares."""
    kept = {name: case for name, case in cases.items() if runs(case, inputs)}
    assert kept, "eager runs none of these"

    def every(*args):
        return tuple(case(*args) for case in kept.values())

    torch_accel.reset_reports()
    results = torch.compile(every, backend="accel", dynamic=dynamic, fullgraph=True)(*inputs)
    if native:
        assert_native()
    wide = _wide(inputs)
    for (name, case), result in zip(kept.items(), results, strict=True):
        got, want = tree_flatten(result)[0], tree_flatten(case(*inputs))[0]
        truth = tree_flatten(case(*wide))[0] if runs(case, wide) else [None] * len(want)
        assert len(got) == len(want), name
        for k, (g, w, t) in enumerate(zip(got, want, truth, strict=True)):
            assert_same(g, w, f"{name}[{k}]", t, exact)


def check_gradients(function: Case, *inputs: Tensor, dynamic: bool | None = False, native: bool = True) -> None:
    """Compares the results of a function, and the gradients of its inputs with a random gradient of the result."""
    torch_accel.reset_reports()

    def results(run, tensors):
        leaves = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in tensors]
        out = run(*leaves)
        flat = [t for t in tree_flatten(out)[0] if isinstance(t, Tensor) and t.requires_grad]
        torch.autograd.backward(flat, [values(t.dtype, *t.shape, seed=k) for k, t in enumerate(flat)])
        return [t.detach() for t in tree_flatten(out)[0]], [t.grad for t in leaves if t.requires_grad]

    compiled = torch.compile(function, backend="accel", dynamic=dynamic, fullgraph=True)
    got, want, truth = results(compiled, inputs), results(function, inputs), results(function, _wide(inputs))
    if native:
        assert_native()
    for what, *triple in zip(("result", "gradient"), got, want, truth, strict=True):
        for k, (g, w, t) in enumerate(zip(*triple, strict=True)):
            assert_same(g, w, f"{what} {k}", t)
