"""Tensors made of numbers and positions, against eager."""

from __future__ import annotations

import math

import pytest
import torch
from compare import ALL, BF16, F32, F64, FLOATS, I8, I32, I64, INTEGERS, check, values

pytestmark = pytest.mark.compiler

aten = torch.ops.aten
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("dtype", ALL)
def test_fills(dtype):
    cases = {
        "full": lambda x: torch.full((3, 5), 2, dtype=dtype),
        "full(real)": lambda x: torch.full((3, 0, 5), 2.75, dtype=dtype),
        "full(bool)": lambda x: torch.full((), True, dtype=dtype),
        "full_like": lambda x: torch.full_like(x, 3),
        "full_like(dtype)": lambda x: torch.full_like(x, 1.5, dtype=F32),
        "zeros": lambda x: torch.zeros(4, 17, dtype=dtype),
        "ones": lambda x: torch.ones(4, 17, dtype=dtype),
        "zeros_like": torch.zeros_like,
        "ones_like": torch.ones_like,
        "ones_like(dtype)": lambda x: torch.ones_like(x, dtype=I32),
        "new_zeros": lambda x: x.new_zeros(2, 3),
        "new_ones": lambda x: x.new_ones((2, 3), dtype=F64),
        "new_full": lambda x: x.new_full((2, 3), 7),
        "scalar_tensor": lambda x: aten.scalar_tensor.default(5, dtype=dtype),
        "fill.Scalar": lambda x: aten.fill.Scalar(x, 9),
        "fill.Tensor": lambda x: aten.fill.Tensor(x, torch.tensor(2.75)),
        "zero": lambda x: aten.zero.default(x),
        "eye": lambda x: torch.eye(5, dtype=dtype),
        "eye(m)": lambda x: torch.eye(4, 19, dtype=dtype),
        "fill_": lambda x: x.clone().fill_(4),
    }
    check(cases, values(dtype, 5, 1, 19), exact=True)
    check({name: case for name, case in cases.items() if "like" in name}, values(dtype, 7, 5).t(), exact=True)


def test_empty_tensors_have_eagers_sizes():
    def f(x):
        made = (torch.empty(3, 5), torch.empty_like(x), x.new_empty(2, 0), torch.empty_strided((2, 3), (1, 2)))
        return [t.fill_(1) for t in (*made, x.new_empty_strided((2, 3), (1, 2)))]

    check({"empty": f}, values(F32, 7, 5).t(), exact=True)


def test_special_numbers():
    cases = {
        f"full({v}, {dtype})": lambda x, v=v, dtype=dtype: torch.full((3,), v, dtype=dtype)
        for v in (INF, -INF, NAN, -0.0, 1e-42)
        for dtype in FLOATS
    }
    cases |= {f"full({v})": lambda x, v=v: torch.full((3,), v, dtype=I64) for v in (2**63 - 1, -(2**63), 2**53 + 1)}
    check(cases, values(F32, 1), exact=True)


def test_default_dtypes():
    cases = {
        "full(int)": lambda x: torch.full((2,), 3),
        "full(real)": lambda x: torch.full((2,), 3.5),
        "full(bool)": lambda x: torch.full((2,), True),
        "scalar_tensor": lambda x: torch.scalar_tensor(3),
        "arange": lambda x: torch.arange(5),
        "arange(real)": lambda x: torch.arange(5.0),
    }
    check(cases, values(F32, 1), exact=True)


def test_numbers_out_of_range_are_an_error():
    for f in (lambda x: torch.full((2,), 300, dtype=I8) + x, lambda x: torch.full((2,), 1e40, dtype=F32) + x):
        for run in (f, torch.compile(f, backend="accel")):
            with pytest.raises(RuntimeError):
                run(values(I8, 2))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_arange(dtype):
    cases = {
        "end": lambda x: torch.arange(19, dtype=dtype),
        "start": lambda x: torch.arange(3, 40, dtype=dtype),
        "step": lambda x: torch.arange(3, 40, 7, dtype=dtype),
        "backwards": lambda x: torch.arange(40, 3, -3, dtype=dtype),
        "nothing": lambda x: torch.arange(0, dtype=dtype),
    }
    if dtype.is_floating_point:
        cases["reals"] = lambda x: torch.arange(0.5, 9.25, 0.75, dtype=dtype)
    check(cases, values(F32, 1))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_linspace(dtype):
    cases = {
        "up": lambda x: torch.linspace(0, 10, 17, dtype=dtype),
        "down": lambda x: torch.linspace(9, 1, 6, dtype=dtype),
        "one": lambda x: torch.linspace(3, 10, 1, dtype=dtype),
        "none": lambda x: torch.linspace(3, 10, 0, dtype=dtype),
        "two": lambda x: torch.linspace(3, 10, 2, dtype=dtype),
    }
    check(cases, values(F32, 1))
    if dtype in (F32, F64):  # in f16 and bf16 eager rounds the step
        check({"reals": lambda x: torch.linspace(-1.5, 2.25, 101, dtype=dtype)}, values(F32, 1))


def test_dynamic():
    cases = {
        "arange": lambda x: torch.arange(x.shape[0]),
        "arange(f32)": lambda x: torch.arange(x.shape[0], dtype=F32),
        "arange(start, end)": lambda x: torch.arange(x.shape[0], 3 * x.shape[0]),
        "arange(step)": lambda x: torch.arange(0, x.shape[1], 2),
        "arange(real)": lambda x: torch.arange(0, x.shape[1], 2.0),
        "full": lambda x: torch.full((x.shape[0], 3), 1.5),
        "full(n)": lambda x: torch.full((2,), x.shape[1]),
        "full(n, f32)": lambda x: torch.full((2,), x.shape[1], dtype=F32),
        "zeros": lambda x: torch.zeros(x.shape[1], x.shape[0], dtype=BF16),
        "ones_like": torch.ones_like,
        "eye": lambda x: torch.eye(x.shape[0]),
        "linspace": lambda x: torch.linspace(0, 1, x.shape[1]),
        "scalar_tensor": lambda x: aten.scalar_tensor.default(x.shape[0]),
        "mask": lambda x: torch.arange(x.shape[1])[None] <= torch.arange(x.shape[0])[:, None],
    }
    check(cases, values(F32, 5, 37), dynamic=True)


def test_one_compilation_serves_all_sizes():
    def f(x):
        return torch.arange(x.shape[0]) + 1, torch.full((x.shape[1],), x.shape[0]), torch.eye(x.shape[0], x.shape[1])

    compiled = torch.compile(f, backend="accel", dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for sizes in ((5, 37), (64, 4), (17, 128)):
            x = values(F32, *sizes)
            for got, want in zip(compiled(x), f(x), strict=True):
                assert torch.equal(got, want)
