"""Gathers, against eager: positions from tensors, from the end if negative, and an error if they are out of range."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from compare import ALL, BF16, F32, I32, I64, check, values

pytestmark = pytest.mark.compiler

aten = torch.ops.aten
SIZES = (6, 13, 19)


def positions(limit: int, *sizes: int, dtype: torch.dtype = I64, low: int = 0) -> torch.Tensor:
    return torch.randint(low, limit, sizes, generator=torch.Generator().manual_seed(limit)).to(dtype)


GATHERS = {
    "gather(0)": lambda x, i: x.gather(0, i % 6),
    "gather(1)": lambda x, i: x.gather(1, i),
    "gather(-1)": lambda x, i: x.gather(-1, i),
    "take_along_dim": lambda x, i: x.take_along_dim(i[:, :1], 1),
    "index_select(0)": lambda x, i: x.index_select(0, i[0, 0] % 6),
    "index_select(1)": lambda x, i: x.index_select(1, i[1, 1]),
    "index_select(-1)": lambda x, i: x.index_select(-1, i[1, 1]),
    "index_select(scalar)": lambda x, i: x.index_select(1, i[0, 0, 0]),
    "take": lambda x, i: x.take(i * 7 - 90),
}
INDICES = {
    "[i]": lambda x, i, j: x[i % 6],
    "[-i]": lambda x, i, j: x[-1 - i % 6],
    "[:, i]": lambda x, i, j: x[:, i],
    "[..., i]": lambda x, i, j: x[..., i],
    "[i, j]": lambda x, i, j: x[i % 6, j],
    "[:, i, j]": lambda x, i, j: x[:, i, j],
    "[i, :, j]": lambda x, i, j: x[i % 6, :, j],
    "[i, 3]": lambda x, i, j: x[i % 6, 3],
    "[3, i]": lambda x, i, j: x[3, i],
    "[i, 2:5]": lambda x, i, j: x[i % 6, 2:5],
    "[i, None, j]": lambda x, i, j: x[i % 6, None, j],
    "broadcast": lambda x, i, j: x[(i[:, :1] % 6), j[:1]],
    "outer": lambda x, i, j: x[:, i[:, 0][:, None], j[0]],
    "all": lambda x, i, j: x[i % 6, j, i],
    # In an expression x[…] a scalar would be read on the host.
    "scalar": lambda x, i, j: aten.index.Tensor(x, [i[0, 0] % 6, j]),
    "both scalars": lambda x, i, j: aten.index.Tensor(x, [i[0, 0] % 6, j[0, 0]]),
    "_unsafe_index": lambda x, i, j: aten._unsafe_index.Tensor(x, [None, i, j]),
}
EMBEDDINGS = {
    "embedding": lambda w, i: F.embedding(i, w),
    "embedding(padding)": lambda w, i: F.embedding(i, w, padding_idx=3),
    "embedding(row)": lambda w, i: F.embedding(i[0, 0], w),
    "embedding(scalar)": lambda w, i: F.embedding(i[0, 0, 0], w),
}


@pytest.mark.parametrize("dtype", ALL)
def test_gathers(dtype):
    check(GATHERS, values(dtype, *SIZES), positions(13, 6, 5, 7), exact=True)


@pytest.mark.parametrize("dtype", ALL)
def test_indices(dtype):
    check(INDICES, values(dtype, *SIZES), positions(13, 5, 7), positions(13, 5, 7, low=-13), exact=True)


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("index", [I64, I32])
def test_embeddings(dtype, index):
    check(EMBEDDINGS, values(dtype, 11, 37), positions(11, 2, 5, 3, dtype=index), exact=True)


def test_index_dtypes():
    i = positions(13, 5, 7, dtype=I32)
    check(INDICES, values(F32, *SIZES), i, i, exact=True)
    check({"index_select": lambda x, i: x.index_select(1, i[0])}, values(F32, *SIZES), i, exact=True)


def test_other_layouts():
    x = values(F32, 19, 13, 6).permute(2, 1, 0)
    i = positions(13, 5, 7)
    check(INDICES, x, i, positions(13, 1, 7).expand(5, 7), exact=True)
    check(GATHERS, x, positions(13, 7, 5, 6).permute(2, 1, 0), exact=True)
    check(GATHERS, values(F32, 6, 1, 19).expand(*SIZES), positions(13, 6, 1, 7).expand(6, 5, 7), exact=True)
    check({"mixed": lambda x, i: (x[:, ::2].transpose(0, 1) + 1)[i % 7]}, x, i, exact=True)


def test_indices_that_are_computed():
    def f(x, t):
        order = (t * 3).argmax(-1)
        return x[order], x.gather(1, (t.abs() * 2).long().clamp(0, 12)), F.embedding(order + 1, x)

    check({"computed": f}, values(F32, 6, 13), values(F32, 6, 4), exact=True)


def test_rank_zero():
    cases = {
        "gather": lambda x, i: x.gather(0, i),
        "gather(row)": lambda x, i: x.gather(0, i.view(1)),
        "index_select": lambda x, i: x.index_select(0, i),
        "take": lambda x, i: x.take(i),
    }
    check(cases, torch.tensor(2.5), torch.tensor(0), exact=True)
    cases = {"gather": lambda x, i: x.gather(0, i), "index": lambda x, i: aten.index.Tensor(x, [i])}
    check(cases, values(F32, 5), torch.tensor(3), exact=True)


def test_no_elements():
    none = torch.empty(0, dtype=I64)
    cases = {
        "index": lambda x, i: x[i],
        "index(1)": lambda x, i: x[:, i],
        "index_select": lambda x, i: x.index_select(1, i),
        "gather": lambda x, i: x.gather(0, i.view(0, 0)),
        "embedding": lambda x, i: F.embedding(i, x),
    }
    check(cases, values(F32, 6, 13), none, exact=True)
    check({"index": lambda x, i: x[i]}, torch.empty(3, 0), torch.tensor([0, 2, 2]), exact=True)


@pytest.mark.parametrize(
    ("f", "bad"),
    [
        (lambda x, i: x[i], (6, -7, 2**40)),
        (lambda x, i: x[:, i], (13, -14)),
        (lambda x, i: x.index_select(0, i), (6, -1)),
        (lambda x, i: x.gather(0, i[:, None]), (6, -1)),
        (lambda x, i: F.embedding(i, x), (6, -1)),
        (lambda x, i: x.take(i), (78, -79)),
        (lambda x, i: torch.softmax(x, 0)[i] * 2, (6,)),
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


def test_masks_fall_back():
    cases = {"mask": lambda x, m: torch.where(m[:, None], x, 0), "index": lambda x, m: x[m.long()]}
    check(cases, values(F32, 6, 13), values(torch.bool, 6), exact=True)


def test_dynamic():
    check(GATHERS, values(F32, *SIZES), positions(13, 6, 5, 7), dynamic=True, exact=True)
    check(INDICES, values(F32, *SIZES), positions(13, 5, 7), positions(13, 5, 7, low=-13), dynamic=True, exact=True)
    check(EMBEDDINGS, values(F32, 11, 37), positions(11, 2, 5, 3), dynamic=True, exact=True)


def test_one_compilation_serves_all_sizes():
    def f(x, i):
        return x[i], x[-1 - i], x.index_select(0, i), F.embedding(i, x), x.gather(0, i[:, None].expand(-1, x.shape[1]))

    compiled = torch.compile(f, backend="accel", dynamic=True, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for rows, columns, count in ((5, 37, 9), (64, 3, 2), (17, 128, 33)):
            x, i = values(F32, rows, columns), positions(rows, count)
            for got, want in zip(compiled(x, i), f(x, i), strict=True):
                assert torch.equal(got, want)
