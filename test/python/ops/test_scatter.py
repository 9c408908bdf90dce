"""Writing by indices, against eager: several for one place, positions from the end, and an error if out of range."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import ALL, BF16, BOOL, F16, F32, I32, I64, check, check_gradients, values

pytestmark = pytest.mark.compiler

aten = torch.ops.aten


def positions(limit: int, *sizes: int, dtype: torch.dtype = I64, low: int = 0) -> torch.Tensor:
    return torch.randint(low, limit, sizes, generator=torch.Generator().manual_seed(limit)).to(dtype)


SIZES = (6, 13, 19)
ADDS = {
    "scatter_add(1)": lambda x, i, s: x.scatter_add(1, i, s),
    "scatter_add(1, slice)": lambda x, i, s: x.scatter_add(1, i[:, :3], s),
    "scatter_add(0)": lambda x, i, s: x.scatter_add(0, i % 6, s[:, :13]) if i.shape[1] == 13 else x,
    "scatter_add(-1)": lambda x, i, s: x.transpose(1, 2).scatter_add(-1, i.transpose(1, 2), s.transpose(1, 2)),
    "scatter_reduce(sum)": lambda x, i, s: x.scatter_reduce(1, i, s, "sum"),
    "index_add(1)": lambda x, i, s: x.index_add(1, i[0, :, 0], s[:, : i.shape[1]]),
    "index_add(-1)": lambda x, i, s: x.transpose(1, 2).index_add(-1, i[0, :, 0], s[:, : i.shape[1]].transpose(1, 2)),
    "index_add(scalar)": lambda x, i, s: x.index_add(1, i[0, 0, 0], s[:, :1]),
}
PUTS = {
    "[i] +=": lambda x, i, j, v: x.index_put((i % 6,), v[0, 0], accumulate=True),
    "[:, j] +=": lambda x, i, j, v: aten.index_put(x, [None, j], v[0, 0], True),
    "[..., j] +=": lambda x, i, j, v: aten.index_put(x, [None, None, j], v[0, 0, 0], True),
    "[i, j] +=": lambda x, i, j, v: x.index_put((i % 6, j), v[0], accumulate=True),
    "[i, :, j] +=": lambda x, i, j, v: aten.index_put(x, [i % 6, None, j], v[0, 0], True),
    "[i, j, i] +=": lambda x, i, j, v: x.index_put((i % 6, j, i), v[0, 0, 0], accumulate=True),
    "outer +=": lambda x, i, j, v: aten.index_put(x, [None, i[:, :1], j[0]], v[0, 0, 0], True),
    "scalars +=": lambda x, i, j, v: x.index_put((i[0, 0] % 6, j[0, 0]), v[0], accumulate=True),
}
# Places are named once each, or eager may write any of several.
SETS = {
    "scatter(0)": lambda x, i, s: x.scatter(0, i[:, None, None].expand(-1, 13, 19), s[:6]),
    "scatter(value)": lambda x, i, s: x.scatter(1, i[None, :, None].expand(6, -1, 19), 2.0),
    "index_copy": lambda x, i, s: x.index_copy(1, i, s[:, :6]),
    "[i] =": lambda x, i, s: x.index_put((i,), s[0]),
    "[-i] =": lambda x, i, s: x.index_put((-1 - i,), s[0]),
    "[:, i] =": lambda x, i, s: aten.index_put(x, [None, i], s[:, :6]),
    "[i, i] =": lambda x, i, s: x.index_put((i, i), s[0, 0]),
    "_unsafe": lambda x, i, s: aten._unsafe_index_put(x, [i], s[0]),
    "number": lambda x, i, s: x.index_put((i[:2],), s[0, 0, 0]),
}


@pytest.mark.parametrize("dtype", ALL)
def test_adding(dtype):
    check(ADDS, values(dtype, *SIZES), positions(13, 6, 7, 19), values(dtype, 6, 9, 19, seed=1))
    i, j = positions(13, 5, 7), positions(13, 5, 7, low=-13)
    check(PUTS, values(dtype, *SIZES), i, j, values(dtype, 1, 1, 1, 1, seed=1))


@pytest.mark.parametrize("dtype", ALL)
def test_setting(dtype):
    order = torch.randperm(6, generator=torch.Generator().manual_seed(0))
    check(SETS, values(dtype, *SIZES), order, values(dtype, 6, 13, 19, seed=1), exact=True)


def test_values_of_all_shapes():
    i, j, v = positions(6, 5, 7), positions(13, 5, 7), values(F32, 5, 7, 19)
    whole, middle = values(F32, 5, 7, 13, 19), values(F32, 6, 5, 7, 19)
    cases = {
        "[i]": lambda x: x.index_put((i,), whole, accumulate=True),
        "[i, j]": lambda x: x.index_put((i, j), v, accumulate=True),
        "[i, j] row": lambda x: x.index_put((i, j), v[0, 0], accumulate=True),
        "[i, j] column": lambda x: x.index_put((i, j), v[:, :, :1], accumulate=True),
        "[:, j]": lambda x: aten.index_put(x, [None, j], middle, True),
        "zeros": lambda x: torch.zeros_like(x).index_put((i, j), v, accumulate=True),
    }
    check(cases, values(F32, *SIZES))


def test_layouts():
    i = positions(13, 6, 7, 19)
    check(ADDS, values(F32, 19, 13, 6).permute(2, 1, 0), i, values(F32, 19, 9, 6).permute(2, 1, 0))
    check(ADDS, values(F32, *SIZES), positions(13, 6, 7, 1).expand(6, 7, 19), values(F32, 6, 9, 1).expand(6, 9, 19))


@pytest.mark.parametrize("width", [1, 3, 16, 64, 100, 768])
def test_rows_of_all_widths(width):
    i = positions(11, 40)
    cases = {
        "index_add": lambda x, s: x.index_add(0, i, s),
        "index_put": lambda x, s: x.index_put((i,), s, accumulate=True),
        "columns": lambda x, s: x.t().index_add(1, i, s.t()),
    }
    check(cases, values(F32, 11, width), values(F32, 40, width))


def test_rows():
    i = positions(50, 1000)
    cases = {"scatter_add": lambda x, s: x.scatter_add(0, i, s), "put": lambda x, s: x.index_put((i,), s, True)}
    check(cases, values(F32, 50), values(F32, 1000))
    check(cases, values(I64, 50), values(I64, 1000))


@pytest.mark.parametrize("dtype", [F32, F16, BF16])
@pytest.mark.parametrize("index", [I64, I32])
def test_embeddings(dtype, index):
    cases = {
        "plain": lambda g, i: aten.embedding_dense_backward(g, i, 11, -1, False),
        "padding": lambda g, i: aten.embedding_dense_backward(g, i, 11, 3, False),
        "by frequency": lambda g, i: aten.embedding_dense_backward(g, i, 11, -1, True),
    }
    check(cases, values(dtype, 2, 9, 37), positions(11, 2, 9, dtype=index))


def test_masks():
    x, row, number = values(F32, *SIZES), values(BOOL, 6), torch.tensor(3.0)
    cases = {
        "[m] = v": lambda x, m, v: x.index_put((m,), v),
        "[:, m] = v": lambda x, m, v: aten.index_put(x, [None, m[:1].expand(13)], v),
        "[mm] = v": lambda x, m, v: x.index_put((x > 0,), v),
        "[m] = row": lambda x, m, v: x.index_put((m,), x[0, 0]),
    }
    check(cases, x, row, number, exact=True)


def test_rank_zero_and_empty():
    cases = {
        "scatter_add": lambda x, i: x.scatter_add(0, i, x * 2),
        "scatter": lambda x, i: x.scatter(0, i, 5.0),
        "index_add": lambda x, i: x.index_add(0, i, x),
    }
    check(cases, torch.tensor(2.5), torch.tensor(0))
    none = torch.empty(0, dtype=I64)
    cases = {
        "scatter_add": lambda x, i: x.scatter_add(0, i[:, None].expand(0, 13), x),
        "index_add": lambda x, i: x.index_add(0, i, x[:0]),
        "index_put": lambda x, i: x.index_put((i,), x[:0], accumulate=True),
        "embedding": lambda x, i: aten.embedding_dense_backward(x[:0], i, 5, -1, False),
    }
    check(cases, values(F32, 6, 13), none)
    check(
        {"index_put": lambda x, i: x.index_put((i,), x[:1], accumulate=True)}, torch.empty(6, 0), torch.tensor([0, 2])
    )


@pytest.mark.parametrize(
    ("f", "bad"),
    [
        (lambda x, i: x.index_put((i,), x[:3], accumulate=True), (6, -7, 2**40)),
        (lambda x, i: x.index_put((i,), x[0]), (6, -7)),
        (lambda x, i: aten.index_put(x, [None, i], x[:, :3], True), (13, -14)),
        (lambda x, i: x.index_add(0, i, x[:3]), (6, -1)),
        (lambda x, i: x.index_add(1, i, x[:, :3]), (13, -1)),
        (lambda x, i: x.scatter_add(0, i[:, None].expand(3, 13), x[:3]), (6, -1)),
        (lambda x, i: x.scatter(1, i[None].expand(6, 3), x), (13, -1)),
    ],
)
def test_positions_out_of_range_are_an_error(f, bad):
    compiled = torch.compile(f, backend="accel", fullgraph=True)
    x = values(F32, 6, 13)
    for position in bad:
        for run in (f, compiled):
            with pytest.raises((IndexError, RuntimeError)):
                run(x, torch.tensor([0, position, 1]))
    # The process and the compiled function go on.
    good = torch.tensor([0, 5, 1])
    torch.testing.assert_close(compiled(x, good), f(x, good))


def test_gradients():
    i, j = positions(6, 9), positions(13, 6, 4)
    check_gradients(lambda x: (x[i] * 2, x.index_select(0, i), x[:, i]), values(F32, 6, 13))
    check_gradients(lambda w: F.embedding(i, w) * 3, values(F32, 6, 13))
    check_gradients(lambda w: F.embedding(i, w, padding_idx=2) * 3, values(F32, 6, 13))
    check_gradients(lambda x: x.gather(1, j), values(F32, 6, 13))
    check_gradients(lambda x, s: x.index_add(0, i, s), values(F32, 6, 13), values(F32, 9, 13))


def test_dynamic():
    check(ADDS, values(F32, *SIZES), positions(13, 6, 7, 19), values(F32, 6, 9, 19), dynamic=True)
    i = positions(6, 9)
    check_gradients(lambda w: F.embedding(i, w) * 3, values(F32, 6, 13), dynamic=True)


def test_one_compilation_serves_all_sizes():
    def f(x, i):
        return x.index_add(0, i, x[: i.shape[0]]), torch.zeros_like(x).index_put((-1 - i,), x[0], accumulate=True)

    compiled = torch.compile(f, backend="accel", dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for rows, columns, count in ((5, 37, 3), (64, 3, 2), (17, 128, 11)):
            x, i = values(F32, rows, columns), positions(rows, count)
            for got, want in zip(compiled(x, i), f(x, i), strict=True):
                torch.testing.assert_close(got, want)
