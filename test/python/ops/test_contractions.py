"""Matrix products in kernels of ours and in the library's, against f64."""

from __future__ import annotations

import itertools

import pytest
import torch
from compare import BF16, F16, F32, F64, I32, I64, assert_layout, values
from torch import Tensor, nn
from torch.nn import functional

import torch_accel

OWN = {"contractions": "own"}
# A sum of K products of f32 is off by some roots of K roundings; of half precision by one rounding of the result.
ERRORS = {F32: 1e-5, F64: 1e-12, BF16: 2.0**-7, F16: 2.0**-10}


def compare(function, *inputs, options=None, dynamic=False, native=True):
    """Compiles `function` for inference and compares with f64, relative to the largest value."""
    torch._dynamo.reset()
    torch_accel.reset_reports()
    compiled = torch.compile(function, backend="accel", dynamic=dynamic, fullgraph=True, options=options)
    with torch.no_grad():
        got, want = compiled(*inputs), function(*inputs)
        truth = function(*[x.double() if x.is_floating_point() else x for x in inputs])
    if native:
        (report,) = torch_accel.reports()
        assert report.nodes["library"] == report.nodes["fallback"] == 0, report.library + report.fallbacks
    results = zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want, truth)), strict=True)
    for g, w, t in results:
        close(g, w, t)
    return compiled


def close(got: Tensor, want: Tensor, truth: Tensor):
    assert_layout(got, want, "product")
    if got.numel() == 0:
        return
    if not got.is_floating_point():
        assert torch.equal(got, want)
        return
    finite = truth.isfinite()
    assert torch.equal(got.double()[~finite].nan_to_num(), want.double()[~finite].nan_to_num())
    scale = truth[finite].abs().max().item() if finite.any() else 1.0
    error = (got.double() - truth)[finite].abs().max().item() if finite.any() else 0.0
    assert error <= ERRORS[got.dtype] * max(scale, 1e-30), f"{error} of {scale}"


# Around the tiles' edges: 14 rows by 16, 32, 64 or 128 columns with AVX-512, 6 by 16 with AVX2.
ROWS, DEPTHS, COLUMNS = (1, 2, 5, 13, 14, 15, 29, 130), (1, 7, 64, 257), (1, 8, 17, 32, 33, 130)


@pytest.mark.parametrize("depth", DEPTHS)
def test_sizes_around_tiles(depth):
    sizes = list(itertools.product(ROWS, COLUMNS))
    lefts = {m: values(F32, m, depth, seed=m) for m in ROWS}
    rights = {n: values(F32, depth, n, seed=n) for n in COLUMNS}

    def every(*tensors):
        left, right = (
            dict(zip(ROWS, tensors[: len(ROWS)], strict=True)),
            dict(zip(COLUMNS, tensors[len(ROWS) :], strict=True)),
        )
        return tuple(left[m] @ right[n] for m, n in sizes)

    compare(every, *lefts.values(), *rights.values(), options=OWN, native=False)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("features", [(64, 33), (257, 8), (7, 100), (33, 1)])
def test_linear_with_packed_weights(rows, features):
    layer = nn.Linear(*features).requires_grad_(False)
    wide = nn.Linear(*features).double().requires_grad_(False)
    wide.load_state_dict(layer.state_dict())
    x = values(F32, rows, features[0])
    got, want = torch.compile(layer, backend="accel")(x), layer(x)
    close(got, want, wide(x.double()))


def test_operands_of_any_layout():
    a, b = values(F32, 40, 70), values(F32, 70, 50, seed=1)
    cases = {
        "left transposed": (a.t().contiguous().t(), b),
        "right transposed": (a, b.t().contiguous().t()),
        "both": (a.t().contiguous().t(), b.t().contiguous().t()),
        "steps": (values(F32, 80, 140)[::2, ::2], values(F32, 140, 100)[::2, ::2]),
        "offset": (values(F32, 41, 71)[1:, 1:], values(F32, 71, 53)[1:, 3:]),
        "one row for all": (values(F32, 1, 70).expand(40, 70), b),
        "one column for all": (a, values(F32, 70, 1).expand(70, 50)),
        "rows a page apart": (values(F32, 40, 1024)[:, :70], values(F32, 70, 1024)[:, :50]),
    }
    for left, right in cases.values():
        compare(torch.mm, left, right, options=OWN)


