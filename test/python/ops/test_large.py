"""Results larger than the caches, which kernels write past them."""

from __future__ import annotations

import pytest
import torch
from compare import BF16, F32, F64, U8, values

pytestmark = pytest.mark.compiler

ELEMENTS = {F32: 8 << 20, F64: 4 << 20, BF16: 16 << 20, U8: 32 << 20}


@pytest.mark.parametrize("columns", [1024, 4096, 1000])
@pytest.mark.parametrize("dtype", ELEMENTS)
def test_every_element_is_written(dtype, columns):
    """Rows of whole registers, and rows that end within one."""
    x = values(dtype, -(-ELEMENTS[dtype] // columns), columns)
    run = torch.compile(lambda x: (x + 1, x > 0, x.flip(0)), backend="accel", dynamic=False)
    for got, want in zip(run(x), (x + 1, x > 0, x.flip(0)), strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("before", [16, 3, 1])
def test_parts_of_a_concatenation_start_anywhere(before):
    a, x = values(F32, before), values(F32, ELEMENTS[F32])
    run = torch.compile(lambda a, x: torch.cat([a * 2, x * 3, a]), backend="accel", dynamic=False)
    assert torch.equal(run(a, x), torch.cat([a * 2, x * 3, a]))


@pytest.mark.parametrize("columns", [512, 1000, 40000])
def test_rows_that_are_run_over_several_times(columns):
    """The next row is asked for ahead of time: the last one has none."""
    x = values(F32, ELEMENTS[F32] // columns + 1, columns)
    for function in (lambda x: x.softmax(-1), lambda x: torch.nn.functional.layer_norm(x, x.shape[1:])):
        run = torch.compile(function, backend="accel", dynamic=False)
        torch.testing.assert_close(run(x), function(x), rtol=1e-5, atol=1e-5)