@pytest.mark.parametrize("dtype", [F64, I32, I64])
def test_other_types(dtype):
    compare(torch.mm, values(dtype, 31, 45), values(dtype, 45, 50), options=OWN)
    compare(torch.bmm, values(dtype, 3, 15, 9), values(dtype, 3, 9, 17), options=OWN)


@pytest.mark.parametrize(
    ("dtype", "target"),
    [(BF16, "cpu"), (F16, "cpu"), (BF16, "cpu:x86-64-v3"), (F16, "cpu:x86-64-v3"), (BF16, "cpu:x86-64-v2")],
)
def test_half_precision_is_added_up_in_f32(dtype, target):
    options = {"contractions": "own", "target": target}
    compare(torch.mm, values(dtype, 37, 200), values(dtype, 200, 50), options=options)
    compare(torch.bmm, values(dtype, 2, 15, 40), values(dtype, 2, 40, 33), options=options)


def test_half_precision_without_instructions_for_it_is_ours_by_choice():
    compare(torch.mm, values(BF16, 64, 96), values(BF16, 96, 64), options={"target": "cpu:x86-64-v3"})


@pytest.mark.parametrize("target", ["cpu:x86-64-v2", "cpu:x86-64-v3"])
def test_narrower_processors(target):
    options = {"contractions": "own", "target": target}
    compare(lambda x, y: functional.gelu(x @ y + y[0]), values(F32, 29, 33), values(F32, 33, 50), options=options)


@pytest.mark.parametrize("batch", [1, 3])
def test_batches(batch):
    a, b, c = values(F32, batch, 29, 33), values(F32, batch, 33, 40, seed=1), values(F32, batch, 29, 40, seed=2)
    compare(torch.bmm, a, b, options=OWN)
    compare(torch.bmm, a, b.transpose(1, 2).contiguous().transpose(1, 2), options=OWN)
    compare(torch.bmm, a[:1].expand(batch, 29, 33), b, options=OWN)
    compare(lambda x, y, z: torch.baddbmm(z, x, y, beta=0.5, alpha=2), a, b, c, options=OWN)


@pytest.mark.parametrize("sizes", [(0, 5, 6), (4, 0, 6), (4, 5, 0), (0, 0, 0)])
def test_no_elements(sizes):
    m, k, n = sizes
    compare(torch.mm, values(F32, m, k), values(F32, k, n), native=False)
    compare(torch.mm, values(F32, m, k), values(F32, k, n), options=OWN, native=False)


def test_nan_and_infinities_stay_where_they_belong():
    a, b = values(F32, 20, 35), values(F32, 35, 33)
    a[3, 5], a[7, 0], b[10, 30], b[11, 32] = float("nan"), float("inf"), float("-inf"), float("nan")
    compare(torch.mm, a, b, options=OWN)
    layer = nn.Linear(35, 33, bias=False).requires_grad_(False)
    layer.weight.copy_(b.t())
    got, want = torch.compile(layer, backend="accel")(a), layer(a)
    assert torch.equal(got.isnan(), want.isnan())
    assert torch.equal(got.isinf(), want.isinf())


EPILOGUES = {
    "bias and gelu": lambda p, row, column, other: functional.gelu(p + row),
    "relu": lambda p, row, column, other: functional.relu(p),
    "column": lambda p, row, column, other: p * column,
    "residual": lambda p, row, column, other: p + row + other,
    "also before the activation": lambda p, row, column, other: (p + row, torch.tanh(p + row)),
    "cast": lambda p, row, column, other: (p + row).to(BF16),
    "transposed reader": lambda p, row, column, other: (p + 1, (p * 2).t().contiguous()),
    "softmax": lambda p, row, column, other: (p + row).softmax(-1),
    "loop numbers": lambda p, row, column, other: p.tril(),
}


@pytest.mark.parametrize("name", EPILOGUES)
def test_epilogues(name):
    def function(x, y, row, column, other):
        return EPILOGUES[name](x @ y, row, column, other)

    inputs = (values(F32, 45, 64), values(F32, 64, 50), values(F32, 50), values(F32, 45, 1), values(F32, 45, 50))
    compare(function, *inputs, options=OWN)


def test_prologues():
    a, b = values(F32, 45, 64), values(F32, 64, 50)
    compare(lambda x, y: (x * 2 + 1) @ y, a, b, options=OWN)
    compare(lambda x, y: x @ (y * 2), a, b, options=OWN)
    compare(lambda x, y: x.float() @ y.float(), a.to(BF16), b.to(F16), options=OWN)


def test_an_epilogue_is_part_of_the_kernel():
    with torch.no_grad():
        (graph,) = torch_accel.explain(
            lambda x, y, b: functional.gelu(x @ y + b), values(F32, 64, 64), values(F32, 64, 64), values(F32, 64)
        ).graphs
    (kernel,) = graph.kernels
    assert kernel["class"] == "contraction"
    assert kernel["choice"]
    assert "aten.gelu.default" in kernel["ops"]


def test_rows_that_views_split_are_fused_over():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(40, 70), nn.Linear(70, 40)

        def forward(self, x):
            return x + self.down(functional.gelu(self.up(x)))

    block, x = Block().requires_grad_(False), values(F32, 8, 16, 40)
    got, want = torch.compile(block, backend="accel")(x), block(x)
    (report,) = torch_accel.reports()
    assert sum(kernel["launches"] for kernel in report.kernels if not kernel["once"]) == 2
    close(got, want, block.double()(x.double()))


def test_products_share_operands_and_results():
    a, b, c = values(F32, 30, 40), values(F32, 40, 50), values(F32, 40, 60)
    compare(lambda x, y, z: (x @ y, x @ z), a, b, c, options=OWN)
    compare(lambda x, y: ((p := x @ y) + 1, p.sum(0), p @ p.t()), a, b, options=OWN)
    compare(lambda x, y: x @ y @ y.t() @ x.t(), a, b, options=OWN)


def test_one_compile_serves_many_sizes():
    layer = nn.Linear(33, 50).requires_grad_(False)
    compiled = torch.compile(lambda x: functional.gelu(layer(x)), backend="accel", dynamic=True, fullgraph=True)
    torch_accel.reset_reports()
    for rows in (3, 1, 2, 5, 9, 14, 15, 28, 100, 400):
        x = values(F32, rows, 33, seed=rows)
        want = functional.gelu(layer(x))
        close(compiled(x), want, want.double())
    assert len(torch_accel.reports()) <= 2  # one row is a graph of its own

    own = torch.compile(torch.bmm, backend="accel", dynamic=True, options=OWN)
    for b, m, k, n in ((2, 20, 30, 40), (3, 13, 5, 33), (4, 15, 64, 7)):
        x, y = values(F32, b, m, k), values(F32, b, k, n)
        close(own(x, y), torch.bmm(x, y), torch.bmm(x.double(), y.double()))


def test_vectors():
    a, v, w = values(F32, 30, 40), values(F32, 40), values(F32, 40, seed=1)
    compare(lambda x, y, z: (x @ y, y.dot(z)), a, v, w, native=False)


def test_the_library_by_option():
    torch_accel.reset_reports()
    a, b = values(F32, 64, 64), values(F32, 64, 64, seed=1)
    got = torch.compile(torch.mm, backend="accel", options={"contractions": "library"})(a, b)
    (report,) = torch_accel.reports()
    assert report.nodes["library"] == 1
    assert "by option" in report.library[0]["reason"]
    close(got, a @ b, a.double() @ b.double())


def test_a_part_of_the_rows_split_of_symbolic_sizes():
    """Of the rows as many are read as another tensor says, and no more than these are written."""

    def part(x, w, t):
        count = t.shape[0]
        return (x.flatten(0, 1) @ w)[: count * 8].view(count, 8, -1) * 2

    run = torch.compile(part, backend="accel", fullgraph=True, options=OWN)
    for size, count in ((5, 3), (500, 3), (7, 6)):
        x, w, t = values(F32, size, 8, 33), values(F32, 33, 64, seed=1), values(F32, count)
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_dynamic(t, 0)
        close(run(x, w, t), part(x, w, t), part(x.double(), w.double(), t))


@pytest.mark.parametrize("dtype", [BF16, F16])
def test_half_precision_of_symbolic_sizes(dtype):
    run = torch.compile(torch.mm, backend="accel", dynamic=True, options=OWN)
    for m, k, n in ((20, 30, 40), (33, 17, 50)):
        x, y = values(dtype, m, k), values(dtype, k, n)
        close(run(x, y), x @ y, x.double() @ y.double())
